//! From raw numbers to bytes of buffers, or a refusal.

use crate::batch::Operation;
use crate::error::{Side, SubmitError, Violation};
use crate::loopback::copy::Piece;
use crate::loopback::table::RegionTable;
use crate::memory::HostBuffer;

/// A descriptor as a network card gets it: nothing about it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawDescriptor {
    pub(super) local: u64,
    pub(super) remote: u64,
    pub(super) len: u64,
}

/// Checks every descriptor against what is registered on both sides, and all of
/// them against each other.
pub(super) fn resolve(
    operation: Operation,
    descriptors: &[RawDescriptor],
    local: &RegionTable,
    remote: &RegionTable,
) -> Result<Vec<Piece>, SubmitError> {
    let pieces = descriptors
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let refused = |violation| SubmitError::Descriptor { index, violation };
            let here = locate(Side::Local, raw.local, raw.len, local).map_err(refused)?;
            let there = locate(Side::Remote, raw.remote, raw.len, remote).map_err(refused)?;
            Ok(match operation {
                Operation::Write => Piece::new(here, there, raw.len),
                Operation::Read => Piece::new(there, here, raw.len),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    check_overlap(operation, descriptors, &pieces)?;
    Ok(pieces)
}

fn locate(
    side: Side,
    address: u64,
    len: u64,
    table: &RegionTable,
) -> Result<(HostBuffer, u64), Violation> {
    if len == 0 {
        return Err(Violation::Empty { side, address });
    }
    let entry = table
        .find(address)
        .ok_or(Violation::Unregistered { side, address })?;
    if address.checked_add(len).is_none_or(|end| end > entry.end) {
        return Err(Violation::CrossesRegion {
            side,
            address,
            len,
            region_end: entry.end,
        });
    }
    let inside = address.saturating_sub(entry.start);
    Ok((entry.buffer.clone(), entry.offset.saturating_add(inside)))
}

/// Bytes of one buffer that one descriptor reads or writes.
struct Use {
    buffer: u64,
    start: u64,
    end: u64,
    index: usize,
}

fn check_overlap(
    operation: Operation,
    descriptors: &[RawDescriptor],
    pieces: &[Piece],
) -> Result<(), SubmitError> {
    let written_at = |index: usize| {
        descriptors.get(index).map_or(0, |raw| match operation {
            Operation::Write => raw.remote,
            Operation::Read => raw.local,
        })
    };
    let mut written: Vec<Use> = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| Use {
            buffer: piece.destination.order(),
            start: piece.destination_at,
            end: piece.destination_at.saturating_add(piece.len),
            index,
        })
        .collect();
    written.sort_unstable_by_key(|used| (used.buffer, used.start));
    for (first, second) in written.iter().zip(written.iter().skip(1)) {
        if first.buffer == second.buffer && second.start < first.end {
            let index = first.index.max(second.index);
            return Err(SubmitError::Descriptor {
                index,
                violation: Violation::DestinationTwice {
                    address: written_at(index),
                    other: first.index.min(second.index),
                },
            });
        }
    }
    for (other, piece) in pieces.iter().enumerate() {
        let (buffer, start) = (piece.source.order(), piece.source_at);
        let end = start.saturating_add(piece.len);
        // Written ranges are disjoint by now: only the first that ends behind
        // the start can meet this source first.
        let at = written.partition_point(|used| (used.buffer, used.end) <= (buffer, start));
        if let Some(used) = written
            .get(at)
            .filter(|used| used.buffer == buffer && used.start < end)
        {
            return Err(SubmitError::Descriptor {
                index: used.index,
                violation: Violation::DestinationIsSource {
                    address: written_at(used.index),
                    other,
                },
            });
        }
    }
    Ok(())
}
