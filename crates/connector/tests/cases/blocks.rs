//! Which blocks may be read and written.

use mooncake_pd_connector::{BlockTables, DecodeError, Dialect, TokenCount};
use mooncake_pd_layout::{EntryError, GroupId, PoolId};
use mooncake_pd_plan::{Options, Pairing, Request, UnfilledReason};

use crate::common::{layout, request, tables};
use crate::decode_rank::{D, delivered};
use crate::prefill_rank::{P, pull};
use mooncake_pd_connector::{PrefillError, TablesError};

fn pool() -> PoolId {
    PoolId::new(0)
}

#[test]
fn c24b_a_block_of_a_live_load_is_refused_to_another_and_the_first_is_unharmed() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6, 7], &[8]]).unwrap();
    let error = d.load("b", &[&[9, 7], &[10]]).unwrap_err();
    let group = GroupId::new(0);
    let leased = TablesError::Leased {
        id: 7,
        pool: pool(),
        group,
    };
    assert_eq!(error, DecodeError::Tables(leased));
    assert_eq!(
        error.to_string(),
        "block 7 of pool 0, given for group 0, is leased to a transfer under way"
    );
    assert_eq!((d.machine.live(), d.machine.leases()), (1, 1));
    // Nothing of the refused load is taken, its name and its other blocks neither.
    d.load("b", &[&[9], &[10]]).unwrap();
    d.answer(1, 1, delivered());
    assert_eq!(
        d.out(),
        [
            "pull 1 of a from sender 0, generation 1",
            "pull 2 of b from sender 0, generation 1",
            "a ended: loaded 32"
        ]
    );
    // The first one's blocks are free with its end.
    d.load("c", &[&[7, 6], &[8]]).unwrap();
}

#[test]
fn c24b_the_same_id_for_another_group_of_the_pool_is_the_same_block() {
    let mut d = D::new();
    d.load("a", &[&[6, 7], &[8]]).unwrap();
    let error = d.load("b", &[&[9], &[6]]).unwrap_err();
    let group = GroupId::new(1);
    let leased = TablesError::Leased {
        id: 6,
        pool: pool(),
        group,
    };
    assert_eq!(error, leased.into());
}

#[test]
fn a_block_twice_within_a_load_is_refused_and_nothing_of_it_is_taken() {
    let mut d = D::new();
    for (lists, id, group) in [
        ([[5, 6, 5], [7, 8, 9]], 5, 0),
        ([[5, 6, 7], [8, 9, 6]], 6, 1),
    ] {
        let error = d.load("a", &[&lists[0], &lists[1]]).unwrap_err();
        let group = GroupId::new(group);
        let twice = TablesError::BlockTwice {
            id,
            pool: pool(),
            group,
        };
        assert_eq!(error, twice.into());
    }
    assert_eq!(d.machine.records(), 0);
    d.load("a", &[&[5, 6, 7], &[8, 9]]).unwrap();
}

#[test]
fn c5_c12_tables_of_other_groups_are_refused_with_both_sets_named() {
    let (mut p, mut d) = (P::new(), D::new());
    p.start("a").unwrap();
    for (lists, named) in [
        (&[&[1_u32][..]][..], "[0]"),
        (&[&[1], &[2], &[3]], "[0, 1, 2]"),
        (&[], "[]"),
    ] {
        let text = format!("block tables of groups {named}, the layout has groups [0, 1]");
        let error = d.load("a", lists).unwrap_err();
        assert_eq!(error.to_string(), text);
        let error = p.finish_with("a", tables(lists)).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    // The request goes on as if nothing had been reported.
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    assert_eq!(p.out(), ["transfer 0 of a to d (generation 1) for pull 0"]);
}

#[test]
fn an_id_outside_the_pool_is_refused_by_both_sides() {
    let (mut p, mut d) = (P::new(), D::new());
    let lists: [&[u32]; 2] = [&[1], &[2, 64]];
    let group = GroupId::new(1);
    let error = EntryError::OutOfRange {
        id: 64,
        capacity: 64,
        group,
    };
    let tables_error = TablesError::Entry { index: 1, error };
    let text = "entry 1: block 64 is outside 0..64 in group 1";
    assert_eq!(tables_error.to_string(), text);
    assert_eq!(
        d.load("a", &lists),
        Err(DecodeError::Tables(tables_error.clone()))
    );
    p.start("a").unwrap();
    assert_eq!(
        p.finish_with("a", tables(&lists)),
        Err(PrefillError::Tables(tables_error))
    );
    assert_eq!((p.machine.leases(), d.machine.leases()), (0, 0));
}

#[test]
fn c3_null_entries_are_leased_to_nobody() {
    let mut d = D::new();
    d.load("a", &[&[0, 0, 6], &[0, 7]]).unwrap();
    d.load("b", &[&[0, 0, 8], &[0, 9]]).unwrap();
    assert_eq!(d.machine.leases(), 2);
}

#[test]
fn requests_with_a_common_prefix_share_blocks_that_are_only_read() {
    let mut p = P::new();
    for (number, name) in (0..).zip(["a", "b"]) {
        p.start(name).unwrap();
        p.finish_with(name, tables(&[&[1, 2], &[0, 3 + number]]))
            .unwrap();
    }
    assert_eq!(p.machine.leases(), 2);
}

#[test]
fn c4_a_request_whose_ids_are_all_null_is_served_by_an_empty_plan_and_ends() {
    let mut p = P::new();
    p.start("a").unwrap();
    let nulls = tables(&[&[0, 0], &[0, 0]]);
    p.finish_with("a", nulls.clone()).unwrap();
    p.pull(pull(0, "a"));
    p.out();
    let (ours, theirs) = (layout(64), layout(64));
    let pairing = Pairing::new(&ours, &theirs).unwrap();
    let wanted = tables(&[&[6, 7], &[0, 8]]);
    let raw = nulls.request(&wanted, request("a").as_str(), TokenCount::new(32));
    let asked = [Request::new(&raw, &pairing).unwrap()];
    let batch = pairing.plan(&asked, &Options::default()).unwrap();
    assert_eq!((batch.plan.descriptors(), batch.refused.len()), (0, 0));
    let unfilled = batch.plan.unfilled().iter();
    assert!(
        unfilled
            .clone()
            .any(|entry| entry.reason == UnfilledReason::SourceNull)
    );
    assert_eq!(unfilled.count(), 3);
    p.settle(0, Ok(()));
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: delivered",
            "a ended: delivered"
        ]
    );
    p.assert_idle();
}

#[test]
fn c10_c12_tables_that_no_plan_can_be_made_of_are_refused_by_plan_alone() {
    let (ours, theirs) = (layout(64), layout(64));
    let pairing = Pairing::new(&ours, &theirs).unwrap();
    let source = tables(&[&[1, 2], &[0, 3]]);
    let plan = |wanted: &BlockTables| {
        let raw = source.request(wanted, "a", TokenCount::new(32));
        Request::new(&raw, &pairing)
    };
    // Another number of groups, and an id that the destination has not.
    assert_eq!(
        plan(&tables(&[&[6], &[7], &[8]])).unwrap_err().name(),
        "groups"
    );
    assert_eq!(plan(&tables(&[&[64], &[7]])).unwrap_err().name(), "entry");
    // One block more than prompt is no error: it is not filled.
    plan(&tables(&[&[6, 7, 9], &[0, 8]])).unwrap();
}
