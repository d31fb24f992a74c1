//! Faults, by the number of the descriptor or registration they hit.

use std::ops::Range;

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
}

/// A plan and how far it has come.
#[derive(Debug, Default)]
pub(super) struct Injector {
    plan: FaultPlan,
    next_descriptor: u64,
    next_registration: u64,
}

impl Injector {
    pub(super) fn new(plan: FaultPlan) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    /// The fault of the next descriptor.
    pub(super) fn next(&mut self) -> Option<DescriptorFault> {
        let n = self.next_descriptor;
        self.next_descriptor = n.saturating_add(1);
        self.plan
            .descriptors
            .iter()
            .find(|(range, _)| range.contains(&n))
            .map(|(_, fault)| *fault)
    }

    /// Whether the next registration is refused.
    pub(super) fn refuses_registration(&mut self) -> bool {
        let n = self.next_registration;
        self.next_registration = n.saturating_add(1);
        self.plan.registrations.contains(&n)
    }
}
