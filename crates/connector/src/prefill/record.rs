//! One hand-over on the prefill side.

use smallvec::SmallVec;

use super::event::{AttemptId, PrefillOutcome};
use crate::failure::{ConsumerProblem, Failure};
use crate::handoff::HandOff;
use crate::id::RequestId;
use crate::lease::Lease;
use crate::message::{Consumer, Want};
use crate::peer::{Peer, PullNumber};
use crate::time::Time;
use crate::timer::TimerId;

/// Where the answer to a pull goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) from: Peer,
    pub(super) number: PullNumber,
    pub(super) consumer: Consumer,
}

impl Reply {
    /// Whether it is the same pull, whatever else the two messages say.
    pub(super) fn is_same_pull(&self, other: &Self) -> bool {
        self.number == other.number && self.from == other.from
    }
}

/// A pull that waits for its prompt.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) reply: Reply,
    pub(super) want: Want,
    pub(super) since: Time,
    pub(super) timer: Option<TimerId>,
}

/// What became of one consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Its pull waits or is being served.
    Open,
    Delivered,
    Released,
    Failed,
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) hand_off: HandOff,
    pub(super) lease: Lease,
    pub(super) since: Time,
}

#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Computing,
    Ready(Source),
}

#[derive(Debug, Default)]
pub(super) struct Record {
    /// The engine's request; none while only peers have named the transfer.
    pub(super) owner: Option<RequestId>,
    /// Pulls and cancels that came before the engine named it.
    pub(super) unnamed: usize,
    pub(super) stage: Stage,
    /// Why it ends as soon as nothing is under way.
    pub(super) settling: Option<Failure>,
    /// The first consumer's failure.
    pub(super) failure: Option<Failure>,
    consumers: Option<u16>,
    claims: SmallVec<[(u16, Claim); 2]>,
    pub(super) waiting: SmallVec<[Waiting; 1]>,
    pub(super) flights: SmallVec<[AttemptId; 1]>,
    pub(super) timer: Option<TimerId>,
}

impl Record {
    /// Lets a consumer ask, once.
    pub(super) fn claim(&mut self, consumer: Consumer) -> Result<(), ConsumerProblem> {
        if let Some(count) = self.consumers
            && count != consumer.count()
        {
            return Err(ConsumerProblem::Count(count));
        }
        if self
            .claims
            .iter()
            .any(|(index, _)| *index == consumer.index())
        {
            return Err(ConsumerProblem::Twice);
        }
        self.consumers = Some(consumer.count());
        self.claims.push((consumer.index(), Claim::Open));
        Ok(())
    }

    pub(super) fn settle(&mut self, consumer: Consumer, claim: Claim, failure: Option<Failure>) {
        if let Some((_, open)) = self
            .claims
            .iter_mut()
            .find(|(index, claim)| *index == consumer.index() && *claim == Claim::Open)
        {
            *open = claim;
            if self.failure.is_none() {
                self.failure = failure;
            }
        }
    }

    /// Whether every consumer is served, well or badly.
    fn is_served(&self) -> bool {
        let served = |claim: &(u16, Claim)| claim.1 != Claim::Open;
        self.consumers
            .is_some_and(|count| usize::from(count) == self.claims.len())
            && self.claims.iter().all(served)
    }

    /// How it ends, if it ends now.
    pub(super) fn outcome(&self) -> Option<PrefillOutcome> {
        if !self.flights.is_empty() {
            return None;
        }
        if self.is_served() && matches!(self.stage, Stage::Ready(_)) {
            let all = |claim| self.claims.iter().all(|(_, other)| *other == claim);
            return Some(match &self.failure {
                Some(failure) => PrefillOutcome::Failed(failure.clone()),
                None if all(Claim::Released) => PrefillOutcome::Released,
                None => PrefillOutcome::Delivered,
            });
        }
        let cause = self.settling.clone()?;
        Some(PrefillOutcome::Failed(cause))
    }
}
