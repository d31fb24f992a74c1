//! Submissions in flight, and those whose tickets nobody holds any more.

use std::fmt::Debug;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Drained, Kept, Patience, Progress, StillRunning};

/// A submission that the engine has taken, with all that must outlive it.
pub(crate) trait Flight: Debug + Send {
    /// Asks the engine, without waiting. Quiescent progress is final.
    fn advance(&mut self) -> Progress;

    /// What was last known.
    fn progress(&self) -> Progress;

    /// Keeps that as well until the submission has ended.
    fn keep(&mut self, kept: Kept);

    /// Whether its end will never be known, so that waiting for it is vain.
    fn is_lost(&self) -> bool {
        false
    }

    /// Waits for a while, no longer than `most`, after which it is to be asked
    /// again; `waited` has been waited already.
    fn wait(&self, waited: Duration, most: Duration) {
        match nap(waited) {
            Some(nap) => thread::sleep(nap.min(most)),
            None => thread::yield_now(),
        }
    }
}

/// A submission and its holder. Dropping it hands the submission to the
/// engine's orphans, so that nothing of it is released early.
#[derive(Debug)]
pub(crate) struct Ticket<F: Flight> {
    flight: Option<F>,
    orphans: Arc<Orphans<F>>,
}

/// Submissions without a holder. They are asked about now and then, and
/// released when they have ended; those that have not when the engine is gone
/// stay for as long as the process lives.
#[derive(Debug)]
pub(crate) struct Orphans<F: Flight> {
    flights: Mutex<Vec<F>>,
}

/// Between two looks at submissions without a holder.
const SWEEP: Duration = Duration::from_millis(100);
/// The longest nap between two looks.
const LONGEST: Duration = Duration::from_micros(500);
/// A shorter nap takes the system longer than it lasts.
const SHORTEST: Duration = Duration::from_micros(100);
/// A nap is this part of what was waited already, so that the end is noticed
/// late by that part at most.
const SHARE: u32 = 40;

/// How long to sleep before the next look; not at all in the first
/// milliseconds, in which a fast card is done.
fn nap(waited: Duration) -> Option<Duration> {
    let nap = waited.checked_div(SHARE)?.min(LONGEST);
    (nap >= SHORTEST).then_some(nap)
}

impl<F: Flight> Orphans<F> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            flights: Mutex::default(),
        })
    }

    /// A ticket for a submission.
    pub(crate) fn ticket(self: &Arc<Self>, flight: F) -> Ticket<F> {
        Ticket {
            flight: Some(flight),
            orphans: Arc::clone(self),
        }
    }

    /// Asks about every orphan and releases those that have ended.
    pub(crate) fn sweep(&self) {
        let mut ended = Vec::new();
        {
            let mut flights = self.lock();
            let mut running = Vec::new();
            for mut flight in mem::take(&mut *flights) {
                if flight.advance().is_quiescent() {
                    ended.push(flight);
                } else {
                    running.push(flight);
                }
            }
            *flights = running;
        }
        // What they kept may call the engine again, so the lock is free by now.
        drop(ended);
    }

    /// Takes a submission over.
    fn adopt(&self, flight: F) {
        self.lock().push(flight);
    }

    /// Submissions that have no holder and have not ended.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<F>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Flight> Drop for Orphans<F> {
    fn drop(&mut self) {
        self.sweep();
        for flight in mem::take(&mut *self.lock()) {
            mem::forget(flight);
        }
    }
}

impl<F: Flight> Ticket<F> {
    /// Asks where every task stands.
    pub(crate) fn poll(&mut self) -> Progress {
        self.orphans.sweep();
        match &mut self.flight {
            Some(flight) => flight.advance(),
            None => Progress::new(Vec::new()),
        }
    }

    /// Asks until every task has ended.
    pub(crate) fn drain(&mut self, patience: Patience) -> Drained {
        let start = Instant::now();
        loop {
            let progress = self.poll();
            let waited = start.elapsed();
            let left = patience.get().saturating_sub(waited);
            let lost = self.flight.as_ref().is_some_and(Flight::is_lost);
            if progress.is_quiescent() || lost || left.is_zero() {
                return Drained::of(progress);
            }
            if let Some(flight) = &self.flight {
                flight.wait(waited, left.min(SWEEP));
            }
        }
    }

    /// Lets go of a submission that has ended.
    pub(crate) fn release(mut self) -> Result<(), StillRunning<Self>> {
        let progress = self.progress();
        if progress.is_quiescent() {
            drop(self.flight.take());
            return Ok(());
        }
        Err(StillRunning {
            unfinished: progress.unfinished(),
            tasks: progress.tasks().len(),
            ticket: self,
        })
    }

    /// Lets go of a submission that may not have ended.
    pub(crate) fn abandon(mut self, kept: Kept) {
        if let Some(flight) = &mut self.flight {
            flight.keep(kept);
        }
    }

    fn progress(&self) -> Progress {
        let empty = || Progress::new(Vec::new());
        self.flight.as_ref().map_or_else(empty, Flight::progress)
    }
}

impl<F: Flight> Drop for Ticket<F> {
    fn drop(&mut self) {
        if let Some(flight) = self.flight.take() {
            self.orphans.adopt(flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_are_a_small_part_of_the_time_waited() {
        assert_eq!(nap(Duration::ZERO), None);
        assert_eq!(nap(Duration::from_micros(3_999)), None);
        assert_eq!(nap(Duration::from_millis(4)), Some(SHORTEST));
        assert_eq!(
            nap(Duration::from_millis(8)),
            Some(Duration::from_micros(200))
        );
        assert_eq!(nap(Duration::from_secs(9)), Some(LONGEST));
    }
}
