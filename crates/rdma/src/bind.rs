//! From copies between allocations to descriptors between addresses.

use mooncake_pd_layout::{AllocationId, ByteLen, Offset, QuantityError};
use mooncake_pd_plan::Copy;

use crate::address::{Address, AddressError};
use crate::batch::{BoundBatch, Descriptor, Operation};
use crate::capabilities::SubmissionLimits;
use crate::error::Side;
use crate::region::{Region, RegionMap};

/// Bytes of an allocation on each side, not known to be anything yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) source: (AllocationId, u64),
    pub(crate) destination: (AllocationId, u64),
    pub(crate) len: u64,
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

/// Binds a plan's copies to registered memory: each becomes one descriptor, or
/// several where it crosses a border between regions on either side or is longer
/// than a submission may be. Order is kept.
///
/// `local` is the side that submits: the source of a
/// [`Write`](Operation::Write), the destination of a [`Read`](Operation::Read).
///
/// # Errors
/// A copy touches bytes that are not registered, or leaves the address space.
pub fn bind(
    copies: impl IntoIterator<Item = Copy>,
    operation: Operation,
    local: &RegionMap,
    remote: &RegionMap,
    limits: SubmissionLimits,
) -> Result<BoundBatch, BindError> {
    let parts = copies.into_iter().map(|copy| Part {
        source: (copy.source(), copy.source_offset().get()),
        destination: (copy.destination(), copy.destination_offset().get()),
        len: copy.len().get(),
    });
    bind_parts(parts, operation, local, remote, limits)
}

pub(crate) fn bind_parts(
    parts: impl IntoIterator<Item = Part>,
    operation: Operation,
    local: &RegionMap,
    remote: &RegionMap,
    limits: SubmissionLimits,
) -> Result<BoundBatch, BindError> {
    let mut batch = BoundBatch::empty(operation, limits);
    let mut local = Cursor::new(Side::Local, local);
    let mut remote = Cursor::new(Side::Remote, remote);
    for (index, part) in parts.into_iter().enumerate() {
        let (here, there) = match operation {
            Operation::Write => (part.source, part.destination),
            Operation::Read => (part.destination, part.source),
        };
        let quantity = |error| BindError::Quantity { index, error };
        let len = ByteLen::new(part.len).map_err(quantity)?.get();
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
    fn at(&mut self, place: &Place, done: u64) -> Result<(Address, u64), BindError> {
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

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod tests {
    use mooncake_pd_layout::ByteSpan;
    use quickcheck::quickcheck;

    use super::*;

    const ID: AllocationId = AllocationId::new(0);

    /// Regions of allocation 0 that end at these offsets, each at its own
    /// address: region `n` lies `n * gap` bytes further than its offset says.
    fn map(ends: &[u64], base: u64, gap: u64) -> RegionMap {
        let mut start = 0;
        let regions: Vec<Region> = (0_u64..)
            .zip(ends)
            .map(|(n, end)| {
                let offset = Offset::new(start).unwrap();
                let span = ByteSpan::new(offset, ByteLen::new(end - start).unwrap()).unwrap();
                let address = Address::new(base + start + n * gap).unwrap();
                start = *end;
                Region::new(ID, span, address).unwrap()
            })
            .collect();
        RegionMap::new(regions).unwrap()
    }

    fn part(from: u64, to: u64, len: u64) -> Part {
        Part {
            source: (ID, from),
            destination: (ID, to),
            len,
        }
    }

    fn numbers(batch: &BoundBatch) -> Vec<(u64, u64, u64)> {
        let number = |d: &Descriptor| (d.local().get(), d.remote().get(), d.len().get());
        batch.descriptors().iter().map(number).collect()
    }

    fn write(
        parts: &[Part],
        local: &RegionMap,
        remote: &RegionMap,
    ) -> Result<BoundBatch, BindError> {
        bind_parts(
            parts.iter().copied(),
            Operation::Write,
            local,
            remote,
            SubmissionLimits::default(),
        )
    }

    #[test]
    fn a_copy_is_split_at_the_borders_of_both_sides() {
        let (local, remote) = (map(&[10, 30], 1_000, 100), map(&[25, 40], 2_000, 100));
        let batch = write(&[part(5, 15, 20)], &local, &remote).unwrap();
        assert_eq!(
            numbers(&batch),
            [(1_005, 2_015, 5), (1_110, 2_020, 5), (1_115, 2_125, 10)]
        );
        assert_eq!(batch.bytes(), 20);
    }

    #[test]
    fn a_read_binds_its_destination_locally() {
        let (local, remote) = (map(&[10], 1_000, 0), map(&[10], 2_000, 0));
        let limits = SubmissionLimits::default();
        let batch = bind_parts([part(1, 7, 2)], Operation::Read, &local, &remote, limits);
        assert_eq!(numbers(&batch.unwrap()), [(1_007, 2_001, 2)]);
    }

    #[test]
    fn a_copy_past_its_region_names_the_byte_and_the_copy() {
        let (local, remote) = (map(&[100], 1_000, 0), map(&[10], 2_000, 0));
        assert!(write(&[part(0, 2, 8)], &local, &remote).is_ok());
        let error = write(&[part(0, 0, 1), part(0, 2, 9)], &local, &remote).unwrap_err();
        assert_eq!(
            error.to_string(),
            "copy 1: byte 10 of remote allocation 0 (copy of [2, 11)) is in no registered region"
        );
        let error = write(&[part(100, 0, 1)], &local, &remote).unwrap_err();
        assert_eq!(
            error.to_string(),
            "copy 0: byte 100 of local allocation 0 (copy of [100, 101)) is in no registered region"
        );
    }

    #[test]
    fn a_copy_of_nothing_or_one_that_wraps_is_refused() {
        let map = map(&[10], 0, 0);
        for bad in [part(0, 0, 0), part(u64::MAX, 0, 1), part(0, 1, 1 << 62)] {
            assert!(matches!(
                write(&[bad], &map, &map),
                Err(BindError::Quantity { index: 0, .. })
            ));
        }
    }

    #[test]
    fn c28_offsets_over_2_to_the_32_from_a_base_near_2_to_the_47_are_exact() {
        let base = (1 << 47) - 4_096;
        let (local, remote) = (map(&[1 << 40], base, 0), map(&[1 << 41], base, 0));
        let (from, to) = ((1 << 33) + 3, (1 << 40) + 5);
        let batch = write(&[part(from, to, 7)], &local, &remote).unwrap();
        assert_eq!(numbers(&batch), [(base + from, base + to, 7)]);
    }

    #[test]
    fn c62_100_000_descriptors_are_split_by_count_and_by_bytes() {
        let map = map(&[100_000 * 16], 0, 0);
        let parts: Vec<Part> = (0..100_000).map(|n| part(n * 16, n * 16, 16)).collect();
        let sizes = |count, bytes| -> Vec<usize> {
            let limits = SubmissionLimits::new(count, ByteLen::new(bytes).unwrap()).unwrap();
            let parts = parts.iter().copied();
            let batch = bind_parts(parts, Operation::Write, &map, &map, limits).unwrap();
            batch.submissions().map(|s| s.descriptors().len()).collect()
        };
        let by_count = sizes(1_024, 1 << 30);
        assert_eq!(
            (by_count.len(), by_count[0], by_count[97]),
            (98, 1_024, 672)
        );
        let by_bytes = sizes(1_024, 1_000);
        assert_eq!(
            (by_bytes.len(), by_bytes[0], by_bytes[1_612]),
            (1_613, 62, 56)
        );
    }

    /// Ascending ends of regions that cover `total` bytes.
    fn borders(cuts: &[u16], total: u64) -> Vec<u64> {
        let mut ends: Vec<u64> = cuts.iter().map(|cut| u64::from(*cut) % total).collect();
        ends.push(total);
        ends.sort_unstable();
        ends.dedup();
        ends.retain(|end| *end > 0);
        ends
    }

    quickcheck! {
        fn splitting_keeps_every_byte_in_its_place(
            copies: Vec<(u16, u16, u8)>, local: Vec<u16>, remote: Vec<u16>, bytes: u8, count: u8
        ) -> bool {
            let total = u64::from(u16::MAX) + 256;
            let (local, remote) = (
                map(&borders(&local, total), 1 << 20, 1_000),
                map(&borders(&remote, total), 1 << 40, 1_000),
            );
            let parts: Vec<Part> = copies
                .iter()
                .map(|(from, to, len)| part((*from).into(), (*to).into(), u64::from(*len) + 1))
                .collect();
            let bytes = ByteLen::new(u64::from(bytes) + 1).unwrap();
            let count = u32::from(count) + 1;
            let limits = SubmissionLimits::new(count, bytes).unwrap();
            let operation = Operation::Write;
            let batch =
                bind_parts(parts.iter().copied(), operation, &local, &remote, limits).unwrap();

            let place = |map: &RegionMap, offset| {
                let region = map.find(ID, offset).unwrap();
                region.address().get() + offset - region.span().start().get()
            };
            let expected = parts.iter().flat_map(|part| {
                (0..part.len).map(|byte| {
                    (
                        place(&local, part.source.1 + byte),
                        place(&remote, part.destination.1 + byte),
                    )
                })
            });
            let mut bound = Vec::new();
            for submission in batch.submissions() {
                let descriptors = submission.descriptors();
                let sum: u64 = descriptors.iter().map(|d| d.len().get()).sum();
                if descriptors.len() > usize::try_from(count).unwrap()
                    || sum > bytes.get()
                    || sum != submission.bytes()
                {
                    return false;
                }
                for (local, remote, len) in descriptors
                    .iter()
                    .map(|d| (d.local().get(), d.remote().get(), d.len().get()))
                {
                    bound.extend((0..len).map(|byte| (local + byte, remote + byte)));
                }
            }
            bound.into_iter().eq(expected)
        }
    }
}
