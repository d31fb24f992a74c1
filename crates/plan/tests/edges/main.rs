//! Where planning and the check change their minds: layouts, drafts, batches
//! and texts on both sides of every boundary.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a layout or request that can't be made fails the test"
)]

mod ask;
mod drafts;
mod explained;
mod gaps;
mod owners;
mod texts;
mod work;
