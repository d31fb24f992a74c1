use crate::{Axis, FieldSpec, GroupSpec, LayoutBuilder, LayoutError};

fn field(name: &str, offset: u64, stride: u64, len: u64) -> FieldSpec {
    FieldSpec::new(name, "uint8")
        .at(0, offset)
        .page_stride(stride)
        .dim(Axis::Byte, len, 1)
}

fn group(id: u32, pool: u32, field: FieldSpec) -> GroupSpec {
    GroupSpec::new(id, "full_attention", 16, pool).layer("l", [field])
}

fn two(a: FieldSpec, b: FieldSpec) -> Result<(), LayoutError> {
    let layout = LayoutBuilder::new()
        .allocation(0, 4000)
        .pool(0, 10, Some(0));
    layout
        .group(group(0, 0, a))
        .group(group(1, 0, b))
        .build()
        .map(|_| ())
}

#[test]
fn groups_of_one_pool_may_overlay_the_same_row() {
    assert_eq!(two(field("a", 0, 100, 80), field("b", 0, 100, 100)), Ok(()));
    assert_eq!(
        two(field("a", 0, 100, 80), field("b", 1000, 100, 100)),
        Ok(())
    );
}

#[test]
fn c24_row_of_one_block_meeting_the_next_is_refused() {
    for (a, b) in [
        (field("a", 0, 100, 80), field("b", 60, 100, 100)),
        (field("a", 0, 100, 80), field("b", 0, 110, 80)),
        (field("a", 0, 100, 80), field("b", 300, 200, 80)),
    ] {
        let error = two(a, b).unwrap_err();
        assert!(matches!(error, LayoutError::Overlap { .. }), "{error}");
    }
}

#[test]
fn the_named_blocks_really_meet() {
    let error = two(field("a", 0, 100, 80), field("b", 300, 200, 80)).unwrap_err();
    let LayoutError::Overlap {
        first_block,
        second_block,
        first,
        ..
    } = error
    else {
        panic!("{error}")
    };
    let (a, b) = if first.field.as_str() == "a" {
        (first_block, second_block)
    } else {
        (second_block, first_block)
    };
    let (a, b) = (100 * a, 300 + 200 * b);
    assert!(a < b + 80 && b < a + 80, "{a} {b}");
}

#[test]
fn c08_payload_longer_than_its_stride_is_refused() {
    let error = LayoutBuilder::new()
        .allocation(0, 100_000_000)
        .pool(0, 24, Some(0))
        .group(group(0, 0, field("kv", 0, 73_728, 884_736)))
        .build()
        .unwrap_err();
    assert!(matches!(
        error,
        LayoutError::PayloadExceedsStride {
            payload: 884_736,
            stride: 73_728,
            ..
        }
    ));
}

#[test]
fn c24_pools_that_share_bytes_must_be_arbitrated() {
    let layout = LayoutBuilder::new()
        .allocation(0, 4000)
        .pool(0, 10, None)
        .pool(1, 5, None)
        .group(group(0, 0, field("kv", 0, 100, 100)))
        .group(group(1, 1, field("state", 0, 700, 650)));
    assert!(matches!(layout.build(), Err(LayoutError::Overlap { .. })));
    assert!(layout.arbitrated(1, 0).build().is_ok());
}

#[test]
fn interleaved_pools_and_strides_are_legal_when_disjoint() {
    let layout = |offset| {
        LayoutBuilder::new()
            .allocation(0, 4000)
            .pool(0, 10, None)
            .pool(1, 5, None)
            .group(group(0, 0, field("a", 0, 100, 40)))
            .group(group(1, 1, field("b", offset, 200, 60)))
            .build()
            .is_ok()
    };
    assert!(layout(40));
    assert!(!layout(39));
    assert!(!layout(41));
}

#[test]
fn a_group_never_owns_a_byte_twice() {
    let both = GroupSpec::new(0, "mla", 16, 0)
        .layer("a", [field("x", 0, 100, 50)])
        .layer("b", [field("x", 49, 100, 50)]);
    let error = LayoutBuilder::new()
        .allocation(0, 4000)
        .pool(0, 10, None)
        .group(both)
        .build();
    assert!(matches!(
        error,
        Err(LayoutError::Overlap {
            first_block: 0,
            second_block: 0,
            ..
        })
    ));
}
