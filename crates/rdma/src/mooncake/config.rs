//! How an engine is started.

use std::net::{IpAddr, Ipv4Addr};

use crate::capabilities::{RegistrationLimits, SubmissionLimits};

/// How an engine moves bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// What the library finds: RDMA where there is a card, else TCP, or what
    /// its variables say (`MC_FORCE_TCP`, `MC_INTRANODE_NVLINK`).
    #[default]
    Auto,
    /// TCP.
    Tcp,
    /// Another of the library's, by its name there.
    Named(String),
}

/// How an engine is started: where it listens, how it moves bytes, its limits.
/// Peers find each other by name, without a metadata server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MooncakeConfig {
    host: IpAddr,
    transport: Transport,
    devices: bool,
    registration: RegistrationLimits,
    submission: SubmissionLimits,
}

impl MooncakeConfig {
    /// An engine that peers reach at `host`; the library chooses the port.
    #[must_use]
    pub fn new(host: IpAddr) -> Self {
        Self {
            host,
            transport: Transport::default(),
            devices: false,
            registration: RegistrationLimits::default(),
            submission: SubmissionLimits::default(),
        }
    }

    /// Moves bytes that way.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// The library is built with CUDA, and may be given memory of devices. One
    /// that is not would take it for memory of the host, and crash on it; it
    /// can't be asked.
    ///
    /// It is called in the threads that call this engine, and in no others of
    /// ours; there the device's context has to be current (`cuda::Device::bind`).
    #[must_use]
    pub const fn with_devices(mut self) -> Self {
        self.devices = true;
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

    /// Where peers reach it.
    #[must_use]
    pub const fn host(&self) -> IpAddr {
        self.host
    }

    /// How it moves bytes.
    #[must_use]
    pub const fn transport_kind(&self) -> &Transport {
        &self.transport
    }

    /// Whether it may be given memory of devices.
    #[must_use]
    pub const fn reaches_devices(&self) -> bool {
        self.devices
    }

    /// What it registers.
    #[must_use]
    pub const fn registration_limits(&self) -> RegistrationLimits {
        self.registration
    }

    /// How large a submission is.
    #[must_use]
    pub const fn submission_limits(&self) -> SubmissionLimits {
        self.submission
    }
}

impl Default for MooncakeConfig {
    /// On 127.0.0.1.
    fn default() -> Self {
        Self::new(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}
