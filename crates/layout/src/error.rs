//! What can be wrong with a layout, and where.

use alloc::boxed::Box;
use alloc::string::String;

use crate::field_error::FieldError;
use crate::ids::{AllocationId, GroupId, PoolId};
use crate::json::JsonError;
use crate::place::{FieldPlace, Place};
use crate::units::QuantityError;

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
    #[error("{place} has {count} {what}, the limit is {limit}")]
    TooMany {
        /// What has too much.
        place: Place,
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
        /// Most allowed.
        limit: u64,
    },
    /// Nothing of something there must be.
    #[error("{place} has no {what}")]
    Empty {
        /// What lacks it.
        place: Place,
        /// What is missing.
        what: &'static str,
    },
    /// Two things with the same number.
    #[error("{place} appears twice")]
    IdTwice {
        /// Both of them.
        place: Place,
    },
    /// A reference to something that is not there.
    #[error("{place} names {target}, which does not exist")]
    Unknown {
        /// What refers to it.
        place: Place,
        /// What it refers to.
        target: Place,
    },
    /// A number out of range.
    #[error("{place}: {error}")]
    Quantity {
        /// Where.
        place: Place,
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
    /// A null id outside its pool.
    #[error("pool {pool}: null id {id} is outside 0..{capacity}")]
    NullId {
        /// The pool.
        pool: PoolId,
        /// The null id.
        id: u32,
        /// The pool's capacity.
        capacity: u32,
    },
    /// A range of reserved ids that is empty, reversed or outside its pool.
    #[error("pool {pool}: reserved ids [{start}, {end}] are no range of ids within 0..{capacity}")]
    Reserved {
        /// The pool.
        pool: PoolId,
        /// First reserved id.
        start: u32,
        /// One past the last.
        end: u32,
        /// The pool's capacity.
        capacity: u32,
    },
    /// A pool arbitrated with itself, whose ids own bytes of their own.
    #[error("pool {pool} can't be arbitrated with itself")]
    ArbitratedWithItself {
        /// The pool.
        pool: PoolId,
    },
    /// A kind of group that is not known.
    #[error("group {group} is of unknown kind `{kind}`")]
    UnknownKind {
        /// The group.
        group: GroupId,
        /// The kind.
        kind: String,
    },
    /// A sliding kind without a window.
    #[error("group {group} of kind {kind} has no window")]
    NoWindow {
        /// The group.
        group: GroupId,
        /// Its kind.
        kind: &'static str,
    },
    /// A window of a kind that has none.
    #[error("group {group} of kind {kind} can't have a window, it has {window} tokens")]
    WindowOfKind {
        /// The group.
        group: GroupId,
        /// Its kind.
        kind: &'static str,
        /// The window, tokens.
        window: u32,
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
    Json(JsonError),
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
