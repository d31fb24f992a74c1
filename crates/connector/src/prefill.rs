//! The life cycle of a prefill rank's transfers.

mod admit;
mod ended;
mod event;
mod flight;
mod record;
mod serve;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use indexmap::IndexMap;
use mooncake_pd_layout::CacheLayout;

pub use event::{AttemptId, PrefillCommand, PrefillError, PrefillEvent, PrefillOutcome};

use crate::failure::{Failure, Refusal};
use crate::handoff::HandOff;
use crate::hash::{Hash, seeded};
use crate::id::{EngineId, RequestId, TransferId};
use crate::lease::LeaseBook;
use crate::limits::PrefillLimits;
use crate::message::{Answer, Verdict};
use crate::metrics::PrefillMetrics;
use crate::peer::Peer;
use crate::tables::BlockTables;
use crate::time::Time;
use crate::timer::{TimerId, Timers};
use crate::window::Window;
use ended::Ended;
use flight::Flight;
use record::{Record, Reply, Source, Stage};

/// The session machine of one prefill rank: it takes [`PrefillEvent`]s with their
/// time and gives [`PrefillCommand`]s.
///
/// Each transfer that was [`PrefillEvent::Started`] gets exactly one
/// [`PrefillCommand::Ended`], and its blocks come back with it: not before every
/// transfer that reads them is known to be quiet. Each pull gets one answer that
/// says that it is over, unless its sender was started again; a repeated one may get another.
#[derive(Debug)]
pub struct Prefill {
    me: Peer,
    limits: PrefillLimits,
    hash: Hash,
    /// Boxed, as flights are: the room that the tables keep free would double them.
    records: IndexMap<TransferId, Box<Record>, Hash>,
    /// Records that the engine has named.
    live: usize,
    /// Pulls and cancels in records that the engine has not named.
    unknown: usize,
    /// Block table entries of waiting pulls.
    waiting_entries: usize,
    flights: IndexMap<AttemptId, Box<Flight>, Hash>,
    attempts: u64,
    peers: IndexMap<EngineId, KnownPeer, Hash>,
    ended: Ended,
    leases: LeaseBook,
    timers: Timers<Timer>,
    commands: VecDeque<PrefillCommand>,
    metrics: PrefillMetrics,
}

#[derive(Debug)]
struct KnownPeer {
    window: Window,
    last: Time,
}

#[derive(Clone, Debug)]
enum Timer {
    /// Unnamed, computing or held too long.
    Record(TransferId),
    /// A pull has waited too long.
    Waiting(Box<(TransferId, Reply)>),
    /// A transfer takes too long.
    Flight(AttemptId),
    /// A peer may be forgotten.
    Peer(EngineId),
    /// An ended transfer may be forgotten.
    Ended,
}

impl Prefill {
    /// A rank named `me` with caches of this layout. `hash_seed` should be random,
    /// so that peers can't choose names that collide; it changes nothing else.
    #[must_use]
    pub fn new(me: Peer, layout: Arc<CacheLayout>, limits: PrefillLimits, hash_seed: u64) -> Self {
        let hash = seeded(hash_seed);
        Self {
            me,
            limits: limits.floored(),
            records: IndexMap::with_hasher(hash.clone()),
            live: 0,
            unknown: 0,
            waiting_entries: 0,
            flights: IndexMap::with_hasher(hash.clone()),
            attempts: 0,
            peers: IndexMap::with_hasher(hash.clone()),
            ended: Ended::new(hash.clone()),
            leases: LeaseBook::new(layout, hash.clone()),
            hash,
            timers: Timers::default(),
            commands: VecDeque::new(),
            metrics: PrefillMetrics::default(),
        }
    }

    /// Takes an event in, after everything that was due before it.
    ///
    /// # Errors
    /// Our own engine's mistakes; then nothing has changed but the time. What peers
    /// do wrong is answered or counted, never an error.
    pub fn handle(&mut self, now: Time, event: PrefillEvent) -> Result<(), PrefillError> {
        if self.timers.advance(now) {
            self.metrics.clock_regressions = self.metrics.clock_regressions.saturating_add(1);
        }
        self.run_timers();
        match event {
            PrefillEvent::Started { request, transfer } => self.started(request, transfer),
            PrefillEvent::Finished {
                request,
                transfer,
                hand_off,
                tables,
            } => self.finished(&request, &transfer, hand_off, tables),
            PrefillEvent::Aborted { request, transfer } => self.aborted(&request, &transfer),
            PrefillEvent::Pulled(pull) => {
                self.pulled(pull);
                Ok(())
            }
            PrefillEvent::Cancelled(cancel) => {
                self.cancelled(cancel);
                Ok(())
            }
            PrefillEvent::Settled {
                attempt,
                result,
                proof,
            } => {
                let fault = result
                    .err()
                    .map(|fault| (Failure::Transfer(fault), Refusal::Transfer(fault)));
                self.settled(attempt, fault, proof);
                Ok(())
            }
            PrefillEvent::Refused { attempt, error } => {
                self.refused(attempt, error);
                Ok(())
            }
            PrefillEvent::Tick => Ok(()),
        }
    }

    /// The next command, in the order in which they arose.
    pub fn poll(&mut self) -> Option<PrefillCommand> {
        self.commands.pop_front()
    }

    /// When [`PrefillEvent::Tick`] is due at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// What was seen so far.
    #[must_use]
    pub const fn metrics(&self) -> &PrefillMetrics {
        &self.metrics
    }

    /// Its name and incarnation.
    #[must_use]
    pub const fn me(&self) -> &Peer {
        &self.me
    }

    /// Requests that are not ended.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.live
    }

    /// Leases that are not ended: requests whose blocks the engine must keep.
    #[must_use]
    pub const fn leases(&self) -> usize {
        self.leases.live()
    }

    /// Records of every kind: requests, transfers under way, unnamed transfers,
    /// peers, remembered ends and deadlines. Zero after a silence longer than every limit.
    #[must_use]
    pub fn records(&self) -> usize {
        [
            self.records.len(),
            self.flights.len(),
            self.peers.len(),
            self.ended.len(),
            self.timers.len(),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    fn started(&mut self, request: RequestId, transfer: TransferId) -> Result<(), PrefillError> {
        let known = self.records.get(&transfer);
        if let Some(owner) = known.and_then(|record| record.owner.as_ref()) {
            return Err(PrefillError::TransferTaken {
                transfer,
                owner: owner.clone(),
            });
        }
        if self.live >= self.limits.live {
            return Err(PrefillError::Full {
                live: self.live,
                limit: self.limits.live,
            });
        }
        self.live = self.live.saturating_add(1);
        self.ended.forget(&transfer);
        self.metrics.started = self.metrics.started.saturating_add(1);
        let now = self.timers.now();
        let deadline = now.after(self.limits.compute);
        let timer = self.timers.set(deadline, Timer::Record(transfer.clone()));
        let record = self.records.entry(transfer.clone()).or_default();
        self.unknown = self.unknown.saturating_sub(record.unnamed);
        record.unnamed = 0;
        record.owner = Some(request);
        if let Some(old) = record.timer.replace(timer) {
            self.timers.cancel(old);
        }
        for waiting in &mut record.waiting {
            let deadline = now.after(self.limits.ready_wait);
            let timer = Timer::Waiting(Box::new((transfer.clone(), waiting.reply.clone())));
            waiting.timer = Some(self.timers.set(deadline, timer));
        }
        Ok(())
    }

    fn finished(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
        hand_off: HandOff,
        tables: Arc<BlockTables>,
    ) -> Result<(), PrefillError> {
        let now = self.timers.now();
        let record = self
            .records
            .get_mut(transfer)
            .filter(|record| record.owner.as_ref() == Some(request))
            .ok_or_else(|| PrefillError::UnknownTransfer {
                request: request.clone(),
                transfer: transfer.clone(),
            })?;
        if !matches!(record.stage, Stage::Computing) {
            return Err(PrefillError::FinishedTwice {
                transfer: transfer.clone(),
            });
        }
        let lease = self.leases.share(tables)?;
        record.stage = Stage::Ready(Source {
            hand_off,
            lease,
            since: now,
        });
        let deadline = now.after(self.limits.hold);
        let timer = self.timers.set(deadline, Timer::Record(transfer.clone()));
        if let Some(old) = record.timer.replace(timer) {
            self.timers.cancel(old);
        }
        for waiting in core::mem::take(&mut record.waiting) {
            if let Some(timer) = waiting.timer {
                self.timers.cancel(timer);
            }
            self.waiting_entries = self.waiting_entries.saturating_sub(waiting.want.entries());
            self.serve(transfer, waiting.reply, waiting.want, waiting.since);
        }
        self.end_if_done(transfer);
        Ok(())
    }

    fn aborted(&mut self, request: &RequestId, transfer: &TransferId) -> Result<(), PrefillError> {
        let owned = self
            .records
            .get(transfer)
            .is_some_and(|record| record.owner.as_ref() == Some(request));
        if !owned {
            return Err(PrefillError::UnknownTransfer {
                request: request.clone(),
                transfer: transfer.clone(),
            });
        }
        self.give_up(transfer, Failure::Aborted);
        Ok(())
    }

    fn run_timers(&mut self) {
        while let Some(timer) = self.timers.due() {
            match timer {
                Timer::Record(transfer) => self.record_due(&transfer),
                Timer::Waiting(pull) => {
                    let (transfer, reply) = *pull;
                    let after = self.limits.ready_wait;
                    self.drop_waiting(&transfer, &reply, Failure::NotComputed { after });
                    self.reply(&reply, Verdict::Refused(Refusal::NotReady { after }));
                    self.end_if_done(&transfer);
                }
                Timer::Flight(attempt) => {
                    if let Some(flight) = self.flights.get_mut(&attempt) {
                        flight.timer = None;
                        self.drain(attempt, None);
                    }
                }
                Timer::Peer(engine) => self.forget_peer(engine),
                Timer::Ended => {
                    if let Some(next) = self.ended.expire(self.timers.now()) {
                        self.timers.set(next, Timer::Ended);
                    }
                }
            }
        }
    }

    fn record_due(&mut self, transfer: &TransferId) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        record.timer = None;
        let failure = match (&record.owner, &record.stage) {
            (None, _) => Failure::Refused(Refusal::Unknown),
            (Some(_), Stage::Computing) => Failure::NotComputed {
                after: self.limits.compute,
            },
            (Some(_), Stage::Ready(_)) => Failure::Expired {
                after: self.limits.hold,
            },
        };
        // Who asked in time is still served.
        record.settling.get_or_insert(failure);
        self.end_if_done(transfer);
    }

    fn forget_peer(&mut self, engine: EngineId) {
        let Some(peer) = self.peers.get(&engine) else {
            return;
        };
        let forget_at = peer.last.after(self.limits.peer_idle);
        if peer.window.is_idle() && forget_at <= self.timers.now() {
            self.peers.swap_remove(&engine);
            return;
        }
        // Busy peers are looked at again later.
        let soonest = self.timers.now().after(self.limits.peer_idle);
        let at = if peer.window.is_idle() {
            forget_at
        } else {
            soonest
        };
        self.timers.set(at, Timer::Peer(engine));
    }

    fn cancel_timer(&mut self, timer: Option<TimerId>) {
        if let Some(timer) = timer {
            self.timers.cancel(timer);
        }
    }

    /// Answers a pull of which we may know no more than that we refuse it: whether
    /// anything of it is under way is not ours to say.
    fn reply_unquiet(&mut self, reply: &Reply, refusal: Refusal) {
        self.metrics.refused = self.metrics.refused.saturating_add(1);
        self.commands.push_back(PrefillCommand::Answer(Answer {
            from: self.me.clone(),
            to: reply.from.clone(),
            number: reply.number,
            verdict: Verdict::Refused(refusal),
            quiescent: false,
        }));
    }

    /// Answers a pull; it is over then.
    fn reply(&mut self, reply: &Reply, verdict: Verdict) {
        if let Some(peer) = self.peers.get_mut(&reply.from.engine)
            && peer.window.generation == reply.from.generation
        {
            peer.window.finish(reply.number);
        }
        if matches!(verdict, Verdict::Refused(_)) {
            self.metrics.refused = self.metrics.refused.saturating_add(1);
        }
        self.commands.push_back(PrefillCommand::Answer(Answer {
            from: self.me.clone(),
            to: reply.from.clone(),
            number: reply.number,
            verdict,
            quiescent: true,
        }));
    }
}
