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
    now: Time,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            set: BTreeMap::new(),
            given: 0,
            now: Time::ZERO,
        }
    }
}

impl<T> Timers<T> {
    /// Takes the embedder's time; whether it went back.
    pub(crate) fn advance(&mut self, now: Time) -> bool {
        let back = now < self.now;
        self.now = self.now.max(now);
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

    /// The next deadline that is not in the future.
    pub(crate) fn due(&mut self) -> Option<T> {
        let entry = self.set.first_entry()?;
        (entry.key().0 <= self.now).then(|| entry.remove())
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.set.first_key_value().map(|(id, _)| id.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }
}
