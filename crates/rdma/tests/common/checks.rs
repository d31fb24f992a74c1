//! What has to hold over every engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mooncake_pd_layout::{ByteLen, ByteSpan, Offset};
use mooncake_pd_rdma::{BoundBatch, Bytes, Memory, Patience, transfer};

use super::pair::{CANARY, Pair};
use super::{Subject, layout};

/// C63: sizes around those at which an engine changes its ways are byte-exact.
pub(crate) fn sizes_are_byte_exact<E: Subject>(engines: &(Arc<E>, Arc<E>)) {
    for page in [1_u64, 511, 512, 513, (64 << 10) - 1, (64 << 10) + 1] {
        let stride = page + 7;
        let pair = Pair::new(engines, layout(20, page, stride));
        let batch = pair.batch(19);
        let peer = pair.prefill.open(pair.decode.name()).unwrap();
        let moved = transfer(&*pair.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
        assert_eq!((moved.descriptors(), moved.bytes()), (19, 19 * page));
        let [page, stride] = [page, stride].map(|n| usize::try_from(n).unwrap());
        pair.assert_landed(19, page, stride);
        pair.release();
    }
}

const PAGE: u64 = 4_096;
const SPARE: u64 = 1 << 16;

/// Four threads submit for five seconds while other ranges of both sides come
/// and go. Each looks at its own pages after every round.
pub(crate) fn submitters_while_ranges_come_and_go<E: Subject>(engines: &(Arc<E>, Arc<E>)) {
    let pair = Pair::new(engines, layout(257, PAGE, PAGE));
    let shares: Vec<BoundBatch> = (0..4).map(|which| pair.share(256, which, 4)).collect();
    let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    let rounds = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for batch in &shares {
            let (pair, rounds, stop) = (&pair, &rounds, &stop);
            scope.spawn(move || {
                let _stops = StopOnDrop(stop);
                let peer = pair.prefill.open(pair.decode.name()).unwrap();
                while start.elapsed() < Duration::from_secs(5) {
                    round(pair, &peer, batch);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for engine in [&*pair.prefill, &*pair.decode] {
            let (stop, changes) = (&stop, &changes);
            scope.spawn(move || {
                let len = ByteLen::new(SPARE).unwrap();
                let (spare, span) = (E::zeroed(len), ByteSpan::new(Offset::ZERO, len).unwrap());
                while !stop.load(Ordering::Relaxed) {
                    let registration = engine.register(&spare, span).unwrap();
                    engine.unregister(registration).unwrap();
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [page, stride] = [PAGE; 2].map(|n| usize::try_from(n).unwrap());
    pair.assert_landed(256, page, stride);
    let (rounds, changes) = (rounds.into_inner(), changes.into_inner());
    eprintln!("{rounds} transfers beside {changes} registrations");
    assert!(rounds >= 4 && changes >= 1);
    pair.release();
}

/// Ends the threads that would else wait for ever when a submitter panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Moves a batch onto canaries and looks at what it wrote.
fn round<E: Subject>(pair: &Pair<E>, peer: &E::Peer, batch: &BoundBatch) {
    let (from, to) = (pair.source.base().get(), pair.destination.base().get());
    let page = usize::try_from(PAGE).unwrap();
    let places = || {
        batch
            .descriptors()
            .iter()
            .map(|d| (d.local().get() - from, d.remote().get() - to))
    };
    for (_, to) in places() {
        pair.destination.copy_in(to, &vec![CANARY; page]).unwrap();
    }
    transfer(&*pair.prefill, peer, batch, Patience::default(), |_| {}).unwrap();
    let (mut sent, mut landed) = (vec![0; page], vec![0; page]);
    for (from, to) in places() {
        pair.source.copy_out(from, &mut sent).unwrap();
        pair.destination.copy_out(to, &mut landed).unwrap();
        assert!(landed == sent, "page at {to}");
    }
}
