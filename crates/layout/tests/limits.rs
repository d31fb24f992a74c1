//! Large and hostile manifests take bounded work.

#![expect(clippy::arithmetic_side_effects, reason = "a test may fail by panic")]

use mooncake_pd_layout::{
    Axis, CacheLayout, FieldError, FieldSpec, GroupSpec, LayoutBuilder, LayoutError,
    MAX_FIELDS_PER_LAYER, compare,
};

/// `layers` of `fields`, each field in a plane of its own.
fn many(layers: u32, fields: u32, reversed: bool) -> Result<CacheLayout, LayoutError> {
    let order = |count: u32| {
        let list = (0..count).map(move |i| if reversed { count - 1 - i } else { i });
        list.collect::<Vec<_>>()
    };
    let mut group = GroupSpec::new(0, "full_attention", 16, 0);
    for layer in order(layers) {
        let field = |number: u32| {
            FieldSpec::new(&format!("field.{number}"), "uint8")
                .at(0, u64::from(layer * fields + number) * 64)
                .page_stride(16)
                .dim(Axis::Byte, 16, 1)
        };
        group = group.layer(
            &format!("layer.{layer}"),
            order(fields).into_iter().map(field),
        );
    }
    LayoutBuilder::new()
        .allocation(0, u64::from(layers * fields) * 64)
        .pool(0, 4, Some(0))
        .group(group)
        .build()
}

#[test]
fn a_hundred_thousand_fields_compare_in_any_order() {
    let a = many(1000, 100, false);
    let b = many(1000, 100, true);
    let (Ok(a), Ok(b)) = (a, b) else {
        panic!("both are valid")
    };
    assert_eq!(compare(&a, &b), []);
    assert_eq!(a.fingerprint(), b.fingerprint());
}

#[test]
fn a_layer_of_too_many_fields_is_refused() {
    let limit = u32::try_from(MAX_FIELDS_PER_LAYER).unwrap_or(u32::MAX);
    assert!(many(1, limit, false).is_ok());
    assert_eq!(
        many(2, limit + 1, false),
        Err(LayoutError::TooMany {
            what: "fields in a layer",
            count: 1025,
            limit: 1024
        })
    );
}

#[test]
fn an_axis_of_pages_comes_from_the_group_only() {
    let field = || FieldSpec::new("x", "uint8").page_stride(16);
    for field in [
        field().dim(Axis::Page, 2, 8).dim(Axis::Byte, 8, 1),
        field().dim(Axis::Byte, 8, 1).split(Axis::Page, &[1]),
    ] {
        let built = LayoutBuilder::new()
            .allocation(0, 1000)
            .pool(0, 4, Some(0))
            .group(GroupSpec::new(0, "full_attention", 16, 0).layer("l", [field]))
            .build();
        let Err(LayoutError::Field { error, .. }) = built else {
            panic!("{built:?}")
        };
        assert_eq!(error, FieldError::PageAxis);
    }
}
