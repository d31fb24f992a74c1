//! Why requests must be refused, recomputed from their lists and the bytes of
//! their blocks.

use std::collections::BTreeSet;
use std::vec::Vec;

use mooncake_pd_layout::{EntryError, GroupId, PoolId};

use super::plain::{Place, Plain};
use crate::{Owner, RawRequest, RawSlots, RawTables, RequestError, Side};

/// Everything that makes a request invalid by itself. Empty for a valid one;
/// refused for any of these, it is refused for the right reason.
#[must_use]
pub fn invalid(raw: &RawRequest, source: &Plain, destination: &Plain) -> Vec<RequestError> {
    if raw.computed_tokens.is_some() == raw.tail_aligned {
        let given = raw.computed_tokens.is_some();
        return Vec::from([RequestError::Alignment {
            computed: if given { "given" } else { "absent" },
            tail_aligned: raw.tail_aligned,
        }]);
    }
    let mut named: Vec<u32> = raw.groups.iter().map(|tables| tables.group).collect();
    named.sort_unstable();
    let known: Vec<u32> = source.groups.keys().copied().collect();
    if named != known {
        return Vec::from([RequestError::Groups {
            request: named,
            layouts: known,
        }]);
    }
    let mut all = Vec::new();
    for tables in &raw.groups {
        let (from, to) = (&tables.source, &tables.destination);
        if raw.tail_aligned && from.entries.len() < to.entries.len() {
            all.push(RequestError::TailShort {
                group: GroupId::new(tables.group),
                source_len: from.entries.len(),
                destination_len: to.entries.len(),
            });
        }
        invalid_list(raw, tables.group, Side::Source, from, source, &mut all);
        invalid_list(
            raw,
            tables.group,
            Side::Destination,
            to,
            destination,
            &mut all,
        );
    }
    all
}

fn invalid_list(
    raw: &RawRequest,
    group: u32,
    side: Side,
    list: &RawSlots,
    layout: &Plain,
    all: &mut Vec<RequestError>,
) {
    let id = GroupId::new(group);
    if let Some(first_block) = list.first_block {
        if raw.tail_aligned {
            all.push(RequestError::PositionedTail {
                group: id,
                side,
                first_block,
            });
        }
        let len = u128::try_from(list.entries.len()).expect("lists are short");
        if u128::from(first_block) + len > u128::from(u64::MAX) {
            all.push(RequestError::PositionOverflow {
                group: id,
                side,
                entries: list.entries.len(),
                first_block,
            });
        }
    }
    let group = &layout.groups[&group];
    for (index, entry) in list.entries.iter().enumerate() {
        let Some(entry) = entry else { continue };
        let error = if *entry >= u64::from(group.pool.capacity) {
            EntryError::OutOfRange {
                id: *entry,
                capacity: group.pool.capacity,
                group: id,
            }
        } else if !group.is_live(*entry) && !group.is_null(*entry) {
            EntryError::Reserved {
                id: u32::try_from(*entry).expect("below the capacity"),
                pool: PoolId::new(group.pool.id),
                group: id,
            }
        } else {
            continue;
        };
        all.push(RequestError::Entry { side, index, error });
    }
}

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Used {
    group: u32,
    pool: u32,
    id: u32,
    owner: Owner,
}

/// The blocks in use on one side.
#[derive(Clone, Debug)]
struct InUse<'a> {
    side: Side,
    layout: &'a Plain,
    blocks: Vec<Used>,
}

/// The blocks that admitted requests and leases own.
#[derive(Clone, Debug)]
pub struct Ownership<'a> {
    source: InUse<'a>,
    destination: InUse<'a>,
}

impl<'a> Ownership<'a> {
    /// Nobody owns anything.
    #[must_use]
    pub const fn new(source: &'a Plain, destination: &'a Plain) -> Self {
        Self {
            source: InUse {
                side: Side::Source,
                layout: source,
                blocks: Vec::new(),
            },
            destination: InUse {
                side: Side::Destination,
                layout: destination,
                blocks: Vec::new(),
            },
        }
    }

    /// Turns what requests own on the destination to leases, and forgets what
    /// they read.
    pub fn lease(&mut self) {
        self.source.blocks.clear();
        for used in &mut self.destination.blocks {
            used.owner = Owner::Lease;
        }
    }

    /// Every reason to refuse a valid request. It is admitted if there is none.
    pub fn admit(&mut self, raw: &RawRequest) -> Vec<RequestError> {
        let mut tables: Vec<&RawTables> = raw.groups.iter().collect();
        tables.sort_by_key(|tables| tables.group);
        let (from, mut all) = self.source.conflicts(&tables, |tables| &tables.source);
        let (to, more) = self
            .destination
            .conflicts(&tables, |tables| &tables.destination);
        all.extend(more);
        if all.is_empty() {
            self.source.blocks.extend(from);
            self.destination.blocks.extend(to);
        }
        all
    }
}

impl InUse<'_> {
    /// The blocks a request lists and why it can't have them.
    fn conflicts(
        &self,
        tables: &[&RawTables],
        list: fn(&RawTables) -> &RawSlots,
    ) -> (Vec<Used>, Vec<RequestError>) {
        let (mut listed, mut all): (Vec<Used>, Vec<RequestError>) = (Vec::new(), Vec::new());
        for tables in tables {
            let group = &self.layout.groups[&tables.group];
            for id in list(tables).entries.iter().flatten() {
                if group.is_null(*id) {
                    continue;
                }
                let used = Used {
                    group: tables.group,
                    pool: group.pool.id,
                    id: u32::try_from(*id).expect("below the capacity"),
                    owner: Owner::SameRequest,
                };
                for other in listed.iter().chain(&self.blocks) {
                    all.extend(self.conflict(used, *other));
                }
                listed.push(used);
            }
        }
        for used in &mut listed {
            used.owner = Owner::EarlierRequest;
        }
        (listed, all)
    }

    fn conflict(&self, later: Used, earlier: Used) -> Option<RequestError> {
        let (id, group, owner) = (later.id, GroupId::new(later.group), earlier.owner);
        if (later.pool, later.id) == (earlier.pool, earlier.id) {
            return match self.side {
                Side::Destination => Some(RequestError::DestinationTaken { id, group, owner }),
                // Several requests may read a block of one group.
                Side::Source if owner == Owner::EarlierRequest && later.group == earlier.group => {
                    None
                }
                Side::Source => Some(RequestError::SourceTaken { id, group, owner }),
            };
        }
        let bytes = |used: Used| -> BTreeSet<Place> {
            self.layout.groups[&used.group].block(used.id).collect()
        };
        let shared = self.layout.arbitrated
            && later.pool != earlier.pool
            && !bytes(later).is_disjoint(&bytes(earlier));
        shared.then_some(RequestError::SharedBytes {
            side: self.side,
            id,
            group,
            other: earlier.id,
            other_group: GroupId::new(earlier.group),
        })
    }
}
