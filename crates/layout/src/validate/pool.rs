//! The checks of id spaces.

use alloc::vec::Vec;
use core::ops::Range;

use super::{at_most, not_empty};
use crate::error::LayoutError;
use crate::ids::PoolId;
use crate::layout::CacheLayout;
use crate::limits::MAX_RESERVED;
use crate::place::Place;
use crate::pool::Pool;
use crate::raw::{RawLayout, RawPool};

pub(super) fn pool(raw: &RawPool) -> Result<Pool, LayoutError> {
    let id = PoolId::new(raw.id);
    let place = || Place::Pool(id);
    not_empty(place, "ids", raw.capacity != 0)?;
    at_most(place, "reserved ranges", raw.reserved.len(), MAX_RESERVED)?;
    if let Some(null) = raw.null_id
        && null >= raw.capacity
    {
        return Err(LayoutError::NullId {
            pool: id,
            id: null,
            capacity: raw.capacity,
        });
    }
    Ok(Pool {
        id,
        capacity: raw.capacity,
        null_id: raw.null_id,
        reserved: reserved(raw)?,
    })
}

/// The ranges ascending, those that touch merged.
fn reserved(raw: &RawPool) -> Result<Vec<Range<u32>>, LayoutError> {
    for [start, end] in &raw.reserved {
        if start >= end || *end > raw.capacity {
            return Err(LayoutError::Reserved {
                pool: PoolId::new(raw.id),
                start: *start,
                end: *end,
                capacity: raw.capacity,
            });
        }
    }
    let mut ranges = raw.reserved.clone();
    ranges.sort_unstable();
    let mut merged: Vec<Range<u32>> = Vec::new();
    for [start, end] in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => merged.push(start..end),
        }
    }
    Ok(merged)
}

/// The pairs ascending, each once.
pub(super) fn arbitrated(
    raw: &RawLayout,
    layout: &CacheLayout,
) -> Result<Vec<(PoolId, PoolId)>, LayoutError> {
    let pools = raw.pools.len();
    at_most(
        || Place::Layout,
        "arbitrated pairs",
        raw.arbitrated.len(),
        pools.saturating_mul(pools),
    )?;
    let mut pairs = Vec::new();
    for [a, b] in &raw.arbitrated {
        let (a, b) = (PoolId::new(*a), PoolId::new(*b));
        for id in [a, b] {
            if layout.pool(id).is_none() {
                return Err(LayoutError::Unknown {
                    place: Place::ArbitratedPair(a, b),
                    target: Place::Pool(id),
                });
            }
        }
        if a == b {
            return Err(LayoutError::ArbitratedWithItself { pool: a });
        }
        pairs.push((a.min(b), a.max(b)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}
