//! One tensor of an SGLang component as a field.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::error::{ImportError, agree};
use super::gdn::{self, State};
use super::place::ReportPlace;
use super::sglang_report::{Buffer, Config, View};
use crate::axis::Axis;
use crate::raw::{RawDim, RawField, RawSplit};

/// A tensor whose rows are dealt out to items.
pub(super) struct Tensor<'a> {
    pub(super) place: &'a ReportPlace,
    pub(super) role: &'a str,
    pub(super) dtype: &'a str,
    pub(super) allocation: u32,
    /// Bytes from the allocation's start to item 0.
    pub(super) offset: u64,
    /// Bytes from one item to the next.
    pub(super) item_len: u64,
    shape: &'a [u64],
    strides: &'a [u64],
}

impl<'a> Tensor<'a> {
    pub(super) fn of_buffer(place: &'a ReportPlace, buffer: &'a Buffer) -> Self {
        Self {
            place,
            role: &buffer.role,
            dtype: &buffer.dtype,
            allocation: buffer.allocation,
            offset: buffer.offset,
            item_len: buffer.item_len,
            shape: &buffer.shape,
            strides: &buffer.stride_bytes,
        }
    }

    /// A view lies at its offset in every item of its envelope.
    pub(super) fn of_view(
        place: &'a ReportPlace,
        view: &'a View,
        envelope: &Buffer,
    ) -> Result<Self, ImportError> {
        Ok(Self {
            place,
            role: &view.role,
            dtype: &view.dtype,
            allocation: envelope.allocation,
            offset: envelope
                .offset
                .checked_add(view.offset)
                .ok_or_else(|| ImportError::too_large(place, "offset"))?,
            item_len: envelope.item_len,
            shape: &view.shape,
            strides: &view.stride_bytes,
        })
    }

    /// Rows of one item and the axes of one row.
    fn rows(&self) -> Result<(RawDim, Vec<(u64, u64)>), ImportError> {
        let (Some(row), Some((_, shape)), Some((_, strides))) = (
            self.strides.first().copied(),
            self.shape.split_first(),
            self.strides.split_first(),
        ) else {
            return Err(ImportError::missing(self.place, "axes"));
        };
        agree(self.place, "axes", &strides.len(), &shape.len())?;
        let rows = self
            .item_len
            .checked_div(row)
            .filter(|_| self.item_len.is_multiple_of(row))
            .ok_or_else(|| ImportError::Mismatch {
                place: self.place.into(),
                what: "item length",
                found: self.item_len.to_string(),
                expected: format!("a multiple of {row} bytes per row"),
            })?;
        let rows = RawDim {
            axis: Axis::Token,
            extent: rows,
            stride: row,
        };
        let axes = shape.iter().copied().zip(strides.iter().copied());
        Ok((rows, axes.collect()))
    }

    /// Pages of keys, values, latents or compressor states: rows of heads and
    /// content, rows of content, or bytes the engine does not explain.
    pub(super) fn page(&self, page_size: u64) -> Result<RawField, ImportError> {
        let (rows, axes) = self.rows()?;
        let dim = |axis, (extent, stride)| RawDim {
            axis,
            extent,
            stride,
        };
        let heads = matches!(self.role, "k" | "v");
        let (dims, split) = match *axes {
            [head, content] => {
                agree(self.place, "rows of a page", &rows.extent, &page_size)?;
                let split = heads.then(|| RawSplit {
                    axis: Axis::Head,
                    parts: Vec::from([head.0]),
                    replicas: 1,
                });
                let dims = [rows, dim(Axis::Head, head), dim(Axis::Content, content)];
                (Vec::from(dims), split)
            }
            [bytes] if rows.extent == 1 && self.dtype == "uint8" && !heads => {
                (Vec::from([dim(Axis::Byte, bytes)]), None)
            }
            [content] if !heads => (Vec::from([rows, dim(Axis::Content, content)]), None),
            _ => {
                return Err(ImportError::Mismatch {
                    place: self.place.into(),
                    what: "shape",
                    found: format!("{:?}", self.shape),
                    expected: "rows, heads and content, or rows and content".into(),
                });
            }
        };
        Ok(self.field(dims, split))
    }

    fn field(&self, mut dims: Vec<RawDim>, split: Option<RawSplit>) -> RawField {
        dims.sort_by_key(|dim| core::cmp::Reverse(dim.stride));
        RawField {
            name: self.role.to_string(),
            dtype: self.dtype.to_string(),
            allocation: self.allocation,
            offset: self.offset,
            page_stride: self.item_len,
            dims,
            split,
        }
    }

    /// One of the two tensors of a layer's state slot; `recurrent` is the shape
    /// of its recurrent state.
    pub(super) fn state(
        &self,
        recurrent: &[u64],
        config: &Config,
    ) -> Result<RawField, ImportError> {
        let (slots, axes) = self.rows()?;
        agree(self.place, "rows of a slot", &slots.extent, &1)?;
        let shape: Vec<u64> = axes.iter().map(|(extent, _)| *extent).collect();
        let state = State {
            conv: &shape,
            recurrent,
            key_dim: None,
            value_dim: None,
        };
        let (named, split) = match self.role {
            "temporal" => {
                let recurrent = state.recurrent(self.place)?;
                (Vec::from(recurrent.axes), recurrent.split)
            }
            "conv" => {
                // Channels outnumber taps.
                let channels = shape.iter().copied().max().unwrap_or(0);
                let parts = state.channels(self.place, channels)?;
                if let Some(stated) = &config.conv_shard_groups {
                    agree(self.place, "channels", stated.as_slice(), &parts)?;
                }
                let conv = state.conv(self.place, parts)?;
                (Vec::from(conv.axes), conv.split)
            }
            _ => {
                return Err(ImportError::UnknownKind {
                    place: self.place.into(),
                    kind: self.role.into(),
                });
            }
        };
        let dims = named
            .iter()
            .zip(&axes)
            .map(|((axis, extent), (_, stride))| RawDim {
                axis: *axis,
                extent: *extent,
                stride: *stride,
            })
            .collect();
        Ok(self.field(dims, Some(split)))
    }
}

/// Bytes the field owns in one item.
pub(super) fn payload(place: &ReportPlace, field: &RawField) -> Result<u64, ImportError> {
    let size = gdn::element(place, &field.dtype)?;
    field
        .dims
        .iter()
        .try_fold(size, |product, dim| product.checked_mul(dim.extent))
        .ok_or_else(|| ImportError::too_large(place, "item"))
}
