//! Every byte of both sides after a transfer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::audit::{Audit, Sizes, sizes};
use super::demand::{Demand, Row};
use super::error::WalkError;
use super::layout::Side;
use super::pattern::Pattern;
use crate::number::{count, index};

/// Bytes that a worker takes at a time.
const PIECE: usize = 4 << 20;
/// Bytes of expectation that are made at a time.
const SCRATCH: usize = 16 << 10;
/// Wrong bytes that are reported one by one.
const REPORTED: usize = 8;

/// The allocations of one side, by their ids.
pub type Memory<'a> = Vec<(u32, &'a [u8])>;

/// A byte that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The side that it lies on.
    pub side: Side,
    /// Its allocation.
    pub allocation: u32,
    /// Its offset there.
    pub offset: u64,
    /// What it must be.
    pub expected: u8,
    /// What it is.
    pub found: u8,
    /// The demanded row that it lies in; `None`: it must not have changed.
    pub row: Option<Row>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes looked at, both sides together.
    pub bytes: u64,
    /// Bytes that are wrong.
    pub wrong: u64,
    /// The first of them on each side, at most eight in all.
    pub first: Vec<Mismatch>,
}

impl Outcome {
    /// Every byte is as it must be.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.wrong == 0
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.wrong = self.wrong.saturating_add(other.wrong);
        self.first.extend(other.first);
        self.first
            .sort_unstable_by_key(|m| (m.side == Side::Prefill, m.allocation, m.offset));
        self.first.truncate(REPORTED);
    }
}

/// Fills the allocations of a side with their patterns; `progress` is told
/// the bytes done, from several threads.
pub fn fill(side: Side, memory: &mut [(u32, &mut [u8])], progress: &(dyn Fn(u64) + Sync)) {
    let mut pieces = Vec::new();
    for (allocation, bytes) in memory {
        let mut offset = 0_u64;
        for piece in bytes.chunks_mut(PIECE) {
            let len = count(piece.len());
            pieces.push((Pattern::new(side, *allocation), offset, piece));
            offset = offset.saturating_add(len);
        }
    }
    let queue = Mutex::new(pieces);
    workers(|| {
        // A poisoned queue is still a queue: a piece is taken whole or not.
        while let Some((pattern, offset, piece)) = queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .pop()
        {
            pattern.write(offset, piece);
            progress(count(piece.len()));
        }
    });
}

pub(super) struct Piece<'a> {
    pub(super) side: Side,
    pub(super) allocation: u32,
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

/// Compares every byte of both sides with what it must be after the demand
/// was met: a demanded byte is its source's, any other one is as
/// [`fill`] left it.
///
/// # Errors
/// A demanded row lies outside the memory given.
pub fn check(
    demand: &Demand,
    source: &Memory<'_>,
    destination: &Memory<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome, WalkError> {
    // What lies outside is found before the first byte is compared.
    Audit::new(demand, &sizes(source), &sizes(destination))?;
    let mut pieces = Vec::new();
    for (side, memory) in [(Side::Decode, destination), (Side::Prefill, source)] {
        for &(allocation, bytes) in memory {
            let mut offset = 0_u64;
            for piece in bytes.chunks(PIECE) {
                pieces.push(Piece {
                    side,
                    allocation,
                    offset,
                    bytes: piece,
                });
                offset = offset.saturating_add(count(piece.len()));
            }
        }
    }
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Outcome::default());
    workers(|| {
        let mut mine = Outcome::default();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            mine.merge(check_piece(piece, &demand.rows));
            progress(count(piece.bytes.len()));
        }
        outcome
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .merge(mine);
    });
    Ok(outcome
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

pub(super) fn inside(
    side: &'static str,
    sizes: &Sizes,
    allocation: u32,
    offset: u64,
    len: u64,
) -> Result<(), WalkError> {
    let have = sizes
        .iter()
        .find(|(id, _)| *id == allocation)
        .map_or(0, |(_, len)| *len);
    let end = offset.saturating_add(len);
    if end > have {
        return Err(WalkError::Outside {
            side,
            allocation,
            offset,
            end,
            have,
        });
    }
    Ok(())
}

fn workers(work: impl Fn() + Sync) {
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(8));
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(&work);
        }
        work();
    });
}

pub(super) fn check_piece(piece: &Piece<'_>, rows: &[Row]) -> Outcome {
    let mut outcome = Outcome {
        bytes: count(piece.bytes.len()),
        ..Outcome::default()
    };
    let own = Pattern::new(piece.side, piece.allocation);
    let mut at = piece.offset;
    let end = piece.offset.saturating_add(count(piece.bytes.len()));
    if piece.side == Side::Decode {
        let first = rows.partition_point(|row| {
            (
                row.destination,
                row.destination_offset.saturating_add(row.len),
            ) <= (piece.allocation, at)
        });
        let here = rows
            .iter()
            .skip(first)
            .take_while(|row| row.destination == piece.allocation && row.destination_offset < end);
        for row in here {
            let row_end = row.destination_offset.saturating_add(row.len).min(end);
            let begin = row.destination_offset.max(at);
            compare(piece, own, at, at, begin, None, &mut outcome);
            let skipped = begin.saturating_sub(row.destination_offset);
            let source = Pattern::new(Side::Prefill, row.source);
            let source_offset = row.source_offset.saturating_add(skipped);
            compare(
                piece,
                source,
                source_offset,
                begin,
                row_end,
                Some(row),
                &mut outcome,
            );
            at = row_end;
        }
    }
    compare(piece, own, at, at, end, None, &mut outcome);
    outcome
}

/// Compares `from..to` of the piece's allocation with `pattern` from
/// `pattern_offset` on.
fn compare(
    piece: &Piece<'_>,
    pattern: Pattern,
    mut pattern_offset: u64,
    from: u64,
    to: u64,
    row: Option<&Row>,
    outcome: &mut Outcome,
) {
    let first = index(from.saturating_sub(piece.offset));
    let last = index(to.saturating_sub(piece.offset));
    let found = piece.bytes.get(first..last).unwrap_or_default();
    let mut scratch = [0_u8; SCRATCH];
    let mut offset = from;
    for chunk in found.chunks(SCRATCH) {
        let (expected, _) = scratch.split_at_mut(chunk.len());
        pattern.write(pattern_offset, expected);
        if expected != chunk {
            let both = expected.iter().zip(chunk);
            for (at, (&expected, &found)) in (offset..).zip(both).filter(|(_, (e, f))| e != f) {
                outcome.wrong = outcome.wrong.saturating_add(1);
                if outcome.first.len() < REPORTED {
                    outcome.first.push(Mismatch {
                        side: piece.side,
                        allocation: piece.allocation,
                        offset: at,
                        expected,
                        found,
                        row: row.copied(),
                    });
                }
            }
        }
        offset = offset.saturating_add(count(chunk.len()));
        pattern_offset = pattern_offset.saturating_add(count(chunk.len()));
    }
}
