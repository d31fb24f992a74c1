//! Cache groups.

use alloc::vec::Vec;
use indexmap::IndexMap;

use crate::expansion::Expansion;
use crate::field::Field;
use crate::ids::{FieldId, GroupId, LayerId, PoolId};
use crate::units::{TokensPerBlock, WindowTokens};

/// What a group's blocks hold and which of them a decode engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// Keys and values of every token.
    FullAttention,
    /// Keys and values of the last tokens only.
    SlidingWindow(WindowTokens),
    /// Latents of every token.
    Mla,
    /// Latents (or compressor states) of the last tokens only.
    SlidingWindowMla(WindowTokens),
    /// A gated delta net's state: the latest one stands for all tokens.
    GdnState,
}

impl GroupKind {
    /// The name used in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FullAttention => "full_attention",
            Self::SlidingWindow(_) => "sliding_window",
            Self::Mla => "mla",
            Self::SlidingWindowMla(_) => "sliding_window_mla",
            Self::GdnState => "gdn_state",
        }
    }

    /// How far the group's window reaches back, if it has one.
    #[must_use]
    pub const fn window(self) -> Option<WindowTokens> {
        match self {
            Self::SlidingWindow(window) | Self::SlidingWindowMla(window) => Some(window),
            Self::FullAttention | Self::Mla | Self::GdnState => None,
        }
    }

    /// Whether the group holds state slots rather than blocks of tokens.
    #[must_use]
    pub const fn is_state(self) -> bool {
        matches!(self, Self::GdnState)
    }
}

/// One block's bytes in one layer: one field or several, each in a region of
/// its own (K and V apart, convolution and recurrent state apart).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub(crate) fields: Vec<Field>,
}

impl Page {
    /// Its fields, at least one.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, id: &FieldId) -> Option<&Field> {
        self.fields.iter().find(|field| field.id() == id)
    }
}

/// Layers by name, in the engine's order.
pub type Layers = IndexMap<LayerId, Page, foldhash::quality::RandomState>;

/// Layers whose blocks are owned together: one id owns its bytes in all of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub(crate) id: GroupId,
    pub(crate) kind: GroupKind,
    pub(crate) tokens_per_block: TokensPerBlock,
    pub(crate) expansion: Expansion,
    pub(crate) pool: PoolId,
    pub(crate) layers: Layers,
}

impl Group {
    /// Its name on both sides.
    #[must_use]
    pub const fn id(&self) -> GroupId {
        self.id
    }

    /// What its blocks hold.
    #[must_use]
    pub const fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Tokens per logical block; for a state group, per position of its table.
    #[must_use]
    pub const fn tokens_per_block(&self) -> TokensPerBlock {
        self.tokens_per_block
    }

    /// How this side expands a logical block into physical pages.
    #[must_use]
    pub const fn expansion(&self) -> Expansion {
        self.expansion
    }

    /// The pool its ids come from.
    #[must_use]
    pub const fn pool(&self) -> PoolId {
        self.pool
    }

    /// Its layers by name, at least one.
    #[must_use]
    pub const fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Its fields with the layers they belong to.
    pub fn fields(&self) -> impl Iterator<Item = (&LayerId, &Field)> {
        self.layers
            .iter()
            .flat_map(|(layer, page)| page.fields.iter().map(move |field| (layer, field)))
    }
}
