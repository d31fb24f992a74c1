//! Bytes over the engines that need no library, against plain copies of the
//! same bytes.
//!
//! `cargo bench -p mooncake-pd-rdma --bench loopback`

#![expect(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a benchmark may fail by panic"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mooncake_pd_layout::{
    AllocationId, Axis, ByteLen, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder,
};
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback};
use mooncake_pd_rdma::{
    Engine, Fabric, HostBuffer, HostMemory, Operation, Patience, Registered, RegistrationLimits,
    RegistrationPlan, SubmissionLimits, bind, transfer,
};

/// Bytes moved by one pass: far more than any cache holds.
const TOTAL: u64 = 1 << 30;
const ID: AllocationId = AllocationId::new(0);

fn layout(blocks: u32, page: u64) -> CacheLayout {
    let kv = FieldSpec::new("kv", "uint8")
        .at(0, 0)
        .page_stride(page)
        .dim(Axis::Token, 1, page)
        .dim(Axis::Content, page, 1);
    LayoutBuilder::new()
        .allocation(0, u64::from(blocks) * page)
        .pool(0, blocks, Some(0))
        .group(GroupSpec::new(0, "full_attention", 1, 0).layer("layer.0", [kv]))
        .build()
        .unwrap()
}

/// Blocks in an order in which no two that follow each other are neighbours.
fn shuffled(count: u64) -> Vec<u64> {
    (0..count).map(|n| 1 + (n * 7_919) % count).collect()
}

fn run(criterion: &mut Criterion, page: u64) {
    let count = TOTAL / page;
    let layout = layout(u32::try_from(count + 1).unwrap(), page);
    let memory = || HostMemory::of_layout(&layout).unwrap();
    let (source, destination) = (memory(), memory());
    let buffer = |memory: &HostMemory| memory.buffer(ID).unwrap().clone();
    let (from, to): (HostBuffer, HostBuffer) = (buffer(&source), buffer(&destination));
    from.write().fill(7);
    to.write().fill(9);

    let slots = |entries: Vec<u64>| RawSlots {
        first_block: Some(0),
        entries: entries.into_iter().map(Some).collect(),
    };
    let (here, there) = (shuffled(count), (1..=count).rev().collect::<Vec<_>>());
    let request = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(count),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots(here.clone()),
            destination: slots(there.clone()),
        }],
    };
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let request = Request::new(&request, &pairing).unwrap();
    let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;

    let fabric = Fabric::new();
    let one = ByteLen::new(2 * TOTAL).unwrap();
    let limits = SubmissionLimits::new(1 << 20, one).unwrap();
    let attach = |name| {
        let registration = RegistrationLimits::default();
        fabric.attach_with(name, registration, limits).unwrap()
    };
    let (prefill, decode) = (attach("prefill"), attach("decode"));
    let regions =
        RegistrationPlan::of_layout(&layout, prefill.capabilities().registration()).unwrap();
    let local = Registered::new(&prefill, &regions, |id| source.buffer(id)).unwrap();
    let remote = Registered::new(&decode, &regions, |id| destination.buffer(id)).unwrap();
    let (local, remote) = (local.regions(), remote.regions());
    let batch = bind(plan.copies(), Operation::Write, local, remote, limits).unwrap();
    assert_eq!(batch.bytes(), TOTAL);
    let peer = prefill.open("decode").unwrap();

    let mut group = criterion.benchmark_group(format!("{} KiB", page >> 10));
    group.throughput(Throughput::Bytes(TOTAL)).sample_size(10);
    group.bench_function("memcpy", |bencher| {
        let place = |block: u64| usize::try_from(block * page).unwrap();
        let len = usize::try_from(page).unwrap();
        bencher.iter(|| {
            let (from, mut to) = (from.read(), to.write());
            for (here, there) in here.iter().zip(&there) {
                to[place(*there)..][..len].copy_from_slice(&from[place(*here)..][..len]);
            }
        });
    });
    group.bench_function("loopback", |bencher| {
        bencher.iter(|| transfer(&prefill, &peer, &batch, Patience::default(), |_| {}).unwrap());
    });
    let most = SubmissionLimits::new(1 << 14, one).unwrap();
    let config = TcpConfig::default().limits(RegistrationLimits::default(), most);
    let start = || TcpLoopback::start(&config).unwrap();
    let (prefill, decode) = (start(), start());
    let _local = Registered::new(&prefill, &regions, |id| source.buffer(id)).unwrap();
    let _remote = Registered::new(&decode, &regions, |id| destination.buffer(id)).unwrap();
    let peer = prefill.open(decode.name()).unwrap();
    let batch = bind(plan.copies(), Operation::Write, local, remote, most).unwrap();
    group.bench_function("tcp", |bencher| {
        bencher.iter(|| transfer(&prefill, &peer, &batch, Patience::default(), |_| {}).unwrap());
    });
    group.finish();
}

fn loopback(criterion: &mut Criterion) {
    for page in [64 << 10, 1 << 20] {
        run(criterion, page);
    }
}

criterion_group!(benches, loopback);
criterion_main!(benches);
