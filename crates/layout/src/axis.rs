//! Axes of a page and how tensor parallelism cuts them.

use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// What an axis of a page counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Axis {
    /// Key-value heads, or heads of a recurrent state.
    Head,
    /// Rows of a page in token order.
    Token,
    /// Elements of one row.
    Content,
    /// Taps of a convolution state.
    Tap,
    /// Channels of a convolution state.
    Channel,
    /// Key dimension of a recurrent state.
    Key,
    /// Value dimension of a recurrent state.
    Value,
    /// Bytes whose inner structure the engine does not publish.
    Byte,
    /// Physical pages of one logical block; never in a manifest, it comes from
    /// the group's expansion.
    #[serde(skip)]
    Page,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::Token => "token",
            Self::Content => "content",
            Self::Tap => "tap",
            Self::Channel => "channel",
            Self::Key => "key",
            Self::Value => "value",
            Self::Byte => "byte",
            Self::Page => "page",
        })
    }
}

/// One axis of a block: `extent` steps of `stride` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    pub(crate) axis: Axis,
    pub(crate) extent: u64,
    pub(crate) stride: u64,
}

impl Dim {
    /// What it counts.
    #[must_use]
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// Elements along it, 1..2^62.
    #[must_use]
    pub const fn extent(&self) -> u64 {
        self.extent
    }

    /// Bytes from one to the next, 1..2^62.
    #[must_use]
    pub const fn stride(&self) -> u64 {
        self.stride
    }
}

/// How a field is divided among tensor-parallel ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Every rank holds the whole field.
    Replicated,
    /// Each rank holds a share of every part along one axis. A GDN convolution
    /// state has three parts (q, k, v), each divided by itself.
    Sharded {
        /// The axis that is cut.
        axis: Axis,
        /// This rank's extents of the parts, in order.
        parts: Vec<u64>,
        /// Consecutive ranks that hold the same share, 1..=TP size, a divisor
        /// of the TP size: rank `r` holds share `r / replicas`.
        replicas: u32,
    },
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated => f.write_str("replicated"),
            Self::Sharded {
                axis,
                parts,
                replicas,
            } => {
                write!(f, "sharded along {axis} in parts {parts:?}")?;
                match replicas {
                    1 => Ok(()),
                    more => write!(f, ", each on {more} ranks"),
                }
            }
        }
    }
}
