//! One load or release.

use smallvec::SmallVec;

use super::event::{Dialect, Source};
use crate::failure::Failure;
use crate::handoff::HandOff;
use crate::id::RequestId;
use crate::lease::{Lease, Loan};
use crate::peer::{Generation, PullNumber};
use crate::time::{Span, Time};
use crate::timer::TimerId;
use crate::tokens::TokenCount;

/// A pull that is not known to be over.
#[derive(Debug)]
pub(super) struct OpenPull {
    pub(super) number: PullNumber,
    pub(super) sender: u16,
    pub(super) generation: Generation,
    /// Absent when nothing is written.
    pub(super) loan: Option<Loan>,
    /// What its sender understands.
    pub(super) dialect: Dialect,
    /// It has answered, and did not say that it is quiet.
    pub(super) answered: bool,
    /// It has, and every byte is in place.
    pub(super) delivered: bool,
}

#[derive(Debug)]
pub(super) struct Record {
    /// The engine's request; none for a release.
    pub(super) owner: Option<RequestId>,
    pub(super) source: Source,
    pub(super) expects: TokenCount,
    /// None for a release.
    pub(super) lease: Option<Lease>,
    pub(super) since: Time,
    /// When pulls were sent.
    pub(super) asked: Option<Time>,
    /// Waits for a look-up.
    pub(super) waiting: bool,
    pub(super) open: SmallVec<[OpenPull; 1]>,
    pub(super) hand_off: Option<HandOff>,
    /// Why it fails as soon as nothing is under way.
    pub(super) failure: Option<Failure>,
    /// The peer was started again before it took a pull.
    pub(super) follow: bool,
    pub(super) followed: u8,
    /// Pause before the next cancel, once one was sent.
    pub(super) pause: Option<Span>,
    /// When the peer is fenced off.
    pub(super) patience: Option<Time>,
    pub(super) timer: Option<TimerId>,
}

impl Record {
    pub(super) fn load(
        request: RequestId,
        source: Source,
        expects: TokenCount,
        lease: Lease,
        now: Time,
    ) -> Self {
        Self {
            owner: Some(request),
            expects,
            lease: Some(lease),
            ..Self::release(source, now)
        }
    }

    pub(super) fn release(source: Source, now: Time) -> Self {
        Self {
            owner: None,
            source,
            expects: TokenCount::ZERO,
            lease: None,
            since: now,
            asked: None,
            waiting: false,
            open: SmallVec::new(),
            hand_off: None,
            failure: None,
            follow: false,
            followed: 0,
            pause: None,
            patience: None,
            timer: None,
        }
    }
}
