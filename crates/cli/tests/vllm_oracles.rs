//! Plans against every descriptor list that vLLM 0.33 computed between equal
//! ranks, and against the separate walker.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail by panic"
)]

mod common;

use common::moves::{Bytes, Moves};
use common::vllm::{Case, Model, models, oracle};
use common::{bridge_all, demanded, plan, planned};
use mooncake_pd::verify::demand;
use mooncake_pd::walk::lists;
use mooncake_pd_layout::BlockEntry;
use mooncake_pd_plan::{Contract, Pairing, RawRequest, Request, Slots};

/// The requests of a case that vLLM served.
fn served(case: &Case) -> Vec<RawRequest> {
    let refused = case.refused();
    if case.name == "synthetic/group-count-mismatch" {
        return Vec::new();
    }
    let mut requests = case.requests().unwrap();
    requests.retain(|request| !refused.contains(&request.id.as_str()));
    requests
}

fn checked(requests: &[RawRequest], pairing: &Pairing<'_>) -> Vec<Request> {
    requests
        .iter()
        .map(|raw| Request::new(raw, pairing).unwrap())
        .collect()
}

/// Runs `each` on every case of every model.
fn for_each(mut each: impl FnMut(&Model, &Pairing<'_>, &Case, &str)) -> usize {
    let mut cases = 0;
    for name in models() {
        let model = Model::read(&name);
        let pairing = Pairing::new(&model.source, &model.destination).unwrap();
        let (all, blocks) = oracle(&name);
        // Offsets of a recording count from the start of the one storage.
        for layout in [&model.source, &model.destination] {
            assert_eq!(layout.allocations().len(), 1, "{name}");
            assert_eq!(layout.allocations()[0].id().get(), 0, "{name}");
        }
        let capacities = [&model.source, &model.destination]
            .map(|layout| u64::from(layout.pools()[0].capacity()));
        assert_eq!(capacities, blocks, "{name}");
        assert_ne!(blocks[0], blocks[1], "{name}");
        for case in &all {
            each(&model, &pairing, case, &format!("{name}#{}", case.name));
            cases += 1;
        }
    }
    cases
}

#[test]
fn every_case_moves_the_requested_views_and_vllm_writes_only_padding_besides() {
    let mut padded = 0;
    let cases = for_each(|model, pairing, case, place| {
        let raw = served(case);
        let requests = checked(&raw, pairing);
        let batch = plan(pairing, &requests, Contract::PayloadOnly);
        assert_eq!(batch.refused, [], "{place}");
        assert_eq!(batch.plan.unfilled(), [], "{place}");
        let ours = planned(&batch.plan);
        assert!(ours.have_one_source_each(), "{place}");
        assert_eq!(ours.len(), batch.plan.bytes(), "{place}");

        let walked: Vec<_> = raw.iter().map(lists).collect();
        let wanted = demand(&model.source_views, &model.destination_views, &walked).unwrap();
        assert_eq!(ours, demanded(&wanted), "{place}");

        // Bytes that vLLM writes twice come from one source as well.
        assert!(case.moves.have_one_source_each(), "{place}");
        assert_eq!(ours.minus(&case.moves), Moves::default(), "{place}");

        let besides = case.moves.written().minus(&ours.written());
        assert_eq!(besides, besides.minus(&model.requested(&raw)), "{place}");
        padded += usize::from(!besides.is_empty());
    });
    assert_eq!((cases, padded), (242, 131));
}

#[test]
fn cases_with_a_token_count_have_positions_and_only_the_others_are_tail_aligned() {
    let (mut positioned, mut aligned, mut entries) = (0, 0, 0);
    for_each(|_, pairing, case, place| {
        let counted = !case.facts["num_external_tokens"].is_null();
        let named = ["full", "consumer-prefix-hit", "producer-prefix-hit"];
        let expected = named.iter().any(|name| case.name.ends_with(name));
        assert_eq!(counted, expected, "{place}");
        for raw in served(case) {
            assert_eq!(raw.computed_tokens.is_some(), counted, "{place}");
            assert_eq!(raw.tail_aligned, !counted, "{place}");
            if !counted {
                aligned += 1;
                continue;
            }
            positioned += 1;
            let request = Request::new(&raw, pairing).unwrap();
            for tables in request.tables() {
                let group = usize::try_from(tables.group().get()).unwrap();
                for (key, slots) in [
                    ("producer_full_block_table", tables.source()),
                    ("consumer_full_block_table", tables.destination()),
                ] {
                    let full: Vec<u64> =
                        serde_json::from_value(case.facts[key][group].clone()).unwrap();
                    entries += at_their_positions(slots, &full, place);
                }
            }
        }
    });
    assert_eq!((positioned, aligned, entries), (108, 148, 3870));
}

/// Counts the live entries, all of which stand where the full table has them.
fn at_their_positions(slots: &Slots, full: &[u64], place: &str) -> usize {
    let mut live = 0;
    for (position, entry) in slots.positions() {
        let id = match entry {
            BlockEntry::Null => continue,
            BlockEntry::Block(block) => block.get(),
            BlockEntry::State(slot) => slot.get(),
        };
        let at = usize::try_from(position).unwrap();
        assert_eq!(full.get(at), Some(&u64::from(id)), "{place}");
        live += 1;
    }
    live
}

#[test]
fn bridging_dead_gaps_never_takes_more_descriptors_than_vllm() {
    let mut fewer = 0;
    let cases = for_each(|_, pairing, case, place| {
        let requests = checked(&served(case), pairing);
        let [plain, bridged] = [Contract::PayloadOnly, bridge_all()]
            .map(|contract| plan(pairing, &requests, contract).plan);
        assert!(
            bridged.descriptors() <= case.descriptors,
            "{place}: {} > {}",
            bridged.descriptors(),
            case.descriptors
        );
        fewer += usize::from(bridged.descriptors() < case.descriptors);
        assert_eq!(bridged.payload_bytes(), plain.bytes(), "{place}");
        assert!(planned(&bridged).have_one_source_each(), "{place}");
        let lost = planned(&plain).minus(&planned(&bridged));
        assert_eq!(lost, Moves::default(), "{place}");
    });
    assert_eq!((cases, fewer), (242, 10));
}

#[test]
fn a_byte_counts_once_in_a_set_and_once_per_source_in_moves() {
    let of = |pieces: &[(u32, u64, u64)]| pieces.iter().copied().collect::<Bytes>();
    let set = of(&[(1, 10, 5), (1, 0, 4), (2, 20, 1), (1, 13, 7), (1, 4, 1)]);
    assert_eq!(set, of(&[(1, 0, 5), (1, 10, 10), (2, 20, 1)]));
    assert_eq!(set.pieces().count(), 3);
    let holes = of(&[(1, 3, 8), (1, 12, 1), (1, 19, 9), (3, 0, 1)]);
    let left = of(&[(1, 0, 3), (1, 11, 1), (1, 13, 6), (2, 20, 1)]);
    assert_eq!(set.minus(&holes), left);
    assert_eq!(holes.minus(&set), of(&[(1, 5, 5), (1, 20, 8), (3, 0, 1)]));

    let one = Moves::of([(0, 0, 0, 100, 10), (0, 10, 0, 110, 5)]);
    assert_eq!(one, Moves::of([(0, 0, 0, 100, 15), (0, 3, 0, 103, 2)]));
    let other = Moves::of([(0, 0, 0, 100, 14), (0, 15, 0, 114, 1)]);
    assert_eq!(one.minus(&other).len(), 1);
    assert!(one.have_one_source_each());
    let twice = Moves::of([(0, 0, 0, 100, 15), (0, 1, 0, 100, 1)]);
    assert!(!twice.have_one_source_each());
}
