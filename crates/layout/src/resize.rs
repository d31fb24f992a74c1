//! The same pages with another number of blocks.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::axis::Dim;
use crate::error::LayoutError;
use crate::field::Field;
use crate::ids::{AllocationId, PoolId};
use crate::layout::CacheLayout;
use crate::place::{FieldPlace, Place};
use crate::planes::{Planes, by_allocation, members};
use crate::units::QuantityError;

/// Why a layout can't be given another number of blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// The layout has no such pool.
    #[error("pool {pool} does not exist")]
    UnknownPool {
        /// The pool.
        pool: PoolId,
    },
    /// A pool of no blocks.
    #[error("pool {pool} has {from} blocks, it can't be resized to 0")]
    NoBlocks {
        /// The pool.
        pool: PoolId,
        /// Blocks it has.
        from: u32,
    },
    /// Two fields share bytes that can't grow for both.
    #[error(
        "{first} (pool {first_pool}, stride {first_stride}) and {second} (pool {second_pool}, stride {second_stride}) share a range of allocation {allocation}: there is no plane of one pool and one stride to resize"
    )]
    Mixed {
        /// One field.
        first: Box<FieldPlace>,
        /// Its pool.
        first_pool: PoolId,
        /// Bytes from one of its blocks to the next.
        first_stride: u64,
        /// The other field.
        second: Box<FieldPlace>,
        /// Its pool.
        second_pool: PoolId,
        /// Bytes from one of its blocks to the next.
        second_stride: u64,
        /// Where.
        allocation: AllocationId,
    },
    /// With one block, parts of a row look like planes one after another.
    #[error(
        "pool {pool} has 1 block: whether {first} and {second} share a row or lie in planes apart can't be told"
    )]
    SingleBlock {
        /// The pool.
        pool: PoolId,
        /// One field.
        first: Box<FieldPlace>,
        /// The other, or the same where its own parts are meant.
        second: Box<FieldPlace>,
    },
    /// A block's fields are in one plane, but not in one row of it.
    #[error(
        "{first} and {second} share a plane in allocation {allocation}, but block 0 of the second is a row of {stride} bytes or more after the first's"
    )]
    Skewed {
        /// The field that starts the plane.
        first: Box<FieldPlace>,
        /// The field further on.
        second: Box<FieldPlace>,
        /// Bytes from one block to the next.
        stride: u64,
        /// Where.
        allocation: AllocationId,
    },
    /// Parts of a block are neither in one row nor a plane apart.
    #[error(
        "parts of a block of {place} are neither in one row of {stride} bytes nor evenly apart"
    )]
    Scattered {
        /// Which.
        place: Box<FieldPlace>,
        /// Bytes from one block to the next.
        stride: u64,
    },
    /// The resized layout is not a layout.
    #[error(transparent)]
    Invalid(#[from] LayoutError),
}

impl CacheLayout {
    /// The same pages in the same planes, with `capacity` ids in `pool`.
    ///
    /// A plane is a range of an allocation in which fields of one pool repeat
    /// at one stride: a row of all layers, one layer's blocks, or one head's.
    /// Planes of the pool grow or shrink by whole strides; all that follows in
    /// the allocation moves, and gaps keep their lengths.
    ///
    /// # Errors
    /// The pool is unknown, the capacity is 0, planes of the pool can't be told
    /// from each other or from another pool's, or the result fails validation.
    pub fn resized(&self, pool: PoolId, capacity: u32) -> Result<Self, ResizeError> {
        let from = self
            .pool(pool)
            .ok_or(ResizeError::UnknownPool { pool })?
            .capacity();
        if capacity == 0 {
            return Err(ResizeError::NoBlocks { pool, from });
        }
        if capacity == from {
            return Ok(self.clone());
        }
        let change = Change {
            pool,
            from,
            to: capacity,
        };
        let fields = members(self);
        let mut planes: BTreeMap<AllocationId, Planes> = BTreeMap::new();
        for (id, members) in by_allocation(&fields) {
            planes.insert(id, Planes::find(&change, id, &members)?);
        }
        let mut raw = self.to_raw();
        for raw in raw.pools.iter_mut().filter(|raw| raw.id == pool.get()) {
            raw.capacity = capacity;
        }
        for raw in &mut raw.allocations {
            if let Some(planes) = planes.get(&AllocationId::new(raw.id)) {
                raw.len = change.moved(raw.len, planes.strides)?;
            }
        }
        let raw_fields = raw
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.layers)
            .flat_map(|layer| &mut layer.fields);
        for (raw, member) in raw_fields.zip(&fields) {
            if let Some(planes) = planes.get(&member.field.allocation()) {
                member.relocate(&change, planes, raw)?;
            }
        }
        let resized = Self::new(&raw)?;
        for (before, after) in fields.iter().zip(members(&resized)) {
            let axes = |field: &Field| field.dims().iter().map(Dim::axis).collect::<Vec<_>>();
            if axes(before.field) != axes(after.field) {
                return Err(before.scattered());
            }
        }
        Ok(resized)
    }
}

/// Another number of blocks for one pool.
pub(crate) struct Change {
    pub(crate) pool: PoolId,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Change {
    /// Where a byte comes to lie after planes whose strides add up to `strides`.
    pub(crate) fn moved(&self, at: u64, strides: u64) -> Result<u64, LayoutError> {
        let blocks = u64::from(self.from.abs_diff(self.to));
        strides
            .checked_mul(blocks)
            .and_then(|bytes| {
                if self.to > self.from {
                    at.checked_add(bytes)
                } else {
                    at.checked_sub(bytes)
                }
            })
            .ok_or(LayoutError::Quantity {
                place: Place::Pool(self.pool),
                error: QuantityError::Overflow { what: "offset" },
            })
    }
}
