//! What decode asks of prefill.

mod decode;
mod encode;
mod request;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

pub(super) use decode::layout_id as read_layout_id;

use super::blocks::BlockLists;
use super::puller::Puller;
use super::region::{PeerLayout, TransferGroup};
use crate::id::{IdError, RequestId, TransferId};

/// Name of the layout that a decode rank registered, odd and below 2^63. Random, so that a
/// restarted rank never uses one again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayoutId(u64);

impl LayoutId {
    /// Takes an odd number below 2^63.
    #[must_use]
    pub const fn new(id: u64) -> Option<Self> {
        if id % 2 == 1 && id < 1 << 63 {
            Some(Self(id))
        } else {
            None
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LayoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for LayoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// One request of a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// What decode calls it; answers do too.
    pub request: RequestId,
    /// What both sides call its hand-over.
    pub transfer: TransferId,
    /// Where decode wants the blocks.
    pub blocks: BlockLists,
}

/// A request that one pull names twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requests {first} and {second} of the pull are both {request}")]
pub struct RepeatedRequest {
    /// The request.
    pub request: RequestId,
    /// Its first position.
    pub first: usize,
    /// The other one.
    pub second: usize,
}

/// A decode rank's message to a prefill rank: push these requests' blocks into my memory.
///
/// On the wire it is one msgpack map, one frame from a `DEALER` socket. Its keys, in the order
/// stock peers write them:
///
/// | key | value |
/// |---|---|
/// | `remote_hostname`, `remote_port` | session of decode's transfer engine |
/// | `remote_tp_size`, `remote_tp_rank` | integers |
/// | `req_blocks` | `{request: [transfer, [[id, ...] per group]]}`, `[transfer, []]` releases |
/// | `kv_caches_base_addr`, `block_lens`, `kv_block_lens` | one integer per region; empty without a layout |
/// | `registered_layer_names`, `registered_layer_indices` | one per region |
/// | `registered_group_indices` | one per region, -1 for a shared one |
/// | `registered_shared_group_ids` | a list of groups per region |
/// | `registered_row_offsets` | one per region, -1 for none |
/// | `remote_pp_size` | integer, 1 if absent |
/// | `layout_id` | integer, 0 if absent; not in 0.32 |
///
/// A pull without layout asks for the one that was sent with the same layout id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    puller: Puller,
    requests: Vec<PullRequest>,
    layout: Option<PeerLayout>,
    layout_id: Option<LayoutId>,
}

impl Pull {
    /// A pull of requests, each named once.
    ///
    /// # Errors
    /// A request is there twice.
    pub fn new(
        puller: Puller,
        requests: Vec<PullRequest>,
        layout: Option<PeerLayout>,
        layout_id: Option<LayoutId>,
    ) -> Result<Self, RepeatedRequest> {
        let mut seen = BTreeSet::new();
        let twice = requests.iter().enumerate();
        let twice = twice.filter(|(_, asked)| !seen.insert(&asked.request));
        if let Some((second, PullRequest { request, .. })) = twice.into_iter().next() {
            let first = requests.iter().position(|asked| asked.request == *request);
            return Err(RepeatedRequest {
                request: request.clone(),
                first: first.unwrap_or(second),
                second,
            });
        }
        Ok(Self {
            puller,
            requests,
            layout,
            layout_id,
        })
    }

    /// Who pulls.
    #[must_use]
    pub const fn puller(&self) -> &Puller {
        &self.puller
    }

    /// What is pulled, in the order of the message.
    #[must_use]
    pub fn requests(&self) -> &[PullRequest] {
        &self.requests
    }

    /// Where the puller's blocks lie, unless it is known from an earlier pull.
    #[must_use]
    pub const fn layout(&self) -> Option<&PeerLayout> {
        self.layout.as_ref()
    }

    /// What the layout is called.
    #[must_use]
    pub const fn layout_id(&self) -> Option<LayoutId> {
        self.layout_id
    }
}

/// A pull that was received: what can be served, and what has to be answered with a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedPull {
    /// The pull without the refused requests.
    pub pull: Pull,
    /// Requests that are not served; no id stands here and in the pull.
    pub refused: Vec<RefusedRequest>,
}

/// A request of a pull that is wrong by itself. It fails alone, the others are served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {request}: {fault}")]
pub struct RefusedRequest {
    /// What decode calls it.
    pub request: RequestId,
    /// What is wrong.
    pub fault: RequestFault,
}

/// What is wrong with one request of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    // Perhaps ours: a limit.
    /// It has more groups than are taken.
    #[error("{count} groups are more than {limit}")]
    Groups {
        /// Its groups.
        count: usize,
        /// Most groups of one.
        limit: usize,
    },
    /// It has more block ids than are taken.
    #[error("{count} block ids are more than {limit}")]
    Blocks {
        /// Its block ids.
        count: usize,
        /// Most of one request.
        limit: usize,
    },

    // The peer's.
    /// Its transfer has no name that we could know.
    #[error(transparent)]
    Transfer(#[from] IdError),
    /// A number is no block id. Stock peers read negative ones.
    #[error("block id {found} at {position} in group {group} is outside 0..2^32")]
    Block {
        /// The group.
        group: TransferGroup,
        /// Its position there.
        position: usize,
        /// The number.
        found: i128,
    },
}
