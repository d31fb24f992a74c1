//! What a source and its target say to each other; see `docs/channel.md`.

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, Offset};
use mooncake_pd_rdma::{Address, Region, RegionMap};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RemoteError;

/// Version of the channel.
pub(crate) const PROTOCOL: u32 = 1;
/// Names the address at which the source waits for its target.
pub(crate) const CHANNEL_ENV: &str = "MOONCAKE_PD_CHANNEL";
/// Names the word with which the target shows that it is the one.
pub(crate) const TOKEN_ENV: &str = "MOONCAKE_PD_TOKEN";

/// The target's first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// The word it was given.
    pub(crate) token: String,
}

/// What the source asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Start an engine.
    Hello {
        protocol: u32,
        engine: String,
        memory: String,
    },
    /// Allocate a layout's memory and register it.
    Serve { layout: Value },
    /// Write the payload there.
    Write { allocation: u32, offset: u64 },
    /// Answer with those bytes.
    Read {
        allocation: u32,
        offset: u64,
        len: u64,
    },
    /// Unregister the memory and free it.
    Release,
}

/// What the target answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The engine runs; its peers open it by that name.
    Hello { protocol: u32, name: String },
    /// The memory is registered.
    Serving { regions: Vec<RegionMessage> },
    /// Done.
    Done,
    /// The bytes are the payload.
    Bytes,
    /// Not done; the channel goes on.
    Error { error: String },
}

/// A registered range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegionMessage {
    allocation: u32,
    start: u64,
    len: u64,
    address: u64,
}

impl From<&Region> for RegionMessage {
    fn from(region: &Region) -> Self {
        Self {
            allocation: region.allocation().get(),
            start: region.span().start().get(),
            len: region.span().len().get(),
            address: region.address().get(),
        }
    }
}

/// The map that a target's ranges are.
pub(crate) fn map(regions: &[RegionMessage]) -> Result<RegionMap, RemoteError> {
    let region = |told: &RegionMessage| {
        let bad = |_| RemoteError::Range {
            allocation: told.allocation,
            start: told.start,
            len: told.len,
        };
        let start = Offset::new(told.start).map_err(bad)?;
        let len = ByteLen::new(told.len).map_err(bad)?;
        let span = ByteSpan::new(start, len).map_err(bad)?;
        let address = Address::new(told.address)?;
        Ok(Region::new(
            AllocationId::new(told.allocation),
            span,
            address,
        )?)
    };
    let regions: Result<Vec<_>, RemoteError> = regions.iter().map(region).collect();
    Ok(RegionMap::new(regions?)?)
}
