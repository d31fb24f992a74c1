//! Who owns a transfer, and what it may believe of its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mooncake_pd_layout::AllocationId;

use super::lease::{CANARY, LEN, Lease, POISON, pattern};
use crate::batch::{BoundBatch, Operation};
use crate::bind::{Part, bind_parts};
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::engine::Engine;
use crate::flight::{InFlight, Outcome, Standing};
use crate::loopback::Loopback;
use crate::memory::HostBuffer;
use crate::registered::Registered;
use crate::registration::RegistrationPlan;
use crate::transfer::Moved;

/// Copies of a transfer.
pub(super) const COPIES: usize = 8;
const APART: usize = LEN / COPIES;
const PIECE: usize = APART - 4;

type Flight = InFlight<Loopback, Lease>;

/// A transfer of eight copies to the same places in reverse order, and what was
/// seen of it.
pub(super) struct Owner {
    flight: Option<Flight>,
    destination: HostBuffer,
    released: Arc<AtomicBool>,
    moved: Moved,
    outcome: Option<Outcome>,
    /// The destination when the transfer had ended.
    settled: Option<Vec<u8>>,
}

impl Owner {
    /// The `n`-th transfer (0 or 1) between two engines.
    pub(super) fn new(n: u64, engine: &Arc<Loopback>, decode: &Loopback) -> Self {
        let lease = Lease::new((1 + n) << 20, (1 + n) << 40);
        let batch = batch(engine, decode, &lease);
        let peer = engine.open(decode.name()).expect("the peer is there");
        let (destination, released) = (lease.destination.clone(), Arc::clone(&lease.released));
        Self {
            flight: Some(InFlight::new(Arc::clone(engine), peer, batch, lease)),
            destination,
            released,
            moved: Moved::default(),
            outcome: None,
            settled: None,
        }
    }

    /// Looks at the transfer, if it is not let go.
    pub(super) fn advance(&mut self, look: impl FnOnce(&mut Flight) -> Standing) {
        let Some(flight) = &mut self.flight else {
            return;
        };
        match look(flight) {
            Standing::Fenced => panic!("there is no fence"),
            Standing::NoRoom(moved) | Standing::Running(moved) | Standing::Unknown(moved) => {
                assert_eq!(self.outcome, None, "it has ended already");
                assert!(moved.descriptors() >= self.moved.descriptors());
                self.moved = moved;
            }
            Standing::Ended(outcome) => self.ended(outcome),
        }
    }

    fn ended(&mut self, outcome: Outcome) {
        if let Some(before) = &self.outcome {
            assert_eq!(*before, outcome, "it ends twice");
            return;
        }
        let whole = |moved: Moved| usize::try_from(moved.descriptors()).unwrap_or(usize::MAX);
        let (moved, untouched) = match &outcome {
            Outcome::Completed(moved) => {
                assert_eq!(whole(*moved), COPIES);
                (*moved, COPIES)
            }
            Outcome::NotTaken { first, moved, .. } => {
                assert_eq!(*first, moved.descriptors());
                (*moved, whole(*moved))
            }
            Outcome::Failed {
                descriptor, moved, ..
            } => {
                assert!(*descriptor >= moved.descriptors());
                (*moved, COPIES)
            }
            Outcome::Cancelled(moved) => (*moved, whole(*moved)),
            Outcome::Device { .. } => panic!("there is no device"),
        };
        self.moved = moved;
        let landed = self.destination.read().to_vec();
        for copy in untouched..COPIES {
            let place = &landed[place(copy)..][..PIECE];
            assert!(place.iter().all(|byte| *byte == CANARY), "copy {copy}");
        }
        self.settled = Some(landed);
        self.outcome = Some(outcome);
    }

    /// Sends no further portion.
    pub(super) fn cancel(&mut self) {
        if let Some(flight) = &mut self.flight {
            flight.cancel();
        }
    }

    /// Asks for the memory back, and gives it to somebody else.
    pub(super) fn end(&mut self) {
        let Some(flight) = self.flight.take() else {
            return;
        };
        match flight.end() {
            Ok((outcome, lease)) => {
                assert_eq!(self.outcome.as_ref(), Some(&outcome));
                drop(lease);
                assert!(self.is_released());
            }
            Err(running) => {
                assert_eq!(self.outcome, None, "it has ended");
                self.flight = Some(running);
            }
        }
    }

    /// Lets the transfer go as it is.
    pub(super) fn let_go(&mut self) {
        self.flight = None;
    }

    /// Whether the memory is back.
    pub(super) fn is_released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// The destination holds what it may: after the release what its next owner
    /// wrote, after the end what it held then, and before canaries and first
    /// bytes of the copies, those that were reported as moved wholly.
    pub(super) fn look(&self) {
        let bytes = self.destination.read();
        if self.is_released() {
            let poisoned = bytes.iter().all(|byte| *byte == POISON);
            assert!(poisoned, "a byte landed after the release");
            return;
        }
        if let Some(settled) = &self.settled {
            assert!(**bytes == **settled, "a byte landed after the end");
            return;
        }
        let moved = usize::try_from(self.moved.descriptors()).unwrap_or(usize::MAX);
        for copy in 0..COPIES {
            let (landed, behind) = bytes[place(copy)..][..APART].split_at(PIECE);
            let is_canary = |byte: &u8| *byte == CANARY;
            let count = landed.iter().position(is_canary).unwrap_or(PIECE);
            let from = copy * APART;
            let sent = |(at, byte): (usize, &u8)| *byte == pattern(from + at);
            assert!(landed[..count].iter().enumerate().all(sent), "copy {copy}");
            assert!(landed[count..].iter().chain(behind).all(is_canary));
            assert!(copy >= moved || count == PIECE, "copy {copy} is missing");
        }
    }
}

/// Where a copy lands.
fn place(copy: usize) -> usize {
    (COPIES - 1 - copy) * APART
}

fn batch(engine: &Loopback, decode: &Loopback, lease: &Lease) -> BoundBatch {
    let id = AllocationId::new(0);
    let number = |n: usize| u64::try_from(n).expect("it is small");
    let plan = RegistrationPlan::of([(id, number(LEN))], RegistrationLimits::default());
    let plan = plan.expect("one range");
    let local = Registered::new(engine, &plan, |_| Some(&lease.source));
    let remote = Registered::new(decode, &plan, |_| Some(&lease.destination));
    let (local, remote) = (local.expect("registered"), remote.expect("registered"));
    let parts = (0..COPIES).map(|copy| Part {
        source: (id, number(copy * APART)),
        destination: (id, number(place(copy))),
        len: number(PIECE),
    });
    let limits: SubmissionLimits = engine.capabilities().submission();
    let (local, remote) = (local.regions(), remote.regions());
    let batch = bind_parts(parts, Operation::Write, local, remote, limits);
    batch.expect("copies within the ranges")
}
