//! What a plan may touch, and how far it is proved.

use core::fmt;
use mooncake_pd_layout::ByteLen;

/// Which destination bytes a plan may write besides the payload asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contract {
    /// None. Padding and every other byte stay as they are.
    #[default]
    PayloadOnly,
    /// Gaps of up to `max_gap` bytes between payload that, for as long as the
    /// request owns its blocks, belong to nobody: padding, and bytes of the
    /// same block that only other groups of its pool use. They receive stale
    /// source bytes. An opt-in of the destination's owner, for fewer
    /// descriptors.
    BridgeDead {
        /// Longest gap that may be written.
        max_gap: ByteLen,
    },
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PayloadOnly => f.write_str("payload only"),
            Self::BridgeDead { max_gap } => {
                write!(
                    f,
                    "bridges dead gaps of up to {max_gap} bytes with stale bytes"
                )
            }
        }
    }
}

/// What is known about the destination's registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BoundsGrade {
    /// The peer sent its registered regions with their lengths, and the layout
    /// it was paired with holds just these: every copy is proved to lie inside
    /// one. For whoever made the layout to say.
    Proved,
    /// The peer sent addresses without lengths (stock vLLM's wire): copies lie
    /// inside what its layout implies.
    #[default]
    PeerAsserted,
}

impl fmt::Display for BoundsGrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proved => "proved",
            Self::PeerAsserted => "asserted by the peer",
        })
    }
}
