//! Registered ranges and where they lie.

use mooncake_pd_layout::{AllocationId, ByteSpan};

use crate::address::{Address, AddressError};

/// One registered range of an allocation, at an address of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    allocation: AllocationId,
    span: ByteSpan,
    address: Address,
}

impl Region {
    /// The bytes `span` of an allocation, the first of them at `address`.
    ///
    /// # Errors
    /// They would end outside the address space.
    pub fn new(
        allocation: AllocationId,
        span: ByteSpan,
        address: Address,
    ) -> Result<Self, AddressError> {
        address.end(span.len())?;
        Ok(Self {
            allocation,
            span,
            address,
        })
    }

    /// The allocation it is of.
    #[must_use]
    pub const fn allocation(&self) -> AllocationId {
        self.allocation
    }

    /// Its bytes, from the allocation's start.
    #[must_use]
    pub const fn span(&self) -> ByteSpan {
        self.span
    }

    /// Where its first byte lies.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// One past its last address.
    fn end(&self) -> u64 {
        // `new` proved that the sum is an address.
        self.address.get().saturating_add(self.span.len().get())
    }
}

/// Why ranges can't all be registered on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionMapError {
    /// Two ranges hold the same bytes of an allocation.
    #[error(
        "allocation {allocation}: region [{first_start}, {first_end}) overlaps region [{second_start}, {second_end})"
    )]
    SameBytes {
        /// Which allocation.
        allocation: AllocationId,
        /// First byte of one.
        first_start: u64,
        /// End of one.
        first_end: u64,
        /// First byte of the other.
        second_start: u64,
        /// End of the other.
        second_end: u64,
    },
    /// Two ranges lie at the same addresses.
    #[error(
        "a region of allocation {first} at [{first_start:#x}, {first_end:#x}) overlaps a region of allocation {second} at {second_start:#x}"
    )]
    SameAddresses {
        /// Allocation of one.
        first: AllocationId,
        /// First address of one.
        first_start: u64,
        /// End of one.
        first_end: u64,
        /// Allocation of the other.
        second: AllocationId,
        /// First address of the other.
        second_start: u64,
    },
}

/// All registered ranges of one side: pairwise disjoint, in allocations and in
/// addresses. What a peer is told is such a map of what was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionMap {
    /// By allocation, then by start.
    regions: Vec<Region>,
}

impl RegionMap {
    /// Checks ranges, whether our own or told by a peer.
    ///
    /// # Errors
    /// Two of them overlap.
    pub fn new(regions: impl IntoIterator<Item = Region>) -> Result<Self, RegionMapError> {
        let mut regions: Vec<Region> = regions.into_iter().collect();
        regions.sort_unstable_by_key(|region| region.address);
        for (first, second) in regions.iter().zip(regions.iter().skip(1)) {
            if first.end() > second.address.get() {
                return Err(RegionMapError::SameAddresses {
                    first: first.allocation,
                    first_start: first.address.get(),
                    first_end: first.end(),
                    second: second.allocation,
                    second_start: second.address.get(),
                });
            }
        }
        regions.sort_unstable_by_key(|region| (region.allocation, region.span.start()));
        for (first, second) in regions.iter().zip(regions.iter().skip(1)) {
            if first.allocation == second.allocation && first.span.end() > second.span.start().get()
            {
                return Err(RegionMapError::SameBytes {
                    allocation: first.allocation,
                    first_start: first.span.start().get(),
                    first_end: first.span.end(),
                    second_start: second.span.start().get(),
                    second_end: second.span.end(),
                });
            }
        }
        Ok(Self { regions })
    }

    /// The ranges, by allocation, then by start.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The range that holds byte `offset` of an allocation.
    #[must_use]
    pub fn find(&self, allocation: AllocationId, offset: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| {
            (region.allocation, region.span.start().get()) <= (allocation, offset)
        });
        self.regions
            .get(after.checked_sub(1)?)
            .filter(|region| region.allocation == allocation && offset < region.span.end())
    }
}

#[cfg(test)]
mod tests {
    use mooncake_pd_layout::{ByteLen, Offset};

    use super::*;

    fn region(allocation: u32, start: u64, len: u64, address: u64) -> Region {
        let span = ByteSpan::new(Offset::new(start).unwrap(), ByteLen::new(len).unwrap()).unwrap();
        Region::new(
            AllocationId::new(allocation),
            span,
            Address::new(address).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn touching_regions_are_apart_and_overlapping_ones_are_refused() {
        assert!(RegionMap::new([region(0, 0, 10, 100), region(0, 10, 5, 110)]).is_ok());
        assert!(matches!(
            RegionMap::new([region(0, 0, 10, 100), region(0, 9, 5, 200)]),
            Err(RegionMapError::SameBytes {
                first_end: 10,
                second_start: 9,
                ..
            })
        ));
        assert!(RegionMap::new([region(0, 0, 10, 100), region(1, 0, 5, 110)]).is_ok());
        assert!(matches!(
            RegionMap::new([region(0, 0, 10, 100), region(1, 0, 5, 109)]),
            Err(RegionMapError::SameAddresses {
                first_end: 110,
                second_start: 109,
                ..
            })
        ));
    }

    #[test]
    fn find_is_exact_at_both_borders() {
        let map = RegionMap::new([region(1, 10, 10, 100), region(2, 0, 4, 200)]).unwrap();
        let start = |allocation, offset| {
            map.find(AllocationId::new(allocation), offset)
                .map(|region| region.span().start().get())
        };
        assert_eq!(start(1, 9), None);
        assert_eq!(start(1, 10), Some(10));
        assert_eq!(start(1, 19), Some(10));
        assert_eq!(start(1, 20), None);
        assert_eq!(start(2, 3), Some(0));
        assert_eq!(start(2, 4), None);
        assert_eq!(start(0, 10), None);
    }

    #[test]
    fn c64_a_region_that_wraps_is_refused() {
        let span = ByteSpan::new(Offset::ZERO, ByteLen::new(16).unwrap()).unwrap();
        let at = |address| Region::new(AllocationId::new(0), span, Address::new(address).unwrap());
        assert!(at((1 << 63) - 17).is_ok());
        assert!(at((1 << 63) - 16).is_err());
    }
}
