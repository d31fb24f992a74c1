//! What can keep the walker from walking.

use thiserror::Error;

/// The raw files or lists can't be walked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WalkError {
    /// The text is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// The parser's message.
        reason: String,
    },
    /// The file states a format that the walker doesn't know.
    #[error("layout format {found:?} is unknown to the walker")]
    Format {
        /// The stated format.
        found: String,
    },
    /// A value is absent or of another type.
    #[error("{place} has no {wanted} `{key}`")]
    Missing {
        /// Where in the file.
        place: String,
        /// The key.
        key: String,
        /// The type it should have.
        wanted: &'static str,
    },
    /// Shape and strides of a view differ in rank, or it has no block axis.
    #[error("{place}: shape has {shape} axes and strides {strides}")]
    Rank {
        /// The view.
        place: String,
        /// Axes of the shape.
        shape: usize,
        /// Axes of the strides.
        strides: usize,
    },
    /// A number in a file leads past 64 bits.
    #[error("{place}: {what} is over 64 bits")]
    Overflow {
        /// The view or group.
        place: String,
        /// What was computed.
        what: &'static str,
    },
    /// A list names a block that a view doesn't have.
    #[error("{place}: page {page} of block {block} is outside 0..{pages}")]
    Block {
        /// The view.
        place: String,
        /// The block.
        block: u64,
        /// Its page.
        page: u64,
        /// Pages of the view.
        pages: u64,
    },
    /// A request names a group that a layout lacks.
    #[error("request {request}: group {group} is not in the {side} layout")]
    Group {
        /// The request.
        request: String,
        /// The group.
        group: u32,
        /// `source` or `destination`.
        side: &'static str,
    },
    /// A layer's block has other lengths on the two sides.
    #[error(
        "group {group} layer {layer}: {source_bytes} B a block on the source, {destination_bytes} B on the destination"
    )]
    Length {
        /// The group.
        group: u32,
        /// The layer.
        layer: String,
        /// Bytes of a block on the source.
        source_bytes: u64,
        /// Bytes of a block on the destination.
        destination_bytes: u64,
    },
    /// Two demands claim one destination byte.
    #[error("destination allocation {allocation} byte {offset} is demanded twice")]
    Twice {
        /// The allocation.
        allocation: u32,
        /// The byte.
        offset: u64,
    },
    /// A bridged byte belongs to somebody.
    #[error("destination allocation {allocation} byte {offset} is bridged but belongs to {owner}")]
    Alive {
        /// The allocation.
        allocation: u32,
        /// The byte.
        offset: u64,
        /// Whose it is.
        owner: String,
    },
    /// A bridged gap is longer than allowed.
    #[error(
        "destination allocation {allocation} byte {offset}: {len} bytes are bridged, {max_gap} are allowed"
    )]
    Gap {
        /// The allocation.
        allocation: u32,
        /// First byte of the gap.
        offset: u64,
        /// Its bytes.
        len: u64,
        /// Most bytes allowed.
        max_gap: u64,
    },
    /// A demanded row lies outside the memory that it should be in.
    #[error("{side} allocation {allocation} of {have} B lacks bytes {offset}..{end}")]
    Outside {
        /// `source` or `destination`.
        side: &'static str,
        /// The allocation.
        allocation: u32,
        /// First byte of the row.
        offset: u64,
        /// One past its last.
        end: u64,
        /// Bytes that there are.
        have: u64,
    },
}
