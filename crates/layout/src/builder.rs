//! Layouts made in code.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::axis::Axis;
use crate::error::LayoutError;
use crate::layout::CacheLayout;
use crate::raw::{
    FORMAT, RawAllocation, RawContent, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawPool,
    RawShard, RawSplit,
};

/// Builds a [`CacheLayout`] step by step.
///
/// Nothing is checked before [`build`](Self::build), which runs the same
/// validation as a manifest.
///
/// ```
/// use mooncake_pd_layout::{Axis, FieldSpec, GroupSpec, LayoutBuilder};
///
/// let kv = FieldSpec::new("kv", "bfloat16")
///     .at(0, 0)
///     .page_stride(4096)
///     .dim(Axis::Token, 16, 256)
///     .dim(Axis::Content, 128, 2);
/// let layout = LayoutBuilder::new()
///     .allocation(0, 64 * 4096)
///     .pool(0, 64, Some(0))
///     .group(GroupSpec::new(0, "full_attention", 16, 0).layer("layer.0", [kv]))
///     .build()?;
/// assert_eq!(layout.groups().len(), 1);
/// # Ok::<(), mooncake_pd_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LayoutBuilder {
    raw: RawLayout,
}

impl Default for LayoutBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl LayoutBuilder {
    /// An empty layout.
    #[must_use]
    pub fn new() -> Self {
        Self {
            raw: RawLayout {
                format: FORMAT.to_string(),
                engine: String::new(),
                model: String::new(),
                content: RawContent::default(),
                shard: RawShard::default(),
                allocations: Vec::new(),
                pools: Vec::new(),
                arbitrated: Vec::new(),
                groups: Vec::new(),
            },
        }
    }

    /// Names the engine and the model, for people.
    #[must_use]
    pub fn named(mut self, engine: &str, model: &str) -> Self {
        self.raw.engine = engine.to_string();
        self.raw.model = model.to_string();
        self
    }

    /// Says what the bytes mean beyond shapes.
    #[must_use]
    pub fn content(mut self, content: RawContent) -> Self {
        self.raw.content = content;
        self
    }

    /// Says which part of the model this side holds.
    #[must_use]
    pub fn shard(mut self, shard: RawShard) -> Self {
        self.raw.shard = shard;
        self
    }

    /// Adds an allocation of `len` bytes.
    #[must_use]
    pub fn allocation(mut self, id: u32, len: u64) -> Self {
        self.raw.allocations.push(RawAllocation { id, len });
        self
    }

    /// Adds a pool of ids `0..capacity`, one of which may mean "no block".
    #[must_use]
    pub fn pool(mut self, id: u32, capacity: u32, null_id: Option<u32>) -> Self {
        self.raw.pools.push(RawPool {
            id,
            capacity,
            null_id,
            reserved: Vec::new(),
        });
        self
    }

    /// Adds ids `from..to` of the last pool to those that never appear in lists.
    #[must_use]
    pub fn reserved(mut self, from: u32, to: u32) -> Self {
        if let Some(pool) = self.raw.pools.last_mut() {
            pool.reserved.push([from, to]);
        }
        self
    }

    /// Declares that the engine's allocator keeps the blocks of two pools apart
    /// although their bytes overlay each other.
    #[must_use]
    pub fn arbitrated(mut self, a: u32, b: u32) -> Self {
        self.raw.arbitrated.push([a, b]);
        self
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: GroupSpec) -> Self {
        self.raw.groups.push(group.raw);
        self
    }

    /// The manifest as built so far.
    #[must_use]
    pub fn into_raw(self) -> RawLayout {
        self.raw
    }

    /// Checks what was built.
    ///
    /// # Errors
    /// As [`CacheLayout::new`].
    pub fn build(&self) -> Result<CacheLayout, LayoutError> {
        CacheLayout::new(&self.raw)
    }
}

/// One group of a [`LayoutBuilder`].
#[derive(Clone, Debug)]
pub struct GroupSpec {
    raw: RawGroup,
}

impl GroupSpec {
    /// A group of a [kind](RawGroup::kind) with `tokens_per_block` tokens per
    /// logical block, drawing ids from `pool`.
    #[must_use]
    pub fn new(id: u32, kind: &str, tokens_per_block: u32, pool: u32) -> Self {
        Self {
            raw: RawGroup {
                id,
                kind: kind.to_string(),
                window: None,
                tokens_per_block,
                pages_per_block: 1,
                pool,
                layers: Vec::new(),
            },
        }
    }

    /// Sets the window of a sliding kind, in tokens.
    #[must_use]
    pub const fn window(mut self, tokens: u32) -> Self {
        self.raw.window = Some(tokens);
        self
    }

    /// Sets the physical pages per logical block.
    #[must_use]
    pub const fn pages_per_block(mut self, pages: u32) -> Self {
        self.raw.pages_per_block = pages;
        self
    }

    /// Adds a layer.
    #[must_use]
    pub fn layer(mut self, name: &str, fields: impl IntoIterator<Item = FieldSpec>) -> Self {
        let fields = fields.into_iter().map(|field| field.raw).collect();
        self.raw.layers.push(RawLayer {
            name: name.to_string(),
            fields,
        });
        self
    }
}

/// One field of a [`GroupSpec`].
#[derive(Clone, Debug)]
pub struct FieldSpec {
    raw: RawField,
}

impl FieldSpec {
    /// A field of elements of `dtype`, at the start of allocation 0.
    #[must_use]
    pub fn new(name: &str, dtype: &str) -> Self {
        Self {
            raw: RawField {
                name: name.to_string(),
                dtype: dtype.to_string(),
                allocation: 0,
                offset: 0,
                page_stride: 0,
                dims: Vec::new(),
                split: None,
            },
        }
    }

    /// Puts physical page 0 at `offset` bytes into `allocation`.
    #[must_use]
    pub const fn at(mut self, allocation: u32, offset: u64) -> Self {
        self.raw.allocation = allocation;
        self.raw.offset = offset;
        self
    }

    /// Sets the bytes from one physical page to the next.
    #[must_use]
    pub const fn page_stride(mut self, bytes: u64) -> Self {
        self.raw.page_stride = bytes;
        self
    }

    /// Adds the next inner axis.
    #[must_use]
    pub fn dim(mut self, axis: Axis, extent: u64, stride: u64) -> Self {
        self.raw.dims.push(RawDim {
            axis,
            extent,
            stride,
        });
        self
    }

    /// Says that tensor parallelism divides `axis` in these parts.
    #[must_use]
    pub fn split(mut self, axis: Axis, parts: &[u64]) -> Self {
        self.raw.split = Some(RawSplit {
            axis,
            parts: parts.to_vec(),
            replicas: 1,
        });
        self
    }
}
