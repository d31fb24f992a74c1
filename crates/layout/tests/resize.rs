//! Resizing against engines that were really started with other block counts.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail by panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::import::vllm_033;
use mooncake_pd_layout::{
    Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder, LayoutError, PoolId, ResizeError,
};
use serde_json::Value;

const POOL: PoolId = PoolId::new(0);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-0.33")
}

fn import(name: &str) -> CacheLayout {
    let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    vllm_033(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn models() -> Vec<String> {
    fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".consumer.json").map(str::to_owned))
        .collect()
}

#[test]
fn a_resized_producer_is_the_consumer_the_engine_made() {
    let models = models();
    assert_eq!(models.len(), 20);
    for model in models {
        let producer = import(&model);
        let consumer = import(&format!("{model}.consumer"));
        let pool = &consumer.pools()[0];
        let resized = producer.resized(pool.id(), pool.capacity()).unwrap();
        assert_eq!(resized.allocations(), consumer.allocations(), "{model}");
        assert_eq!(resized.groups(), consumer.groups(), "{model}");
        let back = resized
            .resized(pool.id(), producer.pools()[0].capacity())
            .unwrap();
        assert_eq!(back, producer, "{model}");
    }
}

#[test]
fn resized_allocations_are_those_the_engine_registered_for_the_bench() {
    let text = fs::read_to_string(folder().join("planning-bench.json")).unwrap();
    let bench: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(bench.len(), 11);
    for (model, sides) in bench {
        for side in ["producer", "consumer"] {
            let side = &sides[side];
            let blocks = u32::try_from(side["num_blocks"].as_u64().unwrap()).unwrap();
            let layout = import(&model).resized(POOL, blocks).unwrap();
            let [allocation] = layout.allocations() else {
                panic!("{model}")
            };
            assert_eq!(allocation.len().get(), side["storage_nbytes"], "{model}");
            let mut found: BTreeMap<&str, u64> = BTreeMap::new();
            for group in layout.groups() {
                for (layer, field) in group.fields() {
                    let offset = field.offset().get();
                    found
                        .entry(layer.as_str())
                        .and_modify(|first| *first = (*first).min(offset))
                        .or_insert(offset);
                }
            }
            for region in side["regions"].as_array().unwrap() {
                let layer = region["layer_name"].as_str().unwrap();
                assert_eq!(found[layer], region["base_off"], "{model} {layer}");
            }
        }
    }
}

fn bytes(name: &str, offset: u64, stride: u64, len: u64) -> FieldSpec {
    FieldSpec::new(name, "uint8")
        .at(0, offset)
        .page_stride(stride)
        .dim(Axis::Byte, len, 1)
}

fn group(id: u32, pool: u32, fields: impl IntoIterator<Item = FieldSpec>) -> GroupSpec {
    GroupSpec::new(id, "full_attention", 16, pool).layer("l", fields)
}

fn layout(len: u64, blocks: u32) -> LayoutBuilder {
    LayoutBuilder::new()
        .allocation(0, len)
        .pool(0, blocks, Some(0))
}

#[test]
fn a_row_keeps_its_offsets_and_slack() {
    let of = |blocks: u32| {
        layout(u64::from(blocks) * 100 + 7, blocks)
            .group(group(
                0,
                0,
                [bytes("a", 10, 100, 40), bytes("b", 50, 100, 45)],
            ))
            .group(group(1, 0, [bytes("a", 0, 100, 100)]))
            .build()
            .unwrap()
    };
    assert_eq!(of(10).resized(POOL, 3).unwrap(), of(3));
    assert_eq!(of(3).resized(POOL, 10).unwrap(), of(10));
    assert_eq!(of(3).resized(POOL, 1).unwrap(), of(1));
}

#[test]
fn planes_of_different_strides_and_gaps_move() {
    let of = |blocks: u32| {
        let n = u64::from(blocks);
        layout(n * 360 + 13, blocks)
            .group(group(
                0,
                0,
                [bytes("a", 3, 100, 90), bytes("b", n * 100 + 8, 60, 60)],
            ))
            .group(group(1, 0, [bytes("c", n * 160 + 8, 200, 150)]))
            .build()
            .unwrap()
    };
    assert_eq!(of(10).resized(POOL, 4).unwrap(), of(4));
    assert_eq!(of(4).resized(POOL, 10).unwrap(), of(10));
}

#[test]
fn heads_a_plane_apart_move_with_their_planes() {
    let of = |blocks: u32| {
        let n = u64::from(blocks);
        let plane = n * 24 + 5;
        let field = |name, offset| {
            FieldSpec::new(name, "bfloat16")
                .at(0, offset)
                .page_stride(12)
                .dim(Axis::Head, 3, 2 * plane)
                .dim(Axis::Token, 2, 6)
                .dim(Axis::Content, 3, 2)
        };
        let paged = GroupSpec::new(0, "full_attention", 4, 0)
            .pages_per_block(2)
            .layer("l", [field("k", 2), field("v", plane + 2)]);
        layout(6 * plane + 2, blocks).group(paged).build().unwrap()
    };
    assert_eq!(of(7).resized(POOL, 2).unwrap(), of(2));
    assert_eq!(of(2).resized(POOL, 7).unwrap(), of(7));
}

#[test]
fn only_planes_of_the_pool_grow() {
    let of = |blocks: u32| {
        let n = u64::from(blocks);
        layout(1000 + n * 100, blocks)
            .pool(1, 5, None)
            .group(group(0, 0, [bytes("a", 0, 100, 100)]))
            .group(group(1, 1, [bytes("s", n * 100, 200, 200)]))
            .build()
            .unwrap()
    };
    assert_eq!(of(10).resized(POOL, 4).unwrap(), of(4));
    let shrunk = of(10).resized(PoolId::new(1), 2).unwrap();
    assert_eq!(shrunk.allocations()[0].len().get(), 1400);
    assert_eq!(shrunk.groups()[0], of(10).groups()[0]);
}

#[test]
fn what_can_not_be_resized_is_refused() {
    let plain = layout(1000, 10).group(group(0, 0, [bytes("a", 0, 100, 50)]));
    let built = plain.build().unwrap();
    assert_eq!(
        built.resized(PoolId::new(4), 2),
        Err(ResizeError::UnknownPool {
            pool: PoolId::new(4)
        })
    );
    let zero = built.resized(POOL, 0).unwrap_err();
    assert_eq!(
        zero.to_string(),
        "pool 0 has 10 blocks, it can't be resized to 0"
    );
    let interleaved = plain
        .pool(1, 10, None)
        .group(group(1, 1, [bytes("b", 50, 100, 50)]));
    let mixed = interleaved.build().unwrap().resized(POOL, 5).unwrap_err();
    assert!(matches!(mixed, ResizeError::Mixed { .. }), "{mixed}");

    let one = layout(1000, 1)
        .group(group(
            0,
            0,
            [bytes("a", 0, 100, 50), bytes("b", 50, 100, 50)],
        ))
        .build()
        .unwrap();
    let unclear = one.resized(POOL, 2).unwrap_err();
    assert!(
        matches!(unclear, ResizeError::SingleBlock { .. }),
        "{unclear}"
    );

    // Heads at 0 and 150 lie between each other's blocks.
    let heads = FieldSpec::new("a", "uint8")
        .page_stride(100)
        .dim(Axis::Head, 2, 150)
        .dim(Axis::Byte, 50, 1);
    let scattered = layout(2000, 10)
        .group(group(0, 0, [heads]))
        .build()
        .unwrap();
    let error = scattered.resized(POOL, 5).unwrap_err();
    assert!(matches!(error, ResizeError::Scattered { .. }), "{error}");

    // Block 0 of `b` is between blocks 1 and 2 of `a`.
    let skewed = [bytes("a", 0, 100, 50), bytes("b", 160, 100, 30)];
    let skewed = layout(2000, 10).group(group(0, 0, skewed)).build().unwrap();
    let error = skewed.resized(POOL, 5).unwrap_err();
    assert!(matches!(error, ResizeError::Skewed { .. }), "{error}");

    let beyond = built.resized(POOL, u32::MAX).unwrap();
    assert_eq!(
        beyond.allocations()[0].len().get(),
        100 * u64::from(u32::MAX)
    );
    let null = layout(1000, 10).reserved(8, 9);
    let null = null.group(group(0, 0, [bytes("a", 0, 100, 50)]));
    assert!(matches!(
        null.build().unwrap().resized(POOL, 5),
        Err(ResizeError::Invalid(LayoutError::Reserved {
            start: 8,
            end: 9,
            capacity: 5,
            ..
        }))
    ));
}

/// With one block, heads a plane apart may be a row: it is not told how they
/// grow, but that block moves as a whole behind another pool's planes.
#[test]
fn a_single_block_of_heads_apart_moves_but_does_not_grow() {
    let heads = |offset| {
        FieldSpec::new("s", "uint8")
            .at(0, offset)
            .page_stride(50)
            .dim(Axis::Head, 2, 150)
            .dim(Axis::Byte, 50, 1)
    };
    let of = |blocks: u32| {
        let n = u64::from(blocks);
        layout(n * 100 + 200, blocks)
            .pool(1, 1, None)
            .group(group(0, 0, [bytes("a", 0, 100, 100)]))
            .group(group(1, 1, [heads(n * 100)]))
            .build()
            .unwrap()
    };
    assert_eq!(of(10).resized(POOL, 4).unwrap(), of(4));
    assert_eq!(of(4).resized(POOL, 10).unwrap(), of(10));
    let error = of(4).resized(PoolId::new(1), 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pool 1 has 1 block: whether field `s` of layer `l` in group 1 and \
         field `s` of layer `l` in group 1 share a row or lie in planes apart can't be told"
    );
}
