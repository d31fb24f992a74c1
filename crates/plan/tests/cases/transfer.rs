//! What is written.

use mooncake_pd_layout::{GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{Options, Pairing, Request, UnfilledReason};

use crate::ask::{at, attention, bytes, layout, list, planned, request, unfilled};

#[test]
fn c60_c61_destinations_are_disjoint_and_all_else_keeps_its_canary() {
    let side = layout(20, &["full_attention", "sliding_window", "gdn_state"]);
    let batch = planned(
        &side,
        &side,
        &[request(
            48,
            vec![
                (list(&[1, 2, 3]), list(&[4, 5, 6])),
                (list(&[0, 7, 8]), list(&[9, 10])),
                (list(&[0, 0, 11]), list(&[12])),
            ],
        )],
    );
    let mut written: Vec<_> = batch
        .plan
        .copies()
        .map(|c| {
            (
                c.destination().get(),
                c.destination_offset().get(),
                c.len().get(),
            )
        })
        .collect();
    written.sort_unstable();
    assert_eq!(
        written,
        [
            (0, 40, 8),
            (0, 50, 8),
            (0, 60, 8),
            (1, 90, 8),
            (1, 100, 8),
            (2, 120, 8)
        ]
    );
}

#[test]
fn c63_every_length_is_byte_exact() {
    for len in [1, 511, 512, 513, 65_535, 65_537] {
        let side = |stride: u64| {
            LayoutBuilder::new()
                .pool(0, 4, Some(0))
                .allocation(0, 4 * stride)
                .group(
                    GroupSpec::new(0, "full_attention", 16, 0)
                        .layer("a", [bytes("kv", 0, stride, len)]),
                )
                .build()
                .unwrap()
        };
        let raw = request(32, vec![(list(&[1, 2]), list(&[2, 3]))]);
        let (source, destination) = (side(len), side(len + 1));
        let pairing = Pairing::new(&source, &destination).unwrap();
        let parsed = Request::new(&raw, &pairing).unwrap();
        let plan = pairing.plan(&[parsed], &Options::default()).unwrap().plan;
        let copies: Vec<_> = plan
            .copies()
            .map(|c| {
                (
                    c.source_offset().get(),
                    c.destination_offset().get(),
                    c.len().get(),
                )
            })
            .collect();
        let (from, to) = (len, len + 1);
        assert_eq!(copies, [(from, 2 * to, len), (2 * from, 3 * to, len)]);
        if len < 1_000 {
            planned(&source, &destination, &[raw]);
        }
    }
}

#[test]
fn a_list_may_end_at_the_last_position_there_is() {
    let end = u64::MAX;
    let batch = attention(16, list(&[1]), at(end - 2, &[30, 31]));
    let reason = UnfilledReason::BeyondComputed;
    assert_eq!(unfilled(&batch), [(30, reason), (31, reason)]);
    let batch = attention(16, at(end - 1, &[1]), at(0, &[30]));
    assert_eq!(unfilled(&batch), [(30, UnfilledReason::NotHeld)]);
}

#[test]
fn planner_and_check_agree_which_gaps_reach_a_block_that_does_not_exist() {
    // Group 1 lies two rows behind group 0, beyond the last of its two blocks.
    let side = LayoutBuilder::new()
        .pool(0, 3, Some(0))
        .pool(1, 2, None)
        .allocation(0, 200)
        .group(
            GroupSpec::new(0, "full_attention", 16, 0)
                .layer("a", [bytes("k", 60, 20, 5), bytes("v", 70, 20, 5)]),
        )
        .group(GroupSpec::new(1, "gdn_state", 16, 1).layer("s", [bytes("s", 0, 30, 30)]))
        .build()
        .unwrap();
    let tables = vec![(list(&[1, 2]), list(&[1, 2])), (list(&[0]), list(&[1]))];
    let batch = planned(&side, &side, &[request(32, tables)]);
    assert_eq!(batch.plan.payload_bytes(), 20 + 30);
}

#[test]
fn a_run_of_blocks_is_bridged_whatever_the_stride_of_other_layers() {
    let side = LayoutBuilder::new()
        .pool(0, 4, Some(0))
        .allocation(0, 100)
        .group(
            GroupSpec::new(0, "full_attention", 16, 0)
                .layer("a", [bytes("k", 0, 6, 2)])
                .layer("b", [bytes("k", 40, 12, 9)]),
        )
        .build()
        .unwrap();
    let tables = (list(&[1, 2]), list(&[2, 3]));
    let batch = planned(&side, &side, &[request(32, vec![tables])]);
    assert_eq!(batch.plan.payload_bytes(), 2 * 11);
}
