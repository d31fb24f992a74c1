//! Memory of a transfer is never released early: whoever owns it poisons it on
//! release, and no byte may change after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quickcheck::quickcheck;

use crate::engine::{Engine, Patience};
use crate::flight::{InFlight, Outcome, Standing};
use crate::loopback::bench::{Bench, CANARY, len, pattern};
use crate::loopback::{DescriptorFault, FaultPlan};
use crate::memory::HostBuffer;
use crate::{Loopback, SubmissionLimits};

const POISON: u8 = 0xDD;
/// More polls than any fault waits.
const LONG: u64 = 1_000;

/// The memory of both sides. Its owner writes over it as soon as it is back.
#[derive(Debug)]
struct Lease {
    source: HostBuffer,
    destination: HostBuffer,
    released: Arc<AtomicBool>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.source.write().fill(POISON);
        self.destination.write().fill(!POISON);
        self.released.store(true, Ordering::SeqCst);
    }
}

fn fault(byte: u8) -> Option<DescriptorFault> {
    let polls = u64::from(byte >> 3) + 1;
    match byte & 7 {
        0 => Some(DescriptorFault::Fail { landed: polls }),
        1 | 2 => Some(DescriptorFault::Late { polls }),
        3 => Some(DescriptorFault::TimesOut {
            completes_at: Some(polls),
        }),
        4 => Some(DescriptorFault::TimesOut { completes_at: None }),
        5 if byte > 200 => Some(DescriptorFault::PeerDies),
        _ => None,
    }
}

/// Eight descriptors in portions of two, with the faults that the first bytes
/// say, driven by the others. Returns whether the memory came back.
fn check(data: &[u8]) -> bool {
    let limits = SubmissionLimits::new(2, len(1 << 20)).unwrap();
    let bench = Bench::with_limits(4_096, limits);
    let copies: Vec<(u64, u64, u64)> = (0..8).map(|n| (n * 512, 3_584 - n * 512, 500)).collect();
    let batch = bench.batch(&copies);
    let mut plan = FaultPlan::new();
    for (n, byte) in (0..8).zip(data) {
        if let Some(fault) = fault(*byte) {
            plan = plan.descriptor(n, fault);
        }
    }
    bench.prefill.inject(plan);
    let unknowable = data.iter().take(8).any(|byte| byte & 7 == 4);
    let released = Arc::new(AtomicBool::new(false));
    let lease = Lease {
        source: bench.source.clone(),
        destination: bench.destination.clone(),
        released: Arc::clone(&released),
    };
    let Bench {
        prefill,
        decode: _decode,
        peer,
        destination,
        ..
    } = bench;
    let engine = Arc::new(prefill);
    let flight = InFlight::new(Arc::clone(&engine), peer, batch, lease);
    drive(
        &engine,
        flight,
        data.get(8..).unwrap_or(&[]),
        &destination,
        &copies,
    );
    let back = released.load(Ordering::SeqCst);
    let poisoned = || destination.read().iter().all(|byte| *byte == !POISON);
    assert!(!back || poisoned(), "a byte landed before the owner looked");
    engine.advance(LONG);
    let back = released.load(Ordering::SeqCst);
    assert!(!back || poisoned(), "a byte landed after the release");
    assert!(
        back || unknowable,
        "all tasks have ended and the memory is gone"
    );
    back
}

fn drive(
    engine: &Loopback,
    mut flight: InFlight<Loopback, Lease>,
    actions: &[u8],
    destination: &HostBuffer,
    copies: &[(u64, u64, u64)],
) {
    for action in actions {
        let standing = match action & 7 {
            0 | 1 => flight.poll(),
            2 | 3 => flight.drain(Patience::new(Duration::from_millis(u64::from(action >> 3)))),
            4 => {
                flight.cancel();
                continue;
            }
            5 => {
                engine.advance(u64::from(action >> 3));
                continue;
            }
            6 => {
                drop(flight);
                return;
            }
            _ => match flight.end() {
                Ok(_) => return,
                Err(running) => {
                    flight = running;
                    continue;
                }
            },
        };
        if let Standing::Ended(Outcome::Completed(moved)) = standing {
            assert_eq!(moved.descriptors(), 8);
            let mut expected = [CANARY; 4_096];
            for (from, to, count) in copies {
                let [from, to, count] = [from, to, count].map(|n| usize::try_from(*n).unwrap());
                for (n, byte) in expected[to..][..count].iter_mut().enumerate() {
                    *byte = pattern(from + n);
                }
            }
            assert!(**destination.read() == expected);
        }
    }
}

#[test]
fn a_clean_transfer_gives_its_memory_back() {
    assert!(check(&[7; 8]));
    assert!(check(&[7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 7]));
}

#[test]
fn a_transfer_that_nobody_can_tell_the_end_of_keeps_its_memory() {
    assert!(!check(&[7, 4, 7, 7, 7, 7, 7, 7, 0, 255, 6]));
    assert!(!check(&[7, 4, 7, 7, 7, 7, 7, 7, 0, 7, 4, 0, 7]));
}

#[test]
fn memory_released_at_a_deadline_is_written_afterwards() {
    // What the rule is for: an owner that takes a deadline for the end.
    let bench = Bench::new(4_096);
    let plan = FaultPlan::new().descriptor(
        0,
        DescriptorFault::TimesOut {
            completes_at: Some(9),
        },
    );
    bench.prefill.inject(plan);
    let mut ticket = bench.submit(&[(0, 0, 500)]).unwrap();
    let patience = Patience::new(Duration::from_millis(3));
    let _ = bench.prefill.drain(&mut ticket, patience);
    bench.destination.write().fill(!POISON);
    bench.prefill.advance(LONG);
    assert!(bench.destination.read().iter().any(|byte| *byte != !POISON));
}

quickcheck! {
    fn memory_is_never_released_early(data: Vec<u8>) -> bool {
        check(&data);
        true
    }
}
