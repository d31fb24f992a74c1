//! Which positions of a request move, and what can't be filled.

use alloc::vec::Vec;
use mooncake_pd_layout::{Group, GroupId};

use crate::request::{Tables, Tokens};
use crate::slots::live;

/// One block to be moved: the same position of the prompt on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    pub(crate) position: u64,
    pub(crate) source: u32,
    pub(crate) destination: u32,
}

impl Pair {
    /// Position in blocks from the prompt's start.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Id in the source's pool.
    #[must_use]
    pub const fn source(&self) -> u32 {
        self.source
    }

    /// Id in the destination's pool.
    #[must_use]
    pub const fn destination(&self) -> u32 {
        self.destination
    }
}

/// Why a block that the destination listed receives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnfilledReason {
    /// The source's table has a placeholder there.
    SourceNull,
    /// The source's table does not reach there.
    NotHeld,
    /// No computed token belongs there: a look-ahead block.
    BeyondComputed,
    /// An older state than the latest.
    NotLatestState,
    /// The window does not reach back that far.
    OutsideWindow,
}

impl UnfilledReason {
    /// Its name for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceNull => "source_null",
            Self::NotHeld => "not_held",
            Self::BeyondComputed => "beyond_computed",
            Self::NotLatestState => "not_latest_state",
            Self::OutsideWindow => "outside_window",
        }
    }
}

impl core::fmt::Display for UnfilledReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::SourceNull => "the source has a placeholder there",
            Self::NotHeld => "the source has no block there",
            Self::BeyondComputed => "no computed token belongs there",
            Self::NotLatestState => "only the latest state moves",
            Self::OutsideWindow => "the window does not reach back there",
        })
    }
}

/// A block that the destination listed and that receives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unfilled {
    /// Index of the request in its batch.
    pub request: usize,
    /// The group.
    pub group: GroupId,
    /// Position in blocks from the prompt's start.
    pub position: u64,
    /// Its id in the destination's pool.
    pub destination: u32,
    /// Why.
    pub reason: UnfilledReason,
}

/// First position that a group's window (if it has one) reaches.
fn window_start(group: &Group, tokens: Tokens) -> u64 {
    match (group.kind().window(), tokens) {
        (Some(window), Tokens::Computed(tokens)) => tokens
            .saturating_sub(u64::from(window.get()))
            .checked_div(u64::from(group.tokens_per_block().get()))
            .unwrap_or(0),
        _ => 0,
    }
}

/// Pairs the tables of one group by position.
///
/// Full attention and MLA move every listed position that is computed, sliding
/// kinds those their window reaches, a state group only the latest.
pub(crate) fn select(
    group: &Group,
    tokens: Tokens,
    tables: &Tables,
    mut unfilled: impl FnMut(u64, u32, UnfilledReason),
) -> Vec<Pair> {
    let window_start = window_start(group, tokens);
    let latest = tables.end().checked_sub(1);
    let mut pairs = Vec::with_capacity(tables.destination().entries().len());
    for (position, entry) in tables.destination().positions() {
        let Some(destination) = live(entry) else {
            continue;
        };
        let reason = if position >= tables.end() {
            UnfilledReason::BeyondComputed
        } else if group.kind().is_state() && Some(position) != latest {
            UnfilledReason::NotLatestState
        } else if position < window_start {
            UnfilledReason::OutsideWindow
        } else {
            match tables.source().at(position).map(live) {
                Some(Some(source)) => {
                    pairs.push(Pair {
                        position,
                        source,
                        destination,
                    });
                    continue;
                }
                Some(None) => UnfilledReason::SourceNull,
                None => UnfilledReason::NotHeld,
            }
        };
        unfilled(position, destination, reason);
    }
    pairs
}
