//! KV cache layouts of prefill and decode engines.
//!
//! A [`CacheLayout`] says where every cached byte of one engine rank lies and
//! who owns it: allocations, id pools, cache groups, their layers and fields.
//! It comes from code ([`LayoutBuilder`]), from a JSON manifest
//! ([`CacheLayout::from_json`], format in [`raw`]), or from what an engine
//! reported about itself ([`import`]); all three end in one validation.
//! [`compare`] says in what two of them differ, a [`Fingerprint`] stands for
//! what their pages contain.
//!
//! This crate knows bytes, groups and pools. It knows no request, no address
//! and no peer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

mod axis;
mod builder;
mod comb;
mod compare;
mod difference;
mod dtype;
mod encode;
mod error;
mod expansion;
mod field;
mod field_error;
mod fingerprint;
mod group;
mod ids;
pub mod import;
mod json;
mod layout;
mod limits;
mod overlay;
mod place;
mod planes;
mod pool;
pub mod raw;
mod resize;
mod run;
#[cfg(feature = "testing")]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failed test"
)]
pub mod testing;
mod units;
mod validate;

pub use axis::{Axis, Dim, Split};
pub use builder::{FieldSpec, GroupSpec, LayoutBuilder};
pub use compare::compare;
pub use difference::Difference;
pub use dtype::{DType, UnknownDType};
pub use encode::EncodeError;
pub use error::{EntryError, LayoutError};
pub use expansion::Expansion;
pub use field::Field;
pub use field_error::FieldError;
pub use fingerprint::Fingerprint;
pub use group::{Group, GroupKind, Layers, Page};
pub use ids::{
    AllocationId, BlockEntry, FieldId, GroupId, LayerId, LogicalBlock, PhysicalBlock, PoolId,
    StateSlot,
};
pub use json::JsonError;
pub use layout::{Allocation, CacheLayout, Shard};
pub use limits::{
    MAX_ALLOCATIONS, MAX_FIELDS, MAX_FIELDS_PER_LAYER, MAX_GROUPS, MAX_POOLS, MAX_RESERVED,
    MAX_RUNS_PER_FIELD, MAX_SEGMENTS,
};
pub use place::{FieldPlace, Place};
pub use pool::Pool;
pub use raw::RawLayout;
pub use resize::ResizeError;
pub use run::{Run, RunError};
pub use units::{
    BYTE_LIMIT, ByteLen, ByteSpan, Offset, PagesPerBlock, QuantityError, Stride, TokensPerBlock,
    WindowTokens,
};
