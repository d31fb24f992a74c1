//! Who owns each byte, found byte by byte.

use foldhash::fast::RandomState;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::vec;
use std::vec::Vec;

use crate::dtype::DType;
use crate::raw::{RawField, RawGroup, RawLayout};

/// More bytes than this, counted once for each owner, are not looked at.
const LIMIT: u64 = 1 << 16;

/// One byte of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Byte {
    /// Id of the allocation.
    pub allocation: u32,
    /// Bytes from its start, 0..2^64.
    pub at: u64,
}

/// Whether the owners of all bytes may stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may.
    Legal,
    /// A byte is beyond the end of its allocation.
    Outside(Byte),
    /// A byte has two owners at one time.
    Shared(Byte),
}

/// Owner of a byte: one id of one field.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner {
    group: u32,
    pool: u32,
    id: u32,
}

/// A manifest whose bytes can be counted out: straight from its numbers,
/// sharing nothing with the validation it is compared with.
#[derive(Clone, Debug)]
pub struct Naive<'a> {
    raw: &'a RawLayout,
}

impl<'a> Naive<'a> {
    /// The manifest, unless it is too large to count out, or names an
    /// allocation, pool, axis or dtype that there is not.
    #[must_use]
    pub fn new(raw: &'a RawLayout) -> Option<Self> {
        let naive = Self { raw };
        let mut total = 0_u64;
        for group in &raw.groups {
            for field in group.layers.iter().flat_map(|layer| &layer.fields) {
                raw.allocations
                    .iter()
                    .find(|allocation| allocation.id == field.allocation)?;
                let mut bytes = DType::parse(&field.dtype).ok()?.size();
                let blocks = u64::from(naive.capacity(group)?);
                let pages = u64::from(group.pages_per_block);
                let mut reach = blocks.checked_mul(pages)?.checked_mul(field.page_stride)?;
                for dim in &field.dims {
                    bytes = bytes.checked_mul(dim.extent)?;
                    reach = reach.checked_add(dim.extent.checked_mul(dim.stride)?)?;
                }
                field.offset.checked_add(reach)?.checked_add(8)?;
                total = total.checked_add(bytes.checked_mul(blocks)?.checked_mul(pages)?)?;
            }
        }
        (total <= LIMIT).then_some(naive)
    }

    /// Ids of a group's pool.
    fn capacity(&self, group: &RawGroup) -> Option<u32> {
        let mut pools = self.raw.pools.iter();
        pools
            .find(|pool| pool.id == group.pool)
            .map(|pool| pool.capacity)
    }

    /// Every payload byte of one block of one field: pages in order, in each the
    /// axes in the manifest's order, in each element its bytes.
    #[must_use]
    pub fn block(&self, group: &RawGroup, field: &RawField, id: u32) -> Vec<Byte> {
        let pages = u64::from(group.pages_per_block);
        let element = DType::parse(&field.dtype).map_or(0, DType::size);
        let mut bytes = Vec::new();
        for page in 0..pages {
            let page = field.offset + (u64::from(id) * pages + page) * field.page_stride;
            let mut starts = vec![page];
            for dim in &field.dims {
                let steps = |start| (0..dim.extent).map(move |step| start + step * dim.stride);
                starts = starts.into_iter().flat_map(steps).collect();
            }
            for start in starts {
                bytes.extend((start..start + element).map(|at| Byte {
                    allocation: field.allocation,
                    at,
                }));
            }
        }
        bytes
    }

    /// Whether any byte is outside its allocation or has two owners at a time:
    /// two ids of a pool, two pools that are not arbitrated, or one group twice.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut owners: HashMap<Byte, SmallVec<[Owner; 3]>, RandomState> = HashMap::default();
        for group in &self.raw.groups {
            let blocks = self.capacity(group).unwrap_or(0);
            for field in group.layers.iter().flat_map(|layer| &layer.fields) {
                for id in 0..blocks {
                    let owner = Owner {
                        group: group.id,
                        pool: group.pool,
                        id,
                    };
                    for byte in self.block(group, field, id) {
                        if !self.is_inside(byte) {
                            return Verdict::Outside(byte);
                        }
                        let all = owners.entry(byte).or_default();
                        if all.iter().any(|other| self.clash(*other, owner)) {
                            return Verdict::Shared(byte);
                        }
                        all.push(owner);
                    }
                }
            }
        }
        Verdict::Legal
    }

    fn is_inside(&self, byte: Byte) -> bool {
        self.raw
            .allocations
            .iter()
            .any(|allocation| allocation.id == byte.allocation && byte.at < allocation.len)
    }

    fn clash(&self, a: Owner, b: Owner) -> bool {
        if a.pool == b.pool {
            a.id != b.id || a.group == b.group
        } else {
            let pair = [a.pool, b.pool];
            let other = [b.pool, a.pool];
            !self.raw.arbitrated.contains(&pair) && !self.raw.arbitrated.contains(&other)
        }
    }
}
