//! A layout as plain numbers: where its raw axes and strides put every byte.

use std::collections::BTreeMap;
use std::string::String;
use std::vec;
use std::vec::Vec;

use mooncake_pd_layout::Axis;
use mooncake_pd_layout::raw::{RawField, RawGroup, RawLayout, RawPool};

/// A byte of one side: its allocation and the offset in it, in bytes.
pub type Place = (u32, u64);

/// One side of a transfer, byte by byte.
///
/// Made from the manifest alone: it shares no code with fields, pages or runs.
#[derive(Clone, Debug)]
pub struct Plain {
    pub(super) allocations: BTreeMap<u32, u64>,
    pub(super) groups: BTreeMap<u32, PlainGroup>,
    pub(super) arbitrated: bool,
}

/// One group of a [`Plain`] layout.
#[derive(Clone, Debug)]
pub(super) struct PlainGroup {
    pub(super) state: bool,
    pub(super) window: Option<u32>,
    pub(super) tokens_per_block: u32,
    pub(super) pool: RawPool,
    /// By names of layer and field.
    pub(super) fields: BTreeMap<(String, String), PlainField>,
}

/// One field of a group.
#[derive(Clone, Debug)]
pub(super) struct PlainField {
    allocation: u32,
    /// Where each byte of block 0 lies, in an order that depends on names of
    /// axes and coordinates only: the same on both sides.
    bytes: Vec<u64>,
    stride: u64,
}

/// Whose a byte is: group, pool and id.
pub(super) type Owner = (u32, u32, u32);

impl Plain {
    /// The layout of a manifest that is known to be valid.
    ///
    /// # Panics
    /// It is not.
    #[must_use]
    pub fn new(raw: &RawLayout) -> Self {
        let pool = |id: u32| {
            let pool = raw.pools.iter().find(|pool| pool.id == id);
            pool.expect("a valid manifest names its pools").clone()
        };
        Self {
            allocations: raw.allocations.iter().map(|a| (a.id, a.len)).collect(),
            groups: raw
                .groups
                .iter()
                .map(|group| (group.id, PlainGroup::new(group, pool(group.pool))))
                .collect(),
            arbitrated: !raw.arbitrated.is_empty(),
        }
    }

    /// Every owner of every byte.
    pub(super) fn owners(&self) -> BTreeMap<Place, Vec<Owner>> {
        let mut owners: BTreeMap<Place, Vec<Owner>> = BTreeMap::new();
        for (id, group) in &self.groups {
            for block in 0..group.pool.capacity {
                for place in group.block(block) {
                    let owner = (*id, group.pool.id, block);
                    owners.entry(place).or_default().push(owner);
                }
            }
        }
        owners
    }
}

impl PlainGroup {
    fn new(raw: &RawGroup, pool: RawPool) -> Self {
        let pages = u64::from(raw.pages_per_block);
        Self {
            state: raw.kind == "gdn_state",
            window: raw.window,
            tokens_per_block: raw.tokens_per_block,
            pool,
            fields: raw
                .layers
                .iter()
                .flat_map(|layer| layer.fields.iter().map(move |field| (layer, field)))
                .map(|(layer, field)| {
                    let name = (layer.name.clone(), field.name.clone());
                    (name, PlainField::new(field, pages))
                })
                .collect(),
        }
    }

    /// All bytes of a block.
    pub(super) fn block(&self, id: u32) -> impl Iterator<Item = Place> {
        self.fields.values().flat_map(move |field| field.block(id))
    }

    /// Whether an id stands for a block in lists.
    pub(super) fn is_live(&self, id: u64) -> bool {
        id < u64::from(self.pool.capacity) && !self.is_null(id) && !self.is_reserved(id)
    }

    pub(super) fn is_null(&self, id: u64) -> bool {
        self.pool.null_id.is_some_and(|null| u64::from(null) == id)
    }

    pub(super) fn is_reserved(&self, id: u64) -> bool {
        let reserved = |[from, to]: &[u32; 2]| u64::from(*from) <= id && id < u64::from(*to);
        self.pool.reserved.iter().any(reserved)
    }
}

impl PlainField {
    fn new(raw: &RawField, pages: u64) -> Self {
        // Axes by name; tokens are counted over all pages of a block.
        let mut axes: BTreeMap<Axis, u64> = BTreeMap::from([(Axis::Token, 1)]);
        axes.extend(raw.dims.iter().map(|dim| (dim.axis, dim.extent)));
        let tokens = axes[&Axis::Token];
        axes.insert(Axis::Token, tokens * pages);
        let size = element(&raw.dtype);
        let elements: u64 = raw.dims.iter().map(|dim| dim.extent).product();
        let mut bytes = vec![u64::MAX; index(elements * pages * size)];
        for page in 0..pages {
            for element in 0..elements {
                let mut left = element;
                let mut place = raw.offset + page * raw.page_stride;
                let mut at: BTreeMap<Axis, u64> = BTreeMap::new();
                for dim in raw.dims.iter().rev() {
                    at.insert(dim.axis, left % dim.extent);
                    place += left % dim.extent * dim.stride;
                    left /= dim.extent;
                }
                *at.entry(Axis::Token).or_default() += page * tokens;
                let number = axes.iter().fold(0, |number, (axis, extent)| {
                    number * extent + at.get(axis).copied().unwrap_or(0)
                });
                for byte in 0..size {
                    bytes[index(number * size + byte)] = place + byte;
                }
            }
        }
        Self {
            allocation: raw.allocation,
            bytes,
            stride: pages * raw.page_stride,
        }
    }

    /// All bytes of a block, in the order that is the same on both sides.
    pub(super) fn block(&self, id: u32) -> impl Iterator<Item = Place> {
        let start = u64::from(id) * self.stride;
        let place = move |byte: &u64| (self.allocation, start + byte);
        self.bytes.iter().map(place)
    }
}

/// Bytes of an element.
fn element(dtype: &str) -> u64 {
    match dtype {
        "int64" => 8,
        "float32" | "int32" => 4,
        "bfloat16" | "float16" => 2,
        _ => 1,
    }
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).expect("memory of tests is small")
}
