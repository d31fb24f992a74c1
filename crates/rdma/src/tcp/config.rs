//! How an engine is started.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU16;
use std::time::Duration;

use super::wire::MAX_DESCRIPTORS;
use crate::capabilities::{RegistrationLimits, SubmissionLimits};

/// Why an engine did not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Peers can't be told to open "any address": the caller's fault.
    #[error("peers can't open `{host}`; listen on the address that they reach")]
    Unspecified {
        /// Where it would listen.
        host: IpAddr,
    },
    /// More descriptors in a submission than a message holds: the caller's fault.
    #[error("submissions of {descriptors} descriptors, a message holds at most {limit}")]
    Descriptors {
        /// What was asked for.
        descriptors: u32,
        /// Most descriptors.
        limit: u32,
    },
    /// It can't listen there: the port is taken, or the address is not here.
    #[error("can't listen on {host} port {port}: {error}")]
    Listen {
        /// Where.
        host: IpAddr,
        /// Which port; 0 is any.
        port: u16,
        /// What the system said.
        error: io::Error,
    },
    /// The system has no thread or no descriptor left.
    #[error("no thread to listen in: {error}")]
    Thread {
        /// What the system said.
        error: io::Error,
    },
}

/// How an engine is started: where it listens, its limits, its patience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    host: IpAddr,
    port: u16,
    registration: RegistrationLimits,
    submission: SubmissionLimits,
    sessions: NonZeroU16,
    greeting: Duration,
    stall: Duration,
}

impl TcpConfig {
    /// Shortest time limit, 1 ms.
    const SHORTEST: Duration = Duration::from_millis(1);

    /// An engine that listens on `host`, on any free port. Whoever reaches that
    /// address reads and writes what is registered.
    #[must_use]
    pub fn new(host: IpAddr) -> Self {
        Self {
            host,
            port: 0,
            registration: RegistrationLimits::default(),
            submission: SubmissionLimits::default(),
            sessions: NonZeroU16::MIN.saturating_add(63),
            greeting: Duration::from_secs(5),
            stall: Duration::from_secs(30),
        }
    }

    /// On that port; 0, the default, is any free one.
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Within those limits. A submission has at most 16,384 descriptors.
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

    /// Serves as many sessions at once, 1..65536; by default 64. A peer has one
    /// for each time that it opened this engine and did not let go.
    #[must_use]
    pub const fn sessions(mut self, sessions: NonZeroU16) -> Self {
        self.sessions = sessions;
        self
    }

    /// How long a connection may take to say what it is, 1 ms..; by default 5 s.
    #[must_use]
    pub fn greeting_limit(mut self, limit: Duration) -> Self {
        self.greeting = limit.max(Self::SHORTEST);
        self
    }

    /// How long the other side of a transfer may do nothing before the
    /// connection is given up, 1 ms..; by default 30 s. Transfers over it
    /// then end as soon as the peer says that it writes no more.
    #[must_use]
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.stall = limit.max(Self::SHORTEST);
        self
    }

    /// Where it listens.
    #[must_use]
    pub const fn host(&self) -> IpAddr {
        self.host
    }

    pub(super) const fn wanted_port(&self) -> u16 {
        self.port
    }

    pub(super) const fn registration_limits(&self) -> RegistrationLimits {
        self.registration
    }

    pub(super) const fn submission_limits(&self) -> SubmissionLimits {
        self.submission
    }

    pub(super) fn max_sessions(&self) -> usize {
        self.sessions.get().into()
    }

    pub(super) const fn greeting(&self) -> Duration {
        self.greeting
    }

    pub(super) const fn stall(&self) -> Duration {
        self.stall
    }

    pub(super) fn check(&self) -> Result<(), StartError> {
        if self.host.is_unspecified() {
            return Err(StartError::Unspecified { host: self.host });
        }
        let descriptors = self.submission.descriptors();
        if descriptors > MAX_DESCRIPTORS {
            return Err(StartError::Descriptors {
                descriptors,
                limit: MAX_DESCRIPTORS,
            });
        }
        Ok(())
    }
}

impl Default for TcpConfig {
    /// On 127.0.0.1.
    fn default() -> Self {
        Self::new(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}
