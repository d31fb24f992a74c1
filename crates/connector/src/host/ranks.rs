//! Which ranks are done with a request.

use smallvec::{SmallVec, smallvec};

/// Most ranks of one engine.
pub const MAX_RANKS: u16 = 1024;

/// Ranks of one engine, 1..=[`MAX_RANKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranks(u16);

impl Ranks {
    /// One rank.
    pub const ONE: Self = Self(1);

    /// So many ranks; `None` for none or too many.
    #[must_use]
    pub const fn new(count: u16) -> Option<Self> {
        if count == 0 || count > MAX_RANKS {
            return None;
        }
        Some(Self(count))
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The ranks of one request, by whether each has ended it.
#[derive(Debug)]
pub(super) struct Ends {
    ended: SmallVec<[bool; 16]>,
    left: u16,
}

impl Ends {
    pub(super) fn new(ranks: Ranks) -> Self {
        Self {
            ended: smallvec![false; usize::from(ranks.0)],
            left: ranks.0,
        }
    }

    /// Notes an end; false where there is no such rank or it has ended already.
    pub(super) fn end(&mut self, rank: u16) -> bool {
        match self.ended.get_mut(usize::from(rank)) {
            Some(ended) if !*ended => {
                *ended = true;
                self.left = self.left.saturating_sub(1);
                true
            }
            _ => false,
        }
    }

    pub(super) const fn all(&self) -> bool {
        self.left == 0
    }
}
