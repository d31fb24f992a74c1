//! Ways to break the machines.

/// A deliberate fault around the machines, which the simulator must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Decode's blocks are free as soon as the first cancel is sent.
    FreedOnTimeout,
    /// Prefill's blocks are free as soon as a transfer is to be drained.
    FreedOnDrain,
    /// A prompt that is offered again loses another element.
    HeldBackTwice,
    /// Nothing is held back, but decode runs the last element all the same.
    NotHeldBack,
    /// A result is reported twice.
    EndedTwice,
    /// A result is swallowed.
    NeverEnded,
    /// A transfer is reported as settled while it still writes.
    SettledEarly,
    /// A fence is reported as up while writes still land.
    FencedEarly,
    /// A failed load's blocks are taken for valid.
    FailureIgnored,
    /// A transfer's last copy is left out.
    LastCopyLost,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::FreedOnTimeout,
        Self::FreedOnDrain,
        Self::HeldBackTwice,
        Self::NotHeldBack,
        Self::EndedTwice,
        Self::NeverEnded,
        Self::SettledEarly,
        Self::FencedEarly,
        Self::FailureIgnored,
        Self::LastCopyLost,
    ];
}
