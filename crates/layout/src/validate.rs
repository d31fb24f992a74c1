//! The checks every layout passes, whatever it was read from.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use alloc::{format, string::String};

use crate::error::{FieldError, FieldPlace, LayoutError};
use crate::expansion::Expansion;
use crate::field::Field;
use crate::group::{Group, GroupKind, Layers, Page};
use crate::ids::{AllocationId, FieldId, GroupId, LayerId, PoolId};
use crate::layout::{Allocation, CacheLayout, Shard};
use crate::pool::Pool;
use crate::raw::{FORMAT, RawField, RawGroup, RawLayout, RawPool};
use crate::units::{ByteLen, PagesPerBlock, QuantityError, TokensPerBlock, WindowTokens};

/// Most allocations a layout may have.
pub const MAX_ALLOCATIONS: usize = 65_536;
/// Most pools a layout may have.
pub const MAX_POOLS: usize = 1_024;
/// Most groups a layout may have.
pub const MAX_GROUPS: usize = 1_024;
/// Most fields a layout may have over all its groups and layers.
pub const MAX_FIELDS: usize = 262_144;
/// Most fields a layer may have.
pub const MAX_FIELDS_PER_LAYER: usize = 1_024;
/// Most ranges of reserved ids a pool may have.
pub const MAX_RESERVED: usize = 1_024;

/// Everything but the overlay rule.
pub(crate) fn structure(raw: &RawLayout) -> Result<CacheLayout, LayoutError> {
    if raw.format != FORMAT {
        return Err(LayoutError::Format {
            found: raw.format.clone(),
            expected: FORMAT,
        });
    }
    bounded("allocations", raw.allocations.len(), MAX_ALLOCATIONS)?;
    bounded("pools", raw.pools.len(), MAX_POOLS)?;
    bounded("groups", raw.groups.len(), MAX_GROUPS)?;
    let fields = raw
        .groups
        .iter()
        .flat_map(|group| &group.layers)
        .map(|layer| layer.fields.len())
        .fold(0_usize, usize::saturating_add);
    bounded("fields", fields, MAX_FIELDS)?;

    let allocations = allocations(raw)?;
    let pools = unique(
        "pool",
        raw.pools.iter().map(pool).collect::<Result<_, _>>()?,
        |pool: &Pool| pool.id.get(),
    )?;
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
    layout.arbitrated = arbitrated(raw, &layout)?;
    let groups = raw
        .groups
        .iter()
        .map(|group| self::group(group, &layout))
        .collect::<Result<_, _>>()?;
    layout.groups = unique("group", groups, |group: &Group| group.id.get())?;
    Ok(layout)
}

fn bounded(what: &'static str, count: usize, limit: usize) -> Result<(), LayoutError> {
    let number = |n| u64::try_from(n).unwrap_or(u64::MAX);
    if count == 0 {
        Err(LayoutError::Empty { what })
    } else if count > limit {
        Err(LayoutError::TooMany {
            what,
            count: number(count),
            limit: number(limit),
        })
    } else {
        Ok(())
    }
}

fn unique<T>(
    what: &'static str,
    mut all: Vec<T>,
    id: impl Fn(&T) -> u32,
) -> Result<Vec<T>, LayoutError> {
    all.sort_by_key(|item| id(item));
    for pair in all.windows(2) {
        if let [a, b] = pair
            && id(a) == id(b)
        {
            return Err(LayoutError::IdTwice { what, id: id(a) });
        }
    }
    Ok(all)
}

fn quantity(place: impl Fn() -> String) -> impl Fn(QuantityError) -> LayoutError {
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
            let len = ByteLen::new(allocation.len)
                .map_err(quantity(|| format!("allocation {}", allocation.id)))?;
            Ok(Allocation {
                id: AllocationId::new(allocation.id),
                len,
            })
        })
        .collect::<Result<_, LayoutError>>()?;
    unique("allocation", all, |allocation| allocation.id.get())
}

fn pool(raw: &RawPool) -> Result<Pool, LayoutError> {
    let id = PoolId::new(raw.id);
    if raw.capacity == 0 {
        return Err(LayoutError::Empty {
            what: "ids in a pool",
        });
    }
    if raw.reserved.len() > MAX_RESERVED {
        bounded("reserved ranges", raw.reserved.len(), MAX_RESERVED)?;
    }
    let inside = |what, number: u32, last: u32| {
        if last < raw.capacity {
            Ok(())
        } else {
            Err(LayoutError::PoolId {
                pool: id,
                what,
                id: number,
                capacity: raw.capacity,
            })
        }
    };
    if let Some(null) = raw.null_id {
        inside("null id", null, null)?;
    }
    let mut reserved = Vec::new();
    for [start, end] in &raw.reserved {
        inside("reserved id", *end, end.saturating_sub(1))?;
        if start < end {
            reserved.push(*start..*end);
        }
    }
    Ok(Pool {
        id,
        capacity: raw.capacity,
        null_id: raw.null_id,
        reserved,
    })
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

fn arbitrated(raw: &RawLayout, layout: &CacheLayout) -> Result<Vec<(PoolId, PoolId)>, LayoutError> {
    let pools = raw.pools.len();
    let limit = pools.saturating_mul(pools);
    if raw.arbitrated.len() > limit {
        bounded("arbitrated pairs", raw.arbitrated.len(), limit)?;
    }
    raw.arbitrated
        .iter()
        .map(|[a, b]| {
            for id in [*a, *b] {
                if layout.pool(PoolId::new(id)).is_none() {
                    return Err(LayoutError::Unknown {
                        place: "an arbitrated pair".to_string(),
                        what: "pool",
                        id,
                    });
                }
            }
            Ok((PoolId::new(*a.min(b)), PoolId::new(*a.max(b))))
        })
        .collect()
}

fn kind(raw: &RawGroup) -> Result<GroupKind, LayoutError> {
    let group = GroupId::new(raw.id);
    let place = || format!("group {}", raw.id);
    let window = || match raw.window {
        Some(tokens) => WindowTokens::new(tokens).map(Some).map_err(quantity(place)),
        None => Ok(None),
    };
    let sliding = |make: fn(WindowTokens) -> GroupKind, kind| match window()? {
        Some(tokens) => Ok(make(tokens)),
        None => Err(LayoutError::Window {
            group,
            kind,
            problem: "has no window",
        }),
    };
    let plain = |kind: GroupKind| match raw.window {
        None => Ok(kind),
        Some(_) => Err(LayoutError::Window {
            group,
            kind: kind.name(),
            problem: "can't have a window",
        }),
    };
    match raw.kind.as_str() {
        "full_attention" => plain(GroupKind::FullAttention),
        "mla" => plain(GroupKind::Mla),
        "gdn_state" => plain(GroupKind::GdnState),
        "sliding_window" => sliding(GroupKind::SlidingWindow, "sliding_window"),
        "sliding_window_mla" => sliding(GroupKind::SlidingWindowMla, "sliding_window_mla"),
        _ => Err(LayoutError::UnknownKind {
            group,
            kind: raw.kind.clone(),
        }),
    }
}

fn group(raw: &RawGroup, layout: &CacheLayout) -> Result<Group, LayoutError> {
    let id = GroupId::new(raw.id);
    let place = || format!("group {}", raw.id);
    let kind = kind(raw)?;
    let pool = layout
        .pool(PoolId::new(raw.pool))
        .ok_or_else(|| LayoutError::Unknown {
            place: place(),
            what: "pool",
            id: raw.pool,
        })?;
    let tokens_per_block = TokensPerBlock::new(raw.tokens_per_block).map_err(quantity(place))?;
    let pages = PagesPerBlock::new(raw.pages_per_block).map_err(quantity(place))?;
    if kind.is_state() && pages != PagesPerBlock::ONE {
        return Err(LayoutError::StatePages {
            group: id,
            pages: pages.get(),
        });
    }
    if raw.layers.is_empty() {
        return Err(LayoutError::Empty {
            what: "layers in a group",
        });
    }
    let mut layers = Layers::default();
    for layer in &raw.layers {
        let name = LayerId::new(&layer.name);
        // Fields are found by going through them: there must not be many.
        bounded(
            "fields in a layer",
            layer.fields.len(),
            MAX_FIELDS_PER_LAYER,
        )?;
        let mut fields: Vec<Field> = Vec::new();
        for field in &layer.fields {
            let place = || {
                Box::new(FieldPlace {
                    group: id,
                    layer: name.clone(),
                    field: FieldId::new(&field.name),
                })
            };
            if fields.iter().any(|other| other.id().as_str() == field.name) {
                return Err(LayoutError::NameTwice {
                    what: "field",
                    name: field.name.clone(),
                    group: id,
                });
            }
            fields.push(self::field(field, pages, pool, layout, place)?);
        }
        if layers.insert(name, Page { fields }).is_some() {
            return Err(LayoutError::NameTwice {
                what: "layer",
                name: layer.name.clone(),
                group: id,
            });
        }
    }
    Ok(Group {
        id,
        kind,
        tokens_per_block,
        expansion: Expansion::new(pages),
        pool: pool.id,
        layers,
    })
}

fn field(
    raw: &RawField,
    pages: PagesPerBlock,
    pool: &Pool,
    layout: &CacheLayout,
    place: impl Fn() -> Box<FieldPlace>,
) -> Result<Field, LayoutError> {
    let wrong = |error: FieldError| LayoutError::Field {
        place: place(),
        error,
    };
    let field = Field::new(raw, pages).map_err(wrong)?;
    let tp_size = layout.shard.tp_size;
    if let Some(split) = &raw.split
        && tp_size.checked_rem(split.replicas) != Some(0)
    {
        return Err(wrong(FieldError::SplitReplicas {
            replicas: split.replicas,
            tp_size,
        }));
    }
    let allocation = layout
        .allocation(field.allocation())
        .ok_or_else(|| LayoutError::Unknown {
            place: place().to_string(),
            what: "allocation",
            id: raw.allocation,
        })?;
    let last = pool.capacity.saturating_sub(1);
    let end = field
        .block_offset(last)
        .and_then(|start| start.checked_add(field.span().get()))
        .ok_or_else(|| {
            wrong(FieldError::TooLarge {
                what: "end of the last block",
            })
        })?;
    if end.get() > allocation.len.get() {
        return Err(LayoutError::OutsideAllocation {
            place: place(),
            end: end.get(),
            allocation: allocation.id,
            len: allocation.len.get(),
        });
    }
    Ok(field)
}

#[cfg(test)]
mod tests {
    use crate::raw::RawShard;
    use crate::{Axis, CacheLayout, FieldError, FieldSpec, GroupSpec, LayoutBuilder, LayoutError};

    #[test]
    fn replicas_of_a_share_divide_the_ranks() {
        let with = |replicas| {
            let field = FieldSpec::new("kv", "uint8")
                .at(0, 0)
                .page_stride(8)
                .dim(Axis::Head, 2, 4)
                .dim(Axis::Content, 4, 1)
                .split(Axis::Head, &[2]);
            let mut raw = LayoutBuilder::new()
                .allocation(0, 80)
                .pool(0, 10, Some(0))
                .shard(RawShard {
                    tp_size: 8,
                    ..RawShard::default()
                })
                .group(GroupSpec::new(0, "full_attention", 16, 0).layer("l", [field]))
                .into_raw();
            for group in &mut raw.groups {
                for field in group.layers.iter_mut().flat_map(|layer| &mut layer.fields) {
                    if let Some(split) = &mut field.split {
                        split.replicas = replicas;
                    }
                }
            }
            CacheLayout::new(&raw)
        };
        assert!(with(4).is_ok());
        for refused in [0, 3, 16] {
            let error = with(refused).unwrap_err();
            assert!(
                matches!(
                    error,
                    LayoutError::Field {
                        error: FieldError::SplitReplicas { tp_size: 8, .. },
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
}
