//! Where a generated content is stored.

use arbitrary::{Result, Unstructured};
use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use super::content::{Content, ContentField, ContentGroup, Paging};
use crate::axis::Axis;
use crate::raw::{
    FORMAT, RawAllocation, RawContent, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawPool,
    RawShard,
};

/// Generated allocations are shorter, in bytes.
pub const MAX_ALLOCATION: u64 = 16 * 1024;

/// An allocation is not filled further once it is this long.
const FULL: u64 = 3 * 1024;

/// Which fields lie in one plane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// All of a group: packed rows.
    Rows,
    /// Those of one layer.
    Layers,
    /// Each alone.
    Fields,
    /// Each head of each field alone, where heads are outermost.
    Heads,
}

/// A range of an allocation in which blocks repeat at one stride.
#[derive(Default)]
struct Plane {
    pool: usize,
    /// Of each group, the bytes of a page used so far.
    widths: BTreeMap<usize, u64>,
    /// Times the plane is repeated, for heads.
    heads: u64,
    fields: Vec<Placed>,
}

struct Placed {
    group: usize,
    layer: usize,
    field: RawField,
}

struct Range {
    pool: usize,
    allocation: usize,
    start: u64,
    end: u64,
}

struct PoolPlan {
    raw: RawPool,
    spread: Spread,
    /// Whether its groups lie over each other.
    overlaid: bool,
}

/// Stores a content in pools, planes and allocations of its own.
pub(super) fn store(content: &Content, bytes: &mut Unstructured<'_>) -> Result<RawLayout> {
    let pools = pools(content, bytes)?;
    let mut groups = Vec::new();
    let mut planes: BTreeMap<(usize, usize, usize, usize), Plane> = BTreeMap::new();
    for (number, group) in content.groups.iter().enumerate() {
        let pool = bytes.choose_index(pools.len())?;
        let plan = &pools[pool];
        let pages = pages(group, plan.spread, bytes)?;
        groups.push(RawGroup {
            id: group.id,
            kind: group.kind(),
            window: group.window,
            tokens_per_block: group.tokens_per_block,
            pages_per_block: pages,
            pool: plan.raw.id,
            layers: group
                .layers
                .iter()
                .map(|layer| RawLayer {
                    name: layer.name.clone(),
                    fields: Vec::new(),
                })
                .collect(),
        });
        for (l, layer) in group.layers.iter().enumerate() {
            for (f, field) in layer.fields.iter().enumerate() {
                // Pages whose heads were apart would have them in another order.
                let apart = plan.spread == Spread::Heads
                    && has_heads_outermost(field)
                    && (pages == 1 || matches!(group.paging, Paging::Free { .. }));
                let owner = if plan.overlaid && !apart {
                    0
                } else {
                    number + 1
                };
                let key = match plan.spread {
                    Spread::Rows => (pool, owner, 0, 0),
                    Spread::Layers => (pool, owner, l, 0),
                    Spread::Fields | Spread::Heads => (pool, owner, l, f),
                };
                let plane = planes.entry(key).or_default();
                plane.pool = pool;
                plane.heads = if apart { field.order[0].1 } else { 1 };
                let (raw, width) = page(field, group.paging, pages, apart, bytes)?;
                let used = plane.widths.entry(number).or_insert(0);
                let offset = *used + gap(2, bytes)?;
                *used = offset + width;
                plane.fields.push(Placed {
                    group: number,
                    layer: l,
                    field: RawField { offset, ..raw },
                });
            }
        }
    }
    let mut layout = RawLayout {
        format: FORMAT.to_string(),
        engine: "generated".to_string(),
        model: "generated".to_string(),
        content: RawContent::default(),
        shard: RawShard::default(),
        allocations: Vec::new(),
        pools: pools.iter().map(|pool| pool.raw.clone()).collect(),
        arbitrated: Vec::new(),
        groups,
    };
    let mut planes: Vec<Plane> = planes.into_values().collect();
    shuffle(&mut planes, bytes)?;
    place(planes, &mut layout, bytes)?;
    for group in &mut layout.groups {
        shuffle(&mut group.layers, bytes)?;
    }
    shuffle(&mut layout.groups, bytes)?;
    Ok(layout)
}

fn pools(content: &Content, bytes: &mut Unstructured<'_>) -> Result<Vec<PoolPlan>> {
    let mut pools = Vec::new();
    for number in 0..bytes.int_in_range(1..=content.groups.len())? {
        let capacity = 6 - bytes.int_in_range(1..=5)?;
        let null_id = match bytes.int_in_range(0..=3_u8)? {
            0 | 1 if capacity > 1 => Some(0),
            2 if capacity > 1 => Some(capacity - 1),
            _ => None,
        };
        let reserved = if capacity > 2 && bytes.ratio(1_u8, 3)? {
            std::vec![[1, 2]]
        } else {
            Vec::new()
        };
        let spreads = [Spread::Rows, Spread::Layers, Spread::Fields, Spread::Heads];
        pools.push(PoolPlan {
            raw: RawPool {
                id: u32::try_from(number).map_or(0, |number| (number + 1) % 3),
                capacity,
                null_id,
                reserved,
            },
            spread: *bytes.choose(&spreads)?,
            overlaid: bytes.arbitrary()?,
        });
    }
    Ok(pools)
}

fn has_heads_outermost(field: &ContentField) -> bool {
    field.order.len() > 1 && field.order[0].0 == Axis::Head
}

/// Pages per block that leave the order of a group's bytes as it is.
fn pages(group: &ContentGroup, spread: Spread, bytes: &mut Unstructured<'_>) -> Result<u32> {
    let tokens = match group.paging {
        Paging::Fixed(pages) => return Ok(pages),
        Paging::Free { tokens } => tokens,
    };
    let fields = || group.layers.iter().flat_map(|layer| &layer.fields);
    // A page comes before the heads in it, unless heads are planes apart.
    let first = spread == Spread::Heads
        || fields().all(|field| !has_heads_outermost(field) || field.order[0].1 == 1);
    let choices: Vec<u32> = (1..=3)
        .filter(|pages| *pages == 1 || (first && tokens % u64::from(*pages) == 0))
        .collect();
    Ok(*bytes.choose(&choices)?)
}

/// A field within its page, and the bytes it takes there. Heads apart get their
/// stride when the plane is placed.
fn page(
    field: &ContentField,
    paging: Paging,
    pages: u32,
    apart: bool,
    bytes: &mut Unstructured<'_>,
) -> Result<(RawField, u64)> {
    let mut dims = Vec::new();
    let mut width = field.dtype.size();
    for (axis, extent) in field.order.iter().rev() {
        let mut extent = *extent;
        if *axis == Axis::Token && matches!(paging, Paging::Free { .. }) {
            extent /= u64::from(pages);
        }
        let pad = match bytes.int_in_range(0..=7_u8)? {
            7 => bytes.int_in_range(1..=3)?,
            _ => 0,
        };
        let stride = width + pad;
        dims.push(RawDim {
            axis: *axis,
            extent,
            stride,
        });
        if !(apart && dims.len() == field.order.len()) {
            width += (extent - 1) * stride;
        }
    }
    dims.reverse();
    let raw = RawField {
        name: field.name.to_string(),
        dtype: field.dtype.name().to_string(),
        allocation: 0,
        offset: 0,
        page_stride: 0,
        dims,
        split: field.split.clone(),
    };
    Ok((raw, width))
}

/// Puts planes into allocations and fields into their layers.
fn place(planes: Vec<Plane>, layout: &mut RawLayout, bytes: &mut Unstructured<'_>) -> Result<()> {
    let mut lens: Vec<u64> = Vec::new();
    let mut ranges: Vec<Range> = Vec::new();
    for plane in planes {
        let pages = |group: usize| u64::from(layout.groups[group].pages_per_block);
        let capacity = u64::from(layout.pools[plane.pool].capacity);
        let widest = plane
            .widths
            .iter()
            .map(|(group, width)| width * pages(*group));
        // Strides have to be a multiple of any pages there are.
        let step = if plane.widths.keys().all(|group| pages(*group) == 1) {
            1
        } else {
            6
        };
        let pad = gap(3, bytes)?;
        let stride = (widest.max().unwrap_or(1).div_ceil(step) + pad) * step;
        let apart = capacity * stride + bytes.int_in_range(0..=3)?;
        let len = apart * plane.heads;

        if lens.last().is_none_or(|len| *len > FULL) || bytes.ratio(1_u8, 4)? {
            lens.push(0);
        }
        let allocation = lens.len() - 1;
        let after = lens[allocation] + bytes.int_in_range(0..=5)?;
        let under = ranges
            .last()
            .filter(|last| last.allocation == allocation && last.pool != plane.pool)
            .map(|last| last.start);
        let start = match under {
            Some(start) if bytes.ratio(1_u8, 4)? => start,
            _ => after,
        };
        let range = Range {
            pool: plane.pool,
            allocation,
            start,
            end: start + len,
        };
        let meets = |other: &&Range| {
            other.allocation == allocation && other.start < range.end && range.start < other.end
        };
        let met: Vec<usize> = ranges
            .iter()
            .filter(meets)
            .map(|other| other.pool)
            .collect();
        let (start, met) = if met.contains(&plane.pool) {
            (after, Vec::new())
        } else {
            (start, met)
        };
        for pool in met {
            let pair = [layout.pools[pool].id, layout.pools[plane.pool].id];
            if !layout.arbitrated.contains(&pair) {
                layout.arbitrated.push(pair);
            }
        }
        lens[allocation] = lens[allocation].max(start + len);
        ranges.push(Range {
            start,
            end: start + len,
            ..range
        });
        for mut placed in plane.fields {
            let field = &mut placed.field;
            field.allocation = u32::try_from(allocation).map_or(0, |number| number * 3 + 1);
            field.offset += start;
            field.page_stride = stride / u64::from(layout.groups[placed.group].pages_per_block);
            if plane.heads > 1 {
                field.dims[0].stride = apart;
            }
            layout.groups[placed.group].layers[placed.layer]
                .fields
                .push(placed.field);
        }
    }
    for (number, len) in lens.into_iter().enumerate() {
        layout.allocations.push(RawAllocation {
            id: u32::try_from(number).map_or(0, |number| number * 3 + 1),
            len: len + bytes.int_in_range(0..=9)?,
        });
    }
    Ok(())
}

/// Bytes between two things: mostly none, so that runs of blocks exist.
fn gap(most: u64, bytes: &mut Unstructured<'_>) -> Result<u64> {
    let drawn = bytes.int_in_range(0..=3 * most)?;
    Ok(if drawn > most { 0 } else { drawn })
}

fn shuffle<T>(list: &mut [T], bytes: &mut Unstructured<'_>) -> Result<()> {
    for last in (1..list.len()).rev() {
        // No bytes left: the list stays as it is.
        let other = last - bytes.int_in_range(0..=last)?;
        list.swap(last, other);
    }
    Ok(())
}
