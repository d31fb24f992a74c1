//! How an engine is started.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;

use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::on_thread::OnThread;

/// How an engine is started: where it listens, how it moves bytes, its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenspeedConfig {
    host: IpAddr,
    metadata: String,
    protocol: String,
    device: String,
    workers: NonZeroU8,
    on_thread: Option<OnThread>,
    registration: RegistrationLimits,
    submission: SubmissionLimits,
}

impl TokenspeedConfig {
    /// An engine that peers reach at `host`, over RDMA, without a metadata
    /// server; the library chooses the port. With `MC_FORCE_TCP=1` in the
    /// environment it runs over TCP; the library refuses protocol `tcp`.
    #[must_use]
    pub fn new(host: IpAddr) -> Self {
        Self {
            host,
            metadata: "P2PHANDSHAKE".to_owned(),
            protocol: "rdma".to_owned(),
            device: String::new(),
            workers: NonZeroU8::MIN.saturating_add(3),
            on_thread: None,
            registration: RegistrationLimits::default(),
            submission: SubmissionLimits::default(),
        }
    }

    /// Finds peers through that metadata server.
    #[must_use]
    pub fn metadata(mut self, server: String) -> Self {
        self.metadata = server;
        self
    }

    /// Moves bytes by that protocol of the library.
    #[must_use]
    pub fn protocol(mut self, protocol: String) -> Self {
        self.protocol = protocol;
        self
    }

    /// Uses those cards only: names with commas between; empty for all.
    #[must_use]
    pub fn device(mut self, names: String) -> Self {
        self.device = names;
        self
    }

    /// Writes at a time, 1..=255, each with a thread; 4 by default.
    #[must_use]
    pub const fn workers(mut self, workers: NonZeroU8) -> Self {
        self.workers = workers;
        self
    }

    /// Every thread that writes does this first. For memory of a device: make
    /// its context current, as `cuda::Device::on_thread` does.
    #[must_use]
    pub fn on_thread(mut self, first: OnThread) -> Self {
        self.on_thread = Some(first);
        self
    }

    /// Within those limits.
    #[must_use]
    pub const fn limits(
        mut self,
        registration: RegistrationLimits,
        submission: SubmissionLimits,
    ) -> Self {
        self.registration = registration;
        self.submission = submission;
        self
    }

    pub(super) const fn host(&self) -> IpAddr {
        self.host
    }

    pub(super) fn metadata_server(&self) -> &str {
        &self.metadata
    }

    pub(super) fn protocol_name(&self) -> &str {
        &self.protocol
    }

    pub(super) fn device_names(&self) -> &str {
        &self.device
    }

    pub(super) const fn worker_count(&self) -> NonZeroU8 {
        self.workers
    }

    pub(super) const fn first_on_thread(&self) -> Option<&OnThread> {
        self.on_thread.as_ref()
    }

    pub(super) const fn registration_limits(&self) -> RegistrationLimits {
        self.registration
    }

    pub(super) const fn submission_limits(&self) -> SubmissionLimits {
        self.submission
    }
}

impl Default for TokenspeedConfig {
    /// On 127.0.0.1.
    fn default() -> Self {
        Self::new(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}
