//! Whose a block and its bytes are.

use mooncake_pd_layout::{ByteLen, GroupId, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{
    Contract, Leases, Options, Owner, Pairing, RawRequest, RawTables, Request, RequestError,
};

use crate::ask::{bytes, layout, list, moves, planned, request};

fn taken(id: u32, group: u32, owner: Owner) -> RequestError {
    let group = GroupId::new(group);
    RequestError::DestinationTaken { id, group, owner }
}

#[test]
fn c24b_one_id_has_one_owner() {
    let side = layout(20, &["full_attention", "gdn_state"]);
    let ask = |attention: &[u64], state: u64, from: u64| {
        let source: Vec<u64> = (from..).take(attention.len()).collect();
        let tables = vec![
            (list(&source), list(attention)),
            (list(&[from + 9]), list(&[state])),
        ];
        request(16, tables)
    };
    // In two groups of one pool.
    let batch = planned(&side, &side, &[ask(&[5], 5, 1), ask(&[6], 7, 2)]);
    assert_eq!(batch.refused.len(), 1);
    assert_eq!(batch.refused[0].index, 0);
    assert_eq!(batch.refused[0].error, taken(5, 1, Owner::SameRequest));
    assert_eq!(moves(&batch), [(0, 2, 6), (1, 11, 7)]);

    // In two requests of a batch.
    let batch = planned(
        &side,
        &side,
        &[ask(&[6], 7, 1), ask(&[8], 6, 2), ask(&[8], 9, 3)],
    );
    assert_eq!(batch.refused.len(), 1);
    assert_eq!(batch.refused[0].index, 1);
    assert_eq!(batch.refused[0].error, taken(6, 1, Owner::EarlierRequest));
    assert_eq!(
        moves(&batch),
        [(0, 1, 6), (1, 10, 7), (0, 3, 8), (1, 12, 9)]
    );

    // Under a live lease, until it is given back.
    let pairing = Pairing::new(&side, &side).unwrap();
    let plan = |raw: &RawRequest, leases: &Leases| {
        let request = Request::new(raw, &pairing).unwrap();
        let options = Options {
            leases: Some(leases),
            ..Options::default()
        };
        pairing.plan(&[request], &options).unwrap()
    };
    let mut leases = Leases::default();
    let first = plan(&ask(&[6], 7, 1), &leases);
    let lease = leases.add(&first.plan).unwrap();
    let refused = plan(&ask(&[7], 8, 2), &leases);
    assert_eq!(refused.refused[0].error, taken(7, 0, Owner::Lease));
    assert_eq!(refused.plan.descriptors(), 0);
    leases.release(lease);
    assert!(leases.is_empty());
    assert_eq!(plan(&ask(&[7], 8, 2), &leases).refused, []);
}

#[test]
fn c24c_dead_bytes_are_dead_only_while_another_group_owns_the_row() {
    // A row of V4: bytes [37376, 37440) are padding of group 0 and lie inside
    // the indexer of group 2.
    let row = 65_536;
    let side = |stride: u64| {
        LayoutBuilder::new()
            .pool(0, 6, Some(0))
            .allocation(0, 6 * stride)
            .group(GroupSpec::new(0, "mla", 256, 0).layer(
                "a",
                [
                    bytes("kv", 0, stride, 37_376),
                    bytes("scale", 37_440, stride, 1_000),
                ],
            ))
            .group(
                GroupSpec::new(2, "sliding_window_mla", 256, 0)
                    .window(512)
                    .layer("a", [bytes("indexer", 30_000, stride, 20_000)]),
            )
            .build()
            .unwrap()
    };
    let side = side(row);
    let pairing = Pairing::new(&side, &side).unwrap();
    let raw = |first: u64, second: u64| RawRequest {
        groups: vec![
            RawTables {
                group: 0,
                source: list(&[1]),
                destination: list(&[first]),
            },
            RawTables {
                group: 2,
                source: list(&[2]),
                destination: list(&[second]),
            },
        ],
        ..request(256, Vec::new())
    };
    let bridging = Options {
        contract: Contract::BridgeDead {
            max_gap: ByteLen::new(64).unwrap(),
        },
        ..Options::default()
    };
    let request = Request::new(&raw(3, 4), &pairing).unwrap();
    let requests = [request];
    let copies = |options| -> Vec<(u64, u64)> {
        let plan = pairing.plan(&requests, options).unwrap().plan;
        plan.copies()
            .map(|c| (c.destination_offset().get(), c.len().get()))
            .collect()
    };
    let indexer = (4 * row + 30_000, 20_000);
    let whole = (3 * row, 38_440);
    assert_eq!(copies(&bridging), [whole, indexer]);
    let halves = [(3 * row, 37_376), (3 * row + 37_440, 1_000)];
    assert_eq!(copies(&Options::default()), [halves[0], halves[1], indexer]);
    // One byte of the gap is of the group that owns the row: no bridge.
    let live = LayoutBuilder::new()
        .pool(0, 6, Some(0))
        .allocation(0, 6 * row)
        .group(
            GroupSpec::new(0, "mla", 256, 0)
                .layer(
                    "a",
                    [
                        bytes("kv", 0, row, 37_376),
                        bytes("scale", 37_440, row, 1_000),
                    ],
                )
                .layer("local", [bytes("kv", 37_400, row, 1)]),
        )
        .build()
        .unwrap();
    let source = LayoutBuilder::new()
        .pool(0, 6, Some(0))
        .allocation(0, 6 * row)
        .group(GroupSpec::new(0, "mla", 256, 0).layer(
            "a",
            [
                bytes("kv", 0, row, 37_376),
                bytes("scale", 37_440, row, 1_000),
            ],
        ))
        .build()
        .unwrap();
    let pairing = Pairing::new(&source, &live).unwrap();
    let raw = RawRequest {
        groups: raw(3, 4).groups.into_iter().take(1).collect(),
        ..raw(3, 4)
    };
    let request = Request::new(&raw, &pairing).unwrap();
    assert_eq!(
        pairing
            .plan(&[request], &bridging)
            .unwrap()
            .plan
            .descriptors(),
        2
    );
}
