//! The checks every layout passes, whatever it was read from.

mod field;
mod group;
mod pieces;
mod pool;

use alloc::vec::Vec;

use self::pieces::Pieces;
use crate::error::LayoutError;
use crate::group::Group;
use crate::ids::AllocationId;
use crate::layout::{Allocation, CacheLayout, Shard};
use crate::limits::{MAX_ALLOCATIONS, MAX_FIELDS, MAX_GROUPS, MAX_POOLS};
use crate::place::Place;
use crate::pool::Pool;
use crate::raw::{FORMAT, RawLayout};
use crate::units::{ByteLen, QuantityError};

/// Everything but the overlay rule.
pub(crate) fn structure(raw: &RawLayout) -> Result<CacheLayout, LayoutError> {
    if raw.format != FORMAT {
        return Err(LayoutError::Format {
            found: raw.format.clone(),
            expected: FORMAT,
        });
    }
    for (what, count, limit) in [
        ("allocations", raw.allocations.len(), MAX_ALLOCATIONS),
        ("pools", raw.pools.len(), MAX_POOLS),
        ("groups", raw.groups.len(), MAX_GROUPS),
    ] {
        at_most(|| Place::Layout, what, count, limit)?;
        not_empty(|| Place::Layout, what, count != 0)?;
    }
    let fields = raw
        .groups
        .iter()
        .flat_map(|group| &group.layers)
        .map(|layer| layer.fields.len())
        .fold(0_usize, usize::saturating_add);
    at_most(|| Place::Layout, "fields", fields, MAX_FIELDS)?;

    let allocations = allocations(raw)?;
    let pools = raw.pools.iter().map(pool::pool);
    let pools = unique(pools.collect::<Result<_, _>>()?, Pool::id, Place::Pool)?;
    let mut layout = CacheLayout {
        engine: raw.engine.clone(),
        model: raw.model.clone(),
        content: raw.content.clone(),
        shard: shard(raw)?,
        allocations,
        pools,
        arbitrated: Vec::new(),
        groups: Vec::new(),
    };
    layout.arbitrated = pool::arbitrated(raw, &layout)?;
    let mut pieces = Pieces::default();
    let groups = raw
        .groups
        .iter()
        .map(|group| group::group(group, &layout, &mut pieces))
        .collect::<Result<_, _>>()?;
    layout.groups = unique(groups, Group::id, Place::Group)?;
    Ok(layout)
}

fn at_most(
    place: impl Fn() -> Place,
    what: &'static str,
    count: usize,
    limit: usize,
) -> Result<(), LayoutError> {
    let number = |n| u64::try_from(n).unwrap_or(u64::MAX);
    if count > limit {
        return Err(LayoutError::TooMany {
            place: place(),
            what,
            count: number(count),
            limit: number(limit),
        });
    }
    Ok(())
}

fn not_empty(
    place: impl Fn() -> Place,
    what: &'static str,
    is_there: bool,
) -> Result<(), LayoutError> {
    if is_there {
        Ok(())
    } else {
        Err(LayoutError::Empty {
            place: place(),
            what,
        })
    }
}

/// All of them in the order of their ids.
fn unique<T, I: Copy + Ord>(
    mut all: Vec<T>,
    id: impl Fn(&T) -> I,
    place: impl Fn(I) -> Place,
) -> Result<Vec<T>, LayoutError> {
    all.sort_by_key(|item| id(item));
    for pair in all.windows(2) {
        if let [a, b] = pair
            && id(a) == id(b)
        {
            return Err(LayoutError::IdTwice {
                place: place(id(a)),
            });
        }
    }
    Ok(all)
}

fn quantity(place: impl Fn() -> Place) -> impl Fn(QuantityError) -> LayoutError {
    move |error| LayoutError::Quantity {
        place: place(),
        error,
    }
}

fn allocations(raw: &RawLayout) -> Result<Vec<Allocation>, LayoutError> {
    let all = raw
        .allocations
        .iter()
        .map(|allocation| {
            let id = AllocationId::new(allocation.id);
            let len = ByteLen::new(allocation.len).map_err(quantity(|| Place::Allocation(id)))?;
            Ok(Allocation { id, len })
        })
        .collect::<Result<_, LayoutError>>()?;
    unique(all, |allocation| allocation.id, Place::Allocation)
}

fn shard(raw: &RawLayout) -> Result<Shard, LayoutError> {
    let shard = raw.shard;
    for (axis, rank, size) in [
        ("tp", shard.tp_rank, shard.tp_size),
        ("pp", shard.pp_rank, shard.pp_size),
    ] {
        if rank >= size {
            return Err(LayoutError::Rank { axis, rank, size });
        }
    }
    Ok(Shard {
        tp_rank: shard.tp_rank,
        tp_size: shard.tp_size,
        pp_rank: shard.pp_rank,
        pp_size: shard.pp_size,
    })
}
