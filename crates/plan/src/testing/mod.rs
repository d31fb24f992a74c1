//! Oracles for tests and benchmarks, compiled under the feature `testing` only.
//!
//! What is here says what others do, or what has to hold. It shares no code with planning and with
//! the check, and nothing here is a plan.
//!
//! - [`Case`] makes layouts and requests of bytes, for quickcheck and for fuzzing alike.
//! - [`Plain`], [`Demand`] and [`Ownership`] recompute byte by byte what requests demand and which
//!   must be refused; [`Memory`] shows what copies do.
//! - [`Reference`] is a plain check of drafts by sorting and sweeping; [`Mutation`] damages drafts.
//! - [`check_plan_bytes`] and [`check_check_bytes`] are what has to hold for any bytes.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failed test, and overflow panics in tests"
)]

mod case;
mod checked;
mod demand;
mod memory;
mod mutation;
mod plain;
mod planned;
mod reference;
mod refusal;
mod uncoalesced;
pub mod vllm;

pub use case::Case;
pub use checked::{Judge, check_check_bytes, check_every_mutation};
pub use demand::{Demand, Move, Want, sorted};
pub use memory::{Content, Descriptor, Memory};
pub use mutation::Mutation;
pub use plain::{Place, Plain};
pub use planned::{check_plan, check_plan_bytes};
pub use reference::{Fault, Interval, Reference, written};
pub use refusal::{Ownership, invalid};
pub use uncoalesced::uncoalesced;
