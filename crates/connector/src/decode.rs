//! The life cycle of a decode rank's loads.

mod end;
mod event;
mod fence;
mod pulls;
mod record;
mod source;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use indexmap::IndexMap;
use mooncake_pd_layout::CacheLayout;

pub use event::{
    DecodeCommand, DecodeError, DecodeEvent, DecodeOutcome, Dialect, FenceId, Load, Resolved,
    Source,
};

use crate::failure::Failure;
use crate::hash::{Hash, seeded};
use crate::id::{RequestId, TransferId};
use crate::lease::LeaseBook;
use crate::limits::DecodeLimits;
use crate::message::Consumer;
use crate::metrics::DecodeMetrics;
use crate::peer::{Peer, PullNumber};
use crate::time::Time;
use crate::timer::Timers;
use fence::Fence;
use record::Record;
use source::KnownSource;

/// The session machine of one decode rank: it takes [`DecodeEvent`]s with their time
/// and gives [`DecodeCommand`]s.
///
/// Each [`DecodeEvent::Load`] ends with exactly one [`DecodeCommand::Ended`], and
/// its blocks come back with it: not before every sender said that it writes no
/// more, or was fenced off.
#[derive(Debug)]
pub struct Decode {
    me: Peer,
    consumer: Consumer,
    limits: DecodeLimits,
    hash: Hash,
    /// Boxed: the room that the table keeps free would double them.
    records: IndexMap<TransferId, Box<Record>, Hash>,
    requests: IndexMap<RequestId, TransferId, Hash>,
    pulls: IndexMap<PullNumber, TransferId, Hash>,
    next_pull: PullNumber,
    sources: IndexMap<Source, KnownSource, Hash>,
    fences: IndexMap<FenceId, Fence, Hash>,
    next_fence: u64,
    leases: LeaseBook,
    timers: Timers<Timer>,
    commands: VecDeque<DecodeCommand>,
    metrics: DecodeMetrics,
}

#[derive(Clone, Debug)]
enum Timer {
    /// An answer is late, a cancel is due again, or patience is at its end.
    Record(TransferId),
    /// A look-up is late or due again, or a source may be forgotten.
    Source(Source),
    /// A fence is due again.
    Fence(FenceId),
}

impl Decode {
    /// A rank named `me`, number `consumer` of those that a prefill rank serves, with
    /// caches of this layout. `hash_seed` should be random, so that peers can't
    /// choose names that collide; it changes nothing else.
    #[must_use]
    pub fn new(
        me: Peer,
        consumer: Consumer,
        layout: Arc<CacheLayout>,
        limits: DecodeLimits,
        hash_seed: u64,
    ) -> Self {
        let hash = seeded(hash_seed);
        Self {
            me,
            consumer,
            limits: limits.floored(),
            records: IndexMap::with_hasher(hash.clone()),
            requests: IndexMap::with_hasher(hash.clone()),
            pulls: IndexMap::with_hasher(hash.clone()),
            next_pull: PullNumber::default(),
            sources: IndexMap::with_hasher(hash.clone()),
            fences: IndexMap::with_hasher(hash.clone()),
            next_fence: 0,
            leases: LeaseBook::new(layout, hash.clone()),
            timers: Timers::default(),
            commands: VecDeque::new(),
            metrics: DecodeMetrics::default(),
            hash,
        }
    }

    /// Takes an event in, after everything that was due before it.
    ///
    /// # Errors
    /// Our own engine's mistakes; then nothing has changed but the time. What peers
    /// do wrong ends a load or is counted, and is never an error.
    pub fn handle(&mut self, now: Time, event: DecodeEvent) -> Result<(), DecodeError> {
        if self.timers.advance(now) {
            self.metrics.clock_regressions = self.metrics.clock_regressions.saturating_add(1);
        }
        self.run_timers();
        match event {
            DecodeEvent::Load(load) => return self.load(load),
            DecodeEvent::Release { transfer, source } => return self.release(&transfer, source),
            DecodeEvent::Aborted { request } => return self.aborted(&request),
            DecodeEvent::Resolved { source, result } => self.resolved(&source, result),
            DecodeEvent::Answered {
                source,
                sender,
                answer,
            } => self.answered(&source, sender, &answer),
            DecodeEvent::Quiet { number, proof } => self.quiet(number, proof),
            DecodeEvent::Undelivered { number } => self.undelivered(number),
            DecodeEvent::PeerLost { source, generation } => self.fence(&source, generation),
            DecodeEvent::Fenced { fence, proof } => self.fenced(fence, &proof),
            DecodeEvent::Tick => {}
        }
        Ok(())
    }

    /// The next command, in the order in which they arose.
    pub fn poll(&mut self) -> Option<DecodeCommand> {
        self.commands.pop_front()
    }

    /// When [`DecodeEvent::Tick`] is due at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// What was seen so far.
    #[must_use]
    pub const fn metrics(&self) -> &DecodeMetrics {
        &self.metrics
    }

    /// Its name and incarnation.
    #[must_use]
    pub const fn me(&self) -> &Peer {
        &self.me
    }

    /// Loads that are not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.requests.len()
    }

    /// Leases that are not ended: loads whose blocks the engine must keep.
    #[must_use]
    pub const fn leases(&self) -> usize {
        self.leases.live()
    }

    /// Records of every kind: loads, releases, pulls, sources and deadlines. Zero
    /// after a silence longer than every limit.
    #[must_use]
    pub fn records(&self) -> usize {
        [
            self.records.len(),
            self.requests.len(),
            self.pulls.len(),
            self.sources.len(),
            self.fences.len(),
            self.timers.len(),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    fn load(&mut self, load: Load) -> Result<(), DecodeError> {
        self.check_new(&load.transfer, &load.source)?;
        if self.requests.contains_key(&load.request) {
            return Err(DecodeError::RequestTaken {
                request: load.request,
            });
        }
        let lease = self.leases.take(load.tables)?;
        self.metrics.started = self.metrics.started.saturating_add(1);
        let transfer = load.transfer;
        self.requests.insert(load.request.clone(), transfer.clone());
        let now = self.timers.now();
        let record = Record::load(load.request, load.source, load.expects, lease, now);
        self.records.insert(transfer.clone(), Box::new(record));
        self.begin(&transfer);
        Ok(())
    }

    fn release(&mut self, transfer: &TransferId, source: Source) -> Result<(), DecodeError> {
        self.check_new(transfer, &source)?;
        self.metrics.releases = self.metrics.releases.saturating_add(1);
        let record = Record::release(source, self.timers.now());
        self.records.insert(transfer.clone(), Box::new(record));
        self.begin(transfer);
        Ok(())
    }

    fn check_new(&self, transfer: &TransferId, source: &Source) -> Result<(), DecodeError> {
        if let Some(record) = self.records.get(transfer) {
            return Err(DecodeError::TransferTaken {
                transfer: transfer.clone(),
                owner: record.owner.clone(),
            });
        }
        let (live, limit) = (self.records.len(), self.limits.live);
        if live >= limit {
            return Err(DecodeError::Full { live, limit });
        }
        let (sources, limit) = (self.sources.len(), self.limits.sources);
        if sources >= limit && !self.sources.contains_key(source) {
            return Err(DecodeError::TooManySources { sources, limit });
        }
        Ok(())
    }

    fn aborted(&mut self, request: &RequestId) -> Result<(), DecodeError> {
        let Some(transfer) = self.requests.get(request).cloned() else {
            return Err(DecodeError::UnknownRequest {
                request: request.clone(),
            });
        };
        self.fail(&transfer, Failure::Aborted);
        Ok(())
    }

    fn run_timers(&mut self) {
        while let Some(timer) = self.timers.due() {
            match timer {
                Timer::Record(transfer) => self.record_due(&transfer),
                Timer::Source(source) => self.source_due(&source),
                Timer::Fence(fence) => self.fence_due(fence),
            }
        }
    }
}
