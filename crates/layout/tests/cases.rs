//! Failures met in the field, reduced to layouts.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use mooncake_pd_layout::{
    AllocationId, Axis, CacheLayout, DType, Difference, FieldSpec, GroupId, GroupSpec, LayerId,
    LayoutBuilder, LayoutError, Place, PoolId, compare,
};

fn kv(name: &str, offset: u64) -> FieldSpec {
    FieldSpec::new(name, "bfloat16")
        .at(0, offset)
        .page_stride(64)
        .dim(Axis::Token, 4, 16)
        .dim(Axis::Head, 2, 8)
        .dim(Axis::Content, 4, 2)
}

fn attention(id: u32) -> GroupSpec {
    GroupSpec::new(id, "full_attention", 4, 0)
}

fn state(offset: u64, dtype: &str, element: u64) -> GroupSpec {
    // 16 heads of 128 x 128 elements, as a GDN layer has them.
    let recurrent = FieldSpec::new("recurrent", dtype)
        .at(1, offset)
        .page_stride(16 * 128 * 128 * element)
        .dim(Axis::Head, 16, 128 * 128 * element)
        .dim(Axis::Value, 128, 128 * element)
        .dim(Axis::Key, 128, element);
    GroupSpec::new(1, "gdn_state", 4, 0).layer("linear.0", [recurrent])
}

fn layout(groups: impl IntoIterator<Item = GroupSpec>) -> CacheLayout {
    let empty = LayoutBuilder::new()
        .allocation(0, 1 << 30)
        .allocation(1, 1 << 30)
        .pool(0, 8, Some(0));
    groups
        .into_iter()
        .fold(empty, LayoutBuilder::group)
        .build()
        .unwrap()
}

fn messages(source: &CacheLayout, destination: &CacheLayout) -> Vec<(bool, String)> {
    compare(source, destination)
        .iter()
        .map(|difference| (difference.is_incompatible(), difference.to_string()))
        .collect()
}

#[test]
fn c12_group_sets_that_differ_are_named_on_both_sides() {
    let two = layout([
        attention(0).layer("a", [kv("kv", 0)]),
        attention(5).layer("b", [kv("kv", 1024)]),
    ]);
    let one = layout([attention(0).layer("a", [kv("kv", 0)])]);
    assert_eq!(
        messages(&two, &one),
        [(
            true,
            "the source has groups [0, 5], the destination has [0]".into()
        )]
    );
    assert_eq!(
        messages(&one, &two),
        [(
            true,
            "the source has groups [0], the destination has [0, 5]".into()
        )]
    );
}

#[test]
fn c05_groups_are_paired_by_id_not_by_position() {
    let a = || attention(0).layer("a", [kv("kv", 0)]);
    let s = || state(0, "bfloat16", 2);
    assert_eq!(compare(&layout([a(), s()]), &layout([s(), a()])), []);
}

#[test]
fn c13_a_layer_only_the_destination_has_is_a_note() {
    let plain = layout([attention(0).layer("a", [kv("kv", 0)])]);
    let draft = layout([attention(0)
        .layer("draft", [kv("kv", 0)])
        .layer("a", [kv("kv", 1024)])]);
    assert_eq!(
        compare(&plain, &draft),
        [Difference::DestinationLayer {
            group: GroupId::new(0),
            layer: LayerId::new("draft"),
        }]
    );
    assert_eq!(
        messages(&draft, &plain),
        [(
            true,
            "layer `draft` of group 0 is at the source, the destination has none".into()
        )]
    );
    let other = layout([attention(0).layer("b", [kv("kv", 0)])]);
    assert_eq!(
        messages(&plain, &other),
        [(
            true,
            "group 0 has no layer on both sides: 1 at the source, 1 at the destination".into()
        )]
    );
}

#[test]
fn c20_a_padded_page_owns_its_payload_and_nothing_else() {
    let padded = FieldSpec::new("x", "uint8")
        .at(0, 60)
        .page_stride(100)
        .dim(Axis::Byte, 40, 1);
    let layout = LayoutBuilder::new()
        .allocation(0, 1000)
        .pool(0, 10, None)
        .group(attention(0).layer("a", [padded]))
        .build()
        .unwrap();
    let (_, field) = layout.groups()[0].fields().next().unwrap();
    for row in 0..10 {
        let start = field.block_offset(row).unwrap().get();
        let [run] = field.payload() else {
            panic!("{field:?}")
        };
        let owned = start + run.start().get()..start + run.end();
        let row = u64::from(row);
        assert_eq!(owned, 100 * row + 60..100 * row + 100);
    }
}

#[test]
fn c21_c22_views_keep_their_base_and_an_allocation_is_one() {
    let inner = FieldSpec::new("x", "uint8")
        .at(0, 20)
        .page_stride(100)
        .dim(Axis::Byte, 40, 1);
    let outer = FieldSpec::new("x", "uint8")
        .page_stride(100)
        .dim(Axis::Byte, 100, 1);
    let views = LayoutBuilder::new()
        .allocation(0, 1000)
        .pool(0, 10, None)
        .group(attention(0).layer("outer", [outer.clone()]))
        .group(attention(1).layer("inner", [inner]))
        .group(attention(2).layer("same", [outer.clone()]));
    let layout = views.build().unwrap();
    assert_eq!(layout.allocations().len(), 1);
    let bases: Vec<u64> = layout
        .groups()
        .iter()
        .flat_map(|group| group.fields().map(|(_, field)| field.offset().get()))
        .collect();
    assert_eq!(bases, [0, 20, 0]);
    // The same allocation a second time is no second allocation.
    assert_eq!(
        views.allocation(0, 1000).build(),
        Err(LayoutError::IdTwice {
            place: Place::Allocation(AllocationId::new(0))
        })
    );
    // A range never reaches into the allocation that happens to follow.
    let over = LayoutBuilder::new()
        .allocation(0, 950)
        .allocation(1, 1000)
        .pool(0, 10, None)
        .group(attention(0).layer("outer", [outer]));
    let error = over.build().unwrap_err().to_string();
    assert_eq!(
        error,
        "field `x` of layer `outer` in group 0 ends at byte 1000, allocation 0 has 950"
    );
}

#[test]
fn c25_no_geometry_comes_from_the_first_layer() {
    let both = |first: GroupSpec, second: GroupSpec| layout([first, second]);
    let gdn = || state(0, "bfloat16", 2);
    let mixed = || {
        attention(0)
            .layer("a", [kv("kv", 0)])
            .layer("b", [kv("kv", 512).dim(Axis::Tap, 1, 1)])
    };
    let layout = both(gdn(), mixed());
    assert_eq!(layout, both(mixed(), gdn()));
    let sizes: Vec<(u32, u64, u64)> = layout
        .groups()
        .iter()
        .flat_map(|group| group.fields().map(move |(_, field)| (group, field)))
        .map(|(group, field)| {
            let stride = field.block_stride().get();
            (group.id().get(), field.payload_len().get(), stride)
        })
        .collect();
    assert_eq!(sizes, [(0, 64, 64), (0, 64, 64), (1, 524_288, 524_288)]);
}

#[test]
fn c26_an_unknown_kind_is_an_error_that_names_it() {
    let error = LayoutBuilder::new()
        .allocation(0, 1024)
        .pool(0, 8, None)
        .group(GroupSpec::new(3, "cross_attention", 4, 0).layer("a", [kv("kv", 0)]))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "group 3 is of unknown kind `cross_attention`"
    );
}

#[test]
fn c27_state_of_another_dtype_names_field_and_both_sizes() {
    let source = layout([state(0, "bfloat16", 2)]);
    let destination = layout([state(64, "float32", 4)]);
    let found = compare(&source, &destination);
    let [difference] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(difference.is_incompatible());
    assert!(matches!(
        difference,
        Difference::DType {
            source_dtype: DType::BF16,
            destination_dtype: DType::F32,
            ..
        }
    ));
    assert_eq!(
        difference.to_string(),
        "field `recurrent` of layer `linear.0` in group 1 is bfloat16 (524288 bytes a block) \
         at the source, float32 (1048576 bytes a block) at the destination"
    );
}

#[test]
fn c28_offsets_beyond_32_bits_are_exact_and_overflow_is_refused() {
    let at = |offset: u64, len: u64| {
        let field = FieldSpec::new("x", "uint8")
            .at(0, offset)
            .page_stride(1 << 33)
            .dim(Axis::Byte, 1 << 20, 1);
        LayoutBuilder::new()
            .allocation(0, len)
            .pool(0, 1000, Some(0))
            .group(attention(0).layer("a", [field]))
            .build()
    };
    let base = (1 << 47) - 5;
    let layout = at(base, base + 1000 * (1 << 33)).unwrap();
    let (_, field) = layout.groups()[0].fields().next().unwrap();
    assert_eq!(
        field.block_offset(999).unwrap().get(),
        (1 << 47) - 5 + 999 * (1 << 33)
    );
    let grown = layout.resized(PoolId::new(0), 100_000_000).unwrap();
    assert_eq!(
        grown.allocations()[0].len().get(),
        base + 100_000_000 * (1 << 33)
    );
    assert!(layout.resized(PoolId::new(0), u32::MAX).is_err());
    let last = (1 << 62) - 1;
    assert!(matches!(
        at(last - (1 << 33), last),
        Err(LayoutError::Field { .. })
    ));
    assert!(matches!(at(u64::MAX, last), Err(LayoutError::Field { .. })));
}

#[test]
fn c29_a_kernel_block_that_changes_the_order_of_bytes_is_incompatible() {
    // Heads outside of tokens within a page of 16 or 32 tokens, equal blocks.
    let of = |pages: u32, tokens: u64| {
        let field = FieldSpec::new("kv", "uint8")
            .page_stride(2 * tokens * 4)
            .dim(Axis::Head, 2, tokens * 4)
            .dim(Axis::Token, tokens, 4)
            .dim(Axis::Content, 4, 1);
        let group = GroupSpec::new(0, "full_attention", 32, 0).pages_per_block(pages);
        layout([group.layer("a", [field])])
    };
    let found = messages(&of(2, 16), &of(1, 32));
    assert_eq!(
        found,
        [
            (
                false,
                "group 0 has 2 kernel pages per block at the source, 1 at the destination".into()
            ),
            (
                true,
                "field `kv` of layer `a` in group 0 is ordered \
                 [page 2, head 2, token 16, content 4] at the source, \
                 [head 2, token 32, content 4] at the destination"
                    .into()
            ),
        ]
    );
}

#[test]
fn c29_a_kernel_block_that_keeps_the_order_of_bytes_is_compatible() {
    let of = |pages: u32, tokens: u64| {
        let field = FieldSpec::new("kv", "uint8")
            .page_stride(tokens * 8 + 5)
            .dim(Axis::Token, tokens, 8)
            .dim(Axis::Content, 8, 1);
        let group = GroupSpec::new(0, "full_attention", 32, 0).pages_per_block(pages);
        layout([group.layer("a", [field])])
    };
    let found = compare(&of(2, 16), &of(1, 32));
    assert!(matches!(
        found.as_slice(),
        [Difference::PagesPerBlock { .. }]
    ));
    assert!(!found[0].is_incompatible());
}
