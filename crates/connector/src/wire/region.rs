//! What a decode rank registered, as far as a pull says it.

use alloc::vec::Vec;
use core::fmt;

use mooncake_pd_layout::{ByteLen, LayerId, Offset};
use smallvec::SmallVec;

/// Position of a group among the groups that are transferred, 0..2^32. Not the number that an
/// engine gives its cache group: groups that are never transferred don't count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferGroup(u32);

impl TransferGroup {
    /// A position.
    #[must_use]
    pub const fn new(position: u32) -> Self {
        Self(position)
    }

    /// The position.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for TransferGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Address in the process of the peer that named it, 0..2^64 bytes. Nothing says that memory is
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerAddress(u64);

impl PeerAddress {
    /// An address as the peer gives it.
    #[must_use]
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The address.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Whose blocks lie in a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionGroups {
    /// Those of one group.
    One(TransferGroup),
    /// Those of several groups, which draw their ids from one pool; -1 on the wire. In the order
    /// of the peer, never empty.
    Shared(SmallVec<[TransferGroup; 2]>),
}

/// Why a region is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// Blocks would overlap.
    #[error("kv_block_len {kv_block_len} is more than block_len {block_len}")]
    Overlap {
        /// Bytes of a block.
        kv_block_len: ByteLen,
        /// Bytes from one block to the next.
        block_len: ByteLen,
    },
    /// A shared region names no group.
    #[error("group -1 lists no groups")]
    Unlisted,
    /// A region of one group lists others.
    #[error("group {group} lists groups {listed:?}")]
    Listed {
        /// Its group.
        group: u32,
        /// What it lists.
        listed: Vec<u32>,
    },
    /// A shared region names a group twice.
    #[error("group -1 lists group {group} twice")]
    Repeated {
        /// The group.
        group: TransferGroup,
    },
}

/// A block that no address reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block} of {block_len} bytes from {base} ends past 2^64")]
pub struct SpanError {
    /// Its position.
    pub block: u64,
    /// Bytes from one block to the next.
    pub block_len: ByteLen,
    /// Where the region begins.
    pub base: PeerAddress,
}

/// Where one layer's blocks lie: block `b`, of the kernel's blocks, is the `kv_block_len` bytes
/// from `base + b * block_len`. How many there are is not said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    base: PeerAddress,
    block_len: ByteLen,
    kv_block_len: ByteLen,
    layer: LayerId,
    layer_index: u32,
    groups: RegionGroups,
    row_offset: Option<Offset>,
}

impl Region {
    /// A region of `layer`, number `layer_index` of the model. Lengths are bytes of a kernel's
    /// block: from one to the next, and of one. The row offset counts bytes from the start of the
    /// packed row that the region is a column of.
    ///
    /// # Errors
    /// Blocks overlap, or the groups contradict themselves.
    pub fn new(
        base: PeerAddress,
        (block_len, kv_block_len): (ByteLen, ByteLen),
        (layer, layer_index): (LayerId, u32),
        groups: RegionGroups,
        row_offset: Option<Offset>,
    ) -> Result<Self, RegionError> {
        if kv_block_len > block_len {
            return Err(RegionError::Overlap {
                kv_block_len,
                block_len,
            });
        }
        if let RegionGroups::Shared(shared) = &groups {
            if shared.is_empty() {
                return Err(RegionError::Unlisted);
            }
            let mut sorted = shared.clone();
            sorted.sort_unstable();
            let twice = sorted.iter().zip(sorted.iter().skip(1));
            if let Some((&group, _)) = twice.into_iter().find(|(one, next)| one == next) {
                return Err(RegionError::Repeated { group });
            }
        }
        Ok(Self {
            base,
            block_len,
            kv_block_len,
            layer,
            layer_index,
            groups,
            row_offset,
        })
    }

    /// Where block 0 begins.
    #[must_use]
    pub const fn base(&self) -> PeerAddress {
        self.base
    }

    /// Bytes from one block to the next.
    #[must_use]
    pub const fn block_len(&self) -> ByteLen {
        self.block_len
    }

    /// Bytes of one block, at most [`Self::block_len`]. For a state group padding is included.
    #[must_use]
    pub const fn kv_block_len(&self) -> ByteLen {
        self.kv_block_len
    }

    /// The layer. Several regions may be of one layer.
    #[must_use]
    pub const fn layer(&self) -> &LayerId {
        &self.layer
    }

    /// The layer's number in the model.
    #[must_use]
    pub const fn layer_index(&self) -> u32 {
        self.layer_index
    }

    /// Whose blocks these are.
    #[must_use]
    pub const fn groups(&self) -> &RegionGroups {
        &self.groups
    }

    /// Bytes before it in a packed row; -1 on the wire if it is no column of one.
    #[must_use]
    pub const fn row_offset(&self) -> Option<Offset> {
        self.row_offset
    }

    /// Where the kernel's block `block` begins.
    ///
    /// # Errors
    /// Its end would lie past 2^64. That it is registered is not known.
    pub fn block(&self, block: u64) -> Result<PeerAddress, SpanError> {
        let start = block
            .checked_mul(self.block_len.get())
            .and_then(|skipped| self.base.0.checked_add(skipped));
        start
            .filter(|start| start.checked_add(self.kv_block_len.get()).is_some())
            .map(PeerAddress)
            .ok_or(SpanError {
                block,
                block_len: self.block_len,
                base: self.base,
            })
    }
}

/// All regions that a decode rank registered; at least one.
///
/// Prefill pairs them with its own by the layer's name and the occurrence of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLayout {
    regions: Vec<Region>,
}

impl PeerLayout {
    /// A layout of these regions, in the peer's order; none if there are none.
    #[must_use]
    pub fn new(regions: Vec<Region>) -> Option<Self> {
        (!regions.is_empty()).then_some(Self { regions })
    }

    /// The regions.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }
}

#[cfg(test)]
mod tests {
    use super::{PeerAddress, Region, RegionError, RegionGroups, TransferGroup};
    use alloc::string::ToString;
    use mooncake_pd_layout::{ByteLen, LayerId};
    use smallvec::smallvec;

    fn region(base: u64, lens: (u64, u64), groups: RegionGroups) -> Result<Region, RegionError> {
        let len = |bytes| ByteLen::new(bytes).unwrap();
        let layer = (LayerId::new("layer"), 7);
        Region::new(
            PeerAddress::new(base),
            (len(lens.0), len(lens.1)),
            layer,
            groups,
            None,
        )
    }

    #[test]
    fn c64_a_block_never_ends_past_2_to_the_64() {
        let one = || RegionGroups::One(TransferGroup::new(0));
        let region = region(u64::MAX - 300, (100, 60), one()).unwrap();
        assert_eq!(region.block(0).unwrap().get(), u64::MAX - 300);
        assert_eq!(region.block(2).unwrap().get(), u64::MAX - 100);
        for block in [3, 4, u64::MAX / 100 + 1, u64::MAX] {
            region.block(block).unwrap_err();
        }
        assert_eq!(
            region.block(3).unwrap_err().to_string(),
            "block 3 of 100 bytes from 0xfffffffffffffed3 ends past 2^64"
        );
        // The last byte there is.
        let last = Region {
            base: PeerAddress::new(u64::MAX - 60),
            ..region
        };
        assert!(last.block(0).is_ok());
    }

    #[test]
    fn regions_that_contradict_themselves_are_refused() {
        let one = RegionGroups::One(TransferGroup::new(0));
        let error = region(0, (64, 65), one.clone()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kv_block_len 65 is more than block_len 64"
        );
        region(0, (64, 64), one).unwrap();
        let none = RegionGroups::Shared(smallvec![]);
        assert_eq!(region(0, (1, 1), none), Err(RegionError::Unlisted));
        let group = TransferGroup::new;
        let twice = RegionGroups::Shared(smallvec![group(4), group(1), group(4)]);
        let refused = Err(RegionError::Repeated { group: group(4) });
        assert_eq!(region(0, (1, 1), twice), refused);
        let shared = RegionGroups::Shared(smallvec![group(4), group(1)]);
        region(0, (1, 1), shared).unwrap();
    }
}
