//! Manifests of which most are wrong.

use arbitrary::{Result, Unstructured};
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use crate::axis::Axis;
use crate::raw::{
    FORMAT, RawAllocation, RawContent, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawPool,
    RawShard, RawSplit,
};

/// A manifest that may be wrong in any way: a valid one with a few values
/// changed, or one of small numbers, which decides the overlay rule both ways.
///
/// # Errors
/// As [`Unstructured`]; never for want of bytes.
pub fn hostile(bytes: &mut Unstructured<'_>) -> Result<RawLayout> {
    if bytes.ratio(1_u8, 2)? {
        small(bytes)
    } else {
        let mut raw = super::layout(bytes)?;
        for _ in 0..bytes.int_in_range(1..=3_u8)? {
            change(&mut raw, bytes)?;
        }
        Ok(raw)
    }
}

/// Few fields of few bytes, anywhere.
fn small(bytes: &mut Unstructured<'_>) -> Result<RawLayout> {
    let pools = bytes.int_in_range(1..=2_u32)?;
    let mut groups = Vec::new();
    for id in 0..bytes.int_in_range(1..=3_u32)? {
        let mut layers = Vec::new();
        for layer in 0..bytes.int_in_range(1..=2_u8)? {
            layers.push(RawLayer {
                name: layer.to_string(),
                fields: vec![small_field(bytes)?],
            });
        }
        groups.push(RawGroup {
            id,
            kind: "full_attention".to_string(),
            window: None,
            tokens_per_block: 16,
            pages_per_block: *bytes.choose(&[1, 1, 2, 3])?,
            pool: bytes.int_in_range(0..=pools - 1)?,
            layers,
        });
    }
    Ok(RawLayout {
        format: FORMAT.to_string(),
        engine: String::new(),
        model: String::new(),
        content: RawContent::default(),
        shard: RawShard::default(),
        allocations: vec![RawAllocation {
            id: 0,
            len: *bytes.choose(&[400, 1000, 200, 50])?,
        }],
        pools: (0..pools)
            .map(|id| {
                Ok(RawPool {
                    id,
                    capacity: bytes.int_in_range(1..=5)?,
                    null_id: None,
                    reserved: Vec::new(),
                })
            })
            .collect::<Result<_>>()?,
        arbitrated: if bytes.ratio(1_u8, 8)? {
            vec![[0, 1]]
        } else {
            Vec::new()
        },
        groups,
    })
}

fn small_field(bytes: &mut Unstructured<'_>) -> Result<RawField> {
    let steps = [1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 40, 48];
    let mut dims = Vec::new();
    if bytes.ratio(1_u8, 3)? {
        dims.push(RawDim {
            axis: Axis::Head,
            extent: bytes.int_in_range(1..=3)?,
            stride: *bytes.choose(&steps)?,
        });
    }
    dims.push(RawDim {
        axis: Axis::Byte,
        extent: bytes.int_in_range(1..=12)?,
        stride: *bytes.choose(&[1, 1, 1, 2])?,
    });
    Ok(RawField {
        name: "f".to_string(),
        dtype: "uint8".to_string(),
        allocation: 0,
        offset: bytes.int_in_range(0..=60)?,
        page_stride: *bytes.choose(&steps)?,
        dims,
        split: None,
    })
}

/// A number near a border.
fn number(now: u64, bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.int_in_range(0..=9_u8)? {
        0 => 0,
        1 => now.wrapping_add(1),
        2 => now.wrapping_sub(1),
        3 => now.wrapping_mul(2),
        4 => now / 2,
        5 => u64::from(u32::MAX),
        6 => 1 << 62,
        7 => (1 << 62) - 1,
        8 => u64::MAX,
        _ => bytes.arbitrary()?,
    })
}

fn alter(value: &mut u64, bytes: &mut Unstructured<'_>) -> Result<()> {
    *value = number(*value, bytes)?;
    Ok(())
}

fn alter_id(value: &mut u32, bytes: &mut Unstructured<'_>) -> Result<()> {
    *value = u32::try_from(number(u64::from(*value), bytes)?).unwrap_or(u32::MAX);
    Ok(())
}

fn any<'a, T>(list: &'a mut [T], bytes: &mut Unstructured<'_>) -> Result<&'a mut T> {
    let at = bytes.choose_index(list.len())?;
    Ok(&mut list[at])
}

fn change(raw: &mut RawLayout, bytes: &mut Unstructured<'_>) -> Result<()> {
    if raw.groups.iter().any(|group| group.layers.is_empty()) {
        return Ok(());
    }
    match bytes.int_in_range(0..=9_u8)? {
        0 => alter(&mut any(&mut raw.allocations, bytes)?.len, bytes),
        1 => alter_id(&mut any(&mut raw.pools, bytes)?.capacity, bytes),
        2 => change_pool(raw, bytes),
        3 | 4 => change_group(any(&mut raw.groups, bytes)?, bytes),
        5 => change_whole(raw, bytes),
        _ => {
            let group = any(&mut raw.groups, bytes)?;
            let layer = any(&mut group.layers, bytes)?;
            match layer.fields.as_mut_slice() {
                [] => Ok(()),
                fields => change_field(any(fields, bytes)?, bytes),
            }
        }
    }
}

fn change_pool(raw: &mut RawLayout, bytes: &mut Unstructured<'_>) -> Result<()> {
    let pool = any(&mut raw.pools, bytes)?;
    match bytes.int_in_range(0..=2_u8)? {
        0 => alter_id(&mut pool.id, bytes),
        1 => {
            let mut id = pool.null_id.unwrap_or(0);
            alter_id(&mut id, bytes)?;
            pool.null_id = Some(id);
            Ok(())
        }
        _ => {
            let mut range = [0, pool.capacity];
            alter_id(&mut range[0], bytes)?;
            alter_id(&mut range[1], bytes)?;
            pool.reserved.push(range);
            Ok(())
        }
    }
}

fn change_whole(raw: &mut RawLayout, bytes: &mut Unstructured<'_>) -> Result<()> {
    match bytes.int_in_range(0..=6_u8)? {
        0 => raw.format = bytes.arbitrary()?,
        1 => alter_id(&mut raw.shard.tp_rank, bytes)?,
        2 => alter_id(&mut raw.shard.tp_size, bytes)?,
        3 => raw.arbitrated.push(bytes.arbitrary()?),
        4 => alter_id(&mut any(&mut raw.allocations, bytes)?.id, bytes)?,
        5 => raw.arbitrated.clear(),
        _ => {
            let again = any(&mut raw.groups, bytes)?.clone();
            raw.groups.push(again);
        }
    }
    Ok(())
}

fn change_group(group: &mut RawGroup, bytes: &mut Unstructured<'_>) -> Result<()> {
    match bytes.int_in_range(0..=7_u8)? {
        0 => alter_id(&mut group.id, bytes),
        1 => alter_id(&mut group.pool, bytes),
        2 => alter_id(&mut group.pages_per_block, bytes),
        3 => alter_id(&mut group.tokens_per_block, bytes),
        4 => {
            group.kind = bytes.arbitrary()?;
            Ok(())
        }
        5 => {
            group.window = bytes.arbitrary()?;
            Ok(())
        }
        6 => {
            group.layers.clear();
            Ok(())
        }
        _ => {
            let again = any(&mut group.layers, bytes)?.clone();
            group.layers.push(again);
            Ok(())
        }
    }
}

fn change_field(field: &mut RawField, bytes: &mut Unstructured<'_>) -> Result<()> {
    match bytes.int_in_range(0..=8_u8)? {
        0 => field.dtype = bytes.arbitrary()?,
        1 => alter_id(&mut field.allocation, bytes)?,
        2 | 3 => alter(&mut field.offset, bytes)?,
        4 => alter(&mut field.page_stride, bytes)?,
        5 => field.dims.clear(),
        6 if !field.dims.is_empty() => alter(&mut any(&mut field.dims, bytes)?.extent, bytes)?,
        7 if !field.dims.is_empty() => alter(&mut any(&mut field.dims, bytes)?.stride, bytes)?,
        _ => {
            field.split = Some(RawSplit {
                axis: *bytes.choose(&[Axis::Head, Axis::Page, Axis::Token])?,
                parts: bytes.arbitrary()?,
                replicas: bytes.arbitrary()?,
            });
        }
    }
    Ok(())
}
