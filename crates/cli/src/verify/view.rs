//! A raw strided view, walked over its index tuples.

use super::error::WalkError;

/// A piece of an allocation. Bytes, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// One tensor of one layer, as a layout file states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Transfer group.
    pub group: u32,
    /// Layer name.
    pub layer: String,
    /// Tensor name within the layer.
    pub name: String,
    /// Allocation that it lies in.
    pub allocation: u32,
    /// Bytes from the allocation's start to element zero.
    pub offset: u64,
    /// Bytes of an element.
    pub element: u64,
    /// Elements along each axis; the first one counts pages.
    pub shape: Vec<u64>,
    /// Bytes from one index to the next along each axis.
    pub strides: Vec<u64>,
    /// Consecutive pages of one block.
    pub pages_per_block: u64,
}

impl View {
    /// Name of the view in messages.
    #[must_use]
    pub fn place(&self) -> String {
        format!("group {} layer {} {}", self.group, self.layer, self.name)
    }

    /// The bytes of one block in the order of its index tuples, neighbours
    /// merged; appended to `out`.
    ///
    /// # Errors
    /// The block is outside the view, or an offset passes 64 bits.
    pub fn block(&self, block: u64, out: &mut Vec<Span>) -> Result<(), WalkError> {
        let over = || WalkError::Overflow {
            place: self.place(),
            what: "a page number",
        };
        let first = block.checked_mul(self.pages_per_block).ok_or_else(over)?;
        let end = first.checked_add(self.pages_per_block).ok_or_else(over)?;
        let pages = self.shape.first().copied().unwrap_or(0);
        for page in first..end {
            if page >= pages {
                return Err(WalkError::Block {
                    place: self.place(),
                    block,
                    page,
                    pages,
                });
            }
            self.page(page, out)?;
        }
        Ok(())
    }

    /// The bytes of one page in the order of its index tuples.
    pub(super) fn page(&self, page: u64, out: &mut Vec<Span>) -> Result<(), WalkError> {
        if self.shape.len() != self.strides.len() || self.shape.is_empty() {
            return Err(WalkError::Rank {
                place: self.place(),
                shape: self.shape.len(),
                strides: self.strides.len(),
            });
        }
        let over = || WalkError::Overflow {
            place: self.place(),
            what: "a byte offset",
        };
        let mut axes: Vec<(u64, u64)> = self
            .shape
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .skip(1)
            .collect();
        if self.element == 0 || axes.iter().any(|&(extent, _)| extent == 0) {
            return Ok(());
        }
        // Inner axes without gaps make one row of elements.
        let mut row = self.element;
        while let Some(&(extent, stride)) = axes.last() {
            if extent != 1 && stride != row {
                break;
            }
            row = row.checked_mul(extent).ok_or_else(over)?;
            axes.pop();
        }
        let stride = self.strides.first().copied().unwrap_or(0);
        let base = page
            .checked_mul(stride)
            .and_then(|bytes| bytes.checked_add(self.offset))
            .ok_or_else(over)?;
        let mut index = vec![0_u64; axes.len()];
        loop {
            let mut offset = base;
            for (&at, &(_, stride)) in index.iter().zip(&axes) {
                offset = at
                    .checked_mul(stride)
                    .and_then(|bytes| bytes.checked_add(offset))
                    .ok_or_else(over)?;
            }
            offset.checked_add(row).ok_or_else(over)?;
            push(out, Span { offset, len: row });
            if !advance(&mut index, &axes) {
                return Ok(());
            }
        }
    }
}

/// The next index tuple, last axis fastest; false after the last one.
fn advance(index: &mut [u64], axes: &[(u64, u64)]) -> bool {
    for (at, &(extent, _)) in index.iter_mut().zip(axes).rev() {
        *at = at.saturating_add(1);
        if *at < extent {
            return true;
        }
        *at = 0;
    }
    false
}

fn push(out: &mut Vec<Span>, span: Span) {
    if let Some(last) = out.last_mut()
        && last.offset.checked_add(last.len) == Some(span.offset)
        && let Some(len) = last.len.checked_add(span.len)
    {
        last.len = len;
        return;
    }
    out.push(span);
}
