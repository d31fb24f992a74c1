//! The two tensors of a gated delta net's state.
//!
//! The convolution state is a matrix of taps and channels in either order; its
//! channels are those of q, k and v one after the other, and tensor parallelism
//! divides each of the three by itself. The recurrent state is one matrix of
//! value and key dimension per value head.
//!
//! Which of two equal matrix axes is the key's can't be read from a shape. They
//! are named value, then key, wherever sizes don't say otherwise. Both sides of
//! a transfer get the same names, and the bytes are the same whatever the name.

use alloc::format;
use alloc::vec::Vec;

use super::error::{ImportError, agree};
use super::place::ReportPlace;
use crate::axis::Axis;
use crate::dtype::DType;
use crate::raw::{RawDim, RawSplit};

/// Shapes of the two tensors of one slot, and what is known about the heads.
pub(super) struct State<'a> {
    pub(super) conv: &'a [u64],
    pub(super) recurrent: &'a [u64],
    /// Elements of one head's key, where the report states it.
    pub(super) key_dim: Option<u64>,
    /// Elements of one head's value, where the report states it.
    pub(super) value_dim: Option<u64>,
}

/// Axes of one tensor and how it is cut.
pub(super) struct Tensor<const N: usize> {
    pub(super) axes: [(Axis, u64); N],
    pub(super) split: RawSplit,
}

impl State<'_> {
    /// Heads, then value and key in the order the sizes say.
    pub(super) fn recurrent(&self, place: &ReportPlace) -> Result<Tensor<3>, ImportError> {
        let [heads, outer, inner] = *self.recurrent else {
            return Err(rank(place, "recurrent state", self.recurrent, 3));
        };
        let key_first = self.key_dim.is_some_and(|key| key != inner)
            || self.value_dim.is_some_and(|value| value != outer);
        let (key, value) = if key_first {
            (outer, inner)
        } else {
            (inner, outer)
        };
        agree(place, "key dimension", &self.key_dim.unwrap_or(key), &key)?;
        let stated = self.value_dim.unwrap_or(value);
        agree(place, "value dimension", &stated, &value)?;
        let (first, second) = if key_first {
            (Axis::Key, Axis::Value)
        } else {
            (Axis::Value, Axis::Key)
        };
        Ok(Tensor {
            axes: [(Axis::Head, heads), (first, outer), (second, inner)],
            split: sharded(Axis::Head, Vec::from([heads])),
        })
    }

    /// Channels of q, k and v on this rank: v has as many as the recurrent
    /// state has value elements over its heads, q and k share the rest evenly.
    pub(super) fn channels(&self, place: &ReportPlace, all: u64) -> Result<[u64; 3], ImportError> {
        let recurrent = self.recurrent(place)?;
        let extent = |axis| {
            let found = recurrent.axes.iter().find(|(other, _)| *other == axis);
            found.map_or(1, |(_, extent)| *extent)
        };
        let value = extent(Axis::Head)
            .checked_mul(extent(Axis::Value))
            .ok_or_else(|| ImportError::too_large(place, "value channels"))?;
        let key = all
            .checked_sub(value)
            .filter(|rest| *rest > 0 && rest.is_multiple_of(2))
            .and_then(|rest| rest.checked_div(2))
            .ok_or_else(|| ImportError::Mismatch {
                place: place.into(),
                what: "convolution channels",
                found: format!("{all}"),
                expected: format!("{value} for values and an even rest for keys and queries"),
            })?;
        Ok([key, key, value])
    }

    /// Taps and channels in the order the shape has; `parts` are this rank's
    /// channels of q, k and v.
    pub(super) fn conv(
        &self,
        place: &ReportPlace,
        parts: [u64; 3],
    ) -> Result<Tensor<2>, ImportError> {
        let [outer, inner] = *self.conv else {
            return Err(rank(place, "convolution state", self.conv, 2));
        };
        let channels = parts
            .iter()
            .try_fold(0_u64, |sum, part| sum.checked_add(*part))
            .ok_or_else(|| ImportError::too_large(place, "convolution channels"))?;
        let axes = match (outer == channels, inner == channels) {
            (false, true) => [(Axis::Tap, outer), (Axis::Channel, inner)],
            (true, false) => [(Axis::Channel, outer), (Axis::Tap, inner)],
            _ => {
                return Err(ImportError::Mismatch {
                    place: place.into(),
                    what: "convolution state",
                    found: format!("{:?}", self.conv),
                    expected: format!("one axis of {channels} channels"),
                });
            }
        };
        Ok(Tensor {
            axes,
            split: sharded(Axis::Channel, parts.into()),
        })
    }
}

const fn sharded(axis: Axis, parts: Vec<u64>) -> RawSplit {
    RawSplit {
        axis,
        parts,
        replicas: 1,
    }
}

fn rank(place: &ReportPlace, what: &'static str, shape: &[u64], axes: usize) -> ImportError {
    ImportError::Mismatch {
        place: place.into(),
        what,
        found: format!("{shape:?}"),
        expected: format!("{axes} axes"),
    }
}

/// Axes that follow each other without gaps.
pub(super) fn packed(
    place: &ReportPlace,
    axes: &[(Axis, u64)],
    dtype: &str,
) -> Result<(Vec<RawDim>, u64), ImportError> {
    let mut stride = element(place, dtype)?;
    let mut dims = Vec::new();
    for (axis, extent) in axes.iter().rev() {
        dims.push(RawDim {
            axis: *axis,
            extent: *extent,
            stride,
        });
        stride = stride
            .checked_mul(*extent)
            .ok_or_else(|| ImportError::too_large(place, "state"))?;
    }
    dims.reverse();
    Ok((dims, stride))
}

/// Bytes of one element of a dtype given by name.
pub(super) fn element(place: &ReportPlace, dtype: &str) -> Result<u64, ImportError> {
    DType::parse(dtype)
        .map(DType::size)
        .map_err(|error| ImportError::UnknownKind {
            place: place.into(),
            kind: format!("dtype {}", error.0),
        })
}
