//! One mismatch between two layouts.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::axis::{Axis, Split};
use crate::dtype::DType;
use crate::group::GroupKind;
use crate::ids::{GroupId, LayerId};
use crate::layout::Shard;
use crate::place::FieldPlace;
use crate::units::{ByteLen, PagesPerBlock, TokensPerBlock};

/// One way in which a source and a destination differ, with both values.
///
/// [`is_incompatible`](Self::is_incompatible) tells those that forbid every
/// transfer between the two from those worth a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// They hold different parts of the model.
    #[error("the source is {from}, the destination is {to}", from = .source_shard, to = .destination_shard)]
    Shard {
        /// The source's part.
        source_shard: Shard,
        /// The destination's part.
        destination_shard: Shard,
    },
    /// They say that their bytes mean different things; an empty string says
    /// nothing and is compatible with everything.
    #[error("{}", Tags { tag, source: source_tag, destination: destination_tag })]
    Content {
        /// Which part of the content tag.
        tag: &'static str,
        /// What the source says.
        source_tag: String,
        /// What the destination says.
        destination_tag: String,
    },
    /// They have different groups.
    #[error("the source has groups {from}, the destination has {to}", from = List(.source_groups), to = List(.destination_groups))]
    Groups {
        /// Every group of the source, ascending.
        source_groups: Vec<GroupId>,
        /// Every group of the destination, ascending.
        destination_groups: Vec<GroupId>,
    },
    /// A group holds different things.
    #[error("group {group} is of kind {from} at the source, {to} at the destination", from = .source_kind.name(), to = .destination_kind.name())]
    Kind {
        /// The group.
        group: GroupId,
        /// Its kind at the source.
        source_kind: GroupKind,
        /// Its kind at the destination.
        destination_kind: GroupKind,
    },
    /// A group of one kind reaches back over different numbers of tokens.
    #[error("group {group} has a window of {from} tokens at the source, {to} at the destination", from = Window(*.source_kind), to = Window(*.destination_kind))]
    Window {
        /// The group.
        group: GroupId,
        /// Its kind and window at the source.
        source_kind: GroupKind,
        /// Its kind and window at the destination.
        destination_kind: GroupKind,
    },
    /// A block stands for different numbers of tokens.
    #[error("group {group} has {from} tokens per block at the source, {to} at the destination", from = .source_tokens, to = .destination_tokens)]
    TokensPerBlock {
        /// The group.
        group: GroupId,
        /// Tokens per block at the source.
        source_tokens: TokensPerBlock,
        /// Tokens per block at the destination.
        destination_tokens: TokensPerBlock,
    },
    /// A block is divided into different numbers of kernel pages. By itself a
    /// note: where it changes the order of bytes there is a [`Self::Shape`] too.
    #[error("group {group} has {from} kernel pages per block at the source, {to} at the destination", from = .source_pages, to = .destination_pages)]
    PagesPerBlock {
        /// The group.
        group: GroupId,
        /// Pages per block at the source.
        source_pages: PagesPerBlock,
        /// Pages per block at the destination.
        destination_pages: PagesPerBlock,
    },
    /// No layer of a group is on both sides.
    #[error("group {group} has no layer on both sides: {from} at the source, {to} at the destination", from = .source_layers, to = .destination_layers)]
    NoCommonLayer {
        /// The group.
        group: GroupId,
        /// Layers of the group at the source.
        source_layers: usize,
        /// Layers of the group at the destination.
        destination_layers: usize,
    },
    /// The destination lacks a layer: it runs another model.
    #[error("layer `{layer}` of group {group} is at the source, the destination has none")]
    SourceLayer {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: LayerId,
    },
    /// The source lacks a layer (a draft model's, say). A note: it stays local
    /// to the destination, no transfer touches it.
    #[error("layer `{layer}` of group {group} is at the destination, the source has none")]
    DestinationLayer {
        /// The group.
        group: GroupId,
        /// The layer.
        layer: LayerId,
    },
    /// The destination lacks a field of a layer both have.
    #[error("{place} is at the source, the destination has none")]
    SourceField {
        /// Which.
        place: Box<FieldPlace>,
    },
    /// The source lacks a field of a layer both have.
    #[error("{place} is at the destination, the source has none")]
    DestinationField {
        /// Which.
        place: Box<FieldPlace>,
    },
    /// A field has elements of different types.
    #[error("{place} is {from} ({from_len} bytes a block) at the source, {to} ({to_len} bytes a block) at the destination", from = .source_dtype, to = .destination_dtype, from_len = .source_len, to_len = .destination_len)]
    DType {
        /// Which.
        place: Box<FieldPlace>,
        /// Its element type at the source.
        source_dtype: DType,
        /// Payload of one block at the source.
        source_len: ByteLen,
        /// Its element type at the destination.
        destination_dtype: DType,
        /// Payload of one block at the destination.
        destination_len: ByteLen,
    },
    /// A field's n-th payload element is not the same element on both sides:
    /// other extents, another order of axes, or kernel pages that cut
    /// differently.
    #[error("{place} is ordered {from} at the source, {to} at the destination", from = Order(.source_order), to = Order(.destination_order))]
    Shape {
        /// Which.
        place: Box<FieldPlace>,
        /// [`Field::byte_order`](crate::Field::byte_order) at the source.
        source_order: Vec<(Axis, u64)>,
        /// The same at the destination.
        destination_order: Vec<(Axis, u64)>,
    },
    /// Tensor parallelism divides a field differently.
    #[error("{place} is {from} at the source, {to} at the destination", from = .source_split, to = .destination_split)]
    Split {
        /// Which.
        place: Box<FieldPlace>,
        /// How the source divides it.
        source_split: Split,
        /// How the destination divides it.
        destination_split: Split,
    },
}

impl Difference {
    /// Which kind of difference it is, for machines.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Shard { .. } => "shard",
            Self::Content { .. } => "content",
            Self::Groups { .. } => "groups",
            Self::Kind { .. } => "kind",
            Self::Window { .. } => "window",
            Self::TokensPerBlock { .. } => "tokens_per_block",
            Self::PagesPerBlock { .. } => "pages_per_block",
            Self::NoCommonLayer { .. } => "no_common_layer",
            Self::SourceLayer { .. } => "source_layer",
            Self::DestinationLayer { .. } => "destination_layer",
            Self::SourceField { .. } => "source_field",
            Self::DestinationField { .. } => "destination_field",
            Self::DType { .. } => "dtype",
            Self::Shape { .. } => "shape",
            Self::Split { .. } => "split",
        }
    }

    /// Whether it forbids every transfer between the two layouts.
    #[must_use]
    pub const fn is_incompatible(&self) -> bool {
        match self {
            Self::DestinationLayer { .. } | Self::PagesPerBlock { .. } => false,
            Self::Content {
                source_tag,
                destination_tag,
                ..
            } => !source_tag.is_empty() && !destination_tag.is_empty(),
            Self::Shard { .. }
            | Self::Groups { .. }
            | Self::Kind { .. }
            | Self::Window { .. }
            | Self::TokensPerBlock { .. }
            | Self::NoCommonLayer { .. }
            | Self::SourceLayer { .. }
            | Self::SourceField { .. }
            | Self::DestinationField { .. }
            | Self::DType { .. }
            | Self::Shape { .. }
            | Self::Split { .. } => true,
        }
    }
}

struct List<'a>(&'a [GroupId]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|group| group.get()))
            .finish()
    }
}

/// A tag that one side does not state has no value to quote.
struct Tags<'a> {
    tag: &'static str,
    source: &'a str,
    destination: &'a str,
}

impl fmt::Display for Tags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tag,
            source,
            destination,
        } = self;
        if source.is_empty() {
            write!(
                f,
                "the source does not state its {tag}, the destination's is `{destination}`"
            )
        } else if destination.is_empty() {
            write!(
                f,
                "the destination does not state its {tag}, the source's is `{source}`"
            )
        } else {
            write!(
                f,
                "{tag} is `{source}` at the source, `{destination}` at the destination"
            )
        }
    }
}

struct Window(GroupKind);

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.window() {
            Some(tokens) => tokens.fmt(f),
            None => f.write_str("all"),
        }
    }
}

struct Order<'a>(&'a [(Axis, u64)]);

impl fmt::Display for Order<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, (axis, extent)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{axis} {extent}")?;
        }
        f.write_str("]")
    }
}
