//! Pairs of blocks to pieces of bytes.

use alloc::vec::Vec;
use mooncake_pd_layout::{CacheLayout, Group, GroupId};

use crate::atom::Atom;
use crate::contract::Contract;
use crate::dead::{Gap, is_dead};
use crate::draft::{Draft, Piece, Stretch};
use crate::pairing::GroupPair;
use crate::select::Pair;

/// Atoms that one piece covers in every block.
#[derive(Clone, Copy, Debug)]
struct Lane {
    first: Atom,
    /// From the first atom's first byte to the last atom's last.
    len: u64,
    /// Whether blocks that follow each other on both sides need one piece only.
    joins_blocks: bool,
}

/// Where the last piece of a request ends, as long as the next group may
/// continue it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    lane: Lane,
    last: Pair,
    group: GroupId,
}

/// Blocks that follow each other on both sides.
#[derive(Clone, Copy, Debug)]
struct BlockRun {
    source: u32,
    destination: u32,
    /// Blocks after the first.
    more: u32,
}

fn runs(pairs: &[Pair]) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for pair in pairs {
        if let Some(run) = runs.last_mut()
            && let Some(next) = run.more.checked_add(1)
            && run.source.checked_add(next) == Some(pair.source)
            && run.destination.checked_add(next) == Some(pair.destination)
        {
            run.more = next;
        } else {
            runs.push(BlockRun {
                source: pair.source,
                destination: pair.destination,
                more: 0,
            });
        }
    }
    runs
}

/// Lowers one batch, group by group.
pub(crate) struct Lowering<'a> {
    layout: &'a CacheLayout,
    contract: Contract,
    tail: Option<Tail>,
}

impl<'a> Lowering<'a> {
    pub(crate) const fn new(layout: &'a CacheLayout, contract: Contract) -> Self {
        Self {
            layout,
            contract,
            tail: None,
        }
    }

    /// Begins another request: its copies stay apart from those before.
    pub(crate) const fn next_request(&mut self) {
        self.tail = None;
    }

    /// Appends the pieces of one group.
    pub(crate) fn lower(
        &mut self,
        request: usize,
        group: &GroupPair<'_>,
        pairs: &[Pair],
        draft: &mut Draft,
    ) {
        let Some(last) = pairs.last() else { return };
        let lanes = self.lanes(group);
        let runs = runs(pairs);
        let joined = lanes.iter().filter(|lane| lane.joins_blocks).count();
        let single = lanes.len().saturating_sub(joined);
        let needed = joined
            .saturating_mul(runs.len())
            .saturating_add(single.saturating_mul(pairs.len()));
        let len = draft.pieces.len();
        if draft.pieces.capacity().saturating_sub(len) < needed {
            // By half and not by doubling, so that the peak stays below three copies of the list.
            draft.pieces.reserve_exact(needed.max(len / 2));
        }
        let mut continues = self.continues(group, &lanes, pairs);
        for lane in &lanes {
            let before = draft.pieces.len();
            let skip = usize::from(continues);
            if lane.joins_blocks {
                let piece = |run: &BlockRun| {
                    let more = u64::from(run.more).saturating_mul(lane.first.destination_stride);
                    piece(
                        &lane.first,
                        run.source,
                        run.destination,
                        lane.len.saturating_add(more),
                    )
                };
                extend(continues, runs.first().map(piece), draft);
                draft.pieces.extend(runs.iter().skip(skip).map(piece));
            } else {
                let piece =
                    |pair: &Pair| piece(&lane.first, pair.source, pair.destination, lane.len);
                extend(continues, pairs.first().map(piece), draft);
                draft.pieces.extend(pairs.iter().skip(skip).map(piece));
            }
            continues = false;
            let pieces = draft.pieces.len().saturating_sub(before);
            let (source, destination) = (lane.first.source, lane.first.destination);
            let id = group.source.id();
            match draft.stretches.last_mut() {
                _ if pieces == 0 => (),
                Some(last)
                    if last.request == request
                        && last.group == id
                        && last.source == source
                        && last.destination == destination =>
                {
                    last.pieces = last.pieces.saturating_add(pieces);
                }
                _ => {
                    draft.stretches.push(Stretch {
                        request,
                        group: id,
                        source,
                        destination,
                        pieces,
                    });
                }
            }
        }
        self.tail = lanes.last().map(|lane| Tail {
            lane: *lane,
            last: *last,
            group: group.source.id(),
        });
    }

    /// Joins atoms that are neighbours on both sides, or whose gap may be
    /// bridged.
    fn lanes(&self, group: &GroupPair<'_>) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut last: Option<(Atom, bool)> = None;
        for (atom, dead) in group.atoms.iter().zip(&group.dead) {
            if let (Some((previous, is_dead)), Some(lane)) = (last, lanes.last_mut())
                && self.may_cross(previous.gap_to(atom), |_| is_dead)
            {
                lane.len = atom
                    .destination_start
                    .saturating_sub(lane.first.destination_start)
                    .saturating_add(atom.len);
            } else {
                lanes.push(Lane {
                    first: *atom,
                    len: atom.len,
                    joins_blocks: false,
                });
            }
            last = Some((*atom, *dead));
        }
        let id = group.destination.id();
        for lane in &mut lanes {
            let whole = Atom {
                len: lane.len,
                ..lane.first
            };
            lane.joins_blocks = self.may_cross(whole.gap_to_next_block(&lane.first), |len| {
                let gap = gap(self.layout, group.destination, &whole, len, Some(id));
                group.bridgeable && is_dead(self.layout, group.destination, gap)
            });
        }
        lanes
    }

    fn may_cross(&self, gap: Option<u64>, is_dead: impl FnOnce(u64) -> bool) -> bool {
        match (gap, self.contract) {
            (Some(0), _) => true,
            (Some(len), Contract::BridgeDead { max_gap }) if len <= max_gap.get() => is_dead(len),
            _ => false,
        }
    }

    /// Whether a group's first piece can be the continuation of the last piece
    /// of the group before it.
    fn continues(&self, group: &GroupPair<'_>, lanes: &[Lane], pairs: &[Pair]) -> bool {
        let (Some(tail), Some(lane), Some(pair)) = (self.tail, lanes.first(), pairs.first()) else {
            return false;
        };
        let first = Atom {
            len: tail.lane.len,
            ..tail.lane.first
        };
        let here = piece(
            &first,
            tail.last.source,
            tail.last.destination,
            tail.lane.len,
        );
        let next = piece(&lane.first, pair.source, pair.destination, lane.len);
        let gap_between = |from: u64, to: u64| to.checked_sub(from)?.checked_sub(here.len);
        if first.source != lane.first.source || first.destination != lane.first.destination {
            return false;
        }
        let from = gap_between(here.source_offset, next.source_offset);
        let to = gap_between(here.destination_offset, next.destination_offset);
        self.may_cross(from.filter(|from| to == Some(*from)), |len| {
            let Some(owner) = self.layout.group(tail.group) else {
                return false;
            };
            let gap = Gap {
                next_owner: Some(group.destination.id()),
                ..gap(self.layout, owner, &first, len, None)
            };
            tail.last.destination.checked_add(1) == Some(pair.destination)
                && owner.pool() == group.destination.pool()
                && first.destination_stride == lane.first.destination_stride
                && group.bridgeable
                && is_dead(self.layout, owner, gap)
        })
    }
}

/// Lets the last piece run on to the end of `next`.
fn extend(continues: bool, next: Option<Piece>, draft: &mut Draft) {
    if let (true, Some(next), Some(last)) = (continues, next, draft.pieces.last_mut()) {
        last.len = next
            .destination_offset
            .saturating_sub(last.destination_offset)
            .saturating_add(next.len);
    }
}

/// For each atom, whether the gap to the next one of its row is dead.
pub(crate) fn dead_gaps(atoms: &[Atom], layout: &CacheLayout, group: &Group) -> Vec<bool> {
    let next = atoms.iter().skip(1).map(Some).chain([None]);
    atoms
        .iter()
        .zip(next)
        .map(|(atom, next)| {
            next.and_then(|next| atom.gap_to(next))
                .filter(|len| *len > 0)
                .is_some_and(|len| is_dead(layout, group, gap(layout, group, atom, len, None)))
        })
        .collect()
}

/// The gap of `len` bytes after an atom.
fn gap(
    layout: &CacheLayout,
    group: &Group,
    after: &Atom,
    len: u64,
    next_owner: Option<GroupId>,
) -> Gap {
    Gap {
        allocation: after.destination,
        start: after.destination_start.saturating_add(after.len),
        len,
        stride: after.destination_stride,
        blocks: layout
            .pool(group.pool())
            .map_or(0, mooncake_pd_layout::Pool::capacity),
        owner: group.id(),
        next_owner,
    }
}

/// Saturation can't happen: the layout proved that every block ends within its
/// allocation, and the check looks at the result.
fn piece(atom: &Atom, source: u32, destination: u32, len: u64) -> Piece {
    let at = |start: u64, id: u32, stride: u64| {
        u64::from(id).saturating_mul(stride).saturating_add(start)
    };
    Piece {
        source_offset: at(atom.source_start, source, atom.source_stride),
        destination_offset: at(atom.destination_start, destination, atom.destination_stride),
        len,
    }
}
