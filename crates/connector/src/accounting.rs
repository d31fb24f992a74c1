//! Who computes what of a prompt.

use crate::flavour::Flavour;
use crate::handoff::HandOffPoint;
use crate::holdback::{Holdback, Kept, PromptInput};
use crate::tokens::TokenCount;

/// The terms on which a prefill and a decode engine share a prompt. Both have to
/// have the same.
///
/// With `N` elements in the prompt, `held` of them held back ([`Holdback`]; none at
/// [`HandOffPoint::FirstToken`]) and `local` found in decode's own cache:
///
/// ```text
/// keep          = N - held                 what prefill computes and hands over
/// load          = max(keep - local, 0)     what decode loads, asynchronously
/// run_as_prompt = N - local - load         what decode computes, as prompt
/// run_again     = 1 if run_as_prompt = 0 and no first token comes, else 0
/// start         = N - run_as_prompt - run_again
/// ```
///
/// so that `local + load + run_as_prompt = N`, and `keep + run_as_prompt = N` where
/// something is loaded. A request that skips the prefix cache loads nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accounting {
    /// What the model needs held back.
    pub holdback: Holdback,
    /// Whose numbers are counted.
    pub flavour: Flavour,
    /// How far prefill computes.
    pub point: HandOffPoint,
}

/// What a prefill engine does with a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefillShare {
    kept: Kept,
    max_tokens: Option<u32>,
}

/// Where the elements of a prompt come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matched {
    prompt: TokenCount,
    load: TokenCount,
    run_as_prompt: TokenCount,
    run_again: TokenCount,
}

/// Counts that can't be. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountingError {
    /// More is cached than there is.
    #[error("{local} elements are cached of a prompt of {prompt}")]
    BeyondPrompt {
        /// Elements that the engine's own cache has.
        local: TokenCount,
        /// Elements of the prompt, as this engine computes it.
        prompt: TokenCount,
    },
}

impl Accounting {
    /// vLLM's terms for a model: our peers may be stock.
    #[must_use]
    pub const fn mooncake(holdback: Holdback) -> Self {
        Self {
            holdback,
            flavour: Flavour::Mooncake,
            point: HandOffPoint::Recompute,
        }
    }

    /// What prefill computes of a prompt. To be asked before any prefix lookup; the
    /// answer is absolute, so asking again changes nothing.
    #[must_use]
    pub const fn prefill(self, prompt: PromptInput, skips_prefix_cache: bool) -> PrefillShare {
        let kept = self.kept(prompt, skips_prefix_cache);
        // Stock's NIXL connector leaves it to the router where nothing is held back.
        let as_asked = matches!(self.flavour, Flavour::Nixl { .. }) && kept.held().is_zero();
        PrefillShare {
            kept,
            max_tokens: if as_asked { None } else { Some(1) },
        }
    }

    const fn kept(self, prompt: PromptInput, skips_prefix_cache: bool) -> Kept {
        match self.point {
            HandOffPoint::Recompute => {
                self.holdback
                    .decide(self.flavour, prompt, skips_prefix_cache)
            }
            HandOffPoint::FirstToken => Kept::all(prompt),
        }
    }

    /// What prefill still has to compute of `keep` elements, and what it may read
    /// back from a decode engine that has `offered` of them (an earlier turn's): in
    /// the NIXL flavour `min(offered, keep) - local`, unless that is below the
    /// threshold; else nothing.
    ///
    /// `offered` must be absent where nobody would carry a read-back out: stock then
    /// waits for it for ever.
    ///
    /// # Errors
    /// More cached locally than is kept.
    pub const fn read_back(
        self,
        keep: TokenCount,
        local: TokenCount,
        offered: Option<TokenCount>,
    ) -> Result<Matched, AccountingError> {
        let load = match (self.flavour, offered) {
            (
                Flavour::Nixl {
                    recompute_threshold,
                },
                Some(offered),
            ) => {
                let usable = if offered.get() < keep.get() {
                    offered
                } else {
                    keep
                };
                let load = usable.without(local);
                if load.get() < recompute_threshold.get() {
                    TokenCount::ZERO
                } else {
                    load
                }
            }
            _ => TokenCount::ZERO,
        };
        Matched::new(keep, local, load, false)
    }

    /// What decode loads of a prompt, and what it runs itself. `local` elements are
    /// in its own cache.
    ///
    /// # Errors
    /// More cached locally than there is.
    pub const fn decode(
        self,
        prompt: PromptInput,
        skips_prefix_cache: bool,
        local: TokenCount,
    ) -> Result<Matched, AccountingError> {
        let stock_blind = matches!(
            (self.flavour, prompt),
            (Flavour::Nixl { .. }, PromptInput::Embeddings(_))
        );
        let load = if skips_prefix_cache || stock_blind {
            TokenCount::ZERO
        } else {
            self.kept(prompt, false).keep().without(local)
        };
        let first_token = matches!(self.point, HandOffPoint::FirstToken) && !load.is_zero();
        Matched::new(prompt.count(), local, load, first_token)
    }

    /// What decode runs when nothing can be loaded any more. Where it has prefill's
    /// first token, a prompt that is all in the cache is not run again.
    ///
    /// # Errors
    /// More cached locally than there is.
    pub const fn alone(
        self,
        prompt: PromptInput,
        local: TokenCount,
        has_first_token: bool,
    ) -> Result<Matched, AccountingError> {
        Matched::new(prompt.count(), local, TokenCount::ZERO, has_first_token)
    }
}

impl PrefillShare {
    /// What is kept of the prompt, and what is held back.
    #[must_use]
    pub const fn kept(self) -> Kept {
        self.kept
    }

    /// Most tokens that prefill may generate, 1; absent: as many as were asked for.
    #[must_use]
    pub const fn max_tokens(self) -> Option<u32> {
        self.max_tokens
    }
}

impl Matched {
    const fn new(
        prompt: TokenCount,
        local: TokenCount,
        load: TokenCount,
        first_token: bool,
    ) -> Result<Self, AccountingError> {
        if local.get() > prompt.get() {
            return Err(AccountingError::BeyondPrompt { local, prompt });
        }
        let run_as_prompt = prompt.without(local).without(load);
        let again = run_as_prompt.is_zero() && !first_token && !prompt.is_zero();
        Ok(Self {
            prompt,
            load,
            run_as_prompt,
            run_again: if again {
                TokenCount::ONE
            } else {
                TokenCount::ZERO
            },
        })
    }

    /// Elements to load.
    #[must_use]
    pub const fn load(self) -> TokenCount {
        self.load
    }

    /// Whether the engine goes on with other requests until the load has ended.
    #[must_use]
    pub const fn is_asynchronous(self) -> bool {
        !self.load.is_zero()
    }

    /// Elements that are in no cache: the engine computes them, as prompt and not as
    /// a decode step.
    #[must_use]
    pub const fn run_as_prompt(self) -> TokenCount {
        self.run_as_prompt
    }

    /// Elements that are in the cache and still have to be run, as prompt, for the
    /// logits of the last one: 0 or 1.
    #[must_use]
    pub const fn run_again(self) -> TokenCount {
        self.run_again
    }

    /// What the cache covers once the load has ended.
    #[must_use]
    pub const fn covered(self) -> TokenCount {
        self.prompt.without(self.run_as_prompt)
    }

    /// Where the engine begins to run: the elements it counts as computed. A model
    /// with recurrent states that begins at 0 begins with empty ones.
    #[must_use]
    pub const fn start(self) -> TokenCount {
        self.covered().without(self.run_again)
    }
}
