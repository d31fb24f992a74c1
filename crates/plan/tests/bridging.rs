//! Bridging stays within bounded work, and planner and check agree where it ends.
#![expect(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    reason = "test helpers"
)]

use mooncake_pd_layout::{Axis, ByteLen, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{Contract, Options, Pairing, RawRequest, RawSlots, RawTables, Request};

/// Rows of `layers` pages, each of 64 pieces of 2 bytes with 2 dead bytes between.
fn rows(layers: u64) -> CacheLayout {
    let stride = layers * 256;
    let field = |layer: u64| {
        FieldSpec::new("kv", "uint8")
            .at(0, layer * 256)
            .page_stride(stride)
            .dim(Axis::Token, 64, 4)
            .dim(Axis::Content, 2, 1)
    };
    let group = (0..layers).fold(GroupSpec::new(0, "mla", 64, 0), |group, layer| {
        group.layer(&format!("layers.{layer}"), [field(layer)])
    });
    LayoutBuilder::new()
        .allocation(0, 4 * stride)
        .pool(0, 4, Some(0))
        .group(group)
        .build()
        .unwrap()
}

fn descriptors(layers: u64, contract: Contract) -> u64 {
    let layout = rows(layers);
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let slots = || RawSlots {
        first_block: None,
        entries: vec![Some(1), Some(2)],
    };
    let raw = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(128),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots(),
            destination: slots(),
        }],
    };
    let request = Request::new(&raw, &pairing).unwrap();
    let options = Options {
        contract,
        ..Options::default()
    };
    pairing
        .plan(&[request], &options)
        .unwrap()
        .plan
        .descriptors()
}

#[test]
fn a_block_in_too_many_pieces_is_planned_without_bridging() {
    let bridge = Contract::BridgeDead {
        max_gap: ByteLen::new(1 << 20).unwrap(),
    };
    assert_eq!(descriptors(16, bridge), 1);
    assert_eq!(descriptors(16, Contract::PayloadOnly), 2 * 16 * 64);
    assert_eq!(descriptors(64, bridge), 2 * 64 * 64);
}

/// One byte in four of each row of 21.
fn sparse(id: u32, pool: u32, allocation: u32) -> GroupSpec {
    let field = FieldSpec::new("k", "uint8")
        .at(allocation, 0)
        .page_stride(21)
        .dim(Axis::Token, 6, 4);
    GroupSpec::new(id, "full_attention", 16, pool).layer("layers.0", [field])
}

#[test]
fn bytes_of_another_allocation_do_not_follow_those_of_this() {
    let layout = LayoutBuilder::new()
        .allocation(0, 84)
        .allocation(1, 120)
        .pool(0, 4, None)
        .pool(1, 4, None)
        .group(sparse(0, 0, 0))
        .group(
            GroupSpec::new(1, "mla", 16, 1).layer(
                "layers.0",
                [FieldSpec::new("k", "uint8")
                    .at(1, 0)
                    .page_stride(24)
                    .dim(Axis::Token, 24, 1)],
            ),
        )
        .build()
        .unwrap();
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let slots = || RawSlots {
        first_block: None,
        entries: vec![Some(1)],
    };
    let tables = |group| RawTables {
        group,
        source: slots(),
        destination: slots(),
    };
    let raw = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(16),
        tail_aligned: false,
        groups: vec![tables(0), tables(1)],
    };
    let request = Request::new(&raw, &pairing).unwrap();
    let max_gap = ByteLen::new(8).unwrap();
    let options = Options {
        contract: Contract::BridgeDead { max_gap },
        ..Options::default()
    };
    let plan = pairing.plan(&[request], &options).unwrap().plan;
    let copies: Vec<_> = plan
        .copies()
        .map(|copy| {
            (
                copy.destination().get(),
                copy.destination_offset().get(),
                copy.len().get(),
            )
        })
        .collect();
    // Group 1's block begins at 24, between bytes 21 and 25 of group 0's.
    assert_eq!(copies, [(0, 21, 21), (1, 24, 24)]);
}
