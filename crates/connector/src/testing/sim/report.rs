//! How a schedule is run, and what it came to.

use core::fmt;

use super::defect::Defect;

/// How a schedule is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How the machines are broken.
    pub defect: Option<Defect>,
    /// Print every event and command to standard error.
    pub trace: bool,
}

/// What a schedule came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests that the router handed out.
    pub requests: u64,
    /// Events that the machines took.
    pub events: u64,
    /// Loads that ended with the cache in place.
    pub loaded: u64,
    /// Loads that ended otherwise.
    pub failed: u64,
    /// Requests that prefill delivered or was released from.
    pub delivered: u64,
    /// Transfers that were begun.
    pub transfers: u64,
    /// Fences that were asked for.
    pub fences: u64,
    /// Engines that were started again.
    pub restarts: u64,
    /// Loads that followed a peer to its next incarnation.
    pub followed: u64,
}

impl Report {
    /// Adds another schedule's figures.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.events += other.events;
        self.loaded += other.loaded;
        self.failed += other.failed;
        self.delivered += other.delivered;
        self.transfers += other.transfers;
        self.fences += other.fences;
        self.restarts += other.restarts;
        self.followed += other.followed;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests, {} events, {} transfers, {} delivered, {} loaded, {} failed, {} fences, {} restarts, {} followed",
            self.requests,
            self.events,
            self.transfers,
            self.delivered,
            self.loaded,
            self.failed,
            self.fences,
            self.restarts,
            self.followed
        )
    }
}
