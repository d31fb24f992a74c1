//! Every bound of the session machines.

use crate::time::Span;

/// Shortest time between two repetitions of anything.
const SHORTEST: Span = Span::from_millis(1);

/// Bounds of a prefill rank. [`Self::peer_idle`] below 1 ms is taken for 1 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillLimits {
    /// Requests that are live at one time. Default 65,536.
    pub live: usize,
    /// Transfers that were asked for before the engine named them. Default 4,096.
    pub unknown: usize,
    /// How long such a pull waits for the engine to name its transfer. Default 30 s.
    pub unknown_wait: Span,
    /// How long a pull waits for a prompt to be computed. Default 480 s, as stock vLLM.
    pub ready_wait: Span,
    /// How long a prompt may take to be computed. Default 3,600 s.
    pub compute: Span,
    /// How long computed blocks are held for pulls. Default 480 s, as stock vLLM.
    pub hold: Span,
    /// How long a transfer may take before the engine is told to drain it. Default 60 s.
    pub transfer: Span,
    /// Block table entries of pulls that wait, in all, of all peers; a group's table
    /// counts as four more. At most 16 bytes each. Default 4,194,304.
    pub waiting_entries: usize,
    /// Ended transfers that are remembered, so that a late pull is refused at once.
    /// Default 4,096.
    pub ended: usize,
    /// How long they are remembered. Default 60 s.
    pub ended_memory: Span,
    /// Decode ranks known at one time. Default 4,096.
    pub peers: usize,
    /// How long a silent decode rank is remembered: longer than any message may
    /// take, for what came before is forgotten with it. Default 3,600 s.
    pub peer_idle: Span,
    /// Pulls of one decode rank that wait or are being served. Default 65,536.
    pub pulls_per_peer: usize,
}

impl Default for PrefillLimits {
    fn default() -> Self {
        Self {
            live: 65_536,
            unknown: 4_096,
            unknown_wait: Span::from_secs(30),
            ready_wait: Span::from_secs(480),
            compute: Span::from_secs(3_600),
            hold: Span::from_secs(480),
            transfer: Span::from_secs(60),
            waiting_entries: 1 << 22,
            ended: 4_096,
            ended_memory: Span::from_secs(60),
            peers: 4_096,
            peer_idle: Span::from_secs(3_600),
            pulls_per_peer: 65_536,
        }
    }
}

impl PrefillLimits {
    pub(crate) fn floored(self) -> Self {
        Self {
            peer_idle: self.peer_idle.max(SHORTEST),
            ..self
        }
    }
}

/// Bounds of a decode rank. Spans between repetitions, [`Self::cancel_retry`],
/// [`Self::fence_retry`], [`Self::resolve_timeout`], [`Self::resolve_pause`] and
/// [`Self::source_idle`], below 1 ms are taken for 1 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Loads and releases that are live at one time. Default 65,536.
    pub live: usize,
    /// How long an answer may take. Default 540 s, as stock vLLM.
    pub answer: Span,
    /// Time to the first repetition of a cancel; it doubles with each. Default 100 ms.
    pub cancel_retry: Span,
    /// How long after a cancel, or after an answer that does not say that all is
    /// quiet, the peer is fenced off. Default 10 s.
    pub fence_after: Span,
    /// The same for a stock peer, which knows no cancel: how long after an answer that
    /// does not say that all is quiet, and at least how long after a load was given
    /// up; one that has not answered has until [`Self::answer`]. Default 60 s.
    pub stock_fence_after: Span,
    /// Time between repetitions of a fence. Default 10 s.
    pub fence_retry: Span,
    /// How often a peer's name is looked up before its loads fail, at least once.
    /// Default 8.
    pub resolve_attempts: u32,
    /// How long one look-up may take. Default 5 s.
    pub resolve_timeout: Span,
    /// Pause after the first failed look-up; it doubles with each, up to
    /// [`Self::resolve_timeout`]. Default 100 ms.
    pub resolve_pause: Span,
    /// Prefill engines known at one time. Default 4,096.
    pub sources: usize,
    /// How long an unused one is remembered. Default 600 s.
    pub source_idle: Span,
    /// How often one load follows a peer to a new incarnation. Default 2.
    pub follow: u8,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            live: 65_536,
            answer: Span::from_secs(540),
            cancel_retry: Span::from_millis(100),
            fence_after: Span::from_secs(10),
            stock_fence_after: Span::from_secs(60),
            fence_retry: Span::from_secs(10),
            resolve_attempts: 8,
            resolve_timeout: Span::from_secs(5),
            resolve_pause: Span::from_millis(100),
            sources: 4_096,
            source_idle: Span::from_secs(600),
            follow: 2,
        }
    }
}

impl DecodeLimits {
    pub(crate) fn floored(self) -> Self {
        Self {
            cancel_retry: self.cancel_retry.max(SHORTEST),
            fence_retry: self.fence_retry.max(SHORTEST),
            resolve_timeout: self.resolve_timeout.max(SHORTEST),
            resolve_pause: self.resolve_pause.max(SHORTEST),
            source_idle: self.source_idle.max(SHORTEST),
            ..self
        }
    }
}
