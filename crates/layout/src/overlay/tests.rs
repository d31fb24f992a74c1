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

#[test]
fn of_ranges_that_only_touch_the_first_overlap_is_named() {
    // Two pools meet below 1000; at 1000 begins a group that owns bytes twice.
    let both = GroupSpec::new(2, "mla", 16, 2)
        .layer("a", [field("x", 1000, 100, 50)])
        .layer("b", [field("y", 1049, 100, 50)]);
    let error = LayoutBuilder::new()
        .allocation(0, 4000)
        .pool(0, 10, None)
        .pool(1, 10, None)
        .pool(2, 10, None)
        .group(group(0, 0, field("a", 0, 100, 100)))
        .group(group(1, 1, field("b", 30, 100, 10)))
        .group(both)
        .build()
        .unwrap_err();
    let LayoutError::Overlap { first, second, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((first.field.as_str(), second.field.as_str()), ("a", "b"));
}

#[test]
fn pools_of_any_size_that_only_touch_are_not_compared() {
    const BLOCKS: u32 = 1 << 25;
    let border = 2 * u64::from(BLOCKS);
    let layout = |second| {
        LayoutBuilder::new()
            .allocation(0, 1 << 40)
            .pool(0, BLOCKS, None)
            .pool(1, BLOCKS, None)
            .pool(2, 1, None)
            // Makes the two one range of bytes that fields share.
            .arbitrated(0, 2)
            .arbitrated(1, 2)
            .group(group(0, 0, field("a", 0, 2, 2)))
            .group(group(1, 1, field("b", second, 3, 3)))
            .group(group(2, 2, field("c", border - 1, 2, 2)))
            .build()
            .map(|_| ())
    };
    assert_eq!(layout(border), Ok(()));
    assert!(matches!(
        layout(border - 1),
        Err(LayoutError::OverlayUnprovable { .. })
    ));
}
