//! The validated whole.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::{EntryError, LayoutError};
use crate::group::Group;
use crate::ids::{AllocationId, BlockEntry, GroupId, LogicalBlock, PoolId, StateSlot};
use crate::pool::Pool;
use crate::raw::{RawContent, RawLayout};
use crate::units::ByteLen;
use crate::{overlay, validate};

/// One block of memory that is registered as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub(crate) id: AllocationId,
    pub(crate) len: ByteLen,
}

impl Allocation {
    /// Its name.
    #[must_use]
    pub const fn id(&self) -> AllocationId {
        self.id
    }

    /// Its length; need not be a multiple of any stride.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.len
    }

    /// Always false: an allocation holds at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Tensor- and pipeline-parallel place of the side a layout belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    pub(crate) tp_rank: u32,
    pub(crate) tp_size: u32,
    pub(crate) pp_rank: u32,
    pub(crate) pp_size: u32,
}

impl Shard {
    /// Tensor-parallel rank, 0..size.
    #[must_use]
    pub const fn tp_rank(self) -> u32 {
        self.tp_rank
    }

    /// Tensor-parallel size, 1..2^32.
    #[must_use]
    pub const fn tp_size(self) -> u32 {
        self.tp_size
    }

    /// Pipeline-parallel rank, 0..size.
    #[must_use]
    pub const fn pp_rank(self) -> u32 {
        self.pp_rank
    }

    /// Pipeline-parallel size, 1..2^32.
    #[must_use]
    pub const fn pp_size(self) -> u32 {
        self.pp_size
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tp rank {} of {}, pp rank {} of {}",
            self.tp_rank, self.tp_size, self.pp_rank, self.pp_size
        )
    }
}

/// Every byte of one engine rank's cache that a transfer may touch, and who
/// owns it when.
///
/// A value of this type keeps, for its whole life:
/// - every field of every block lies inside its allocation;
/// - no byte is owned by two fields of one group;
/// - no byte is owned by two different ids of one pool, nor by two pools,
///   unless the engine declared those pools [arbitrated](Self::arbitrated).
///
/// Groups of one pool may own the same bytes under the same id: an id belongs
/// to one group at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    pub(crate) engine: String,
    pub(crate) model: String,
    pub(crate) content: RawContent,
    pub(crate) shard: Shard,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) arbitrated: Vec<(PoolId, PoolId)>,
    pub(crate) groups: Vec<Group>,
}

impl CacheLayout {
    /// Checks a manifest.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn new(raw: &RawLayout) -> Result<Self, LayoutError> {
        let layout = validate::structure(raw)?;
        overlay::check(&layout)?;
        Ok(layout)
    }

    /// Reads a manifest in the format of [`raw`](crate::raw).
    ///
    /// # Errors
    /// It is not JSON of that format, or fails validation.
    pub fn from_json(json: &str) -> Result<Self, LayoutError> {
        let raw: RawLayout =
            serde_json::from_str(json).map_err(|error| LayoutError::Json(error.into()))?;
        Self::new(&raw)
    }

    /// Which engine made it, for people.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// Which model it is of, for people.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// What the bytes mean beyond shapes.
    #[must_use]
    pub const fn content(&self) -> &RawContent {
        &self.content
    }

    /// Which part of the model this side holds.
    #[must_use]
    pub const fn shard(&self) -> Shard {
        self.shard
    }

    /// Allocations in the order of their ids.
    #[must_use]
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// The allocation of that id.
    #[must_use]
    pub fn allocation(&self, id: AllocationId) -> Option<&Allocation> {
        let at = self.allocations.binary_search_by_key(&id, |a| a.id).ok()?;
        self.allocations.get(at)
    }

    /// Pools in the order of their ids.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The pool of that id.
    #[must_use]
    pub fn pool(&self, id: PoolId) -> Option<&Pool> {
        let at = self.pools.binary_search_by_key(&id, |p| p.id).ok()?;
        self.pools.get(at)
    }

    /// Pairs of pools that share bytes and are kept apart by the engine's
    /// allocator at run time.
    #[must_use]
    pub fn arbitrated(&self) -> &[(PoolId, PoolId)] {
        &self.arbitrated
    }

    /// Groups in the order of their ids.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of that id.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        let at = self.groups.binary_search_by_key(&id, |g| g.id).ok()?;
        self.groups.get(at)
    }

    /// What an id from an engine's list means in a group: the one place where a
    /// raw id becomes a typed one.
    ///
    /// # Errors
    /// The group does not exist, or the id is out of range or reserved.
    pub fn entry(&self, group: GroupId, id: u64) -> Result<BlockEntry, EntryError> {
        let found = self
            .group(group)
            .ok_or(EntryError::UnknownGroup { group })?;
        let pool = self
            .pool(found.pool)
            .ok_or(EntryError::UnknownGroup { group })?;
        let out = EntryError::OutOfRange {
            id,
            capacity: pool.capacity,
            group,
        };
        let id = u32::try_from(id).map_err(|_| out)?;
        if id >= pool.capacity {
            return Err(out);
        }
        if pool.null_id == Some(id) {
            return Ok(BlockEntry::Null);
        }
        if !pool.is_live(id) {
            return Err(EntryError::Reserved {
                id,
                pool: pool.id,
                group,
            });
        }
        Ok(if found.kind.is_state() {
            BlockEntry::State(StateSlot::new(id))
        } else {
            BlockEntry::Block(LogicalBlock::new(id))
        })
    }
}
