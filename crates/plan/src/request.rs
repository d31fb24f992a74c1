//! Checked requests.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mooncake_pd_layout::{BlockEntry, CacheLayout, EntryError, Group, GroupId};

use crate::pairing::{Pairing, Shape};
use crate::raw::{RawRequest, RawSlots, RawTables};
use crate::slots::{MAX_ENTRIES, Slots};

/// How far the source's prompt is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Tokens computed, 0..2^64. Positions follow from it.
    Computed(u64),
    /// Unknown; both sides' lists end at the same position. For peers that say
    /// neither count nor positions; never a default.
    TailAligned,
}

/// Which side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that has the bytes (prefill).
    Source,
    /// The side that wants them (decode).
    Destination,
}

impl core::fmt::Display for Side {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

/// Why a request is refused. The caller's fault (or that of the peer whose
/// tables these are); other requests of a batch are not touched by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Neither a token count nor an explicit tail alignment, or both.
    #[error(
        "computed_tokens is {computed} and tail_aligned is {tail_aligned}: one of them is needed, not both"
    )]
    Alignment {
        /// `given` or `absent`.
        computed: &'static str,
        /// Whether tail alignment was asked for.
        tail_aligned: bool,
    },
    /// A position in a request that says it has none.
    #[error(
        "{side} of group {group} starts at block {first_block}, but the request is tail-aligned"
    )]
    PositionedTail {
        /// The group.
        group: GroupId,
        /// Whose table.
        side: Side,
        /// The position.
        first_block: u64,
    },
    /// Groups of the request and of the layouts differ.
    #[error("the request has tables for groups {request:?}, the layouts have groups {layouts:?}")]
    Groups {
        /// Groups of the request.
        request: Vec<u32>,
        /// Groups of both layouts.
        layouts: Vec<u32>,
    },
    /// A list that is too long.
    #[error("{side} of group {group} has {entries} entries, the limit is {limit}")]
    TooLong {
        /// The group.
        group: GroupId,
        /// Whose table.
        side: Side,
        /// Entries.
        entries: usize,
        /// Most allowed.
        limit: usize,
    },
    /// A list whose end is not a position.
    #[error(
        "{side} of group {group} has {entries} entries from block {first_block}: its end must be at most block {limit}",
        limit = u64::MAX
    )]
    PositionOverflow {
        /// The group.
        group: GroupId,
        /// Whose table.
        side: Side,
        /// Entries.
        entries: usize,
        /// Position of the first.
        first_block: u64,
    },
    /// A raw id that is no entry.
    #[error("{side} entry {index}: {error}")]
    Entry {
        /// Whose table.
        side: Side,
        /// Index in its list.
        index: usize,
        /// What is wrong with it.
        error: EntryError,
    },
    /// Without positions a longer destination list can't be aligned.
    #[error(
        "source has {source_len} blocks and destination {destination_len} in group {group}: without a token count they can't be aligned"
    )]
    TailShort {
        /// The group.
        group: GroupId,
        /// Entries of the source.
        source_len: usize,
        /// Entries of the destination.
        destination_len: usize,
    },
    /// The request was checked against layouts with other groups or pools.
    #[error("the request was checked against other layouts than these")]
    Foreign,
    /// One destination block for two owners.
    #[error("destination block {id} of group {group} is already owned by {owner}")]
    DestinationTaken {
        /// The block.
        id: u32,
        /// The group of the later claim.
        group: GroupId,
        /// Who has it.
        owner: Owner,
    },
    /// One source block under two positions or groups.
    #[error("source block {id} of group {group} is already used by {owner}")]
    SourceTaken {
        /// The block.
        id: u32,
        /// The group of the later use.
        group: GroupId,
        /// Who has it.
        owner: Owner,
    },
    /// Two blocks of arbitrated pools that share bytes.
    #[error(
        "{side} block {id} of group {group} shares bytes with block {other} of group {other_group}"
    )]
    SharedBytes {
        /// Whose blocks.
        side: Side,
        /// The later block.
        id: u32,
        /// Its group.
        group: GroupId,
        /// The earlier block.
        other: u32,
        /// Its group.
        other_group: GroupId,
    },
}

impl RequestError {
    /// Which kind of refusal it is, for machines.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Alignment { .. } => "alignment",
            Self::PositionedTail { .. } => "positioned_tail",
            Self::Groups { .. } => "groups",
            Self::TooLong { .. } => "too_long",
            Self::PositionOverflow { .. } => "position_overflow",
            Self::Entry { .. } => "entry",
            Self::TailShort { .. } => "tail_short",
            Self::Foreign => "foreign",
            Self::DestinationTaken { .. } => "destination_taken",
            Self::SourceTaken { .. } => "source_taken",
            Self::SharedBytes { .. } => "shared_bytes",
        }
    }
}

/// Who owns a block that somebody else claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Another position or group of the same request.
    SameRequest,
    /// An earlier request of the batch.
    EarlierRequest,
    /// A transfer that is still under way.
    Lease,
}

impl core::fmt::Display for Owner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::SameRequest => "another position or group of the same request",
            Self::EarlierRequest => "an earlier request of the batch",
            Self::Lease => "a transfer under way",
        })
    }
}

/// Both sides' tables of one group, with positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    group: GroupId,
    source: Slots,
    destination: Slots,
    end: u64,
}

impl Tables {
    /// The group.
    #[must_use]
    pub const fn group(&self) -> GroupId {
        self.group
    }

    /// The side that has the bytes.
    #[must_use]
    pub const fn source(&self) -> &Slots {
        &self.source
    }

    /// The side that wants them.
    #[must_use]
    pub const fn destination(&self) -> &Slots {
        &self.destination
    }

    /// One past the last position that holds computed tokens, in blocks.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }
}

/// What one request wants moved: for every group of both layouts, which blocks
/// the source has and which the destination wants, by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    id: String,
    tokens: Tokens,
    tables: Vec<Tables>,
    shape: Arc<Shape>,
}

impl Request {
    /// Checks a request against the layouts of a pairing.
    ///
    /// A list without a position ends at the last computed block,
    /// `ceil(computed_tokens / tokens_per_block)`; entries past that end are
    /// look-ahead and are never sent.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn new(raw: &RawRequest, pairing: &Pairing<'_>) -> Result<Self, RequestError> {
        let tokens = match (raw.computed_tokens, raw.tail_aligned) {
            (Some(tokens), false) => Tokens::Computed(tokens),
            (None, true) => Tokens::TailAligned,
            (computed, tail_aligned) => {
                let computed = if computed.is_some() {
                    "given"
                } else {
                    "absent"
                };
                return Err(RequestError::Alignment {
                    computed,
                    tail_aligned,
                });
            }
        };
        let (source, destination) = (pairing.source(), pairing.destination());
        let mut named: Vec<&RawTables> = raw.groups.iter().collect();
        named.sort_by_key(|tables| tables.group);
        let known = || source.groups().iter().map(|group| group.id().get());
        if !named.iter().map(|tables| tables.group).eq(known()) {
            return Err(RequestError::Groups {
                request: named.iter().map(|tables| tables.group).collect(),
                layouts: known().collect(),
            });
        }
        let tables = source
            .groups()
            .iter()
            .zip(named)
            .map(|(group, raw)| tables(raw, group, tokens, source, destination))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            id: raw.id.clone(),
            tokens,
            tables,
            shape: Arc::clone(pairing.shape()),
        })
    }

    /// Whether its ids and positions are those of layouts of this shape.
    pub(crate) fn fits(&self, shape: &Arc<Shape>) -> bool {
        Arc::ptr_eq(&self.shape, shape) || self.shape == *shape
    }

    /// Its name, for messages.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How far the source's prompt is computed.
    #[must_use]
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Tables of every group, in the order of group ids.
    #[must_use]
    pub fn tables(&self) -> &[Tables] {
        &self.tables
    }
}

fn tables(
    raw: &RawTables,
    group: &Group,
    tokens: Tokens,
    source: &CacheLayout,
    destination: &CacheLayout,
) -> Result<Tables, RequestError> {
    let id = group.id();
    let end = match tokens {
        Tokens::Computed(tokens) => tokens.div_ceil(u64::from(group.tokens_per_block().get())),
        Tokens::TailAligned => {
            let (source, destination) = (&raw.source.entries, &raw.destination.entries);
            if destination.len() > source.len() {
                return Err(RequestError::TailShort {
                    group: id,
                    source_len: source.len(),
                    destination_len: destination.len(),
                });
            }
            u64::try_from(source.len()).unwrap_or(u64::MAX)
        }
    };
    let slots = |raw: &RawSlots, side, layout: &CacheLayout| {
        let len = raw.entries.len();
        let first_block = match (raw.first_block, tokens) {
            (Some(first_block), Tokens::TailAligned) => {
                return Err(RequestError::PositionedTail {
                    group: id,
                    side,
                    first_block,
                });
            }
            (Some(first_block), Tokens::Computed(_)) => first_block,
            (None, _) => end.saturating_sub(u64::try_from(len).unwrap_or(u64::MAX)),
        };
        if len > MAX_ENTRIES {
            return Err(RequestError::TooLong {
                group: id,
                side,
                entries: len,
                limit: MAX_ENTRIES,
            });
        }
        let entries = raw
            .entries
            .iter()
            .enumerate()
            .map(|(index, entry)| match entry {
                None => Ok(BlockEntry::Null),
                Some(entry) => layout
                    .entry(id, *entry)
                    .map_err(|error| RequestError::Entry { side, index, error }),
            })
            .collect::<Result<_, _>>()?;
        Slots::new(first_block, entries).ok_or(RequestError::PositionOverflow {
            group: id,
            side,
            entries: len,
            first_block,
        })
    };
    Ok(Tables {
        group: id,
        source: slots(&raw.source, Side::Source, source)?,
        destination: slots(&raw.destination, Side::Destination, destination)?,
        end,
    })
}
