//! The way of a submission's bytes between a connection and memory.

use super::pipe::{Broken, Pipe};
use super::table::Piece;
use crate::error::Violation;

/// Bytes that are gathered or scattered at once, 256 KiB: what is small goes
/// through a buffer of that length, which a processor's cache holds.
pub(super) const BUFFER: usize = 256 << 10;

/// From 32 KiB on, bytes go straight between memory and the connection.
const DIRECT: u64 = 32 << 10;

/// Bytes that go at once while their memory is locked, 4 MiB.
const LOCKED: u64 = 4 << 20;

/// A place in the descriptors of a submission, which are done in order.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pieces: &'a [Piece],
    /// Pieces that are done.
    done: usize,
    /// Bytes of the next piece that are done.
    skip: u64,
    buffer: Vec<u8>,
    /// What of the buffer is still to be sent.
    unsent: std::ops::Range<usize>,
    /// The first piece that may not be touched any more.
    denied: Option<(usize, Violation)>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(pieces: &'a [Piece]) -> Self {
        Self {
            pieces,
            done: 0,
            skip: 0,
            buffer: Vec::new(),
            unsent: 0..0,
            denied: None,
        }
    }

    /// Pieces that are done: of the first ones, all bytes are there.
    pub(super) const fn done(&self) -> usize {
        self.done
    }

    /// The first piece that was unregistered on the way. No byte of it and
    /// those behind it is touched after that.
    pub(super) const fn denied(&self) -> Option<(usize, Violation)> {
        self.denied
    }

    /// The next piece and how much of it is left.
    fn next(&self) -> Option<(&'a Piece, u64)> {
        let piece = self.pieces.get(self.done)?;
        Some((piece, piece.len().saturating_sub(self.skip)))
    }

    fn advance(&mut self, bytes: u64) {
        self.skip = self.skip.saturating_add(bytes);
        if self.next().is_some_and(|(_, left)| left == 0) {
            self.done = self.done.saturating_add(1);
            self.skip = 0;
        }
    }

    fn deny(&mut self, violation: Violation) {
        self.denied.get_or_insert((self.done, violation));
    }

    fn prepare(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER];
        }
    }

    /// Receives at most `budget` bytes and puts them where they belong, or
    /// nowhere once a piece is denied. `None` is nothing yet.
    pub(super) fn land(&mut self, pipe: &mut Pipe, budget: u64) -> Result<Option<u64>, Broken> {
        if let Some((piece, left)) = self.next()
            && left.min(budget) >= DIRECT
            && self.denied.is_none()
        {
            let most = budget.min(LOCKED);
            match piece.write(self.skip, most, |bytes| pipe.receive(bytes)) {
                Ok(got) => {
                    let got = got?.map(length);
                    self.advance(got.unwrap_or(0));
                    return Ok(got);
                }
                Err(violation) => self.deny(violation),
            }
        }
        self.prepare();
        let mut buffer = std::mem::take(&mut self.buffer);
        let most = usize::try_from(budget).unwrap_or(BUFFER).min(BUFFER);
        let got = pipe.receive(buffer.get_mut(..most).unwrap_or(&mut []));
        if let Ok(Some(got)) = got {
            self.scatter(buffer.get(..got).unwrap_or(&[]));
        }
        self.buffer = buffer;
        Ok(got?.map(length))
    }

    fn scatter(&mut self, mut bytes: &[u8]) {
        while let Some((piece, _)) = self.next()
            && self.denied.is_none()
            && !bytes.is_empty()
        {
            let put = piece.write(self.skip, length(bytes.len()), |place| {
                // A place is never longer than what was asked for.
                let (now, later) = bytes.split_at_checked(place.len())?;
                place.copy_from_slice(now);
                Some((later, length(now.len())))
            });
            match put {
                Ok(Some((later, count))) => {
                    bytes = later;
                    self.advance(count);
                }
                Ok(None) => return,
                Err(violation) => self.deny(violation),
            }
        }
    }

    /// Sends what there is room for; `None` is none, and `Some(0)` that
    /// everything is sent, or nothing more can be.
    pub(super) fn stream(&mut self, pipe: &mut Pipe) -> Result<Option<u64>, Broken> {
        if self.unsent.is_empty() {
            let Some((piece, left)) = self.next().filter(|_| self.denied.is_none()) else {
                return Ok(Some(0));
            };
            if left >= DIRECT {
                return match piece.read(self.skip, LOCKED, |bytes| pipe.send(bytes)) {
                    Ok(sent) => {
                        let sent = sent?.map(length);
                        self.advance(sent.unwrap_or(0));
                        Ok(sent)
                    }
                    Err(violation) => {
                        self.deny(violation);
                        Ok(Some(0))
                    }
                };
            }
            self.prepare();
            let mut buffer = std::mem::take(&mut self.buffer);
            self.unsent = 0..self.gather(&mut buffer, DIRECT);
            self.buffer = buffer;
        }
        let unsent = self.buffer.get(self.unsent.clone()).unwrap_or(&[]);
        let sent = if unsent.is_empty() {
            Some(0)
        } else {
            pipe.send(unsent)?
        };
        self.unsent.start = self.unsent.start.saturating_add(sent.unwrap_or(0));
        Ok(sent.map(length))
    }

    /// Copies the next bytes to `buffer`, up to a piece with `below` bytes
    /// left; how many.
    pub(super) fn gather(&mut self, buffer: &mut [u8], below: u64) -> usize {
        let mut filled = 0_usize;
        while let Some((piece, left)) = self.next()
            && self.denied.is_none()
            && left < below
        {
            let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else {
                break;
            };
            let copied = piece.read(self.skip, length(room.len()), |bytes| {
                if let Some(room) = room.get_mut(..bytes.len()) {
                    room.copy_from_slice(bytes);
                }
                bytes.len()
            });
            match copied {
                Ok(count) => {
                    filled = filled.saturating_add(count);
                    self.advance(length(count));
                }
                Err(violation) => self.deny(violation),
            }
        }
        filled
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
