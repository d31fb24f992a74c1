//! Pairs of blocks to pieces of bytes.

use alloc::vec::Vec;
use mooncake_pd_layout::CacheLayout;

use crate::atom::Atom;
use crate::contract::Contract;
use crate::dead::{Dead, Gap};
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

/// Joins atoms that are neighbours on both sides, or whose gap may be bridged.
fn lanes(group: &GroupPair<'_>, layout: &CacheLayout, contract: Contract) -> Vec<Lane> {
    let blocks = layout
        .pool(group.destination.pool())
        .map_or(0, mooncake_pd_layout::Pool::capacity);
    let mut dead = Dead::new(layout, group.destination);
    let mut may_cross = |after: &Atom, gap: Option<u64>, owned_ahead| match (gap, contract) {
        (Some(0), _) => true,
        (Some(len), Contract::BridgeDead { max_gap }) if len <= max_gap.get() => {
            dead.is_dead(Gap {
                allocation: after.destination,
                start: after.destination_start.saturating_add(after.len),
                len,
                stride: after.destination_stride,
                blocks,
                owned_ahead,
            })
        }
        _ => false,
    };
    let mut lanes: Vec<Lane> = Vec::new();
    let mut last: Option<Atom> = None;
    for atom in &group.atoms {
        if let (Some(previous), Some(lane)) = (last, lanes.last_mut())
            && within_stride(&lane.first, atom)
            && may_cross(&previous, previous.gap_to(atom), 0)
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
        last = Some(*atom);
    }
    for lane in &mut lanes {
        let whole = Atom {
            len: lane.len,
            ..lane.first
        };
        lane.joins_blocks = may_cross(&whole, whole.gap_to_next_block(&lane.first), 1);
    }
    lanes
}

/// Atoms a stride or more apart belong to other rows: bytes of other blocks lie
/// between them.
const fn within_stride(first: &Atom, atom: &Atom) -> bool {
    atom.destination_start
        .saturating_sub(first.destination_start)
        < first.destination_stride
}

/// Appends the pieces of one group of one request.
pub(crate) fn lower(
    request: usize,
    group: &GroupPair<'_>,
    layout: &CacheLayout,
    pairs: &[Pair],
    contract: Contract,
    draft: &mut Draft,
) {
    if pairs.is_empty() {
        return;
    }
    let lanes = lanes(group, layout, contract);
    let runs = runs(pairs);
    let joined = lanes.iter().filter(|lane| lane.joins_blocks).count();
    let single = lanes.len().saturating_sub(joined);
    draft.pieces.reserve(
        joined
            .saturating_mul(runs.len())
            .saturating_add(single.saturating_mul(pairs.len())),
    );
    for lane in &lanes {
        let before = draft.pieces.len();
        if lane.joins_blocks {
            draft.pieces.extend(runs.iter().map(|run| {
                let more = u64::from(run.more).saturating_mul(lane.first.destination_stride);
                piece(
                    &lane.first,
                    run.source,
                    run.destination,
                    lane.len.saturating_add(more),
                )
            }));
        } else {
            draft.pieces.extend(
                pairs
                    .iter()
                    .map(|pair| piece(&lane.first, pair.source, pair.destination, lane.len)),
            );
        }
        let pieces = draft.pieces.len().saturating_sub(before);
        let (source, destination) = (lane.first.source, lane.first.destination);
        let id = group.source.id();
        match draft.stretches.last_mut() {
            Some(last)
                if last.request == request
                    && last.group == id
                    && last.source == source
                    && last.destination == destination =>
            {
                last.pieces = last.pieces.saturating_add(pieces);
            }
            _ => draft.stretches.push(Stretch {
                request,
                group: id,
                source,
                destination,
                pieces,
            }),
        }
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
