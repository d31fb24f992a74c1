//! Bounds and counters of the hosts.

/// Bounds of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Requests that are live at one time. Default 65,536.
    pub live: usize,
    /// Orders that wait for the next step, before no more requests are taken.
    /// Default 262,144.
    pub orders: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            live: 65_536,
            orders: 262_144,
        }
    }
}

/// What a host has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMetrics {
    /// Requests taken.
    pub started: u64,
    /// Results that were good.
    pub done: u64,
    /// Results that were not.
    pub failed: u64,
    /// Ends that no rank of a live request had to report (any more).
    pub unknown_ends: u64,
    /// Orders that a rank refused and that changed nothing: it was done already.
    pub late_orders: u64,
    /// Orders that a rank refused and that ended a request.
    pub rejected: u64,
}

/// One more.
pub(super) const fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
