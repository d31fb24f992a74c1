//! Which block is which.

use mooncake_pd_layout::{
    Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayerId, LayoutBuilder, LayoutError,
};
use mooncake_pd_plan::testing::{Demand, Memory, Plain};
use mooncake_pd_plan::{
    MAX_ENTRIES, Options, Pairing, PairingError, RawRequest, RawSlots, Request, RequestError, Side,
    UnfilledReason,
};

use crate::ask::{at, attention, bytes, layout, list, moves, planned, request, unfilled};

#[test]
fn c01_null_is_a_position_not_an_id() {
    let source = || RawSlots {
        first_block: Some(0),
        entries: vec![Some(2), Some(3), Some(4), None],
    };
    let batch = attention(64, source(), at(0, &[6, 7, 8]));
    assert_eq!(moves(&batch), [(0, 2, 6), (0, 3, 7), (0, 4, 8)]);
    assert_eq!(unfilled(&batch), []);

    let batch = attention(64, source(), at(1, &[6, 7, 8]));
    assert_eq!(moves(&batch), [(0, 3, 6), (0, 4, 7)]);
    assert_eq!(unfilled(&batch), [(8, UnfilledReason::SourceNull)]);

    // A stock peer sends no positions: a list ends at the last computed block.
    let stock = || RawSlots {
        first_block: None,
        ..source()
    };
    let batch = attention(64, stock(), list(&[6, 7, 8]));
    assert_eq!(moves(&batch), [(0, 3, 6), (0, 4, 7)]);
    assert_eq!(unfilled(&batch), [(8, UnfilledReason::SourceNull)]);
}

#[test]
fn c02_state_behind_placeholders_is_the_latest() {
    let side = layout(20, &["gdn_state"]);
    let tables = (list(&[0, 0, 14]), list(&[9]));
    let batch = planned(&side, &side, &[request(48, vec![tables])]);
    assert_eq!(moves(&batch), [(0, 14, 9)]);
    assert_eq!((batch.plan.descriptors(), batch.plan.bytes()), (1, 8));
    assert_eq!(unfilled(&batch), []);
}

#[test]
fn c03_a_null_is_never_read_or_written_in_any_kind() {
    for kind in [
        "sliding_window",
        "sliding_window_mla",
        "full_attention",
        "mla",
    ] {
        let side = layout(70, &[kind]);
        let tables = (list(&[0, 68, 67]), list(&[19, 20]));
        let batch = planned(&side, &side, &[request(48, vec![tables])]);
        assert_eq!(moves(&batch), [(0, 68, 19), (0, 67, 20)], "{kind}");
        let whole = (list(&[0, 68, 67]), list(&[18, 0, 20]));
        let batch = planned(&side, &side, &[request(48, vec![whole])]);
        assert_eq!(moves(&batch), [(0, 67, 20)], "{kind}");
    }
    let side = layout(70, &["gdn_state"]);
    let tables = (list(&[0, 68, 0]), list(&[0, 19, 20]));
    let batch = planned(&side, &side, &[request(48, vec![tables])]);
    assert_eq!(moves(&batch), []);
}

#[test]
fn c04_nothing_is_sent_when_all_is_null() {
    let side = layout(20, &["full_attention", "gdn_state"]);
    let tables = vec![
        (list(&[0, 0]), list(&[6, 7])),
        (list(&[0, 0]), list(&[0, 9])),
    ];
    let batch = planned(&side, &side, &[request(32, tables)]);
    assert_eq!((batch.plan.descriptors(), batch.plan.bytes()), (0, 0));
    assert_eq!(batch.refused, []);
    let reason = UnfilledReason::SourceNull;
    assert_eq!(unfilled(&batch), [(6, reason), (7, reason), (9, reason)]);
}

#[test]
fn c05_groups_keep_their_identity() {
    let side = layout(40, &["full_attention", "gdn_state"]);
    let mut raw = request(
        32,
        vec![
            (list(&[10, 11]), list(&[30, 31])),
            (list(&[0, 4]), list(&[0, 7])),
        ],
    );
    raw.groups.reverse();
    let batch = planned(&side, &side, &[raw]);
    assert_eq!(moves(&batch), [(0, 10, 30), (0, 11, 31), (1, 4, 7)]);
    for copy in batch.plan.copies() {
        let state = copy.destination().get() == 1;
        assert_eq!(copy.source(), copy.destination());
        assert_eq!(state, copy.destination_offset().get() == 70);
    }
}

#[test]
fn c06_a_block_is_its_pages_and_a_slot_is_itself() {
    let kv = bytes("kv", 0, 2, 2).at(0, 0);
    let state = bytes("state", 0, 34, 30).at(1, 0);
    let side = LayoutBuilder::new()
        .pool(0, 4, Some(0))
        .allocation(0, 4 * 34)
        .allocation(1, 4 * 34)
        .group(
            GroupSpec::new(0, "full_attention", 16, 0)
                .pages_per_block(17)
                .layer("a", [kv]),
        )
        .group(GroupSpec::new(1, "gdn_state", 16, 0).layer("s", [state]))
        .build()
        .unwrap();
    let tables = vec![(list(&[2]), list(&[2])), (list(&[3]), list(&[3]))];
    let batch = planned(&side, &side, &[request(16, tables)]);
    let copies: Vec<_> = batch
        .plan
        .copies()
        .map(|copy| {
            (
                copy.destination().get(),
                copy.destination_offset().get(),
                copy.len().get(),
            )
        })
        .collect();
    // Pages 34..51 of 2 bytes, and slot 3 of 34.
    assert_eq!(copies, [(0, 34 * 2, 17 * 2), (1, 3 * 34, 30)]);
}

#[test]
fn c07_each_side_expands_with_its_own_ratio() {
    // Pages of as many tokens as the ratio leaves, rows of one byte.
    let side = |pages: u32, stride: u64| {
        let tokens = 131 * 261 / u64::from(pages);
        let kv = FieldSpec::new("kv", "uint8")
            .at(0, 0)
            .page_stride(stride)
            .dim(Axis::Token, tokens, 1);
        LayoutBuilder::new()
            .pool(0, 4, Some(0))
            .allocation(0, 4 * u64::from(pages) * stride)
            .group(
                GroupSpec::new(0, "full_attention", 131 * 261, 0)
                    .pages_per_block(pages)
                    .layer("a", [kv]),
            )
            .build()
            .unwrap()
    };
    let (source, destination) = (side(131, 270), side(261, 131));
    let raw = request(131 * 261, vec![(list(&[2]), list(&[3]))]);
    let pairing = Pairing::new(&source, &destination).unwrap();
    let request = Request::new(&raw, &pairing).unwrap();
    let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;
    let first = plan.copies().next().unwrap();
    assert_eq!(first.source_offset().get(), 2 * 131 * 270);
    assert_eq!(first.destination_offset().get(), 3 * 261 * 131);
    let numbers = |layout: &CacheLayout| Plain::new(&layout.to_raw());
    let (from, to) = (numbers(&source), numbers(&destination));
    let demand = Demand::new(&from, &to, &[&raw]);
    let memory = |side, layout| Memory::new(side, layout);
    let source = memory(Side::Source, &from);
    let destination = memory(Side::Destination, &to);
    let expected = destination.clone().after_bytes(&source, &demand);
    assert!(destination.after(&source, plan.copies()) == expected);
}

#[test]
fn c08_a_block_is_its_pages_whole_and_once() {
    let side = |stride: u64| {
        let kv = bytes("kv", 0, stride, 73_728);
        LayoutBuilder::new()
            .pool(0, 3, Some(0))
            .allocation(0, 3 * 12 * stride)
            .group(
                GroupSpec::new(0, "full_attention", 192, 0)
                    .pages_per_block(12)
                    .layer("a", [kv]),
            )
            .build()
            .unwrap()
    };
    let raw = request(192, vec![(list(&[1]), list(&[2]))]);
    let copies = |side: &CacheLayout| -> Vec<(u64, u64, u64)> {
        let pairing = Pairing::new(side, side).unwrap();
        let request = Request::new(&raw, &pairing).unwrap();
        let batch = pairing.plan(&[request], &Options::default()).unwrap();
        let copies = batch.plan.copies();
        copies
            .map(|copy| {
                (
                    copy.source_offset().get(),
                    copy.destination_offset().get(),
                    copy.len().get(),
                )
            })
            .collect()
    };
    assert_eq!(copies(&side(73_728)), [(884_736, 2 * 884_736, 884_736)]);
    let padded: Vec<_> = (0..12)
        .map(|page| ((12 + page) * 73_800, (24 + page) * 73_800, 73_728))
        .collect();
    assert_eq!(copies(&side(73_800)), padded);

    // A page as long as the block would write its neighbours.
    let whole = LayoutBuilder::new()
        .pool(0, 3, Some(0))
        .allocation(0, 100_000_000)
        .group(
            GroupSpec::new(0, "full_attention", 192, 0)
                .pages_per_block(12)
                .layer("a", [bytes("kv", 0, 73_728, 884_736)]),
        )
        .build();
    assert!(matches!(whole, Err(LayoutError::Field { .. })), "{whole:?}");
}

#[test]
fn c09_a_prefix_that_the_destination_has_is_not_sent() {
    let batch = attention(64, list(&[10, 11, 12, 13]), list(&[30, 31]));
    assert_eq!(moves(&batch), [(0, 12, 30), (0, 13, 31)]);
}

#[test]
fn c10_more_blocks_than_were_computed_are_reported() {
    let batch = attention(32, list(&[1, 2]), at(0, &[30, 31, 32]));
    assert_eq!(moves(&batch), [(0, 1, 30), (0, 2, 31)]);
    assert_eq!(unfilled(&batch), [(32, UnfilledReason::BeyondComputed)]);

    // Without positions or a token count they can't be aligned: this request
    // is refused.
    let side = layout(40, &["full_attention"]);
    let pairing = Pairing::new(&side, &side).unwrap();
    let stock = RawRequest {
        computed_tokens: None,
        tail_aligned: true,
        ..request(0, vec![(list(&[1, 2]), list(&[30, 31, 32]))])
    };
    let refused = RequestError::TailShort {
        group: GroupId::new(0),
        source_len: 2,
        destination_len: 3,
    };
    assert_eq!(Request::new(&stock, &pairing), Err(refused));
}

#[test]
fn a_position_that_does_not_fit_is_not_called_a_list_too_long() {
    let side = layout(40, &["full_attention"]);
    let pairing = Pairing::new(&side, &side).unwrap();
    let last = |first_block| {
        let raw = request(16, vec![(at(first_block, &[1, 2]), list(&[30]))]);
        Request::new(&raw, &pairing)
    };
    let error = last(u64::MAX).unwrap_err();
    assert_eq!(error.name(), "position_overflow");
    assert_eq!(
        error.to_string(),
        "source of group 0 has 2 entries from block 18446744073709551615: \
         its end must be at most block 18446744073709551615"
    );
    assert!(last(u64::MAX - 2).is_ok());

    let mut many = request(16, vec![(list(&[1]), list(&[30]))]);
    many.groups.first_mut().unwrap().source.entries = vec![None; MAX_ENTRIES + 1];
    let error = Request::new(&many, &pairing).unwrap_err();
    assert_eq!(error.name(), "too_long");
    assert_eq!(
        error.to_string(),
        "source of group 0 has 16777217 entries, the limit is 16777216"
    );
}

#[test]
fn c11_a_look_ahead_block_is_never_sent() {
    let batch = attention(32, list(&[1, 2, 99]), list(&[30, 31]));
    assert_eq!(moves(&batch), [(0, 1, 30), (0, 2, 31)]);
    let batch = attention(32, list(&[1, 2, 99]), list(&[30, 31, 32]));
    assert_eq!(moves(&batch), [(0, 1, 30), (0, 2, 31)]);
    assert_eq!(unfilled(&batch), [(32, UnfilledReason::BeyondComputed)]);
}

#[test]
fn c12_other_groups_are_refused_at_the_handshake() {
    let (source, destination) = (
        layout(20, &["full_attention", "gdn_state"]),
        layout(20, &["full_attention"]),
    );
    let error = Pairing::new(&source, &destination).unwrap_err();
    assert!(matches!(error, PairingError::Incompatible(_)), "{error}");
    let message = error.to_string();
    assert!(message.contains("0, 1"), "{message}");
}

#[test]
fn c13_a_layer_that_only_the_destination_has_stays_as_it_is() {
    let side = |draft: bool| {
        let layer = |name: &str, offset: u64| bytes(name, offset, 20, 8);
        let mut group = GroupSpec::new(0, "full_attention", 16, 0).layer("a", [layer("kv", 0)]);
        if draft {
            group = group.layer("draft", [layer("kv", 10)]);
        }
        let builder = LayoutBuilder::new().pool(0, 10, Some(0)).allocation(0, 200);
        builder.group(group).build().unwrap()
    };
    let raw = request(32, vec![(list(&[1, 2]), list(&[3, 4]))]);
    let batch = planned(&side(false), &side(true), &[raw]);
    let section = &batch.plan.sections()[0];
    assert_eq!(
        (section.layers(), section.local_layers()),
        (1, &[LayerId::new("draft")][..])
    );
    let written: Vec<_> = batch
        .plan
        .copies()
        .map(|c| (c.destination_offset().get(), c.len().get()))
        .collect();
    assert_eq!(written, [(60, 8), (80, 8)]);
}
