//! Why a message can't be read or written.

use core::fmt;

use super::host::HostError;
use super::puller::PullerError;
use super::region::RegionError;
use super::version::Version;
use crate::id::{IdError, RequestId};

/// A part of a message: a key and list positions below it, as in `req_blocks[3][0][17]`.
///
/// The first position under `req_blocks` is that of the request, the second its transfer group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    key: &'static str,
    positions: [Option<usize>; 3],
}

impl Place {
    pub(super) const MESSAGE: Self = Self::key("");

    pub(super) const fn key(key: &'static str) -> Self {
        let positions = [None; 3];
        Self { key, positions }
    }

    /// The entry at `position` of what is here.
    pub(super) fn at(mut self, position: usize) -> Self {
        if let Some(free) = self.positions.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(position);
        }
        self
    }

    /// The key of the outermost map; empty for the message as a whole.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.key
    }

    /// Positions from the outermost list inwards.
    pub fn positions(&self) -> impl Iterator<Item = usize> {
        self.positions.into_iter().flatten()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return f.write_str("the message");
        }
        f.write_str(self.key)?;
        self.positions()
            .try_for_each(|position| write!(f, "[{position}]"))
    }
}

/// Why bytes are not a message of the format. The peer is at fault, or our [`Limits`] are too
/// narrow for it; nothing was taken from the message.
///
/// [`Limits`]: super::Limits
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    // Perhaps ours: a limit.
    /// The message is longer than is taken.
    #[error("a message of {bytes} bytes is more than {limit}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// Most bytes of a message.
        limit: usize,
    },
    /// A list or map has more entries than are taken.
    #[error("{count} entries of {at} are more than {limit}")]
    TooMany {
        /// The list.
        at: Place,
        /// Its entries.
        count: usize,
        /// Most entries of it.
        limit: usize,
    },

    // An incompatible peer: another format, or another release.
    /// A value has another type.
    #[error("{at} is {found}, not {expected}")]
    Type {
        /// The value.
        at: Place,
        /// The type it has in the format.
        expected: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// A tuple has another number of entries.
    #[error("{at} has {found} entries, not {expected}")]
    Size {
        /// The tuple.
        at: Place,
        /// Entries it has in the format.
        expected: usize,
        /// Entries it has.
        found: usize,
    },
    /// A key that every message has is absent.
    #[error("there is no {key}")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// No release has such an answer.
    #[error("status {found} is outside 0..=3")]
    Status {
        /// The number.
        found: i128,
    },

    // A misbehaving peer: no encoder of the format writes this.
    /// The message ends too early.
    #[error("the message ends after {bytes} bytes, inside {at}")]
    Truncated {
        /// The value that is not whole.
        at: Place,
        /// Bytes of the message.
        bytes: usize,
    },
    /// A count is beyond what the rest of the message could hold.
    #[error("{at} announces {count} entries, {left} bytes are left")]
    Count {
        /// The list, map or text.
        at: Place,
        /// The count.
        count: usize,
        /// Bytes after it.
        left: usize,
    },
    /// Something follows the message.
    #[error("{left} bytes follow the message's {bytes}")]
    Trailing {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes after it.
        left: usize,
    },
    /// A text is not UTF-8.
    #[error("{at} is not UTF-8")]
    Utf8 {
        /// The text.
        at: Place,
    },
    /// A number is not one of what it counts.
    #[error("{at} is {found}, outside {low}..={high}")]
    Range {
        /// The number's place.
        at: Place,
        /// The number.
        found: i128,
        /// The least one.
        low: u64,
        /// The greatest one.
        high: u64,
    },
    /// A number is no layout id.
    #[error("layout_id {found} is neither 0 nor odd and below 2^63")]
    LayoutId {
        /// The number.
        found: i128,
    },
    /// A text is no name.
    #[error("{at}: {error}")]
    Id {
        /// The text.
        at: Place,
        /// What is wrong with it.
        error: IdError,
    },
    /// A layer's name is empty or too long.
    #[error("{at} has {len} bytes, outside 1..={limit}")]
    LayerName {
        /// The name.
        at: Place,
        /// Its bytes.
        len: usize,
        /// Most bytes of one.
        limit: usize,
    },
    /// The engine can't be reached there.
    #[error("remote_hostname: {0}")]
    Host(#[from] HostError),
    /// The pulling rank is none.
    #[error(transparent)]
    Puller(#[from] PullerError),
    /// Lists with one entry per region have different lengths.
    #[error("{one} has {one_len} entries, {other} has {other_len}")]
    Lengths {
        /// A list.
        one: &'static str,
        /// Its entries.
        one_len: usize,
        /// Another one.
        other: &'static str,
        /// Its entries.
        other_len: usize,
    },
    /// A region contradicts itself.
    #[error("region {index}: {error}")]
    Region {
        /// Its position.
        index: usize,
        /// What is wrong with it.
        error: RegionError,
    },
    /// A request stands in one pull twice, so that it is unclear where it wants its blocks.
    #[error("req_blocks[{index}] is {id} again")]
    Twice {
        /// Position of the second one.
        index: usize,
        /// The request.
        id: RequestId,
    },
}

/// Why a value can't be written. The caller is at fault: it chose the version and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The release doesn't know such a message.
    #[error("{version} has no {what}")]
    Unknown {
        /// The release.
        version: Version,
        /// The message.
        what: &'static str,
    },
    /// A list or text is longer than the format can say.
    #[error("{len} entries of {what} are more than 2^32 - 1")]
    TooLong {
        /// What is so long.
        what: &'static str,
        /// Its length.
        len: usize,
    },
}
