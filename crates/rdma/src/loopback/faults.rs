//! Faults, by the number of the descriptor or registration they hit.

use std::ops::Range;
use std::sync::Arc;

use crate::loopback::fabric::Endpoint;
use crate::loopback::flight::Flight;
use crate::loopback::overflow::{Overflow, Spill, Stalled};

/// What happens to one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorFault {
    /// Fails on the first poll; its first `landed` bytes have arrived.
    Fail {
        /// Bytes that arrive, 0..; more than it has means all of them.
        landed: u64,
    },
    /// Runs until the `polls`-th poll of its submission (1..), and completes
    /// only then; nothing of it arrives before.
    Late {
        /// Polls until it completes.
        polls: u64,
    },
    /// Is reported as unknown, as after a timeout, while it runs on.
    TimesOut {
        /// The poll of its submission (1..) on which it completes after all;
        /// `None` means that nobody ever learns how it ended.
        completes_at: Option<u64>,
    },
    /// The peer's process dies on the first poll: descriptors before this one
    /// have arrived if they were due, this one and those behind it fail.
    PeerDies,
}

/// Faults to [inject](crate::Loopback::inject). The same plan does the same in
/// every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    descriptors: Vec<(Range<u64>, DescriptorFault)>,
    registrations: Vec<u64>,
    overflow: Option<Overflow>,
}

impl FaultPlan {
    /// No faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault to the `n`-th descriptor (0..) submitted from now on, over
    /// all submissions.
    #[must_use]
    pub fn descriptor(self, n: u64, fault: DescriptorFault) -> Self {
        self.descriptors(n..n.saturating_add(1), fault)
    }

    /// Adds a fault to a range of descriptors. Where ranges overlap, the one
    /// added first counts.
    #[must_use]
    pub fn descriptors(mut self, range: Range<u64>, fault: DescriptorFault) -> Self {
        self.descriptors.push((range, fault));
        self
    }

    /// Refuses the `n`-th registration (0..) from now on.
    #[must_use]
    pub fn refuse_registration(mut self, n: u64) -> Self {
        self.registrations.push(n);
        self
    }

    /// Gives the queue to each peer room for `capacity` descriptors in flight,
    /// whatever the engine's limits say. Descriptors past it fail and nothing of
    /// them lands; the peer's queue is stuck then. What is submitted to it
    /// afterwards [times out](DescriptorFault::TimesOut) and completes on the
    /// `completes_at`-th poll (1..) of its submission, or never. When the first
    /// of these submissions has ended, the queue works again.
    #[must_use]
    pub fn overflow(mut self, capacity: u32, completes_at: Option<u64>) -> Self {
        let capacity = u64::from(capacity);
        self.overflow = Some(Overflow {
            capacity,
            completes_at,
        });
        self
    }
}

/// A plan and how far it has come.
#[derive(Debug, Default)]
pub(super) struct Injector {
    plan: FaultPlan,
    next_descriptor: u64,
    next_registration: u64,
    stalled: Stalled,
}

impl Injector {
    pub(super) fn new(plan: FaultPlan) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    /// What becomes of `adding` descriptors to a peer that has `outstanding` in
    /// flight, where its queue is one that overflows.
    pub(super) fn spill(
        &mut self,
        peer: &Arc<Endpoint>,
        outstanding: u64,
        adding: u64,
    ) -> Option<Spill> {
        let overflow = self.plan.overflow?;
        Some(self.stalled.spill(overflow, peer, outstanding, adding))
    }

    /// A submission was made of what `spill` says.
    pub(super) fn submitted(&mut self, peer: &Arc<Endpoint>, spill: Spill, flight: &Arc<Flight>) {
        self.stalled.holds_up(peer, spill, flight);
    }

    /// The fault of the next descriptor, the `index`-th of its submission.
    pub(super) fn next(&mut self, spill: Option<Spill>, index: u64) -> Option<DescriptorFault> {
        let n = self.next_descriptor;
        self.next_descriptor = n.saturating_add(1);
        let planned = || {
            let mut planned = self.plan.descriptors.iter();
            let (_, fault) = planned.find(|(range, _)| range.contains(&n))?;
            Some(*fault)
        };
        spill.and_then(|spill| spill.fault(index)).or_else(planned)
    }

    /// Whether the next registration is refused.
    pub(super) fn refuses_registration(&mut self) -> bool {
        let n = self.next_registration;
        self.next_registration = n.saturating_add(1);
        self.plan.registrations.contains(&n)
    }
}
