//! Layouts that real engines reported, registered and moved over.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use mooncake_pd_layout::import::{Side, any};
use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, CacheLayout, Offset};
use mooncake_pd_plan::{Options, Pairing, Plan, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::{
    Bytes, Operation, Patience, RegisterError, Registered, RegistrationError, RegistrationLimits,
    RegistrationPlan, bind, transfer,
};

use super::{Subject, pattern};

/// Every layout of `fixtures`, by name.
fn layouts() -> Vec<(String, CacheLayout)> {
    let mut all = Vec::new();
    for (folder, sides) in [
        ("vllm-0.33", &[Side::Prefill][..]),
        ("vllm-0.26", &[Side::Prefill]),
        ("sglang-0.5.23", &[Side::Prefill, Side::Decode]),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures")
            .join(folder);
        let mut files: Vec<String> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| Path::new(name).extension().is_some_and(|ext| ext == "json"))
            .collect();
        files.sort();
        for file in files {
            let other = ["accounting.json", "planning-bench.json"];
            if other.contains(&file.as_str()) || file.ends_with(".oracle.json") {
                continue;
            }
            let text = fs::read_to_string(path.join(&file)).unwrap();
            for side in sides {
                let name = format!("{folder}/{file} {side:?}");
                let layout = any(&text, *side).unwrap_or_else(|error| panic!("{name}: {error}"));
                all.push((name, layout));
            }
        }
    }
    assert_eq!(all.len(), 40 + 1 + 16);
    all
}

/// The same pages with few blocks, where the pools can be told apart.
fn small(layout: &CacheLayout) -> CacheLayout {
    let mut small = layout.clone();
    for pool in layout.pools() {
        let groups = layout.groups().iter();
        let groups = groups.filter(|group| group.pool() == pool.id()).count();
        let live = (0..pool.capacity()).filter(|id| pool.is_live(*id));
        // Each group gets a block of its own on either side.
        let Some(last) = live.take(2 * groups).last() else {
            continue;
        };
        if let Ok(resized) = small.resized(pool.id(), last + 1) {
            small = resized;
        }
    }
    small
}

type AllMemory<E> = IndexMap<AllocationId, <E as mooncake_pd_rdma::Engine>::Memory>;

fn memory<E: Subject>(layout: &CacheLayout) -> AllMemory<E> {
    let allocations = layout.allocations().iter();
    allocations
        .map(|allocation| (allocation.id(), E::zeroed(allocation.len())))
        .collect()
}

/// Every layout is registered as it is, wholly, in disjoint ranges, and again
/// after its release.
pub(crate) fn every_layout_registers_without_overlap<E: Subject>(engine: &E) {
    let limits = engine.capabilities().registration();
    for (name, layout) in layouts() {
        let plan = RegistrationPlan::of_layout(&layout, limits).unwrap();
        let memory = memory::<E>(&layout);
        for _ in 0..2 {
            let registered = Registered::new(engine, &plan, |id| memory.get(&id))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut ranges: Vec<(u64, u64)> = registered
                .regions()
                .regions()
                .iter()
                .map(|region| {
                    let start = region.address().get();
                    (start, start + region.span().len().get())
                })
                .collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0), "{name}");
            let all: u64 = layout.allocations().iter().map(|a| a.len().get()).sum();
            assert_eq!(
                ranges.iter().map(|(start, end)| end - start).sum::<u64>(),
                all
            );
            registered
                .release(engine)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// One block of every group, to another one.
fn plan(layout: &CacheLayout, name: &str) -> Plan {
    let mut live: IndexMap<_, _> = layout
        .pools()
        .iter()
        .map(|pool| {
            let ids = (0..pool.capacity()).filter(|id| pool.is_live(*id));
            let mut ids: Vec<u32> = ids.collect();
            // Pools that share bytes use them from both ends.
            if pool.id().get() % 2 == 1 {
                ids.reverse();
            }
            (pool.id(), ids.into_iter())
        })
        .collect();
    let mut slots = |group: &mooncake_pd_layout::Group| RawSlots {
        first_block: None,
        entries: live[&group.pool()]
            .by_ref()
            .take(1)
            .map(|id| Some(id.into()))
            .collect(),
    };
    let groups = layout.groups().iter();
    let groups = groups.map(|group| RawTables {
        group: group.id().get(),
        source: slots(group),
        destination: slots(group),
    });
    let request = RawRequest {
        id: "r".to_owned(),
        computed_tokens: None,
        tail_aligned: true,
        groups: groups.collect(),
    };
    let pairing = Pairing::new(layout, layout).unwrap();
    let request = Request::new(&request, &pairing).unwrap_or_else(|e| panic!("{name}: {e}"));
    let batch = pairing.plan(&[request], &Options::default());
    let batch = batch.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(batch.refused.is_empty(), "{name}: {:?}", batch.refused);
    let groups = layout.groups().iter();
    let mut untouched: Vec<AllocationId> = groups
        .flat_map(|group| group.fields().map(|(_, field)| field.allocation()))
        .collect();
    for copy in batch.plan.copies() {
        untouched.retain(|id| *id != copy.destination());
    }
    assert_eq!(untouched, [], "{name}");
    batch.plan
}

/// Bytes that tell positions apart, for a range that begins at `at`.
fn pattern_at(table: &[u8], at: u64, len: u64) -> Vec<u8> {
    let (mut at, len) = (usize::try_from(at).unwrap(), usize::try_from(len).unwrap());
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let rest = &table[at % table.len()..];
        let rest = &rest[..rest.len().min(len - bytes.len())];
        bytes.extend_from_slice(rest);
        at += rest.len();
    }
    bytes
}

/// A range in the middle meets a registered one: nothing is registered then,
/// and afterwards everything is, and every range can be moved over.
pub(crate) fn a_batch_that_fails_in_the_middle_spoils_nothing<E: Subject>(
    engines: &(Arc<E>, Arc<E>),
) {
    // No multiple of any stride, so that the pattern never repeats with one.
    let table = pattern(65_521);
    let mut seen = Vec::new();
    for (name, layout) in layouts() {
        let layout = small(&layout);
        // Both sides of a model are the same when they are small.
        if seen.contains(&layout) {
            continue;
        }
        seen.push(layout.clone());
        let plan = plan(&layout, &name);
        let regions = in_pieces(&layout);
        let sides = [&engines.0, &engines.1].map(|engine| (engine, memory::<E>(&layout)));
        let registered = sides.each_ref().map(|(engine, memory)| {
            fails_in_the_middle(&***engine, &regions, memory, &name);
            Registered::new(&***engine, &regions, |id| memory.get(&id))
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        let [(prefill, source), (decode, destination)] = &sides;
        let [local, remote] = &registered;
        for copy in plan.copies() {
            let at = copy.source_offset().get();
            let bytes = pattern_at(&table, at, copy.len().get());
            source[&copy.source()].copy_in(at, &bytes).unwrap();
        }
        let limits = prefill.capabilities().submission();
        let (copies, write) = (plan.copies(), Operation::Write);
        let batch = bind(copies, write, local.regions(), remote.regions(), limits).unwrap();
        let peer = prefill.open(decode.name()).unwrap();
        transfer(&***prefill, &peer, &batch, Patience::default(), |_| {})
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (id, memory) in destination {
            let mut landed = super::bytes(memory);
            for copy in plan.copies().filter(|copy| copy.destination() == *id) {
                let to = usize::try_from(copy.destination_offset().get()).unwrap();
                let sent = pattern_at(&table, copy.source_offset().get(), copy.len().get());
                let place = &mut landed[to..][..sent.len()];
                assert!(*place == *sent, "{name}: allocation {id} at {to}");
                place.fill(0);
            }
            // What no copy wrote is as it was: zero.
            let zeros = [0; 1 << 14];
            let clean = |part: &[u8]| *part == zeros[..part.len()];
            assert!(
                landed.chunks(zeros.len()).all(clean),
                "{name}: allocation {id}"
            );
        }
        let [local, remote] = registered;
        local.release(&*engines.0).unwrap();
        remote.release(&*engines.1).unwrap();
    }
    assert!(seen.len() >= 29, "{} layouts", seen.len());
}

/// Ranges of a layout, at least five of them.
fn in_pieces(layout: &CacheLayout) -> RegistrationPlan {
    let all: u64 = layout.allocations().iter().map(|a| a.len().get()).sum();
    let piece = ByteLen::new(all.div_ceil(5)).unwrap();
    let limits = RegistrationLimits::default();
    let limits = limits
        .with_max_len(piece, ByteLen::new(1).unwrap())
        .unwrap();
    let plan = RegistrationPlan::of_layout(layout, limits).unwrap();
    assert!(plan.regions().len() >= 5);
    plan
}

/// Registers a part of the range in the middle, and then all ranges in vain.
fn fails_in_the_middle<E: Subject>(
    engine: &E,
    plan: &RegistrationPlan,
    memory: &AllMemory<E>,
    name: &str,
) {
    let middle = plan.regions()[plan.regions().len() / 2];
    let (allocation, span) = (middle.allocation(), middle.span());
    let inside = Offset::new(span.start().get() + span.len().get() / 2).unwrap();
    let inside = ByteSpan::new(inside, ByteLen::new(1).unwrap()).unwrap();
    let registration = engine.register(&memory[&allocation], inside).unwrap();
    for _ in 0..2 {
        let error = Registered::new(engine, plan, |id| memory.get(&id)).unwrap_err();
        let RegistrationError::Register {
            allocation: at,
            start,
            error: RegisterError::Overlap { .. },
            ..
        } = error
        else {
            panic!("{name}: {error}");
        };
        assert_eq!((at, start), (allocation, span.start().get()), "{name}");
    }
    engine.unregister(registration).unwrap();
}
