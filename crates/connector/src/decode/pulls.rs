//! Pulls, their answers, and ends of loads.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::event::{DecodeCommand, DecodeOutcome, Dialect, Resolved};
use super::record::{OpenPull, Record};
use super::{Decode, Timer};
use crate::failure::{Failure, Refusal};
use crate::id::TransferId;
use crate::lease::Quiescence;
use crate::message::{Answer, Cancel, Pull, Verdict, Want};
use crate::peer::PullNumber;

impl Decode {
    /// Asks every sender of a source that is known.
    pub(super) fn send_pulls(&mut self, transfer: &TransferId, resolved: Resolved) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let Some(known) = self.sources.get_mut(&record.source) else {
            return;
        };
        record.asked = true;
        for sender in 0..resolved.senders() {
            let number = self.next_pull;
            self.next_pull = number.next();
            let want = record
                .lease
                .as_ref()
                .map_or(Want::Release, |lease| Want::Cache {
                    tables: Arc::clone(lease.tables()),
                    expects: Some(record.expects),
                });
            known.open.insert(number);
            self.pulls.insert(number, transfer.clone());
            record.open.push(OpenPull {
                number,
                sender,
                generation: resolved.generation(),
                loan: record.lease.as_mut().map(crate::lease::Lease::lend),
                dialect: resolved.dialect(),
            });
            self.commands.push_back(DecodeCommand::Pull {
                source: record.source.clone(),
                sender,
                pull: Pull {
                    from: self.me.clone(),
                    to: resolved.generation(),
                    number,
                    floor: known.open.first().copied().unwrap_or(number),
                    transfer: transfer.clone(),
                    consumer: self.consumer,
                    want,
                },
            });
        }
        let deadline = now.after(self.limits.answer);
        if let Some(old) = record.timer.take() {
            self.timers.cancel(old);
        }
        record.timer = Some(self.timers.set(deadline, Timer::Record(transfer.clone())));
    }

    pub(super) fn answered(&mut self, answer: &Answer) {
        let transfer = self.pulls.get(&answer.number).cloned();
        let record = transfer
            .as_ref()
            .and_then(|transfer| self.records.get_mut(transfer));
        let (Some(transfer), Some(record)) = (&transfer, record) else {
            self.count_unknown();
            return;
        };
        let pull = record.open.iter().find(|pull| pull.number == answer.number);
        // An answer of another incarnation settles nothing, but says who is there.
        let other = Refusal::Generation {
            asked: pull
                .as_ref()
                .map_or(answer.from.generation, |pull| pull.generation),
            actual: answer.from.generation,
        };
        let moved = matches!(answer.verdict, Verdict::Refused(refusal) if refusal == other);
        let theirs = |pull: &OpenPull| {
            answer.to == self.me && (moved || pull.generation == answer.from.generation)
        };
        let Some(generation) = pull.filter(|pull| theirs(pull)).map(|pull| pull.generation) else {
            self.count_unknown();
            return;
        };
        if record.lease.is_none() {
            self.close(answer.number, Quiescence::told());
            self.go_on(transfer);
            return;
        }
        if moved {
            if record.followed < self.limits.follow && record.failure.is_none() {
                record.follow = true;
            }
            let source = record.source.clone();
            self.fence(&source, generation);
            return;
        }
        let failure = match answer.verdict {
            Verdict::Delivered { hand_off } => {
                let told = hand_off.map_or(record.expects, |hand_off| hand_off.computed());
                record.hand_off = record.hand_off.or(hand_off);
                (told != record.expects).then_some(Failure::HandOff {
                    prefill: told,
                    decode: record.expects,
                })
            }
            // Nothing was written where something was asked for.
            Verdict::Released => Some(Failure::Refused(Refusal::Ended)),
            Verdict::Refused(refusal) => Some(Failure::Refused(refusal)),
        };
        if answer.quiescent {
            self.close(answer.number, Quiescence::told());
        }
        match failure {
            Some(failure) => self.fail(transfer, failure),
            None if answer.quiescent => self.go_on(transfer),
            // Delivered, and yet not quiet: a stock peer does not say so.
            None => self.chase(transfer),
        }
    }

    fn count_unknown(&mut self) {
        self.metrics.unknown_answers = self.metrics.unknown_answers.saturating_add(1);
    }

    pub(super) fn undelivered(&mut self, number: PullNumber) {
        let Some(transfer) = self.pulls.get(&number).cloned() else {
            self.count_unknown();
            return;
        };
        let record = self.records.get(&transfer);
        let lost = record.and_then(|record| {
            let pull = record.open.iter().find(|pull| pull.number == number)?;
            Some((record.source.clone(), pull.generation))
        });
        if let Some((source, generation)) = lost {
            self.mistrust(&source, generation);
        }
        self.close(number, Quiescence::untouched());
        self.fail(&transfer, Failure::Undelivered);
    }

    /// Settles one pull.
    pub(super) fn close(&mut self, number: PullNumber, proof: Quiescence) {
        let Some(transfer) = self.pulls.swap_remove(&number) else {
            return;
        };
        let Some(record) = self.records.get_mut(&transfer) else {
            return;
        };
        if let Some(known) = self.sources.get_mut(&record.source) {
            known.open.remove(&number);
            known.touch(self.timers.now());
        }
        let at = record.open.iter().position(|pull| pull.number == number);
        let pull = at.map(|at| record.open.swap_remove(at));
        if let (Some(loan), Some(lease)) = (pull.and_then(|pull| pull.loan), &mut record.lease) {
            lease.repay(loan, proof);
        }
    }

    /// Makes a record fail: its open pulls are cancelled, and it ends when they are over.
    pub(super) fn fail(&mut self, transfer: &TransferId, failure: Failure) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let first = record.failure.is_none();
        record.failure.get_or_insert(failure);
        record.follow = false;
        if record.waiting {
            let source = record.source.clone();
            self.wait_no_more(&source, transfer);
        }
        if first {
            self.chase(transfer);
        }
        self.end_release(transfer);
        self.go_on(transfer);
    }

    /// Lets go of a release whose answer does not come: nothing is written for it.
    pub(super) fn end_release(&mut self, transfer: &TransferId) {
        let Some(record) = self.records.get(transfer) else {
            return;
        };
        if record.lease.is_some() {
            return;
        }
        let open: Vec<PullNumber> = record.open.iter().map(|pull| pull.number).collect();
        for number in open {
            self.close(number, Quiescence::untouched());
        }
        self.go_on(transfer);
    }

    /// Begins to press for the end of a record's open pulls.
    fn chase(&mut self, transfer: &TransferId) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        if record.lease.is_some() && record.patience.is_none() && !record.open.is_empty() {
            record.patience = Some(now.after(self.limits.fence_after));
            record.pause = None;
            self.press(transfer);
        }
    }

    /// Sends cancels where they are understood, and sets the time of the next.
    fn press(&mut self, transfer: &TransferId) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let Some(known) = self.sources.get(&record.source) else {
            return;
        };
        let mut pressed = false;
        for pull in &record.open {
            if pull.dialect == Dialect::Stock {
                continue;
            }
            pressed = true;
            self.metrics.cancels = self.metrics.cancels.saturating_add(1);
            self.commands.push_back(DecodeCommand::Cancel {
                source: record.source.clone(),
                sender: pull.sender,
                cancel: Cancel {
                    from: self.me.clone(),
                    to: pull.generation,
                    number: pull.number,
                    floor: known.open.first().copied().unwrap_or(pull.number),
                    transfer: transfer.clone(),
                    consumer: self.consumer,
                },
            });
        }
        let patience = record.patience.unwrap_or(now);
        let longest = self.limits.fence_after;
        let pause = record
            .pause
            .map_or(self.limits.cancel_retry, |pause| pause.doubled(longest));
        record.pause = Some(pause);
        let next = if pressed {
            patience.min(now.after(pause))
        } else {
            patience
        };
        if let Some(old) = record.timer.take() {
            self.timers.cancel(old);
        }
        record.timer = Some(self.timers.set(next, Timer::Record(transfer.clone())));
    }

    pub(super) fn record_due(&mut self, transfer: &TransferId) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        record.timer = None;
        let Some(patience) = record.patience else {
            let after = self.limits.answer;
            self.fail(transfer, Failure::Timeout { after });
            return;
        };
        if now < patience {
            self.press(transfer);
            return;
        }
        let source = record.source.clone();
        let mut generations: Vec<_> = record.open.iter().map(|pull| pull.generation).collect();
        generations.dedup();
        for generation in generations {
            self.fence(&source, generation);
        }
    }

    /// Ends a record, or starts it again, when nothing of it is under way.
    pub(super) fn go_on(&mut self, transfer: &TransferId) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        if !record.open.is_empty() || record.waiting {
            return;
        }
        if record.follow && record.failure.is_none() {
            record.follow = false;
            record.followed = record.followed.saturating_add(1);
            record.patience = None;
            record.hand_off = None;
            if let Some(old) = record.timer.take() {
                self.timers.cancel(old);
            }
            self.metrics.followed = self.metrics.followed.saturating_add(1);
            self.begin(transfer);
            return;
        }
        self.end(transfer);
    }

    fn end(&mut self, transfer: &TransferId) {
        let Some(record) = self.records.swap_remove(transfer) else {
            return;
        };
        if let Some(timer) = record.timer {
            self.timers.cancel(timer);
        }
        let (Some(request), Some(lease)) = (record.owner, record.lease) else {
            return;
        };
        self.requests.swap_remove(&request);
        if !record.asked && record.failure == Some(Failure::Aborted) {
            // Prefill holds its blocks until somebody says that they are not needed.
            let release = Record::release(record.source, self.timers.now());
            self.records.insert(transfer.clone(), Box::new(release));
            self.begin(transfer);
        }
        // Every loan is repaid: no pull is open.
        let Ok(tables) = self.leases.end(lease) else {
            return;
        };
        let now = self.timers.now();
        self.metrics.took.record(now.since(record.since));
        let outcome = match record.failure {
            None => DecodeOutcome::Loaded {
                computed: record.expects,
                hand_off: record.hand_off,
            },
            Some(failure) => DecodeOutcome::Failed(failure),
        };
        let count = match outcome {
            DecodeOutcome::Loaded { .. } => &mut self.metrics.loaded,
            DecodeOutcome::Failed(_) => &mut self.metrics.failed,
        };
        *count = count.saturating_add(1);
        self.commands.push_back(DecodeCommand::Ended {
            request,
            transfer: transfer.clone(),
            outcome,
            tables,
        });
    }
}
