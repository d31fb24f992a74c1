//! A layout back to its manifest.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::axis::{Axis, Split};
use crate::field::Field;
use crate::group::Group;
use crate::json::JsonError;
use crate::layout::CacheLayout;
use crate::raw::{
    FORMAT, RawAllocation, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawPool, RawShard,
    RawSplit,
};
use crate::units::WindowTokens;

/// A manifest that can't be written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the manifest can't be written: {0}")]
pub struct EncodeError(JsonError);

impl CacheLayout {
    /// The manifest of this layout: [`CacheLayout::new`] of it is equal to
    /// `self`. Lists are in the order of ids, layers and fields in the engine's.
    #[must_use]
    pub fn to_raw(&self) -> RawLayout {
        RawLayout {
            format: FORMAT.to_string(),
            engine: self.engine.clone(),
            model: self.model.clone(),
            content: self.content.clone(),
            shard: RawShard {
                tp_rank: self.shard.tp_rank,
                tp_size: self.shard.tp_size,
                pp_rank: self.shard.pp_rank,
                pp_size: self.shard.pp_size,
            },
            allocations: self
                .allocations
                .iter()
                .map(|allocation| RawAllocation {
                    id: allocation.id.get(),
                    len: allocation.len.get(),
                })
                .collect(),
            pools: self
                .pools
                .iter()
                .map(|pool| RawPool {
                    id: pool.id.get(),
                    capacity: pool.capacity,
                    null_id: pool.null_id,
                    reserved: pool
                        .reserved
                        .iter()
                        .map(|range| [range.start, range.end])
                        .collect(),
                })
                .collect(),
            arbitrated: self
                .arbitrated
                .iter()
                .map(|(a, b)| [a.get(), b.get()])
                .collect(),
            groups: self.groups.iter().map(group).collect(),
        }
    }

    /// The manifest as JSON; [`from_json`](Self::from_json) reads it back.
    ///
    /// # Errors
    /// JSON can't express a part of the manifest; none is known.
    pub fn to_json(&self) -> Result<String, EncodeError> {
        serde_json::to_string(&self.to_raw()).map_err(|error| EncodeError(error.into()))
    }
}

fn group(group: &Group) -> RawGroup {
    RawGroup {
        id: group.id.get(),
        kind: group.kind.name().to_owned(),
        window: group.kind.window().map(WindowTokens::get),
        tokens_per_block: group.tokens_per_block.get(),
        pages_per_block: group.expansion.pages_per_block().get(),
        pool: group.pool.get(),
        layers: group
            .layers
            .iter()
            .map(|(name, page)| RawLayer {
                name: name.as_str().to_owned(),
                fields: page.fields.iter().map(field).collect(),
            })
            .collect(),
    }
}

fn field(field: &Field) -> RawField {
    let mut dims: Vec<RawDim> = field
        .dims()
        .iter()
        .filter(|dim| dim.axis != Axis::Page)
        .map(|dim| RawDim {
            axis: dim.axis,
            extent: dim.extent,
            stride: dim.stride,
        })
        .collect();
    if dims.is_empty() {
        // A page of one element; a manifest needs an axis to say so.
        dims = vec![RawDim {
            axis: Axis::Content,
            extent: 1,
            stride: field.dtype().size(),
        }];
    }
    RawField {
        name: field.id().as_str().to_owned(),
        dtype: field.dtype().name().to_owned(),
        allocation: field.allocation().get(),
        offset: field.offset().get(),
        page_stride: field.page_stride().get(),
        dims,
        split: match field.split() {
            Split::Replicated => None,
            Split::Sharded {
                axis,
                parts,
                replicas,
            } => Some(RawSplit {
                axis: *axis,
                parts: parts.clone(),
                replicas: *replicas,
            }),
        },
    }
}
