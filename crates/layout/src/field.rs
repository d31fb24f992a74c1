//! One tensor of a layer, as a block sees it.

use alloc::vec::Vec;
use smallvec::SmallVec;

use crate::axis::{Axis, Dim, Split};
use crate::dtype::DType;
use crate::field_error::FieldError;
use crate::ids::{AllocationId, FieldId};
use crate::limits::MAX_RUNS_PER_FIELD;
use crate::raw::{RawField, RawSplit};
use crate::run::Run;
use crate::units::{BYTE_LIMIT, ByteLen, Offset, PagesPerBlock, Stride};

/// One tensor of a layer: where block `b` of it lies, which of its bytes are
/// payload, what they mean and how tensor parallelism divides them.
///
/// Block `b` starts at `offset + b * block_stride`; its payload is
/// [`payload`](Self::payload) from there, in the order of
/// [`dims`](Self::dims), which is the order of addresses. Every byte outside
/// the payload is padding or belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    id: FieldId,
    dtype: DType,
    allocation: AllocationId,
    offset: Offset,
    page_stride: Stride,
    block_stride: Stride,
    dims: SmallVec<[Dim; 4]>,
    split: Split,
    payload: SmallVec<[Run; 1]>,
    payload_len: ByteLen,
    span: ByteLen,
}

impl Field {
    /// Checks one field of a manifest.
    pub(crate) fn new(raw: &RawField, pages: PagesPerBlock) -> Result<Self, FieldError> {
        let dtype = DType::parse(&raw.dtype)?;
        let page_stride = Stride::new(raw.page_stride)?;
        let block_stride =
            Stride::new(raw.page_stride.checked_mul(u64::from(pages.get())).ok_or(
                FieldError::TooLarge {
                    what: "block stride",
                },
            )?)?;
        let dims = block_dims(raw, dtype, pages)?;
        let split = split(raw.split.as_ref(), &dims)?;
        let payload = runs(&dims, dtype.size())?;
        let payload_len = payload
            .iter()
            .try_fold(0_u64, |sum, run| sum.checked_add(run.payload()))
            .ok_or(FieldError::TooLarge { what: "payload" })?;
        let span = payload.last().map_or(0, Run::end);
        Ok(Self {
            id: FieldId::new(&raw.name),
            dtype,
            allocation: AllocationId::new(raw.allocation),
            offset: Offset::new(raw.offset)?,
            page_stride,
            block_stride,
            dims,
            split,
            payload,
            payload_len: ByteLen::new(payload_len)?,
            span: ByteLen::new(span)?,
        })
    }

    /// Its name within the layer.
    #[must_use]
    pub const fn id(&self) -> &FieldId {
        &self.id
    }

    /// Element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The allocation it lies in.
    #[must_use]
    pub const fn allocation(&self) -> AllocationId {
        self.allocation
    }

    /// Bytes from the allocation's start to block 0.
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// Bytes from one physical page to the next.
    #[must_use]
    pub const fn page_stride(&self) -> Stride {
        self.page_stride
    }

    /// Bytes from one logical block to the next.
    #[must_use]
    pub const fn block_stride(&self) -> Stride {
        self.block_stride
    }

    /// Axes of a logical block, outermost first, strides descending: the order
    /// of addresses. Includes [`Axis::Page`] when a block is several pages.
    #[must_use]
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// How tensor parallelism divides it.
    #[must_use]
    pub const fn split(&self) -> &Split {
        &self.split
    }

    /// Payload of one logical block, from the block's start, ascending.
    #[must_use]
    pub fn payload(&self) -> &[Run] {
        &self.payload
    }

    /// Payload bytes of one logical block.
    #[must_use]
    pub const fn payload_len(&self) -> ByteLen {
        self.payload_len
    }

    /// Bytes from a block's start to the end of its payload.
    #[must_use]
    pub const fn span(&self) -> ByteLen {
        self.span
    }

    /// Bytes from the allocation's start to block `id`, or `None` outside the
    /// range of an [`Offset`].
    #[must_use]
    pub fn block_offset(&self, id: u32) -> Option<Offset> {
        self.offset
            .checked_add(u64::from(id).checked_mul(self.block_stride.get())?)
    }

    /// The axes in the order of bytes, with what does not change that order
    /// taken out: axes of one element, and the border between pages and their
    /// tokens where nothing lies between the two. Equal on both sides means
    /// that the n-th payload byte is the same element.
    #[must_use]
    pub fn byte_order(&self) -> Vec<(Axis, u64)> {
        let mut order: Vec<(Axis, u64)> = Vec::new();
        for dim in self.dims.iter().filter(|dim| dim.extent > 1) {
            match order.last_mut() {
                Some((axis @ Axis::Page, extent)) if dim.axis == Axis::Token => {
                    *axis = Axis::Token;
                    *extent = extent.saturating_mul(dim.extent);
                }
                _ => order.push((dim.axis, dim.extent)),
            }
        }
        for (axis, _) in &mut order {
            // Pages of one token each are tokens.
            if *axis == Axis::Page && !self.has_tokens() {
                *axis = Axis::Token;
            }
        }
        order
    }

    fn has_tokens(&self) -> bool {
        self.dims
            .iter()
            .any(|dim| dim.axis == Axis::Token && dim.extent > 1)
    }
}

fn block_dims(
    raw: &RawField,
    dtype: DType,
    pages: PagesPerBlock,
) -> Result<SmallVec<[Dim; 4]>, FieldError> {
    if raw.dims.is_empty() {
        return Err(FieldError::NoDims);
    }
    let mut dims: SmallVec<[Dim; 4]> = SmallVec::new();
    for (i, dim) in raw.dims.iter().enumerate() {
        let Some(rest) = raw.dims.get(i.saturating_add(1)..) else {
            break;
        };
        if dim.axis == Axis::Page {
            return Err(FieldError::PageAxis);
        }
        if rest.iter().any(|other| other.axis == dim.axis) {
            return Err(FieldError::AxisTwice { axis: dim.axis });
        }
        if dim.extent == 0
            || dim.extent >= BYTE_LIMIT
            || dim.stride == 0
            || dim.stride >= BYTE_LIMIT
        {
            return Err(FieldError::DimRange {
                axis: dim.axis,
                extent: dim.extent,
                stride: dim.stride,
            });
        }
        dims.push(Dim {
            axis: dim.axis,
            extent: dim.extent,
            stride: dim.stride,
        });
    }
    // An axis of one element takes no step, so that its stride is free.
    dims.retain(|dim| dim.extent > 1);
    if pages.get() > 1 {
        let extent = u64::from(pages.get());
        let at = dims
            .iter()
            .take_while(|dim| dim.stride >= raw.page_stride)
            .count();
        dims.insert(
            at,
            Dim {
                axis: Axis::Page,
                extent,
                stride: raw.page_stride,
            },
        );
    }
    let mut inner = dtype.size();
    for dim in dims.iter().rev() {
        if dim.stride < inner {
            return Err(FieldError::Nesting {
                axis: dim.axis,
                stride: dim.stride,
                inner,
            });
        }
        inner = dim
            .extent
            .checked_sub(1)
            .and_then(|steps| steps.checked_mul(dim.stride))
            .and_then(|reach| reach.checked_add(inner))
            .filter(|reach| *reach < BYTE_LIMIT)
            .ok_or(FieldError::TooLarge {
                what: "extent of a block",
            })?;
    }
    Ok(dims)
}

fn split(raw: Option<&RawSplit>, dims: &[Dim]) -> Result<Split, FieldError> {
    let Some(raw) = raw else {
        return Ok(Split::Replicated);
    };
    if raw.axis == Axis::Page {
        return Err(FieldError::PageAxis);
    }
    let extent = dims
        .iter()
        .find(|dim| dim.axis == raw.axis)
        .map_or(1, |dim| dim.extent);
    let sum = raw
        .parts
        .iter()
        .try_fold(0_u64, |sum, part| sum.checked_add(*part))
        .ok_or(FieldError::TooLarge {
            what: "parts of a split",
        })?;
    if sum != extent || raw.parts.contains(&0) {
        return Err(FieldError::SplitParts {
            axis: raw.axis,
            sum,
            extent,
        });
    }
    Ok(Split::Sharded {
        axis: raw.axis,
        parts: raw.parts.clone(),
        replicas: raw.replicas,
    })
}

fn runs(dims: &[Dim], element: u64) -> Result<SmallVec<[Run; 1]>, FieldError> {
    let too_large = || FieldError::TooLarge { what: "payload" };
    let mut len = element;
    let mut outer = dims;
    while let Some((dim, rest)) = outer.split_last() {
        if dim.stride != len {
            break;
        }
        len = len.checked_mul(dim.extent).ok_or_else(too_large)?;
        outer = rest;
    }
    let len = ByteLen::new(len)?;
    let Some((strided, outer)) = outer.split_last() else {
        return Ok(SmallVec::from_elem(
            Run::new(Offset::ZERO, len, len.get(), 1)?,
            1,
        ));
    };
    let list = outer
        .iter()
        .try_fold(1_u64, |product, dim| product.checked_mul(dim.extent))
        .ok_or_else(too_large)?;
    let count = u32::try_from(strided.extent).map_err(|_| too_large())?;
    if list > MAX_RUNS_PER_FIELD || strided.extent > MAX_RUNS_PER_FIELD {
        return Err(FieldError::TooManyRuns {
            runs: list.max(strided.extent),
            limit: MAX_RUNS_PER_FIELD,
        });
    }
    let mut runs = SmallVec::new();
    for index in 0..list {
        let mut left = index;
        let mut start = 0_u64;
        for dim in outer.iter().rev() {
            let (step, rest) = (left.checked_rem(dim.extent), left.checked_div(dim.extent));
            left = rest.unwrap_or(0);
            start = step
                .unwrap_or(0)
                .checked_mul(dim.stride)
                .and_then(|bytes| start.checked_add(bytes))
                .ok_or_else(too_large)?;
        }
        runs.push(Run::new(Offset::new(start)?, len, strided.stride, count)?);
    }
    Ok(runs)
}
