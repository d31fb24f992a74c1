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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Timers;
    use crate::time::{Span, Time};

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn due(timers: &mut Timers<u8>) -> Vec<u8> {
        core::iter::from_fn(|| timers.due()).collect()
    }

    #[test]
    fn deadlines_come_in_order_of_time_and_then_of_setting() {
        let mut timers = Timers::default();
        for (time, what) in [(30, 1), (10, 2), (30, 3), (20, 4), (31, 5)] {
            timers.set(at(time), what);
        }
        assert_eq!(timers.next(), Some(at(10)));
        assert!(!timers.advance(at(30)));
        assert_eq!(due(&mut timers), [2, 4, 1, 3]);
        assert_eq!((timers.next(), timers.len()), (Some(at(31)), 1));
    }

    #[test]
    fn a_cancelled_deadline_does_not_come_and_others_do() {
        let mut timers = Timers::default();
        let first = timers.set(at(5), 1);
        timers.set(at(5), 2);
        timers.cancel(first);
        timers.cancel(first);
        timers.advance(at(5));
        assert_eq!(due(&mut timers), [2]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn time_that_goes_back_is_told_and_changes_nothing() {
        let mut timers = Timers::<u8>::default();
        assert!(!timers.advance(at(9)));
        assert!(timers.advance(at(8)));
        assert!(!timers.advance(at(9)));
        assert_eq!(timers.now(), at(9));
    }

    #[test]
    fn a_deadline_of_no_length_waits_for_the_next_time() {
        for now in [7, u64::MAX] {
            let mut timers = Timers::default();
            timers.set(at(now), 1);
            timers.advance(at(now));
            assert_eq!(timers.due(), Some(1));
            timers.set(timers.now().after(Span::ZERO), 2);
            assert_eq!(timers.due(), None);
            assert_eq!(timers.next(), Some(at(now)));
            timers.advance(at(now));
            assert_eq!(timers.due(), Some(2));
        }
    }
}
