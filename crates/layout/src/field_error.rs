//! What can be wrong with one field.

use crate::axis::Axis;
use crate::dtype::UnknownDType;
use crate::run::RunError;
use crate::units::QuantityError;

/// What can be wrong with one field by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A number out of its range.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// An impossible run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An element type that is not known.
    #[error(transparent)]
    DType(#[from] UnknownDType),
    /// No axes.
    #[error("it has no axes")]
    NoDims,
    /// An axis of pages, which only the group's pages per block make.
    #[error("axis {axis} can't be stated, it comes from the pages per block", axis = Axis::Page)]
    PageAxis,
    /// The same axis twice.
    #[error("axis {axis} appears twice")]
    AxisTwice {
        /// The axis.
        axis: Axis,
    },
    /// An extent or stride of zero or beyond 2^62.
    #[error("axis {axis} has extent {extent} and stride {stride}, both must be in 1..2^62")]
    DimRange {
        /// The axis.
        axis: Axis,
        /// Its extent.
        extent: u64,
        /// Its stride.
        stride: u64,
    },
    /// Steps along an axis are shorter than what they step over.
    #[error("axis {axis} steps {stride} bytes over inner axes of {inner} bytes")]
    Nesting {
        /// The axis.
        axis: Axis,
        /// Its stride.
        stride: u64,
        /// Bytes the axes inside it reach over.
        inner: u64,
    },
    /// Parts of a split that don't make up the axis.
    #[error(
        "parts of the split along {axis} add up to {sum} (none may be 0), the axis has {extent}"
    )]
    SplitParts {
        /// The axis.
        axis: Axis,
        /// Sum of the parts.
        sum: u64,
        /// Extent of the axis.
        extent: u64,
    },
    /// Shares that can't be spread evenly over the ranks.
    #[error("each share is on {replicas} ranks, which does not divide the {tp_size} there are")]
    SplitReplicas {
        /// Ranks that hold the same share.
        replicas: u32,
        /// Tensor-parallel size.
        tp_size: u32,
    },
    /// A product or sum beyond 2^62.
    #[error("{what} is 2^62 bytes or more")]
    TooLarge {
        /// What would be too large.
        what: &'static str,
    },
    /// A block in too many pieces.
    #[error("a block is {runs} runs of bytes, the limit is {limit}")]
    TooManyRuns {
        /// Runs it would have.
        runs: u64,
        /// Most runs allowed.
        limit: u64,
    },
}
