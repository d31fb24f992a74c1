//! Prefill engines: looking them up, following their restarts, fencing them off.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use indexmap::IndexSet;

use super::event::{DecodeCommand, Resolved, Source};
use super::{Decode, Timer};
use crate::failure::{Failure, ResolveError};
use crate::hash::Hash;
use crate::id::TransferId;
use crate::peer::{Generation, PullNumber};
use crate::time::Time;
use crate::timer::TimerId;

/// What is known of a prefill engine.
#[derive(Debug)]
pub(super) struct KnownSource {
    pub(super) stage: Stage,
    /// Records that wait until it is known.
    pub(super) waiting: IndexSet<TransferId, Hash>,
    /// Records with open pulls, by pull.
    pub(super) open: BTreeSet<PullNumber>,
    /// Incarnations that are being fenced off.
    pub(super) fencing: Vec<Generation>,
    timer: Option<TimerId>,
    last: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Not known, or known no longer.
    Unknown,
    /// A look-up is under way.
    Asked {
        attempts: u32,
    },
    /// The last one failed; the next follows.
    Pausing {
        attempts: u32,
    },
    Known(Resolved),
}

impl KnownSource {
    /// It was used just now.
    pub(super) const fn touch(&mut self, now: Time) {
        self.last = now;
    }
}

impl Decode {
    /// Pulls at once where the source is known, else once it is.
    pub(super) fn begin(&mut self, transfer: &TransferId) {
        let now = self.timers.now();
        let Some(record) = self.records.get_mut(transfer) else {
            return;
        };
        let hash = &self.hash;
        let source = record.source.clone();
        let known = self
            .sources
            .entry(source.clone())
            .or_insert_with(|| KnownSource {
                stage: Stage::Unknown,
                waiting: IndexSet::with_hasher(hash.clone()),
                open: BTreeSet::new(),
                fencing: Vec::new(),
                timer: None,
                last: now,
            });
        known.last = now;
        if let Stage::Known(resolved) = known.stage {
            self.send_pulls(transfer, resolved);
            return;
        }
        record.waiting = true;
        known.waiting.insert(transfer.clone());
        let deadline = now.after(self.limits.answer);
        let timer = self.timers.set(deadline, Timer::Record(transfer.clone()));
        if let Some(old) = record.timer.replace(timer) {
            self.timers.cancel(old);
        }
        self.look_up(&source, 0);
    }

    /// Takes a record out of the line.
    pub(super) fn wait_no_more(&mut self, source: &Source, transfer: &TransferId) {
        if let Some(known) = self.sources.get_mut(source) {
            known.waiting.swap_remove(transfer);
        }
        if let Some(record) = self.records.get_mut(transfer) {
            record.waiting = false;
        }
    }

    /// Asks, unless a look-up is under way.
    pub(super) fn look_up(&mut self, source: &Source, before: u32) {
        let deadline = self.timers.now().after(self.limits.resolve_timeout);
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        if !matches!(known.stage, Stage::Unknown) {
            return;
        }
        let attempts = before.saturating_add(1);
        known.stage = Stage::Asked { attempts };
        self.set_source_timer(source, deadline);
        let source = source.clone();
        self.commands.push_back(DecodeCommand::Resolve { source });
    }

    pub(super) fn resolved(&mut self, source: &Source, result: Result<Resolved, ResolveError>) {
        let now = self.timers.now();
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        // A late or repeated answer says nothing that a new look-up would not say.
        let Stage::Asked { attempts } = known.stage else {
            return;
        };
        let resolved = match result {
            Ok(resolved) => resolved,
            Err(last) => {
                self.look_up_failed(source, attempts, last);
                return;
            }
        };
        known.last = now;
        let generation = resolved.generation();
        if known.fencing.contains(&generation) {
            // What it was asked for until then is still to be fenced off; meanwhile
            // another one may take its place.
            known.stage = Stage::Pausing { attempts: 0 };
            self.set_source_timer(source, now.after(self.limits.resolve_timeout));
            return;
        }
        known.stage = Stage::Known(resolved);
        let waiting = core::mem::take(&mut known.waiting);
        let forget = now.after(self.limits.source_idle);
        self.set_source_timer(source, forget);
        for transfer in waiting {
            if let Some(record) = self.records.get_mut(&transfer) {
                record.waiting = false;
            }
            self.send_pulls(&transfer, resolved);
        }
    }

    fn look_up_failed(&mut self, source: &Source, attempts: u32, last: ResolveError) {
        let now = self.timers.now();
        let limits = self.limits;
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        if attempts < limits.resolve_attempts {
            let longest = limits.resolve_timeout;
            let pause =
                (1..attempts.min(64)).fold(limits.resolve_pause, |pause, _| pause.doubled(longest));
            known.stage = Stage::Pausing { attempts };
            self.set_source_timer(source, now.after(pause));
            return;
        }
        known.stage = Stage::Unknown;
        known.last = now;
        let waiting = core::mem::take(&mut known.waiting);
        self.set_source_timer(source, now.after(limits.source_idle));
        for transfer in waiting {
            if let Some(record) = self.records.get_mut(&transfer) {
                record.waiting = false;
            }
            let failure = Failure::Bootstrap {
                address: source.bootstrap.clone(),
                attempts,
                last,
            };
            self.fail(&transfer, failure);
        }
    }

    pub(super) fn source_due(&mut self, source: &Source) {
        let now = self.timers.now();
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        known.timer = None;
        match known.stage {
            Stage::Asked { attempts } => {
                self.look_up_failed(source, attempts, ResolveError::Unreachable);
            }
            Stage::Pausing { attempts } => {
                known.stage = Stage::Unknown;
                if known.waiting.is_empty() {
                    self.set_source_timer(source, now.after(self.limits.source_idle));
                } else {
                    self.look_up(source, attempts);
                }
            }
            Stage::Unknown | Stage::Known(_) => {
                let used = !known.waiting.is_empty()
                    || !known.open.is_empty()
                    || !known.fencing.is_empty();
                let idle_at = known.last.after(self.limits.source_idle);
                if !used && idle_at <= now {
                    self.sources.swap_remove(source);
                    return;
                }
                let again = now.after(self.limits.source_idle);
                self.set_source_timer(source, if used { again } else { idle_at });
            }
        }
    }

    pub(super) fn set_source_timer(&mut self, source: &Source, at: Time) {
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        if let Some(old) = known.timer.take() {
            self.timers.cancel(old);
        }
        known.timer = Some(self.timers.set(at, Timer::Source(source.clone())));
    }

    /// Forgets an incarnation, so that the next load looks up who is there now.
    pub(super) fn mistrust(&mut self, source: &Source, generation: Generation) {
        if let Some(known) = self.sources.get_mut(source)
            && let Stage::Known(resolved) = known.stage
            && resolved.generation() == generation
        {
            known.stage = Stage::Unknown;
        }
    }
}
