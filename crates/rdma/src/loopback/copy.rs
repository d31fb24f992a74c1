//! Copies between buffers.

use crate::memory::HostBuffer;

/// One contiguous copy between buffers, inside both.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) source: HostBuffer,
    pub(super) source_at: u64,
    pub(super) destination: HostBuffer,
    pub(super) destination_at: u64,
    pub(super) len: u64,
}

impl Piece {
    pub(super) fn new(
        (source, source_at): (HostBuffer, u64),
        (destination, destination_at): (HostBuffer, u64),
        len: u64,
    ) -> Self {
        Self {
            source,
            source_at,
            destination,
            destination_at,
            len,
        }
    }

    fn buffers(&self) -> (u64, u64) {
        (self.source.order(), self.destination.order())
    }
}

/// Copies the first bytes of each piece, as many as are paired with it.
///
/// Pieces between the same two buffers are copied under one pair of locks,
/// taken in the order of the buffers, so that batches never wait in a circle.
pub(super) fn copy(mut pieces: Vec<(&Piece, u64)>) {
    pieces.sort_by_key(|(piece, _)| piece.buffers());
    for group in pieces.chunk_by(|(a, _), (b, _)| a.buffers() == b.buffers()) {
        let Some((first, _)) = group.first() else {
            continue;
        };
        let (from, to) = first.buffers();
        if from == to {
            let mut bytes = first.destination.write();
            for (piece, len) in group {
                copy_within(&mut bytes, piece, *len);
            }
            continue;
        }
        let (source, mut destination);
        if from < to {
            source = first.source.read();
            destination = first.destination.write();
        } else {
            destination = first.destination.write();
            source = first.source.read();
        }
        for (piece, len) in group {
            copy_between(&source, &mut destination, piece, *len);
        }
    }
}

// A piece is inside both buffers and a buffer never changes its length, so the
// lookups below always succeed.

fn copy_between(source: &[u8], destination: &mut [u8], piece: &Piece, len: u64) {
    let from = range(piece.source_at, len).and_then(|range| source.get(range));
    let to = range(piece.destination_at, len).and_then(|range| destination.get_mut(range));
    if let (Some(from), Some(to)) = (from, to) {
        to.copy_from_slice(from);
    }
}

fn copy_within(bytes: &mut [u8], piece: &Piece, len: u64) {
    let (Some(from), Some(to)) = (
        range(piece.source_at, len),
        range(piece.destination_at, len),
    ) else {
        return;
    };
    if from.end.max(to.end) <= bytes.len() {
        bytes.copy_within(from, to.start);
    }
}

fn range(start: u64, len: u64) -> Option<std::ops::Range<usize>> {
    let end = usize::try_from(start.checked_add(len)?).ok()?;
    Some(usize::try_from(start).ok()?..end)
}
