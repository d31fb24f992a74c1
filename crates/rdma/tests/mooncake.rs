//! The real library over TCP on 127.0.0.1, where `MOONCAKE_TRANSFER_ENGINE_LIB`
//! names one; no registry has it. Without it these tests say so and pass.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{bytes, layout, pattern};
use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, CacheLayout, Offset};
use mooncake_pd_plan::{Options, Pairing, Plan, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::mooncake::{Mooncake, MooncakeConfig, Transport};
use mooncake_pd_rdma::{
    BoundBatch, Bytes, Engine, InFlight, Memory, NativeMemory, Operation, Outcome, Patience,
    Registered, RegistrationPlan, Standing, bind, transfer,
};
use mooncake_transfer_engine_sys::official::{LIBRARY_ENV, Library};

const ID: AllocationId = AllocationId::new(0);
const CANARY: u8 = 0xC5;

fn library() -> Option<Library> {
    if std::env::var_os(LIBRARY_ENV).is_none() {
        eprintln!("skipped: {LIBRARY_ENV} names no library");
        return None;
    }
    Some(Library::find().unwrap())
}

fn engine(library: &Library) -> Arc<Mooncake> {
    let config = MooncakeConfig::default().transport(Transport::Tcp);
    Arc::new(Mooncake::start(library, &config).unwrap())
}

/// Two engines, one allocation each.
struct Two {
    layout: CacheLayout,
    prefill: Arc<Mooncake>,
    decode: Arc<Mooncake>,
    source: NativeMemory,
    destination: NativeMemory,
    local: Registered<Mooncake>,
    remote: Registered<Mooncake>,
}

impl Two {
    fn new(library: &Library, layout: CacheLayout) -> Self {
        let (prefill, decode) = (engine(library), engine(library));
        let memory = || {
            let mut all = NativeMemory::of_layout(&layout).unwrap();
            all.swap_remove(&ID).unwrap()
        };
        let (source, destination) = (memory(), memory());
        let limits = prefill.capabilities().registration();
        let regions = RegistrationPlan::of_layout(&layout, limits).unwrap();
        let local = Registered::new(&*prefill, &regions, |_| Some(&source)).unwrap();
        let remote = Registered::new(&*decode, &regions, |_| Some(&destination)).unwrap();
        let len = usize::try_from(source.len().get()).unwrap();
        source.copy_in(0, &pattern(len)).unwrap();
        destination.copy_in(0, &vec![CANARY; len]).unwrap();
        Self {
            layout,
            prefill,
            decode,
            source,
            destination,
            local,
            remote,
        }
    }

    /// Blocks `1..=count` to the same blocks in reverse order, so that no two
    /// copies are one.
    fn plan(&self, count: u32) -> Plan {
        let slots = |ids: Vec<u32>| RawSlots {
            first_block: Some(0),
            entries: ids.into_iter().map(|id| Some(id.into())).collect(),
        };
        let request = RawRequest {
            id: "r".to_owned(),
            computed_tokens: Some(u64::from(count)),
            tail_aligned: false,
            groups: vec![RawTables {
                group: 0,
                source: slots((1..=count).collect()),
                destination: slots((1..=count).rev().collect()),
            }],
        };
        let pairing = Pairing::new(&self.layout, &self.layout).unwrap();
        let request = Request::new(&request, &pairing).unwrap();
        pairing.plan(&[request], &Options::default()).unwrap().plan
    }

    fn batch(&self, count: u32) -> BoundBatch {
        self.share(count, 0, 1)
    }

    /// Every copy `n` of the plan with `n % of == which`.
    fn share(&self, count: u32, which: usize, of: usize) -> BoundBatch {
        let limits = self.prefill.capabilities().submission();
        let (local, remote) = (self.local.regions(), self.remote.regions());
        let plan = self.plan(count);
        let copies = plan.copies().skip(which).step_by(of);
        bind(copies, Operation::Write, local, remote, limits).unwrap()
    }

    /// Checks every byte of the destination against blocks moved in reverse.
    fn assert_landed(&self, count: usize, page: usize, stride: usize) {
        let source = bytes(&self.source);
        let mut expected = vec![CANARY; source.len()];
        for block in 1..=count {
            let to = count + 1 - block;
            expected[to * stride..][..page].copy_from_slice(&source[block * stride..][..page]);
        }
        assert!(bytes(&self.destination) == expected);
    }
}

#[test]
fn c63_sizes_are_byte_exact() {
    let Some(library) = library() else { return };
    for page in [1_u64, 511, 512, 513, (64 << 10) - 1, (64 << 10) + 1] {
        let stride = page + 7;
        let two = Two::new(&library, layout(20, page, stride));
        let batch = two.batch(19);
        let peer = two.prefill.open(two.decode.name()).unwrap();
        let moved = transfer(&*two.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
        assert_eq!((moved.descriptors(), moved.bytes()), (19, 19 * page));
        let [page, stride] = [page, stride].map(|n| usize::try_from(n).unwrap());
        two.assert_landed(19, page, stride);
    }
}

#[test]
fn c62_100_000_descriptors_arrive_in_portions() {
    let Some(library) = library() else { return };
    let two = Two::new(&library, layout(100_001, 48, 64));
    let batch = two.batch(100_000);
    assert_eq!(batch.descriptors().len(), 100_000);
    let peer = two.prefill.open(two.decode.name()).unwrap();
    let start = Instant::now();
    let moved = transfer(&*two.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    eprintln!("100,000 descriptors in {:?}", start.elapsed());
    assert_eq!(moved.submissions(), 98);
    two.assert_landed(100_000, 48, 64);
}

#[test]
fn a_peer_that_unregistered_fails_the_transfer_and_can_be_opened_again() {
    let Some(library) = library() else { return };
    let mut two = Two::new(&library, layout(9, 4_096, 5_000));
    let batch = two.batch(8);
    let peer = two.prefill.open(two.decode.name()).unwrap();
    let limits = two.decode.capabilities().registration();
    let one = RegistrationPlan::of([(ID, 1)], limits).unwrap();
    let spare = NativeMemory::zeroed(ByteLen::new(1).unwrap()).unwrap();
    let spare = Registered::new(&*two.decode, &one, |_| Some(&spare)).unwrap();
    let gone = std::mem::replace(&mut two.remote, spare);
    gone.release(&*two.decode).unwrap();
    let engine = Arc::clone(&two.prefill);
    let mut flight = InFlight::new(engine, peer.clone(), batch.clone(), ());
    let standing = flight.drain(Patience::default());
    let Standing::Ended(outcome) = standing else {
        panic!("{standing:?}");
    };
    assert!(matches!(
        outcome,
        Outcome::Failed { .. } | Outcome::NotTaken { .. }
    ));
    assert!(flight.end().is_ok());
    let submission = batch.submission(0).unwrap();
    assert!(two.prefill.submit(&peer, submission).is_err());
    let regions = RegistrationPlan::of_layout(&two.layout, limits).unwrap();
    two.remote = Registered::new(&*two.decode, &regions, |_| Some(&two.destination)).unwrap();
    // Rejected descriptors hold later ones up for a while.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let peer = two.prefill.open(two.decode.name()).unwrap();
        match transfer(&*two.prefill, &peer, &batch, Patience::default(), |_| {}) {
            Ok(_) => break,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
    two.assert_landed(8, 4_096, 5_000);
}

#[test]
fn nobody_at_a_port_is_an_error_that_names_it() {
    let Some(library) = library() else { return };
    let engine = engine(&library);
    let error = engine.open("127.0.0.1:1").unwrap_err();
    assert!(error.to_string().contains("`127.0.0.1:1`"), "{error}");
}

#[test]
fn four_submitters_while_ranges_come_and_go() {
    let Some(library) = library() else { return };
    let two = Two::new(&library, layout(257, 4_096, 4_096));
    let shares: Vec<BoundBatch> = (0..4).map(|which| two.share(256, which, 4)).collect();
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let (prefill, decode) = (&*two.prefill, &*two.decode);
    std::thread::scope(|scope| {
        for batch in &shares {
            let stop = &stop;
            scope.spawn(move || {
                let peer = prefill.open(decode.name()).unwrap();
                while start.elapsed() < Duration::from_secs(5) {
                    transfer(prefill, &peer, batch, Patience::default(), |_| {}).unwrap();
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            let spare = NativeMemory::zeroed(ByteLen::new(1 << 16).unwrap()).unwrap();
            let span = ByteSpan::new(Offset::ZERO, ByteLen::new(1 << 16).unwrap()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let registration = prefill.register(&spare, span).unwrap();
                prefill.unregister(registration).unwrap();
            }
        });
    });
    two.assert_landed(256, 4_096, 4_096);
}
