//! Layouts from what engines report about themselves.
//!
//! | `format` or `schema` | engine | reader |
//! |---|---|---|
//! | `mooncake-pd-layout/1` | any | [`CacheLayout::from_json`] |
//! | `vllm-kv-layout/1` | vLLM 0.33 | [`vllm_033`](fn@vllm_033) |
//! | `vllm-gpu-capture/1` | vLLM 0.26 | [`vllm_026`](fn@vllm_026) |
//! | `sglang-pd-layout-facts/1` | SGLang 0.5.23 | [`sglang`](fn@sglang) |
//!
//! Every reader ends in [`CacheLayout::new`]. Sizes in a report are only
//! compared and multiplied with checks, never allocated by.

mod error;
mod gdn;
mod place;
mod sglang;
mod sglang_field;
mod sglang_report;
mod vllm_026;
mod vllm_033;
mod vllm_033_report;
mod vllm_033_state;
mod vllm_cache;
mod vllm_spec;

pub use error::ImportError;
pub use place::ReportPlace;
pub use sglang::sglang;
pub use vllm_026::vllm_026;
pub use vllm_033::vllm_033;

use alloc::string::String;
use serde::Deserialize;

use crate::layout::CacheLayout;
use crate::raw;

/// Which side of a report to read, where a report holds both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that computes the prompt.
    Prefill,
    /// The side that generates tokens.
    Decode,
}

/// Formats that [`any`] tells apart.
const KNOWN: [&str; 4] = [
    raw::FORMAT,
    vllm_033::FORMAT,
    vllm_026::FORMAT,
    sglang::FORMAT,
];

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: String,
    #[serde(default)]
    schema: String,
}

/// Reads a layout in any format this module knows, told apart by its `format`
/// or `schema` key. `side` matters only to formats that hold both sides.
///
/// # Errors
/// An unknown format by its name, and those of the format's reader.
pub fn any(json: &str, side: Side) -> Result<CacheLayout, ImportError> {
    let header: Header =
        serde_json::from_str(json).map_err(|error| ImportError::Header(error.into()))?;
    let name = if header.format.is_empty() {
        header.schema
    } else {
        header.format
    };
    match name.as_str() {
        raw::FORMAT => Ok(CacheLayout::from_json(json)?),
        vllm_033::FORMAT => vllm_033(json),
        vllm_026::FORMAT => vllm_026(json),
        sglang::FORMAT => sglang(json, side),
        _ => Err(ImportError::UnknownFormat {
            found: name,
            known: &KNOWN,
        }),
    }
}

fn parse<'a, T: Deserialize<'a>>(format: &'static str, json: &'a str) -> Result<T, ImportError> {
    serde_json::from_str(json).map_err(|error| ImportError::Json {
        format,
        error: error.into(),
    })
}
