//! Pulls, cancels and ends of transfers.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mooncake_pd_plan::RequestError;

use super::event::{AttemptId, PrefillCommand, PrefillOutcome};
use super::flight::Flight;
use super::record::{Claim, Reply, Stage, Waiting};
use super::{Prefill, Timer};
use crate::failure::{Failure, Refusal};
use crate::id::TransferId;
use crate::lease::Quiescence;
use crate::message::{Cancel, Pull, Verdict, Want};
use crate::time::Time;
use crate::window::Admission;

impl Prefill {
    pub(super) fn pulled(&mut self, pull: Pull) {
        self.metrics.pulls = self.metrics.pulls.saturating_add(1);
        let reply = Reply {
            from: pull.from,
            number: pull.number,
            consumer: pull.consumer,
        };
        let Some(admission) = self.admit(&reply, pull.to, pull.floor) else {
            return;
        };
        if let Some(refusal) = match admission {
            Admission::New
                if self.is_busy(&reply) || self.is_crowded(&pull.transfer, &pull.want) =>
            {
                Some(Refusal::Busy)
            }
            Admission::New => self.place(&pull.transfer, &reply).err(),
            Admission::UnderWay(_) => {
                // It will be answered when it is over.
                self.metrics.repeated = self.metrics.repeated.saturating_add(1);
                return;
            }
            Admission::Over => {
                self.metrics.repeated = self.metrics.repeated.saturating_add(1);
                Some(Refusal::Over(reply.number))
            }
            // What that incarnation asked for may still be under way.
            Admission::Superseded => {
                self.reply_unquiet(&reply, Refusal::Superseded);
                return;
            }
            // Not remembered: it would be served if it came again.
            Admission::Full => {
                self.reply_unquiet(&reply, Refusal::Busy);
                return;
            }
        } {
            self.reply(&reply, Verdict::Refused(refusal));
            return;
        }
        if let Some(peer) = self.peers.get_mut(&reply.from.engine) {
            peer.window.begin(reply.number, pull.transfer.clone());
        }
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(&pull.transfer) else {
            return;
        };
        if matches!(record.stage, Stage::Ready(_)) {
            self.serve(&pull.transfer, reply, pull.want, now);
            self.end_if_done(&pull.transfer);
            return;
        }
        let timer = record.owner.is_some().then(|| {
            let timer = Timer::Waiting(Box::new((pull.transfer.clone(), reply.clone())));
            self.timers.set(now.after(self.limits.ready_wait), timer)
        });
        let entries = pull.want.entries();
        self.waiting_entries = self.waiting_entries.saturating_add(entries);
        record.waiting.push(Waiting {
            reply,
            want: pull.want,
            since: now,
            timer,
        });
    }

    /// Whether a pull would have to wait, and there is no room for its tables.
    fn is_crowded(&self, transfer: &TransferId, want: &Want) -> bool {
        let record = self.records.get(transfer);
        let waits = record.is_none_or(|record| matches!(record.stage, Stage::Computing));
        let entries = self.waiting_entries.saturating_add(want.entries());
        waits && entries > self.limits.waiting_entries
    }

    pub(super) fn cancelled(&mut self, cancel: Cancel) {
        self.metrics.cancels = self.metrics.cancels.saturating_add(1);
        let reply = Reply {
            from: cancel.from,
            number: cancel.number,
            consumer: cancel.consumer,
        };
        let Some(admission) = self.admit(&reply, cancel.to, cancel.floor) else {
            return;
        };
        match admission {
            Admission::UnderWay(transfer) => {
                let flight = self.flight_of(&transfer, &reply);
                if let Some(attempt) = flight {
                    self.drain(attempt, Some(Failure::Cancelled));
                    return;
                }
                self.drop_waiting(&transfer, &reply, Failure::Cancelled);
                self.reply(&reply, Verdict::Refused(Refusal::Cancelled));
                self.end_if_done(&transfer);
            }
            Admission::New => {
                // The pull is still on its way, or lost: it is refused when it
                // comes, and its consumer is not waited for.
                if self.place(&cancel.transfer, &reply).is_ok()
                    && let Some(record) = self.records.get_mut(&cancel.transfer)
                {
                    record.settle(reply.consumer, Claim::Failed, Some(Failure::Cancelled));
                }
                self.reply(&reply, Verdict::Refused(Refusal::Cancelled));
                self.end_if_done(&cancel.transfer);
            }
            Admission::Over => {
                self.reply(&reply, Verdict::Refused(Refusal::Cancelled));
            }
            Admission::Superseded => self.reply_unquiet(&reply, Refusal::Superseded),
            // Not remembered, so nothing may be promised; the peer asks again.
            Admission::Full => {}
        }
    }

    /// Serves a pull whose prompt is computed.
    pub(super) fn serve(&mut self, transfer: &TransferId, reply: Reply, want: Want, since: Time) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let Stage::Ready(source) = &mut record.stage else {
            return;
        };
        let (tables, expects) = match want {
            Want::Release => {
                record.settle(reply.consumer, Claim::Released, None);
                self.reply(&reply, Verdict::Released);
                return;
            }
            Want::Cache { tables, expects } => (tables, expects),
        };
        let prefill = source.hand_off.computed();
        if let Some(decode) = expects
            && decode != prefill
        {
            let failure = Failure::HandOff { prefill, decode };
            record.settle(reply.consumer, Claim::Failed, Some(failure));
            self.reply(
                &reply,
                Verdict::Refused(Refusal::HandOff { prefill, decode }),
            );
            return;
        }
        let attempt = AttemptId::new(self.attempts);
        self.attempts = self.attempts.wrapping_add(1);
        let loan = source.lease.lend();
        self.commands.push_back(PrefillCommand::Transfer {
            attempt,
            to: reply.from.clone(),
            number: reply.number,
            transfer: transfer.clone(),
            hand_off: source.hand_off,
            source: Arc::clone(source.lease.tables()),
            destination: tables,
        });
        record.flights.push(attempt);
        self.metrics.waited.record(now.since(since));
        let deadline = now.after(self.limits.transfer);
        let timer = Some(self.timers.set(deadline, Timer::Flight(attempt)));
        self.flights.insert(
            attempt,
            Box::new(Flight {
                transfer: transfer.clone(),
                reply,
                loan,
                since: now,
                timer,
                draining: false,
                cause: None,
            }),
        );
    }

    pub(super) fn settled(
        &mut self,
        attempt: AttemptId,
        fault: Option<(Failure, Refusal)>,
        proof: Quiescence,
    ) {
        let Some(flight) = self.flights.swap_remove(&attempt) else {
            self.metrics.unknown_completions = self.metrics.unknown_completions.saturating_add(1);
            return;
        };
        self.cancel_timer(flight.timer);
        let now = self.timers.now();
        self.metrics.transferred.record(now.since(flight.since));
        let (failure, refusal) = match flight.cause {
            Some(cause) if fault.is_some() => {
                let refusal = refusal(&cause);
                (Some(cause), Some(refusal))
            }
            _ => fault.unzip(),
        };
        let mut hand_off = None;
        if let Some(record) = self.records.get_mut(&flight.transfer) {
            record.flights.retain(|other| *other != attempt);
            if let Stage::Ready(source) = &mut record.stage {
                source.lease.repay(flight.loan, proof);
                hand_off = Some(source.hand_off);
            }
            let claim = match failure {
                None => Claim::Delivered,
                Some(_) => Claim::Failed,
            };
            record.settle(flight.reply.consumer, claim, failure);
        }
        let verdict = match refusal {
            None => Verdict::Delivered { hand_off },
            Some(refusal) => Verdict::Refused(refusal),
        };
        self.reply(&flight.reply, verdict);
        self.end_if_done(&flight.transfer);
    }

    pub(super) fn refused(&mut self, attempt: AttemptId, error: Arc<RequestError>) {
        let refusal = Refusal::Tables(error.name());
        let fault = Some((Failure::Tables(error), refusal));
        self.settled(attempt, fault, Quiescence::untouched());
    }

    /// Tells the engine once that a transfer should end.
    pub(super) fn drain(&mut self, attempt: AttemptId, cause: Option<Failure>) {
        if let Some(flight) = self.flights.get_mut(&attempt)
            && !flight.draining
        {
            flight.draining = true;
            flight.cause = cause;
            self.metrics.drains = self.metrics.drains.saturating_add(1);
            self.commands.push_back(PrefillCommand::Drain { attempt });
        }
    }

    /// Takes a waiting pull out; its consumer is not waited for.
    pub(super) fn drop_waiting(&mut self, transfer: &TransferId, reply: &Reply, failure: Failure) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let at = record
            .waiting
            .iter()
            .position(|waiting| waiting.reply.is_same_pull(reply));
        let Some(at) = at else {
            return;
        };
        let waiting = record.waiting.remove(at);
        self.waiting_entries = self.waiting_entries.saturating_sub(waiting.want.entries());
        record.settle(waiting.reply.consumer, Claim::Failed, Some(failure));
        self.cancel_timer(waiting.timer);
    }

    fn flight_of(&self, transfer: &TransferId, reply: &Reply) -> Option<AttemptId> {
        let record = self.records.get(transfer)?;
        let theirs = |attempt: &&AttemptId| {
            let flight = self.flights.get(*attempt);
            flight.is_some_and(|flight| flight.reply.is_same_pull(reply))
        };
        record.flights.iter().find(theirs).copied()
    }

    /// Ends a record as soon as nothing of it is under way.
    pub(super) fn give_up(&mut self, transfer: &TransferId, cause: Failure) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let cause = record.settling.get_or_insert(cause).clone();
        let flights = record.flights.clone();
        for attempt in flights {
            self.drain(attempt, Some(cause.clone()));
        }
        self.end_if_done(transfer);
    }

    pub(super) fn end_if_done(&mut self, transfer: &TransferId) {
        let outcome = self
            .records
            .get(transfer)
            .and_then(|record| record.outcome());
        let Some(outcome) = outcome else {
            return;
        };
        let Some(record) = self.records.swap_remove(transfer) else {
            return;
        };
        self.cancel_timer(record.timer);
        self.unknown = self.unknown.saturating_sub(record.unnamed);
        let waiting: Vec<Waiting> = record.waiting.into_iter().collect();
        for waiting in waiting {
            self.waiting_entries = self.waiting_entries.saturating_sub(waiting.want.entries());
            self.cancel_timer(waiting.timer);
            let refusal = match &outcome {
                PrefillOutcome::Failed(cause) => refusal(cause),
                PrefillOutcome::Delivered | PrefillOutcome::Released => Refusal::Ended,
            };
            self.reply(&waiting.reply, Verdict::Refused(refusal));
        }
        let now = self.timers.now();
        let mut tables = None;
        if let Stage::Ready(source) = record.stage {
            self.metrics.served_after.record(now.since(source.since));
            // Every loan is repaid: `outcome` waits for the flights.
            tables = self.leases.end(source.lease).ok();
        }
        let Some(request) = record.owner else {
            return;
        };
        self.live = self.live.saturating_sub(1);
        let count = match outcome {
            PrefillOutcome::Failed(_) => &mut self.metrics.failed,
            PrefillOutcome::Delivered | PrefillOutcome::Released => &mut self.metrics.delivered,
        };
        *count = count.saturating_add(1);
        let until = now.after(self.limits.ended_memory);
        if self.ended.is_empty() && self.limits.ended > 0 {
            self.timers.set(until, Timer::Ended);
        }
        self.ended
            .remember(transfer.clone(), until, self.limits.ended);
        self.commands.push_back(PrefillCommand::Ended {
            request,
            transfer: transfer.clone(),
            outcome,
            tables,
        });
    }
}

/// What a decode rank is told of a request that ends.
pub(super) fn refusal(cause: &Failure) -> Refusal {
    match cause {
        Failure::Aborted => Refusal::Aborted,
        Failure::Cancelled => Refusal::Cancelled,
        Failure::PeerLost { .. } => Refusal::Superseded,
        Failure::NotComputed { after } => Refusal::NotReady { after: *after },
        Failure::Refused(refusal) => *refusal,
        _ => Refusal::Ended,
    }
}
