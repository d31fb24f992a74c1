//! One side's block tables, as an engine or a peer gives them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mooncake_pd_layout::{BlockEntry, CacheLayout, EntryError, GroupId, PoolId};
use mooncake_pd_plan::{MAX_ENTRIES, RawRequest, RawSlots, RawTables};

use crate::tokens::TokenCount;

/// Most groups of one request.
pub const MAX_GROUPS: usize = 4096;

/// Block ids of one group, by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTable {
    /// The group.
    pub group: GroupId,
    /// Position of the first entry, in blocks from the prompt's start. Without it
    /// the list ends at the last computed block.
    pub first_block: Option<u64>,
    /// Ids in the group's pool; `None`, or the pool's null id, where no block stands.
    pub entries: Vec<Option<u32>>,
}

/// Block tables of all groups of one request on one side, in the order of group
/// ids, each group once. Ids are checked only against a layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTables(Box<[GroupTable]>);

/// Block tables that can't be. The fault of who gave them: our engine or the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// Too many groups.
    #[error("{groups} groups, the limit is {MAX_GROUPS}")]
    TooManyGroups {
        /// How many.
        groups: usize,
    },
    /// Too many entries in all groups.
    #[error("{entries} block table entries, the limit is {MAX_ENTRIES}")]
    TooManyEntries {
        /// How many.
        entries: usize,
    },
    /// A group twice.
    #[error("group {group} has two block tables")]
    GroupTwice {
        /// The group.
        group: GroupId,
    },
    /// Groups other than the layout's.
    #[error("block tables of groups {tables:?}, the layout has groups {layout:?}")]
    Groups {
        /// Groups of the tables.
        tables: Vec<u32>,
        /// Groups of the layout.
        layout: Vec<u32>,
    },
    /// An id that is no block.
    #[error("entry {index}: {error}")]
    Entry {
        /// Index in its list.
        index: usize,
        /// What is wrong with it.
        error: EntryError,
    },
    /// An id twice in one request.
    #[error("block {id} of pool {pool} stands twice, the second time in group {group}")]
    BlockTwice {
        /// The id.
        id: u32,
        /// Its pool.
        pool: PoolId,
        /// Group of the second claim.
        group: GroupId,
    },
    /// An id that another request holds.
    #[error(
        "block {id} of pool {pool}, given for group {group}, is leased to a transfer under way"
    )]
    Leased {
        /// The id.
        id: u32,
        /// Its pool.
        pool: PoolId,
        /// Group of the later claim.
        group: GroupId,
    },
}

impl BlockTables {
    /// Puts groups in order.
    ///
    /// # Errors
    /// A group twice, over [`MAX_GROUPS`] groups or over
    /// [`MAX_ENTRIES`](mooncake_pd_plan::MAX_ENTRIES) entries in all.
    pub fn new(groups: impl IntoIterator<Item = GroupTable>) -> Result<Self, TablesError> {
        let mut tables: Vec<GroupTable> = groups.into_iter().collect();
        if tables.len() > MAX_GROUPS {
            return Err(TablesError::TooManyGroups {
                groups: tables.len(),
            });
        }
        let entries = tables.iter().fold(0_usize, |sum, table| {
            sum.saturating_add(table.entries.len())
        });
        if entries > MAX_ENTRIES {
            return Err(TablesError::TooManyEntries { entries });
        }
        tables.sort_by_key(|table| table.group);
        let twice = tables.windows(2).find_map(|pair| match pair {
            [first, second] if first.group == second.group => Some(first.group),
            _ => None,
        });
        match twice {
            Some(group) => Err(TablesError::GroupTwice { group }),
            None => Ok(Self(tables.into())),
        }
    }

    /// The tables in the order of group ids.
    #[must_use]
    pub fn groups(&self) -> &[GroupTable] {
        &self.0
    }

    /// Every live block, checked: `(group, pool, id)`.
    pub(crate) fn live<'a>(
        &'a self,
        layout: &'a CacheLayout,
    ) -> impl Iterator<Item = Result<(GroupId, PoolId, u32), TablesError>> + 'a {
        self.0.iter().flat_map(move |table| {
            let pool = layout
                .group(table.group)
                .map(mooncake_pd_layout::Group::pool);
            let entries = table.entries.iter().enumerate();
            entries.filter_map(move |(index, entry)| {
                let id = (*entry)?;
                match (layout.entry(table.group, u64::from(id)), pool) {
                    (Ok(BlockEntry::Null), _) | (Ok(_), None) => None,
                    (Ok(_), Some(pool)) => Some(Ok((table.group, pool, id))),
                    (Err(error), _) => Some(Err(TablesError::Entry { index, error })),
                }
            })
        })
    }

    /// Refuses tables of other groups than the layout's.
    pub(crate) fn check_groups(&self, layout: &CacheLayout) -> Result<(), TablesError> {
        let tables = self.0.iter().map(|table| table.group.get());
        let groups = layout.groups().iter().map(|group| group.id().get());
        if tables.clone().eq(groups.clone()) {
            return Ok(());
        }
        Err(TablesError::Groups {
            tables: tables.collect(),
            layout: groups.collect(),
        })
    }

    /// Both sides' tables as a request to plan: positions follow from the tokens
    /// computed, and plan alone decides them. A group that one side lacks is
    /// named with no entries there, so that plan refuses it.
    #[must_use]
    pub fn request(&self, destination: &Self, id: &str, computed: TokenCount) -> RawRequest {
        let slots = |table: &GroupTable| RawSlots {
            first_block: table.first_block,
            entries: table
                .entries
                .iter()
                .map(|entry| entry.map(u64::from))
                .collect(),
        };
        let mut groups: Vec<RawTables> = Vec::with_capacity(self.0.len());
        let (mut ours, mut theirs) = (self.0.iter().peekable(), destination.0.iter().peekable());
        loop {
            let group = match (ours.peek(), theirs.peek()) {
                (Some(a), Some(b)) => a.group.min(b.group),
                (Some(one), None) | (None, Some(one)) => one.group,
                (None, None) => break,
            };
            groups.push(RawTables {
                group: group.get(),
                source: ours
                    .next_if(|table| table.group == group)
                    .map_or_else(RawSlots::default, slots),
                destination: theirs
                    .next_if(|table| table.group == group)
                    .map_or_else(RawSlots::default, slots),
            });
        }
        RawRequest {
            id: String::from(id),
            computed_tokens: Some(u64::from(computed)),
            tail_aligned: false,
            groups,
        }
    }
}

#[cfg(test)]
mod tests;
