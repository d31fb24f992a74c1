//! Checked plans of byte copies between two KV cache layouts.
//!
//! A transfer is a function of the source's layout, the destination's layout
//! and a request; its value is a set of byte copies. [`Pairing`] pairs two
//! layouts, [`Request`] holds a request's block tables by position, and
//! [`Pairing::plan`] turns them into a [`Plan`], which only the check makes.
//!
//! # What a plan proves
//! - The source of each destination byte is the byte at the same group, layer,
//!   field, position and offset in the page.
//! - Destinations are pairwise disjoint and are exactly the demanded payload;
//!   only an explicit [`Contract::BridgeDead`] adds bytes, dead ones.
//! - Every copy lies inside one allocation on either side, and no placeholder
//!   is read or written.
//! - What the destination listed and does not receive is in
//!   [`Plan::unfilled`], with the reason.
//!
//! Offsets count from the starts of allocations; this crate knows no address.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

mod admission;
mod atom;
mod check;
mod contract;
mod copy;
mod dead;
mod demand;
mod draft;
mod expected;
mod explain;
mod id_set;
mod leases;
mod lower;
mod pairing;
mod plan;
mod raw;
mod request;
mod section;
mod select;
mod shared;
mod slots;
#[cfg(feature = "testing")]
pub mod testing;
mod walk;

pub use check::{CheckError, PieceProblem};
pub use contract::{BoundsGrade, Contract};
pub use copy::Copy;
pub use draft::{Draft, Piece, Stretch};
pub use leases::{Lease, LeaseConflict, Leases};
pub use pairing::{Incompatible, Pairing, PairingError};
pub use plan::{Batch, Options, Plan, Refused};
pub use raw::{REQUEST_FORMAT, RawRequest, RawRequests, RawSlots, RawTables};
pub use request::{Owner, Request, RequestError, Side, Tables, Tokens};
pub use section::Section;
pub use select::{Pair, Unfilled, UnfilledReason};
pub use slots::{MAX_ENTRIES, Slots};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
