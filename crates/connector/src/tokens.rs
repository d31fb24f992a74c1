//! Lengths of prompts.

use core::fmt;

/// Prompt elements (token ids, or rows of embeddings), 0..2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenCount(u32);

impl TokenCount {
    /// No elements.
    pub const ZERO: Self = Self(0);
    /// One element.
    pub const ONE: Self = Self(1);

    /// A number of elements.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// What is left without `other`; nothing when that is more.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<TokenCount> for u64 {
    fn from(count: TokenCount) -> Self {
        Self::from(count.0)
    }
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
