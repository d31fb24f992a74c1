//! Requests as they are written: plain numbers, nothing checked.
//!
//! This is the JSON format `mooncake-pd-request/1`.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The value of [`RawRequests::format`].
pub const REQUEST_FORMAT: &str = "mooncake-pd-request/1";

/// A file of requests for one pair of layouts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRequests {
    /// Always [`REQUEST_FORMAT`].
    pub format: String,
    /// Requests that are planned as one batch.
    pub requests: Vec<RawRequest>,
}

/// What one request wants moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRequest {
    /// Its name, for messages.
    pub id: String,
    /// Prompt tokens the source has computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed_tokens: Option<u64>,
    /// Says that the token count is unknown and both sides' lists end at the
    /// same position.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tail_aligned: bool,
    /// Block tables of every group.
    pub groups: Vec<RawTables>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Both sides' block tables of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTables {
    /// The group.
    pub group: u32,
    /// The side that has the bytes.
    pub source: RawSlots,
    /// The side that wants them.
    pub destination: RawSlots,
}

/// A block table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSlots {
    /// Position of the first entry, in blocks from the prompt's start. Without
    /// it the list ends at the last computed block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_block: Option<u64>,
    /// Ids in the group's pool, or null where no block stands.
    pub entries: Vec<Option<u64>>,
}
