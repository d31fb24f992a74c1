//! Large and hostile manifests take bounded work.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_layout::import::{self, Side};
use mooncake_pd_layout::raw::RawLayout;
use mooncake_pd_layout::{
    Axis, CacheLayout, FieldError, FieldId, FieldPlace, FieldSpec, GroupId, GroupSpec, LayerId,
    LayoutBuilder, LayoutError, MAX_FIELDS_PER_LAYER, MAX_RUNS_PER_FIELD, MAX_SEGMENTS, Place, Run,
    compare,
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
            place: Place::Layer {
                group: GroupId::new(0),
                layer: LayerId::new("layer.0"),
            },
            what: "fields",
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

/// `groups` that own the same `pieces` of every other byte.
fn overlaid(groups: u32, pieces: u32) -> RawLayout {
    let stride = u64::from(pieces) * 2;
    let mut layout = LayoutBuilder::new()
        .allocation(0, stride * 4)
        .pool(0, 4, None);
    for id in 0..groups {
        let field = FieldSpec::new("kv", "uint8").page_stride(stride).dim(
            Axis::Token,
            u64::from(pieces),
            2,
        );
        layout = layout.group(GroupSpec::new(id, "mla", 16, 0).layer("l", [field]));
    }
    layout.into_raw()
}

#[test]
fn a_block_is_in_as_many_pieces_as_the_limit_and_no_more() {
    let limit = u32::try_from(MAX_SEGMENTS).unwrap_or(u32::MAX);
    assert_eq!(CacheLayout::new(&overlaid(1024, limit / 1024)).err(), None);
    assert_eq!(CacheLayout::new(&overlaid(4, limit / 4)).err(), None);
    assert_eq!(
        CacheLayout::new(&overlaid(4, limit / 4 + 1)),
        Err(LayoutError::Field {
            place: Box::new(FieldPlace {
                group: GroupId::new(0),
                layer: LayerId::new("l"),
                field: FieldId::new("kv"),
            }),
            error: FieldError::TooManyRuns {
                runs: 65_537,
                limit: MAX_RUNS_PER_FIELD,
            },
        })
    );
    assert_eq!(
        CacheLayout::new(&overlaid(8, limit / 8 + 1)),
        Err(LayoutError::TooMany {
            place: Place::Layout,
            what: "pieces in a block",
            count: 262_152,
            limit: 262_144,
        })
    );
}

/// A field of three axes, none of which joins another.
fn scattered(extents: [u64; 3]) -> Result<CacheLayout, LayoutError> {
    let [a, b, c] = extents;
    let field = FieldSpec::new("kv", "uint8")
        .page_stride(1 << 40)
        .dim(Axis::Head, a, 1 << 35)
        .dim(Axis::Token, b, 1 << 20)
        .dim(Axis::Content, c, 2);
    LayoutBuilder::new()
        .allocation(0, 1 << 42)
        .pool(0, 2, None)
        .group(GroupSpec::new(0, "mla", 16, 0).layer("l", [field]))
        .build()
}

#[test]
fn a_field_is_in_as_many_runs_as_the_limit_and_no_more() {
    assert!(scattered([8, 8192, 4]).is_ok());
    assert!(matches!(
        scattered([8, 8193, 4]),
        Err(LayoutError::Field {
            error: FieldError::TooManyRuns {
                runs: 65_544,
                limit: 65_536
            },
            ..
        })
    ));
    // Few runs of many pieces are many pieces.
    assert!(scattered([8, 8192, 5]).is_err());
}

fn reports(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            reports(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn blocks_of_known_engines_are_in_far_fewer_pieces_than_the_limit() {
    let mut found = Vec::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    reports(&fixtures, &mut found);
    let mut largest = (0, String::new());
    let mut layouts = 0;
    for path in found {
        let text = fs::read_to_string(&path).unwrap();
        for side in [Side::Prefill, Side::Decode] {
            let Ok(layout) = import::any(&text, side) else {
                continue;
            };
            layouts += 1;
            let fields = layout
                .groups()
                .iter()
                .flat_map(mooncake_pd_layout::Group::fields);
            let runs = fields.flat_map(|(_, field)| field.payload());
            let pieces: u32 = runs.map(Run::count).sum();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            largest = largest.max((pieces, name.into_owned()));
        }
    }
    assert!(layouts >= 60, "{layouts}");
    assert_eq!(largest, (268, "unified-hybrid-qwen3-next.json".into()));
}

/// Two groups of different pools, `count` pieces each, one behind the other's.
fn interleaved(count: u64, strides: [u64; 2]) -> Result<CacheLayout, LayoutError> {
    let mut layout = LayoutBuilder::new()
        .allocation(0, 1 << 40)
        .pool(0, 2, None)
        .pool(1, 2, None);
    for (id, stride) in (0_u32..).zip(strides) {
        let field = FieldSpec::new("kv", "uint8")
            .at(0, u64::from(id) * 2)
            .page_stride(stride)
            .dim(Axis::Token, count, 4);
        layout = layout.group(GroupSpec::new(id, "mla", 16, id).layer("l", [field]));
    }
    layout.build()
}

#[test]
fn comparing_pair_by_pair_ends_at_a_bound() {
    let even = [1 << 20, 1 << 20];
    // Strides without a common divisor cost more steps.
    let odd = [1_134_903_170, 1_836_311_903];
    assert!(interleaved(2500, even).is_ok());
    assert!(interleaved(800, odd).is_ok());
    for layout in [interleaved(4200, even), interleaved(2000, odd)] {
        assert!(
            matches!(layout, Err(LayoutError::OverlayUnprovable { .. })),
            "{layout:?}"
        );
    }
}

#[test]
fn a_layout_of_too_many_fields_is_refused() {
    assert!(many(256, 1024, false).is_ok());
    assert_eq!(
        many(257, 1021, false),
        Err(LayoutError::TooMany {
            place: Place::Layout,
            what: "fields",
            count: 262_397,
            limit: 262_144
        })
    );
}

#[test]
fn the_pool_of_fewer_ids_is_gone_through() {
    let layout = |[many, few]: [u32; 2]| {
        let field = |at, stride| {
            FieldSpec::new("kv", "uint8")
                .at(0, at)
                .page_stride(stride)
                .dim(Axis::Byte, 2, 1)
        };
        LayoutBuilder::new()
            .allocation(0, 1 << 40)
            .pool(many, 1 << 25, None)
            .pool(few, 1, None)
            .group(GroupSpec::new(many, "mla", 16, many).layer("l", [field(0, 4)]))
            .group(GroupSpec::new(few, "mla", 16, few).layer("l", [field(2, 3)]))
            .build()
            .err()
    };
    assert_eq!(layout([0, 1]), None);
    assert_eq!(layout([1, 0]), None);
}
