//! Generators and checks for tests and fuzzing, compiled under the feature
//! `testing` only.
//!
//! Everything is made from bytes: the same generator serves quickcheck, which
//! draws the bytes at random, and a fuzzer, which evolves them. No bytes at all
//! make the smallest layout.
//!
//! - [`layout`] and [`pair`] make layouts that are valid, small enough to
//!   simulate their memory (every allocation is below [`MAX_ALLOCATION`]) and
//!   between them have every shape a [`CacheLayout`](crate::CacheLayout) can
//!   express.
//! - [`hostile`] makes manifests of which most are wrong.
//! - [`check_layout_bytes`] is what has to hold for any bytes.

mod check;
mod content;
mod hostile;
mod naive;
mod sample;
mod storage;

pub use arbitrary;
pub use check::{check_layout_bytes, check_raw};
pub use hostile::hostile;
pub use naive::{Byte, Naive, Verdict};
pub use sample::{AnyLayout, AnyManifest, AnyPair};
pub use storage::MAX_ALLOCATION;

use crate::raw::RawLayout;
use arbitrary::{Result, Unstructured};
use content::Content;
use std::string::ToString;

/// A valid layout.
///
/// # Errors
/// As [`Unstructured`]; never for want of bytes.
pub fn layout(bytes: &mut Unstructured<'_>) -> Result<RawLayout> {
    let content = Content::new(bytes)?;
    storage::store(&content, bytes)
}

/// A source and a destination between which every transfer is possible: of
/// the same content in two storages of their own. They differ in strides,
/// offsets, padding, block counts, pools, pages per block (where that does not
/// change the order of bytes) and the order of everything; the destination may
/// have layers that the source has not, and either may leave out its content
/// tag.
///
/// # Errors
/// As [`Unstructured`]; never for want of bytes.
pub fn pair(bytes: &mut Unstructured<'_>) -> Result<(RawLayout, RawLayout)> {
    let mut content = Content::new(bytes)?;
    let mut source = storage::store(&content, bytes)?;
    content.add_draft_layers(bytes)?;
    let mut destination = storage::store(&content, bytes)?;
    for side in [&mut source, &mut destination] {
        if bytes.ratio(1_u8, 2)? {
            side.content.model_revision = "r1".to_string();
        }
    }
    Ok((source, destination))
}
