//! A queue that stalls when it is given too much: out of reach behind the
//! engine's limits, and survived where they are wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bench::{Bench, CANARY, len, span};
use super::*;
use crate::batch::BoundBatch;
use crate::capabilities::SubmissionLimits;
use crate::engine::TaskStatus;
use crate::error::TaskFailure;
use crate::flight::{InFlight, Outcome, Standing};
use crate::transfer::{TransferError, transfer};

const ROOM: u32 = 4;
const FAILED: TaskStatus = TaskStatus::Failed(TaskFailure::Engine { code: INJECTED });
use TaskStatus::{Completed, Unknown};

/// Six copies onto other places.
const COPIES: [(u64, u64, u64); 6] = [
    (0, 40, 8),
    (8, 32, 8),
    (16, 24, 8),
    (24, 16, 8),
    (32, 8, 8),
    (40, 0, 8),
];

/// An engine that lets `limit` descriptors out over a queue of room for four.
fn bench(limit: u32, completes_at: Option<u64>) -> Bench {
    let bench = Bench::with_limits(64, SubmissionLimits::new(limit, len(64)).unwrap());
    let plan = FaultPlan::new().overflow(ROOM, completes_at);
    bench.prefill.inject(plan);
    bench
}

fn polls(polls: u64) -> Patience {
    Patience::new(Duration::from_millis(polls))
}

/// Says when it is dropped.
#[derive(Debug)]
struct Kept(Arc<AtomicBool>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A batch on its way, and whether what it owns is back.
fn flight(
    engine: &Arc<Loopback>,
    peer: &LoopbackPeer,
    batch: &BoundBatch,
) -> (InFlight<Loopback, Kept>, Arc<AtomicBool>) {
    let back = Arc::new(AtomicBool::new(false));
    let kept = Kept(Arc::clone(&back));
    let flight = InFlight::new(Arc::clone(engine), peer.clone(), batch.clone(), kept);
    (flight, back)
}

#[test]
fn descriptors_past_the_room_fail_and_later_good_ones_stall() {
    let bench = bench(8, Some(3));
    let mut over = bench.submit(&COPIES).unwrap();
    let progress = bench.prefill.poll(&mut over);
    assert_eq!(progress.tasks()[..4], [Completed; 4]);
    assert_eq!(progress.tasks()[4..], [FAILED; 2]);
    bench.assert_landed(&COPIES[..4]);
    bench.prefill.release(over).unwrap();

    bench.destination.write().fill(CANARY);
    let mut good = bench.submit(&COPIES[..2]).unwrap();
    let mut later = bench.submit(&COPIES[2..4]).unwrap();
    for _ in 0..2 {
        assert_eq!(bench.prefill.poll(&mut good).tasks(), [Unknown; 2]);
        assert_eq!(bench.prefill.poll(&mut later).tasks(), [Unknown; 2]);
        bench.assert_landed(&[]);
    }
    assert_eq!(bench.prefill.poll(&mut good).tasks(), [Completed; 2]);
    bench.assert_landed(&COPIES[..2]);
    // The queue works again.
    let mut free = bench.submit(&COPIES[4..]).unwrap();
    assert_eq!(bench.prefill.poll(&mut free).tasks(), [Completed; 2]);
    assert_eq!(bench.prefill.poll(&mut later).tasks(), [Completed; 2]);
    bench.assert_landed(&COPIES);
}

#[test]
fn what_is_in_flight_takes_room_from_what_comes() {
    let bench = bench(8, None);
    let mut first = bench.submit(&COPIES[..3]).unwrap();
    let mut second = bench.submit(&COPIES[3..]).unwrap();
    assert_eq!(bench.prefill.poll(&mut first).tasks(), [Completed; 3]);
    let progress = bench.prefill.poll(&mut second);
    assert_eq!(progress.tasks(), [Completed, FAILED, FAILED]);
    bench.assert_landed(&COPIES[..4]);
}

#[test]
fn another_peer_and_the_next_generation_do_not_stall() {
    let bench = bench(8, None);
    let mut over = bench.submit(&COPIES).unwrap();
    bench.prefill.poll(&mut over);
    let other = bench.fabric.attach("other").unwrap();
    let whole = span(0, 64);
    other.register(&bench.destination, whole).unwrap();
    let batch = bench.batch(&COPIES[..4]);
    let move_to = |name| {
        let peer = bench.prefill.open(name).unwrap();
        transfer(&bench.prefill, &peer, &batch, polls(1), |_| {}).map(|moved| moved.descriptors())
    };
    assert_eq!(move_to("other").unwrap(), 4);
    assert!(matches!(
        move_to("decode").unwrap_err(),
        TransferError::Unknown { .. }
    ));
    assert!(bench.fabric.kill("decode"));
    let restarted = bench.fabric.attach("decode").unwrap();
    restarted.register(&bench.destination, whole).unwrap();
    assert_eq!(move_to("decode").unwrap(), 4);
}

#[test]
fn c62_no_batch_and_no_number_of_threads_overflows_a_queue_within_the_limits() {
    const PIECES: u64 = 4_096;
    let limits = SubmissionLimits::new(ROOM, len(1 << 20)).unwrap();
    let bench = Bench::with_limits(PIECES * 16, limits);
    bench.prefill.inject(FaultPlan::new().overflow(ROOM, None));
    let copies: Vec<(u64, u64, u64)> = (0..PIECES).map(|n| (n * 16, n * 16, 9)).collect();
    std::thread::scope(|scope| {
        for share in copies.chunks(copies.len() / 4) {
            let bench = &bench;
            scope.spawn(move || {
                let batch = bench.batch(share);
                let (engine, patience) = (&bench.prefill, Patience::default());
                transfer(engine, &bench.peer, &batch, patience, |_| {}).unwrap();
            });
        }
    });
    bench.assert_landed(&copies);
}

#[test]
fn c41_a_batch_behind_an_overflow_is_unknown_and_a_later_drain_finds_its_end() {
    let bench = bench(8, Some(50));
    let (all, good) = (bench.batch(&COPIES), bench.batch(&COPIES[..4]));
    let Bench {
        prefill,
        decode: _decode,
        peer,
        source,
        destination,
        ..
    } = bench;
    let engine = Arc::new(prefill);
    let (mut over, over_back) = flight(&engine, &peer, &all);
    let standing = over.drain(Patience::default());
    let Standing::Ended(Outcome::Failed { descriptor: 4, .. }) = standing else {
        panic!("{standing:?}");
    };
    assert!(!over_back.load(Ordering::SeqCst));
    drop(over.end().unwrap());
    assert!(over_back.load(Ordering::SeqCst));

    destination.write().fill(CANARY);
    let (mut held, back) = flight(&engine, &peer, &good);
    for _ in 0..4 {
        let standing = held.drain(polls(10));
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
        held = held.end().unwrap_err();
        assert!(!back.load(Ordering::SeqCst));
        assert!(destination.read().iter().all(|byte| *byte == CANARY));
    }
    let standing = held.drain(polls(10));
    let Standing::Ended(Outcome::Completed(moved)) = standing else {
        panic!("{standing:?}");
    };
    assert_eq!(moved.bytes(), 32);
    for (from, to, len) in &COPIES[..4] {
        let [from, to, len] = [from, to, len].map(|n| usize::try_from(*n).unwrap());
        assert_eq!(
            destination.read()[to..][..len],
            source.read()[from..][..len]
        );
    }
    drop(held.end().unwrap());
    assert!(back.load(Ordering::SeqCst));
}

#[test]
fn a_batch_that_stalls_for_good_keeps_its_memory_also_when_it_is_dropped() {
    let bench = bench(8, None);
    let (all, good) = (bench.batch(&COPIES), bench.batch(&COPIES[..4]));
    let engine = Arc::new(bench.prefill);
    let (mut over, _) = flight(&engine, &bench.peer, &all);
    let _ = over.drain(Patience::default());
    let (mut held, back) = flight(&engine, &bench.peer, &good);
    let standing = held.drain(polls(1_000));
    assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
    drop(held);
    engine.advance(1_000);
    assert!(!back.load(Ordering::SeqCst));
}
