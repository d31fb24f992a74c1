//! What prefill and decode ranks say to each other.

use alloc::sync::Arc;
use core::fmt;

use crate::failure::Refusal;
use crate::handoff::HandOff;
use crate::id::TransferId;
use crate::peer::{Generation, Peer, PullNumber};
use crate::tables::BlockTables;
use crate::tokens::TokenCount;

/// Most decode ranks that one prefill rank serves for one request.
pub const MAX_CONSUMERS: u16 = 1024;

/// Which of the decode ranks that one prefill rank serves, 0..[`MAX_CONSUMERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Consumer {
    index: u16,
    count: u16,
}

impl Consumer {
    /// The only one.
    pub const ALONE: Self = Self { index: 0, count: 1 };

    /// Number `index` of `count`; `None` when that is not below it, or over [`MAX_CONSUMERS`].
    #[must_use]
    pub const fn new(index: u16, count: u16) -> Option<Self> {
        if index < count && count <= MAX_CONSUMERS {
            Some(Self { index, count })
        } else {
            None
        }
    }

    /// Its number.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u16 {
        self.count
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.index, self.count)
    }
}

/// A decode rank asks a prefill rank to write into its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Who asks.
    pub from: Peer,
    /// The incarnation it asks.
    pub to: Generation,
    /// Its number.
    pub number: PullNumber,
    /// The asker's oldest pull that is not over; numbers below never matter again.
    pub floor: PullNumber,
    /// The hand-over it is about.
    pub transfer: TransferId,
    /// Which of the askers it is.
    pub consumer: Consumer,
    /// What it asks for.
    pub want: Want,
}

/// What a pull asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing: the asker has all it needs, prefill may let go.
    Release,
    /// The cache.
    Cache {
        /// Where to write it.
        tables: Arc<BlockTables>,
        /// How much of the prompt it must cover; unknown on the stock wire.
        expects: Option<TokenCount>,
    },
}

impl Want {
    /// Entries of its block tables; a table of its own counts as four.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Self::Release => 0,
            Self::Cache { tables, .. } => {
                let groups = tables.groups().iter();
                let entries = groups.map(|table| table.entries.len().saturating_add(4));
                entries.fold(0, usize::saturating_add)
            }
        }
    }
}

/// A decode rank wants a pull to be over. It is answered once nothing of it is
/// under way, also when the pull itself never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Who asks.
    pub from: Peer,
    /// The incarnation it asks.
    pub to: Generation,
    /// The pull.
    pub number: PullNumber,
    /// The asker's oldest pull that is not over.
    pub floor: PullNumber,
    /// The hand-over it is about.
    pub transfer: TransferId,
    /// Which of the askers it is.
    pub consumer: Consumer,
}

/// The end of a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who answers.
    pub from: Peer,
    /// The incarnation it answers.
    pub to: Peer,
    /// The pull.
    pub number: PullNumber,
    /// How it ended.
    pub verdict: Verdict,
    /// Whether nothing of it is under way any more. Ours answer only then; a stock
    /// peer's error does not say.
    pub quiescent: bool,
}

/// How a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every demanded byte is in place.
    Delivered {
        /// What the cache covers; unknown on the stock wire.
        hand_off: Option<HandOff>,
    },
    /// Nothing was asked for, and prefill let go.
    Released,
    /// The bytes are not all there.
    Refused(Refusal),
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::{Consumer, MAX_CONSUMERS};

    #[test]
    fn a_consumer_is_one_of_up_to_1024() {
        let last = Consumer::new(MAX_CONSUMERS - 1, MAX_CONSUMERS).unwrap();
        assert_eq!((last.index(), last.count()), (1_023, 1_024));
        assert_eq!(last.to_string(), "1023 of 1024");
        assert_eq!(Consumer::new(0, 1), Some(Consumer::ALONE));
        for (index, count) in [(0, 0), (1, 1), (2, 1), (0, 1_025), (1_024, 1_024)] {
            assert_eq!(Consumer::new(index, count), None, "{index} of {count}");
        }
    }
}
