//! From copies between allocations to descriptors between addresses.

use mooncake_pd_layout::{AllocationId, ByteLen, Offset, QuantityError};

use crate::address::AddressError;
use crate::batch::{BoundBatch, Descriptor, Operation};
use crate::capabilities::SubmissionLimits;
use crate::error::Side;
use crate::region::{Region, RegionMap};

/// One contiguous copy from an allocation of the source side to one of the
/// destination side.
pub trait ByteCopy {
    /// Allocation it reads.
    fn source(&self) -> AllocationId;
    /// Bytes from that allocation's start.
    fn source_offset(&self) -> u64;
    /// Allocation it writes.
    fn destination(&self) -> AllocationId;
    /// Bytes from that allocation's start.
    fn destination_offset(&self) -> u64;
    /// Bytes it moves.
    fn len(&self) -> u64;
    /// Whether it moves nothing; such a copy can't be bound.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why copies can't be bound to registered memory. Nothing has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A byte that nobody registered.
    #[error(
        "copy {index}: byte {offset} of {side} allocation {allocation} (copy of [{start}, {end})) is in no registered region"
    )]
    Unregistered {
        /// Which copy.
        index: usize,
        /// Local or the peer's.
        side: Side,
        /// Its allocation on that side.
        allocation: AllocationId,
        /// The first byte that is not registered.
        offset: u64,
        /// The copy's first byte on that side.
        start: u64,
        /// The copy's end on that side.
        end: u64,
    },
    /// A copy of nothing, or one beyond 2^62.
    #[error("copy {index}: {error}")]
    Quantity {
        /// Which copy.
        index: usize,
        /// What is wrong.
        error: QuantityError,
    },
    /// A copy outside the address space.
    #[error("copy {index}: {error}")]
    Address {
        /// Which copy.
        index: usize,
        /// What is wrong.
        error: AddressError,
    },
}

/// Binds copies to registered memory: each becomes one descriptor, or several
/// where it crosses a border between regions on either side or is longer than a
/// submission may be. Order is kept.
///
/// `local` is the side that submits: the source of a
/// [`Write`](Operation::Write), the destination of a [`Read`](Operation::Read).
///
/// # Errors
/// A copy touches bytes that are not registered, moves nothing, or leaves the
/// address space.
pub fn bind(
    copies: impl IntoIterator<Item = impl ByteCopy>,
    operation: Operation,
    local: &RegionMap,
    remote: &RegionMap,
    limits: SubmissionLimits,
) -> Result<BoundBatch, BindError> {
    let mut batch = BoundBatch::empty(operation, limits);
    let mut local = Cursor::new(Side::Local, local);
    let mut remote = Cursor::new(Side::Remote, remote);
    for (index, copy) in copies.into_iter().enumerate() {
        let source = (copy.source(), copy.source_offset());
        let destination = (copy.destination(), copy.destination_offset());
        let (here, there) = match operation {
            Operation::Write => (source, destination),
            Operation::Read => (destination, source),
        };
        let quantity = |error| BindError::Quantity { index, error };
        let len = ByteLen::new(copy.len()).map_err(quantity)?.get();
        let here = Place::new(index, here, len)?;
        let there = Place::new(index, there, len)?;
        let mut done = 0_u64;
        while let Some(left) = len.checked_sub(done).filter(|left| *left > 0) {
            let (local_address, local_left) = local.at(&here, done)?;
            let (remote_address, remote_left) = remote.at(&there, done)?;
            let piece = left.min(local_left).min(remote_left).min(limits.bytes());
            batch.push(Descriptor {
                local: local_address,
                remote: remote_address,
                len: ByteLen::new(piece).map_err(quantity)?,
            });
            done = done.saturating_add(piece);
        }
    }
    Ok(batch)
}

/// One side of one copy.
struct Place {
    index: usize,
    allocation: AllocationId,
    start: u64,
    end: u64,
}

impl Place {
    fn new(
        index: usize,
        (allocation, start): (AllocationId, u64),
        len: u64,
    ) -> Result<Self, BindError> {
        let quantity = |error| BindError::Quantity { index, error };
        let end = Offset::new(start)
            .map_err(quantity)?
            .checked_add(len)
            .ok_or(quantity(QuantityError::Overflow {
                what: "end of a copy",
            }))?;
        Ok(Self {
            index,
            allocation,
            start,
            end: end.get(),
        })
    }
}

/// Looks regions up; copies in a row mostly lie in the same one.
struct Cursor<'a> {
    side: Side,
    map: &'a RegionMap,
    last: Option<&'a Region>,
}

impl<'a> Cursor<'a> {
    const fn new(side: Side, map: &'a RegionMap) -> Self {
        Self {
            side,
            map,
            last: None,
        }
    }

    /// The address of the byte `done` bytes into the place, and the bytes from
    /// there to the end of its region.
    fn at(&mut self, place: &Place, done: u64) -> Result<(crate::Address, u64), BindError> {
        let offset = place.start.saturating_add(done);
        let holds = |region: &&Region| {
            region.allocation() == place.allocation
                && (region.span().start().get()..region.span().end()).contains(&offset)
        };
        let region = self
            .last
            .filter(holds)
            .or_else(|| self.map.find(place.allocation, offset))
            .ok_or(BindError::Unregistered {
                index: place.index,
                side: self.side,
                allocation: place.allocation,
                offset,
                start: place.start,
                end: place.end,
            })?;
        self.last = Some(region);
        let inside = offset.saturating_sub(region.span().start().get());
        let inside = Offset::new(inside).map_err(|error| BindError::Quantity {
            index: place.index,
            error,
        })?;
        let address = region
            .address()
            .offset(inside)
            .map_err(|error| BindError::Address {
                index: place.index,
                error,
            })?;
        Ok((address, region.span().end().saturating_sub(offset)))
    }
}
