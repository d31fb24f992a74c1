//! Who speaks, and which of its pulls were seen.

use alloc::collections::BTreeSet;
use core::fmt;

use indexmap::IndexMap;

use crate::hash::Hash;
use crate::id::{EngineId, TransferId};

/// Incarnation of an engine, 0..2^64: a restarted one has a larger number (the time
/// it started will do).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// An incarnation by its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One incarnation of an engine's rank: a restarted peer is a new peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The rank's name, one for each rank that sends or answers pulls.
    pub engine: EngineId,
    /// Its incarnation.
    pub generation: Generation,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (generation {})", self.engine, self.generation)
    }
}

/// Number of a pull, 0..2^64; a decode rank gives each of its pulls a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PullNumber(u64);

impl PullNumber {
    /// A pull by its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// What a pull is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Never seen: it is recorded as seen now.
    New,
    /// Seen, and its transfer is under way or waits.
    UnderWay(TransferId),
    /// Seen or cancelled, and over.
    Over,
    /// Of an incarnation that was followed by another.
    Superseded,
    /// It would be one too many.
    Full,
}

/// Pulls of one decode rank. Whatever the network repeats, reorders or delays, a
/// number is served at most once: those below `floor` are over by the peer's own
/// word, the others are remembered.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) generation: Generation,
    floor: PullNumber,
    seen: BTreeSet<PullNumber>,
    live: IndexMap<PullNumber, TransferId, Hash>,
}

impl Window {
    pub(crate) fn new(generation: Generation, hash: Hash) -> Self {
        Self {
            generation,
            floor: PullNumber::default(),
            seen: BTreeSet::new(),
            live: IndexMap::with_hasher(hash),
        }
    }

    /// Takes a number in. `floor` is the peer's oldest pull that is not over.
    pub(crate) fn admit(
        &mut self,
        number: PullNumber,
        floor: PullNumber,
        most: usize,
    ) -> Admission {
        // A floor above the message's own number can't be meant.
        self.floor = self.floor.max(floor.min(number));
        while self.seen.first().is_some_and(|seen| *seen < self.floor) {
            self.seen.pop_first();
        }
        if let Some(transfer) = self.live.get(&number) {
            return Admission::UnderWay(transfer.clone());
        }
        if number < self.floor || self.seen.contains(&number) {
            return Admission::Over;
        }
        if self.seen.len() >= most || self.live.len() >= most {
            return Admission::Full;
        }
        self.seen.insert(number);
        Admission::New
    }

    pub(crate) fn begin(&mut self, number: PullNumber, transfer: TransferId) {
        self.live.insert(number, transfer);
    }

    pub(crate) fn finish(&mut self, number: PullNumber) {
        self.live.swap_remove(&number);
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (PullNumber, &TransferId)> {
        self.live.iter().map(|(number, id)| (*number, id))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.live.is_empty()
    }
}
