//! Deadlines in order of time.

use alloc::collections::BTreeMap;

use crate::time::Time;

/// Names one deadline that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId(Time, u64);

/// Deadlines, and a clock that never goes back.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    set: BTreeMap<TimerId, T>,
    given: u64,
    /// Deadlines set since the last [`Self::advance`] have this number or a higher one.
    fresh: u64,
    now: Time,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            set: BTreeMap::new(),
            given: 0,
            fresh: 0,
            now: Time::ZERO,
        }
    }
}

impl<T> Timers<T> {
    /// Takes the embedder's time; whether it went back.
    pub(crate) fn advance(&mut self, now: Time) -> bool {
        let back = now < self.now;
        self.now = self.now.max(now);
        self.fresh = self.given;
        back
    }

    /// The latest time seen.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn set(&mut self, at: Time, what: T) -> TimerId {
        let id = TimerId(at, self.given);
        self.given = self.given.wrapping_add(1);
        self.set.insert(id, what);
        id
    }

    pub(crate) fn cancel(&mut self, id: TimerId) {
        self.set.remove(&id);
    }

    /// The next deadline that is not in the future. One that was set since the time
    /// was told waits until it is told again, so that a pause of no length, or one
    /// at the end of time, is no endless loop.
    pub(crate) fn due(&mut self) -> Option<T> {
        let entry = self.set.first_entry()?;
        let TimerId(at, number) = *entry.key();
        (at <= self.now && number < self.fresh).then(|| entry.remove())
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.set.first_key_value().map(|(id, _)| id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }
}
