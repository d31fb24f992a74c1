//! Failures that people met in the field, each reduced to its inputs and the
//! right result. Every plan of a case also passes everything that is promised of
//! plans, and every mutation of its draft is refused.
#![allow(
    clippy::unwrap_used,
    reason = "a layout or request that can't be made fails the test"
)]

mod ask;
mod identity;
mod ownership;
mod transfer;
