//! What can be wrong with a layout, and where.

use alloc::boxed::Box;
use alloc::string::String;

use crate::axis::Axis;
use crate::dtype::UnknownDType;
use crate::ids::{AllocationId, FieldId, GroupId, LayerId, PoolId};
use crate::run::RunError;
use crate::units::QuantityError;

/// Names one field of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its group.
    pub group: GroupId,
    /// Its layer.
    pub layer: LayerId,
    /// Its name.
    pub field: FieldId,
}

impl core::fmt::Display for FieldPlace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "field `{}` of layer `{}` in group {}",
            self.field, self.layer, self.group
        )
    }
}

/// What can be wrong with one field by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A number out of its range.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// An impossible run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An element type that is not known.
    #[error(transparent)]
    DType(#[from] UnknownDType),
    /// No axes.
    #[error("it has no axes")]
    NoDims,
    /// An axis of pages, which only the group's pages per block make.
    #[error("axis {axis} can't be stated, it comes from the pages per block", axis = Axis::Page)]
    PageAxis,
    /// The same axis twice.
    #[error("axis {axis} appears twice")]
    AxisTwice {
        /// The axis.
        axis: Axis,
    },
    /// An extent or stride of zero or beyond 2^62.
    #[error("axis {axis} has extent {extent} and stride {stride}, both must be in 1..2^62")]
    DimRange {
        /// The axis.
        axis: Axis,
        /// Its extent.
        extent: u64,
        /// Its stride.
        stride: u64,
    },
    /// Steps along an axis are shorter than what they step over.
    #[error("axis {axis} steps {stride} bytes over inner axes of {inner} bytes")]
    Nesting {
        /// The axis.
        axis: Axis,
        /// Its stride.
        stride: u64,
        /// Bytes the axes inside it reach over.
        inner: u64,
    },
    /// Parts of a split that don't make up the axis.
    #[error(
        "parts of the split along {axis} add up to {sum} (none may be 0), the axis has {extent}"
    )]
    SplitParts {
        /// The axis.
        axis: Axis,
        /// Sum of the parts.
        sum: u64,
        /// Extent of the axis.
        extent: u64,
    },
    /// Shares that can't be spread evenly over the ranks.
    #[error("each share is on {replicas} ranks, which does not divide the {tp_size} there are")]
    SplitReplicas {
        /// Ranks that hold the same share.
        replicas: u32,
        /// Tensor-parallel size.
        tp_size: u32,
    },
    /// A product or sum beyond 2^62.
    #[error("{what} is 2^62 bytes or more")]
    TooLarge {
        /// What would be too large.
        what: &'static str,
    },
    /// A block in too many pieces.
    #[error("a block is {runs} runs of bytes, the limit is {limit}")]
    TooManyRuns {
        /// Runs it would have.
        runs: u64,
        /// Most runs allowed.
        limit: u64,
    },
}

/// Why a manifest is not a [`CacheLayout`](crate::CacheLayout). Always the
/// caller's fault, or that of the peer that sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Another format, or another version of it.
    #[error("format is `{found}`, this reads `{expected}`")]
    Format {
        /// The format found.
        found: String,
        /// The format known.
        expected: &'static str,
    },
    /// More of something than a layout may have.
    #[error("{count} {what}, the limit is {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
        /// Most allowed.
        limit: u64,
    },
    /// Nothing of something there must be.
    #[error("there are no {what}")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// Two things with the same number.
    #[error("{what} {id} appears twice")]
    IdTwice {
        /// What has the number.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A reference to something that is not there.
    #[error("{place} names {what} {id}, which does not exist")]
    Unknown {
        /// What refers to it.
        place: String,
        /// What it would be.
        what: &'static str,
        /// Its number.
        id: u32,
    },
    /// A number out of range.
    #[error("{place}: {error}")]
    Quantity {
        /// Where.
        place: String,
        /// What is wrong.
        error: QuantityError,
    },
    /// A rank outside its size.
    #[error("{axis} rank {rank} is outside 0..{size}")]
    Rank {
        /// `tp` or `pp`.
        axis: &'static str,
        /// The rank.
        rank: u32,
        /// The size.
        size: u32,
    },
    /// A null or reserved id outside its pool.
    #[error("pool {pool}: {what} {id} is outside 0..{capacity}")]
    PoolId {
        /// The pool.
        pool: PoolId,
        /// Null or reserved id.
        what: &'static str,
        /// The id.
        id: u32,
        /// The pool's capacity.
        capacity: u32,
    },
    /// A kind of group that is not known.
    #[error("group {group} is of unknown kind `{kind}`")]
    UnknownKind {
        /// The group.
        group: GroupId,
        /// The kind.
        kind: String,
    },
    /// A sliding kind without a window, or another kind with one.
    #[error("group {group} of kind {kind} {problem}")]
    Window {
        /// The group.
        group: GroupId,
        /// Its kind.
        kind: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A state group whose slots would be split into pages.
    #[error("group {group} holds state, its slots can't be {pages} pages each")]
    StatePages {
        /// The group.
        group: GroupId,
        /// Pages per block.
        pages: u32,
    },
    /// The same layer or field name twice.
    #[error("{what} `{name}` appears twice in group {group}")]
    NameTwice {
        /// Layer or field.
        what: &'static str,
        /// The name.
        name: String,
        /// The group.
        group: GroupId,
    },
    /// Something is wrong with one field.
    #[error("{place}: {error}")]
    Field {
        /// Which.
        place: Box<FieldPlace>,
        /// What is wrong.
        error: FieldError,
    },
    /// A field's last block ends beyond its allocation.
    #[error("{place} ends at byte {end}, allocation {allocation} has {len}")]
    OutsideAllocation {
        /// Which.
        place: Box<FieldPlace>,
        /// One past its last byte.
        end: u64,
        /// The allocation.
        allocation: AllocationId,
        /// The allocation's length.
        len: u64,
    },
    /// A block's payload runs into the next block of the same field.
    #[error("{place}: payload of {payload} bytes does not fit its stride of {stride}")]
    PayloadExceedsStride {
        /// Which.
        place: Box<FieldPlace>,
        /// Bytes of contiguous payload.
        payload: u64,
        /// Bytes from block to block.
        stride: u64,
    },
    /// Two fields own the same live bytes.
    #[error(
        "{first} (block {first_block}) and {second} (block {second_block}) own the same bytes of allocation {allocation}"
    )]
    Overlap {
        /// One field.
        first: Box<FieldPlace>,
        /// Its block.
        first_block: u64,
        /// The other field.
        second: Box<FieldPlace>,
        /// Its block.
        second_block: u64,
        /// Where.
        allocation: AllocationId,
    },
    /// An overlay that is too irregular to be proved disjoint.
    #[error("{first} and {second} overlay each other too irregularly to be proved disjoint")]
    OverlayUnprovable {
        /// One field.
        first: Box<FieldPlace>,
        /// The other field.
        second: Box<FieldPlace>,
    },
    /// Not a manifest at all.
    #[error("not a layout manifest: {0}")]
    Json(String),
}

/// Why a raw id is not an entry of a group's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The layout has no such group.
    #[error("group {group} does not exist")]
    UnknownGroup {
        /// The group.
        group: GroupId,
    },
    /// The id is beyond the pool.
    #[error("block {id} is outside 0..{capacity} in group {group}")]
    OutOfRange {
        /// The id.
        id: u64,
        /// The pool's capacity.
        capacity: u32,
        /// The group.
        group: GroupId,
    },
    /// The pool keeps the id for itself.
    #[error("block {id} is reserved in pool {pool} of group {group}")]
    Reserved {
        /// The id.
        id: u32,
        /// The pool.
        pool: PoolId,
        /// The group.
        group: GroupId,
    },
}
