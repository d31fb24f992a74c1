//! What requests demand, byte by byte, straight from their lists.

use std::collections::BTreeMap;
use std::vec::Vec;

use mooncake_pd_layout::GroupId;

use super::plain::{Place, Plain, PlainGroup};
use crate::{RawRequest, RawSlots, RawTables, Unfilled, UnfilledReason};

/// One byte that must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// Where.
    pub destination: Place,
    /// From where.
    pub source: Place,
    /// For which request, by its index in the batch.
    pub request: usize,
    /// For which group.
    pub group: u32,
}

/// One block that must be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// For which request, by its index in the batch.
    pub request: usize,
    /// For which group.
    pub group: u32,
    /// Position in blocks.
    pub position: u64,
    /// The source's id.
    pub source: u32,
    /// The destination's id.
    pub destination: u32,
}

/// All that a batch of valid requests demands.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The blocks.
    pub moves: Vec<Move>,
    /// Their bytes, in no order.
    pub wants: Vec<Want>,
    /// What is listed and stays as it is, sorted by [`sorted`].
    pub unfilled: Vec<Unfilled>,
}

/// Sorts reports of unfilled blocks.
#[must_use]
pub fn sorted(unfilled: &[Unfilled]) -> Vec<Unfilled> {
    let mut all = unfilled.to_vec();
    all.sort_by_key(|u| (u.request, u.group, u.position, u.destination, u.reason));
    all
}

impl Demand {
    /// What these requests demand.
    #[must_use]
    pub fn new(source: &Plain, destination: &Plain, requests: &[&RawRequest]) -> Self {
        let mut demand = Self::default();
        for (number, request) in requests.iter().enumerate() {
            let mut tables: Vec<&RawTables> = request.groups.iter().collect();
            tables.sort_by_key(|tables| tables.group);
            for tables in tables {
                let from = &source.groups[&tables.group];
                let to = &destination.groups[&tables.group];
                demand.pair(number, request, tables, from, to);
            }
        }
        for moved in &demand.moves {
            let from = &source.groups[&moved.group];
            for (name, to) in &destination.groups[&moved.group].fields {
                // A layer that only the destination has stays as it is.
                let Some(from) = from.fields.get(name) else {
                    continue;
                };
                let bytes = from.block(moved.source).zip(to.block(moved.destination));
                demand.wants.extend(bytes.map(|(source, destination)| Want {
                    destination,
                    source,
                    request: moved.request,
                    group: moved.group,
                }));
            }
        }
        demand.unfilled = sorted(&demand.unfilled);
        demand
    }

    fn pair(
        &mut self,
        number: usize,
        request: &RawRequest,
        tables: &RawTables,
        from: &PlainGroup,
        to: &PlainGroup,
    ) {
        let tokens_per_block = u64::from(to.tokens_per_block);
        let end = match request.computed_tokens {
            Some(tokens) => tokens.div_ceil(tokens_per_block),
            None => u64::try_from(tables.source.entries.len()).expect("lists are short"),
        };
        let held = positions(&tables.source, from, end);
        for (position, entry) in positions(&tables.destination, to, end) {
            let Some(destination) = entry else { continue };
            let last_token = request.computed_tokens.map(|tokens| {
                let block_end = (u128::from(position) + 1) * u128::from(tokens_per_block);
                block_end.min(u128::from(tokens))
            });
            let in_window = match (to.window, request.computed_tokens, last_token) {
                (Some(window), Some(tokens), Some(last)) => {
                    last + u128::from(window) > u128::from(tokens)
                }
                _ => true,
            };
            let reason = if position >= end {
                UnfilledReason::BeyondComputed
            } else if to.state && position + 1 != end {
                UnfilledReason::NotLatestState
            } else if !in_window {
                UnfilledReason::OutsideWindow
            } else {
                match held.get(&position) {
                    Some(Some(source)) => {
                        self.moves.push(Move {
                            request: number,
                            group: tables.group,
                            position,
                            source: *source,
                            destination,
                        });
                        continue;
                    }
                    Some(None) => UnfilledReason::SourceNull,
                    None => UnfilledReason::NotHeld,
                }
            };
            self.unfilled.push(Unfilled {
                request: number,
                group: GroupId::new(tables.group),
                position,
                destination,
                reason,
            });
        }
    }
}

/// The entries of a list by position, placeholders as `None`.
fn positions(list: &RawSlots, group: &PlainGroup, end: u64) -> BTreeMap<u64, Option<u32>> {
    let len = u64::try_from(list.entries.len()).expect("lists are short");
    let first = list.first_block.unwrap_or(end.saturating_sub(len));
    let live = |entry: &Option<u64>| {
        let id = entry.filter(|id| !group.is_null(*id))?;
        Some(u32::try_from(id).expect("ids of valid requests are in range"))
    };
    let entries = list.entries.iter().map(live);
    entries.zip(first..).map(|(id, at)| (at, id)).collect()
}
