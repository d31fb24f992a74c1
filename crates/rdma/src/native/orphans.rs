//! Submissions in flight, and those whose tickets nobody holds any more.

use std::fmt::Debug;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
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

/// Waits a little longer each time: what is asked again at once ends at once,
/// or takes milliseconds.
#[derive(Debug, Default)]
struct Backoff {
    asked: u32,
}

impl Backoff {
    const SPINS: u32 = 16;
    const STEP: Duration = Duration::from_micros(20);
    const MOST: u32 = 25;

    fn wait(&mut self, left: Duration) {
        self.asked = self.asked.saturating_add(1);
        match self.asked.checked_sub(Self::SPINS) {
            None => std::thread::yield_now(),
            Some(steps) => {
                let nap = Self::STEP.saturating_mul(steps.clamp(1, Self::MOST));
                std::thread::sleep(nap.min(left));
            }
        }
    }
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
        let mut backoff = Backoff::default();
        loop {
            let progress = self.poll();
            let left = patience.get().saturating_sub(start.elapsed());
            let lost = self.flight.as_ref().is_some_and(Flight::is_lost);
            if progress.is_quiescent() || lost || left.is_zero() {
                return Drained::of(progress);
            }
            backoff.wait(left);
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
