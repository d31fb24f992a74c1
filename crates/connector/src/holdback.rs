//! How much of a prompt prefill leaves to decode.

use mooncake_pd_layout::{CacheLayout, GroupKind};

use crate::flavour::Flavour;
use crate::tokens::TokenCount;

/// Most look-ahead tokens of a model.
pub const MAX_LOOK_AHEAD: TokenCount = TokenCount::new(1024);

/// A prompt by its length; the prompt itself stays with the engine. A mixed prompt,
/// which has a token id for each of its elements, counts as token ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptInput {
    /// So many token ids.
    TokenIds(TokenCount),
    /// So many rows of embeddings, and no token ids.
    Embeddings(TokenCount),
}

impl PromptInput {
    /// Its elements.
    #[must_use]
    pub const fn count(self) -> TokenCount {
        match self {
            Self::TokenIds(count) | Self::Embeddings(count) => count,
        }
    }

    /// The same kind of prompt with another length.
    #[must_use]
    pub const fn with_count(self, count: TokenCount) -> Self {
        match self {
            Self::TokenIds(_) => Self::TokenIds(count),
            Self::Embeddings(_) => Self::Embeddings(count),
        }
    }
}

/// What a model needs held back. With `b` = 1 for recurrent states (GDN) and for
/// bounded sliding-window replay, else 0, and `L` look-ahead tokens, the window is
/// `k = max(b, L - 1)`; stock's Mooncake connector knows only `k = b`.
///
/// Of a prompt of `N` elements are held back:
///
/// | | own | Mooncake | NIXL |
/// |---|---|---|---|
/// | `N > k` | `k` | `k` | `k` |
/// | `1 < N <= k` | `b` | `b` | 0 |
/// | `N <= 1` | 0 | 0 | 0 |
///
/// A state can't be taken back by one element, so decode needs the one *before* the
/// elements that it runs: `h(N - held)`. A single element is left as it is: nothing
/// would be left to compute, and decode runs it from an empty state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holdback {
    gdn: bool,
    bounded_replay: bool,
    look_ahead: TokenCount,
}

/// A model that can't be. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldbackError {
    /// Too wide a window.
    #[error("{look_ahead} look-ahead tokens, the limit is {MAX_LOOK_AHEAD}")]
    LookAhead {
        /// How many.
        look_ahead: TokenCount,
    },
}

impl Holdback {
    /// A model whose cache can be cut anywhere: nothing is held back.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            gdn: false,
            bounded_replay: false,
            look_ahead: TokenCount::ZERO,
        }
    }

    /// A model with such caches: GDN where the layout has a group of GDN states.
    /// Replay and look-ahead are not in a layout.
    #[must_use]
    pub fn of(layout: &CacheLayout) -> Self {
        let mut groups = layout.groups().iter();
        let gdn = groups.any(|group| group.kind() == GroupKind::GdnState);
        Self {
            gdn,
            ..Self::plain()
        }
    }

    /// The same model with recurrent states.
    #[must_use]
    pub const fn gdn(self) -> Self {
        Self { gdn: true, ..self }
    }

    /// The same model with bounded sliding-window replay.
    #[must_use]
    pub const fn bounded_replay(self) -> Self {
        Self {
            bounded_replay: true,
            ..self
        }
    }

    /// The same model with layers that look ahead by so many tokens (MTP),
    /// 0..=[`MAX_LOOK_AHEAD`]. vLLM's number is that of its speculative tokens where
    /// more than one MTP layer is used, else 1.
    ///
    /// # Errors
    /// More than that.
    pub const fn look_ahead(self, tokens: TokenCount) -> Result<Self, HoldbackError> {
        if tokens.get() > MAX_LOOK_AHEAD.get() {
            return Err(HoldbackError::LookAhead { look_ahead: tokens });
        }
        Ok(Self {
            look_ahead: tokens,
            ..self
        })
    }

    /// Whether it has recurrent states.
    #[must_use]
    pub const fn has_states(self) -> bool {
        self.gdn
    }

    /// `b`: what is held back whatever the window.
    const fn least(self) -> TokenCount {
        if self.gdn || self.bounded_replay {
            TokenCount::ONE
        } else {
            TokenCount::ZERO
        }
    }

    /// `k`: what is held back of a long prompt.
    #[must_use]
    pub const fn window(self, flavour: Flavour) -> TokenCount {
        let least = self.least();
        let ahead = self.look_ahead.without(TokenCount::ONE);
        match flavour {
            Flavour::Nixl { .. } | Flavour::Own if ahead.get() > least.get() => ahead,
            Flavour::Mooncake | Flavour::Nixl { .. } | Flavour::Own => least,
        }
    }

    /// What is held back of a prompt. A request that skips the prefix cache is exempt.
    ///
    /// The answer is a number of elements to *keep* of the prompt as it was asked
    /// for; keeping so many a second time changes nothing.
    #[must_use]
    pub const fn decide(
        self,
        flavour: Flavour,
        prompt: PromptInput,
        skips_prefix_cache: bool,
    ) -> Kept {
        let count = prompt.count();
        let window = self.window(flavour);
        let held = if skips_prefix_cache || count.get() <= 1 {
            TokenCount::ZERO
        } else if count.get() > window.get() {
            window
        } else if let Flavour::Nixl { .. } = flavour {
            TokenCount::ZERO
        } else {
            self.least()
        };
        let covered = held.get() >= self.look_ahead.without(TokenCount::ONE).get();
        Kept {
            keep: count.without(held),
            held,
            look_ahead_state: covered || !matches!(flavour, Flavour::Own),
        }
    }
}

/// What prefill computes of a prompt, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    keep: TokenCount,
    held: TokenCount,
    look_ahead_state: bool,
}

impl Kept {
    /// All of a prompt.
    pub(crate) const fn all(prompt: PromptInput) -> Self {
        Self {
            keep: prompt.count(),
            held: TokenCount::ZERO,
            look_ahead_state: true,
        }
    }

    /// Elements from the prompt's start that stay.
    #[must_use]
    pub const fn keep(self) -> TokenCount {
        self.keep
    }

    /// Elements at the prompt's end that are left to decode.
    #[must_use]
    pub const fn held(self) -> TokenCount {
        self.held
    }

    /// Most elements that a prefix lookup of prefill may count, so that one is left
    /// to compute.
    #[must_use]
    pub const fn most_cached(self) -> TokenCount {
        self.keep.without(TokenCount::ONE)
    }

    /// Whether decode takes prefill's state of look-ahead layers: not where fewer
    /// elements are held back than they look ahead (our own flavour only; stock
    /// takes it always).
    #[must_use]
    pub const fn look_ahead_state(self) -> bool {
        self.look_ahead_state
    }
}
