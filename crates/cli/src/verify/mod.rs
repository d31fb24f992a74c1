//! The separate walker and the byte check.
//!
//! What a transfer must have done is found here a second time, from the raw
//! JSON of the layout files: shapes, strides and block lists, element by
//! element. Nothing of the layout crate's fields and pages and nothing of the
//! plan crate is used, so an error there can't hide here.
//!
//! [`Layout::read`] takes any of the layout formats, [`demand`] pairs two of
//! them under block lists, [`check`] compares every byte of both sides.

mod audit;
mod bridge;
mod capture;
mod check;
mod demand;
mod error;
mod json;
mod layout;
mod lists;
mod manifest;
mod owner;
mod pattern;
mod sglang;
mod view;
mod vllm;

pub use audit::{Audit, Sizes};
pub use bridge::{Copy, bridge};
pub use check::{Memory, Mismatch, Outcome, check, fill};
pub use demand::{Demand, Row, demand};
pub use error::WalkError;
pub use layout::{GroupFacts, Layout, Side};
pub use lists::{GroupLists, List, Lists};
pub use owner::owners;
pub use pattern::Pattern;
pub use view::{Span, View};
