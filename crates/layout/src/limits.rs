//! What bounds the work and memory one layout may cost: layouts come from
//! peers.

/// Most allocations a layout may have.
pub const MAX_ALLOCATIONS: usize = 65_536;
/// Most pools a layout may have.
pub const MAX_POOLS: usize = 1_024;
/// Most groups a layout may have.
pub const MAX_GROUPS: usize = 1_024;
/// Most fields a layout may have over all its groups and layers.
pub const MAX_FIELDS: usize = 262_144;
/// Most fields a layer may have.
pub const MAX_FIELDS_PER_LAYER: usize = 1_024;
/// Most ranges of reserved ids a pool may have.
pub const MAX_RESERVED: usize = 1_024;
/// Most runs one block of one field may consist of.
pub const MAX_RUNS_PER_FIELD: u64 = 65_536;
/// Most contiguous pieces that one block of all fields together may have.
/// The blocks of reports known from engines have at most 268.
pub const MAX_SEGMENTS: usize = 262_144;

/// Most steps of comparing combs of different strides or pools.
pub(crate) const MAX_STEPS: u64 = 1 << 24;
