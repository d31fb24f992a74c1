//! Requests that vLLM 0.33 recorded as errors, or that it serves and that are
//! refused here because they give one block to two owners.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use std::collections::BTreeSet;

use common::vllm::{Case, Model, models, oracle};
use common::{plan, planned};
use mooncake_pd_layout::GroupId;
use mooncake_pd_plan::{Contract, Owner, Pairing, RawRequest, Request, RequestError};

/// Runs `each` on the cases of every model whose names begin so.
fn for_each(name: &str, mut each: impl FnMut(&Model, &Pairing<'_>, &Case, &str)) {
    for model in models() {
        let model = Model::read(&model);
        let pairing = Pairing::new(&model.source, &model.destination).unwrap();
        for case in oracle(&model.name).0 {
            if case.name.starts_with(name) {
                each(
                    &model,
                    &pairing,
                    &case,
                    &format!("{}#{}", model.name, case.name),
                );
            }
        }
    }
}

#[test]
fn c12_groups_that_differ_are_refused_with_both_group_sets() {
    let mut refused = 0;
    for_each(
        "synthetic/group-count-mismatch",
        |model, pairing, case, place| {
            assert_eq!(case.refused(), ["gm"], "{place}");
            let known: Vec<u32> = model.source.groups().iter().map(|g| g.id().get()).collect();
            let counts = format!(
                "lists of {} producer and {} consumer groups",
                known.len() + 1,
                known.len()
            );
            let message = case.requests().unwrap_err();
            assert!(message.contains(&counts), "{place}: {message}");

            let raw = case.padded_with_groups();
            let mut named = known.clone();
            named.push(u32::try_from(known.len()).unwrap());
            assert_eq!(
                Request::new(&raw, pairing),
                Err(RequestError::Groups {
                    request: named,
                    layouts: known
                }),
                "{place}"
            );
            refused += 1;
        },
    );
    assert_eq!(refused, 20);
}

/// `bad` and `ok` of a case.
fn bad_and_ok(case: &Case) -> [RawRequest; 2] {
    let requests = case.requests().unwrap();
    let ids: Vec<&str> = requests.iter().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["bad", "ok"]);
    requests.try_into().unwrap()
}

#[test]
fn c10_more_blocks_than_the_source_has_are_refused_and_the_batch_goes_on() {
    let mut refused = 0;
    for_each(
        "synthetic/local-shorter-error",
        |_, pairing, case, place| {
            assert_eq!(case.refused(), ["bad"], "{place}");
            let [bad, ok] = bad_and_ok(case);
            let Err(RequestError::TailShort {
                group,
                source_len,
                destination_len,
            }) = Request::new(&bad, pairing)
            else {
                panic!("{place}: {:?}", Request::new(&bad, pairing));
            };
            assert_eq!(
                (group, source_len, destination_len),
                (GroupId::new(0), 1, 5)
            );
            let ok = Request::new(&ok, pairing).unwrap();
            let batch = plan(pairing, &[ok], Contract::PayloadOnly);
            assert_eq!(batch.refused, [], "{place}");
            assert_eq!(
                planned(&batch.plan).minus(&case.moves),
                common::moves::Moves::default()
            );
            refused += 1;
        },
    );
    assert_eq!(refused, 20);
}

/// Destination ids of a request that two of its groups list.
fn in_two_groups(request: &RawRequest) -> BTreeSet<u64> {
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for tables in &request.groups {
        let entries = tables.destination.entries.iter().flatten();
        let own: BTreeSet<u64> = entries.copied().filter(|&id| id != 0).collect();
        twice.extend(seen.intersection(&own));
        seen.extend(own);
    }
    twice
}

/// The same request with source lists long enough for its destination lists.
fn lengthened(request: &RawRequest, capacity: u32) -> RawRequest {
    let mut request = request.clone();
    let mut fresh = (0..u64::from(capacity)).rev();
    for tables in &mut request.groups {
        while tables.source.entries.len() < tables.destination.entries.len() {
            tables.source.entries.push(fresh.next());
        }
    }
    request
}

#[test]
fn c24b_synthetic_cases_that_reuse_an_id_across_groups_are_refused_for_it() {
    let (mut reusing, mut single) = (0, 0);
    for_each("", |model, pairing, case, place| {
        let requests = match case.requests() {
            Ok(requests) => requests,
            Err(_) => vec![case.padded_with_groups()],
        };
        let reuse: Vec<&RawRequest> = requests
            .iter()
            .filter(|request| !in_two_groups(request).is_empty())
            .collect();
        if case.name != "synthetic/local-shorter-error" {
            assert_eq!(reuse, Vec::<&RawRequest>::new(), "{place}");
            return;
        }
        // As recorded it is refused for its short lists, and also without that.
        let [bad, ok] = bad_and_ok(case);
        let capacity = model.source.pools()[0].capacity();
        let bad = Request::new(&lengthened(&bad, capacity), pairing).unwrap();
        if reuse.is_empty() {
            assert_eq!(model.source.groups().len(), 1, "{place}");
            assert_eq!(plan(pairing, &[bad], Contract::PayloadOnly).refused, []);
            single += 1;
            return;
        }
        assert_eq!(in_two_groups(reuse[0]), (1..=5).collect(), "{place}");
        let ok = Request::new(&ok, pairing).unwrap();
        let batch = plan(pairing, &[bad, ok.clone()], Contract::PayloadOnly);
        let [refused] = batch.refused.as_slice() else {
            panic!("{place}: {:?}", batch.refused);
        };
        assert_eq!((refused.index, refused.id.as_str()), (0, "bad"));
        assert_eq!(
            refused.error,
            RequestError::DestinationTaken {
                id: 1,
                group: GroupId::new(1),
                owner: Owner::SameRequest
            },
            "{place}"
        );
        // The other one is planned as if it were alone.
        let alone = plan(pairing, &[ok], Contract::PayloadOnly);
        assert_eq!(batch.plan, alone.plan, "{place}");
        assert!(alone.plan.descriptors() > 0, "{place}");
        reusing += 1;
    });
    assert_eq!((reusing, single), (14, 6));
}
