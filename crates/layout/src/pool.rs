//! Id spaces.

use alloc::vec::Vec;
use core::ops::Range;

use crate::ids::PoolId;

/// One id space: ids `0..capacity`, some of which never stand for a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub(crate) id: PoolId,
    pub(crate) capacity: u32,
    pub(crate) null_id: Option<u32>,
    pub(crate) reserved: Vec<Range<u32>>,
}

impl Pool {
    /// Its name.
    #[must_use]
    pub const fn id(&self) -> PoolId {
        self.id
    }

    /// Ids are `0..capacity`; 1..2^32.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The id that means "no block" in lists (vLLM: 0), if there is one.
    #[must_use]
    pub const fn null_id(&self) -> Option<u32> {
        self.null_id
    }

    /// Ids that never appear in lists (`SGLang`: 0): ranges ascending, with
    /// live ids between them.
    #[must_use]
    pub fn reserved(&self) -> &[Range<u32>] {
        &self.reserved
    }

    /// Whether the id can stand for a block: in range, neither null nor
    /// reserved.
    #[must_use]
    pub fn is_live(&self, id: u32) -> bool {
        id < self.capacity && self.null_id != Some(id) && !self.is_reserved(id)
    }

    fn is_reserved(&self, id: u32) -> bool {
        let after = self.reserved.partition_point(|range| range.start <= id);
        after
            .checked_sub(1)
            .and_then(|before| self.reserved.get(before))
            .is_some_and(|range| id < range.end)
    }
}
