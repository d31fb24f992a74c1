//! Pulls, their answers, and ends of loads.

use alloc::sync::Arc;

use super::event::{DecodeCommand, Resolved, Source};
use super::record::OpenPull;
use super::{Decode, Timer};
use crate::failure::{Failure, Refusal};
use crate::id::TransferId;
use crate::lease::Quiescence;
use crate::message::{Answer, Pull, Verdict, Want};
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
        record.asked = Some(now);
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
                answered: false,
                delivered: false,
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

    /// An answer counts only from whom the pull was sent to.
    pub(super) fn answered(&mut self, source: &Source, sender: u16, answer: &Answer) {
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
        let asked = record.source == *source;
        let theirs = |pull: &OpenPull| {
            asked
                && pull.sender == sender
                && answer.to == self.me
                && (moved || pull.generation == answer.from.generation)
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
                let before = record.hand_off;
                record.hand_off = before.or(hand_off);
                match (before, hand_off) {
                    _ if told != record.expects => Some(Failure::HandOff {
                        prefill: told,
                        decode: record.expects,
                    }),
                    (Some(first), Some(other)) if first != other => {
                        Some(Failure::SendersDiffer { first, other })
                    }
                    _ => None,
                }
            }
            // Nothing was written where something was asked for.
            Verdict::Released => Some(Failure::Refused(Refusal::Ended)),
            Verdict::Refused(refusal) => Some(Failure::Refused(refusal)),
        };
        if answer.quiescent {
            self.close(answer.number, Quiescence::told());
        } else if let Some(pull) = record
            .open
            .iter_mut()
            .find(|pull| pull.number == answer.number)
        {
            pull.answered = true;
            pull.delivered = failure.is_none();
        }
        match failure {
            Some(failure) => self.fail(transfer, failure),
            None if answer.quiescent => {
                let chased = self.records.get(transfer);
                if chased.is_some_and(|record| record.patience.is_some()) {
                    // Less may be left to wait for.
                    self.chase(transfer);
                }
                self.go_on(transfer);
            }
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

    /// A pull is over, and nobody says how.
    pub(super) fn quiet(&mut self, number: PullNumber, proof: Quiescence) {
        let Some(transfer) = self.pulls.get(&number).cloned() else {
            self.count_unknown();
            return;
        };
        let known = self.records.get(&transfer).is_some_and(|record| {
            let mut open = record.open.iter();
            record.follow || open.any(|pull| pull.number == number && pull.delivered)
        });
        self.close(number, proof);
        if known {
            self.go_on(&transfer);
        } else {
            self.fail(&transfer, Failure::Unanswered);
        }
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
        let Some(pull) = at.map(|at| record.open.swap_remove(at)) else {
            return;
        };
        if let (Some(loan), Some(lease)) = (pull.loan, &mut record.lease) {
            lease.repay(loan, proof);
        }
        if !self.fences.is_empty() {
            let source = record.source.clone();
            self.ease_fence(&source, pull.generation);
        }
    }
}
