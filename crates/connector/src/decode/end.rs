//! Ends of loads, and what is done to reach them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::event::{DecodeCommand, DecodeOutcome, Dialect};
use super::record::{OpenPull, Record};
use super::{Decode, Timer};
use crate::failure::Failure;
use crate::id::TransferId;
use crate::lease::Quiescence;
use crate::message::Cancel;
use crate::peer::PullNumber;
use crate::time::Time;

impl Decode {
    /// Makes a record fail: its open pulls are cancelled, and it ends when they are over.
    pub(super) fn fail(&mut self, transfer: &TransferId, failure: Failure) {
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        record.failure.get_or_insert(failure);
        record.follow = false;
        if record.waiting {
            let source = record.source.clone();
            self.wait_no_more(&source, transfer);
        }
        self.chase(transfer);
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

    /// Presses for the end of a record's open pulls, sooner than before if less is
    /// to be waited for.
    pub(super) fn chase(&mut self, transfer: &TransferId) {
        let Some(record) = self.records.get(transfer) else {
            return;
        };
        let longest = record
            .open
            .iter()
            .map(|pull| self.patience(record, pull))
            .max();
        let Some(patience) = longest.filter(|_| record.lease.is_some()) else {
            return;
        };
        if let Some(record) = self.records.get_mut(transfer)
            && record.patience.is_none_or(|before| patience < before)
        {
            record.patience = Some(patience);
            record.pause = None;
            self.press(transfer);
        }
    }

    /// How long to wait for a pull's end before its sender is fenced off.
    fn patience(&self, record: &Record, pull: &OpenPull) -> Time {
        let now = self.timers.now();
        match pull.dialect {
            Dialect::Own => now.after(self.limits.fence_after),
            // It knows no cancel: it will answer when it is ready, or never.
            Dialect::Stock if !pull.answered => {
                let deadline = record.asked.unwrap_or(now).after(self.limits.answer);
                deadline.max(now.after(self.limits.stock_fence_after))
            }
            Dialect::Stock => now.after(self.limits.stock_fence_after),
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
            record.asked = None;
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
        let given_up = matches!(
            record.failure,
            Some(Failure::Aborted | Failure::Timeout { .. })
        );
        if record.asked.is_none() && given_up {
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
