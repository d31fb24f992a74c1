//! Every kind of change to what pages contain is a difference, and changes the
//! fingerprint.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use mooncake_pd_layout::raw::{RawLayout, RawSplit};
use mooncake_pd_layout::{
    Axis, CacheLayout, Difference, FieldSpec, GroupSpec, LayoutBuilder, compare,
};

fn raw() -> RawLayout {
    let kv = |name, offset| {
        FieldSpec::new(name, "bfloat16")
            .at(0, offset)
            .page_stride(1000)
            .dim(Axis::Head, 2, 64)
            .dim(Axis::Token, 4, 16)
            .dim(Axis::Content, 8, 2)
            .split(Axis::Head, &[2])
    };
    let recurrent = FieldSpec::new("recurrent", "float32")
        .at(0, 200_000)
        .page_stride(1000)
        .dim(Axis::Head, 4, 32)
        .dim(Axis::Key, 8, 4);
    let mut raw = LayoutBuilder::new()
        .allocation(0, 1_000_000)
        .pool(0, 10, Some(0))
        .group(
            GroupSpec::new(0, "sliding_window", 16, 0)
                .window(128)
                .pages_per_block(2)
                .layer("a", [kv("k", 0), kv("v", 256)])
                .layer("b", [kv("k", 100_000), kv("v", 100_256)]),
        )
        .group(GroupSpec::new(1, "gdn_state", 16, 0).layer("c", [recurrent]))
        .into_raw();
    "model@1".clone_into(&mut raw.content.model_revision);
    "gpu".clone_into(&mut raw.content.state_order);
    raw
}

/// Changes one thing, and says what the comparison finds then.
fn change(how: impl FnOnce(&mut RawLayout)) -> Vec<String> {
    let before = CacheLayout::new(&raw()).unwrap();
    let mut changed = raw();
    how(&mut changed);
    let after = CacheLayout::new(&changed).unwrap();
    assert_ne!(before.fingerprint(), after.fingerprint());
    let found = compare(&before, &after);
    assert!(found.iter().any(Difference::is_incompatible));
    assert_eq!(compare(&after, &before).len(), found.len());
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn dtype() {
    let found = change(|raw| "float16".clone_into(&mut raw.groups[0].layers[0].fields[0].dtype));
    assert_eq!(
        found,
        [
            "field `k` of layer `a` in group 0 is bfloat16 (256 bytes a block) at the source, \
          float16 (256 bytes a block) at the destination"
        ]
    );
}

#[test]
fn extent() {
    let found = change(|raw| raw.groups[0].layers[0].fields[0].dims[2].extent = 7);
    assert_eq!(
        found,
        ["field `k` of layer `a` in group 0 is ordered \
          [page 2, head 2, token 4, content 8] at the source, \
          [page 2, head 2, token 4, content 7] at the destination"]
    );
}

#[test]
fn order_of_axes() {
    let found = change(|raw| {
        let dims = &mut raw.groups[0].layers[0].fields[0].dims;
        dims.swap(0, 1);
        dims[0].stride = 32;
        dims[1].stride = 16;
    });
    assert_eq!(
        found,
        ["field `k` of layer `a` in group 0 is ordered \
          [page 2, head 2, token 4, content 8] at the source, \
          [token 8, head 2, content 8] at the destination"]
    );
}

#[test]
fn tokens_per_block() {
    let found = change(|raw| raw.groups[1].tokens_per_block = 32);
    assert_eq!(
        found,
        ["group 1 has 16 tokens per block at the source, 32 at the destination"]
    );
}

#[test]
fn kernel_block() {
    let found = change(|raw| {
        raw.groups[0].pages_per_block = 1;
        for layer in &mut raw.groups[0].layers {
            for field in &mut layer.fields {
                field.page_stride = 2000;
                field.dims[0].stride = 128;
                field.dims[1].extent = 8;
            }
            layer.fields[1].offset += 256;
        }
    });
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(
        found[0],
        "group 0 has 2 kernel pages per block at the source, 1 at the destination"
    );
}

#[test]
fn kind() {
    let found = change(|raw| "sliding_window_mla".clone_into(&mut raw.groups[0].kind));
    assert_eq!(
        found,
        ["group 0 is of kind sliding_window at the source, sliding_window_mla at the destination"]
    );
}

#[test]
fn window() {
    let found = change(|raw| raw.groups[0].window = Some(256));
    assert_eq!(
        found,
        ["group 0 has a window of 128 tokens at the source, 256 at the destination"]
    );
}

#[test]
fn name_of_a_layer() {
    let found = change(|raw| "z".clone_into(&mut raw.groups[0].layers[0].name));
    assert_eq!(
        found,
        [
            "layer `a` of group 0 is at the source, the destination has none",
            "layer `z` of group 0 is at the destination, the source has none"
        ]
    );
}

#[test]
fn name_of_a_field() {
    let found = change(|raw| "z".clone_into(&mut raw.groups[0].layers[0].fields[0].name));
    assert_eq!(
        found,
        [
            "field `k` of layer `a` in group 0 is at the source, the destination has none",
            "field `z` of layer `a` in group 0 is at the destination, the source has none"
        ]
    );
}

#[test]
fn id_of_a_group() {
    let found = change(|raw| raw.groups[1].id = 7);
    assert_eq!(
        found,
        ["the source has groups [0, 1], the destination has [0, 7]"]
    );
}

#[test]
fn model_revision() {
    let found = change(|raw| "model@2".clone_into(&mut raw.content.model_revision));
    assert_eq!(
        found,
        ["model revision is `model@1` at the source, `model@2` at the destination"]
    );
}

#[test]
fn state_order() {
    let found = change(|raw| "cpu".clone_into(&mut raw.content.state_order));
    assert_eq!(
        found,
        ["state order is `gpu` at the source, `cpu` at the destination"]
    );
}

#[test]
fn split() {
    let found = change(|raw| raw.groups[0].layers[0].fields[0].split = None);
    assert_eq!(
        found,
        [
            "field `k` of layer `a` in group 0 is sharded along head in parts [2] at the source, \
          replicated at the destination"
        ]
    );
    let found = change(|raw| {
        raw.groups[1].layers[0].fields[0].split = Some(RawSplit {
            axis: Axis::Head,
            parts: vec![1, 3],
            replicas: 1,
        });
    });
    assert_eq!(found.len(), 1);
}

#[test]
fn a_content_tag_on_one_side_only_is_a_note() {
    let stated = CacheLayout::new(&raw()).unwrap();
    let mut unstated = raw();
    unstated.content.model_revision.clear();
    let unstated = CacheLayout::new(&unstated).unwrap();
    let found = compare(&stated, &unstated);
    assert_eq!(found.len(), 1);
    assert!(!found[0].is_incompatible(), "{}", found[0]);
    assert_ne!(stated.fingerprint(), unstated.fingerprint());
}

#[test]
fn another_rank_is_incompatible_though_its_pages_are_the_same() {
    let one = CacheLayout::new(&raw()).unwrap();
    let mut other = raw();
    other.shard.tp_size = 2;
    let other = CacheLayout::new(&other).unwrap();
    let found = compare(&one, &other);
    assert_eq!(found.len(), 1);
    assert!(found[0].is_incompatible());
    assert_eq!(
        found[0].to_string(),
        "the source is tp rank 0 of 1, pp rank 0 of 1, \
         the destination is tp rank 0 of 2, pp rank 0 of 1"
    );
    assert_eq!(one.fingerprint(), other.fingerprint());
}

/// The documented encoding, written a second time by hand.
#[test]
fn the_digest_is_that_of_the_documented_encoding() {
    use sha2::{Digest, Sha256};
    let field = FieldSpec::new("x", "uint8")
        .page_stride(12)
        .dim(Axis::Head, 2, 6)
        .dim(Axis::Byte, 3, 1)
        .split(Axis::Head, &[1, 1]);
    let layout = LayoutBuilder::new()
        .allocation(0, 100)
        .pool(0, 4, None)
        .group(
            GroupSpec::new(9, "sliding_window_mla", 16, 0)
                .window(5)
                .layer("l", [field]),
        )
        .build()
        .unwrap();
    let mut bytes = Vec::new();
    let number = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes());
    let string = |bytes: &mut Vec<u8>, string: &str| {
        number(bytes, string.len().try_into().unwrap());
        bytes.extend(string.bytes());
    };
    string(&mut bytes, "mooncake-pd-fingerprint/1");
    string(&mut bytes, "");
    string(&mut bytes, "");
    number(&mut bytes, 1);
    number(&mut bytes, 9);
    string(&mut bytes, "sliding_window_mla");
    for value in [5, 16, 1, 1] {
        number(&mut bytes, value);
    }
    string(&mut bytes, "l");
    number(&mut bytes, 1);
    string(&mut bytes, "x");
    string(&mut bytes, "uint8");
    number(&mut bytes, 2);
    string(&mut bytes, "head");
    number(&mut bytes, 2);
    string(&mut bytes, "byte");
    number(&mut bytes, 3);
    number(&mut bytes, 1);
    string(&mut bytes, "head");
    for value in [1, 2, 1, 1] {
        number(&mut bytes, value);
    }
    let expected: [u8; 32] = Sha256::digest(&bytes).into();
    assert_eq!(layout.fingerprint().as_bytes(), &expected);
    let hex = layout.fingerprint().to_string();
    assert_eq!(hex.len(), 64);
    assert!(hex.starts_with(&format!("{:02x}{:02x}", expected[0], expected[1])));
}

#[test]
fn a_difference_has_the_name_of_its_kind() {
    let names = |how: fn(&mut RawLayout)| {
        let mut changed = raw();
        how(&mut changed);
        let (before, after) = (CacheLayout::new(&raw()), CacheLayout::new(&changed));
        let found = compare(&before.unwrap(), &after.unwrap());
        let mut names: Vec<&str> = found.iter().map(Difference::name).collect();
        names.dedup();
        names
    };
    assert_eq!(
        names(|raw| raw.groups[1].tokens_per_block = 32),
        ["tokens_per_block"]
    );
    assert_eq!(names(|raw| raw.groups[0].window = Some(64)), ["window"]);
    assert_eq!(
        names(|raw| "b2".clone_into(&mut raw.groups[0].layers[1].name)),
        ["source_layer", "destination_layer"]
    );
    assert_eq!(
        names(|raw| "k2".clone_into(&mut raw.groups[0].layers[0].fields[0].name)),
        ["source_field", "destination_field"]
    );
    assert_eq!(
        names(|raw| raw.groups[0].layers[0].fields[0].dims[2].extent = 7),
        ["shape"]
    );
    assert_eq!(
        names(|raw| "x".clone_into(&mut raw.content.state_order)),
        ["content"]
    );
}
