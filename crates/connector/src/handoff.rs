//! The point at which decode takes over.

use core::fmt;

use crate::tokens::TokenCount;

/// How far a prefill engine computes and what decode then runs: a property of the
/// engines, not of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandOffPoint {
    /// The cache covers all but the held-back elements, which decode runs as prompt (vLLM).
    Recompute,
    /// The cache covers the whole prompt, and prefill's first token comes with it (SGLang).
    FirstToken,
}

/// What prefill hands over: how much of the prompt its cache covers, and what decode
/// still has to run. Only [`HandOff::new`] makes one, so a recurrent state can't
/// belong to another point than the rest of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandOff {
    computed: TokenCount,
    run_as_prompt: TokenCount,
    first_token: Option<u32>,
}

/// Counts that make no hand-over. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandOffError {
    /// More computed than there is.
    #[error("{computed} elements computed of a prompt of {prompt}")]
    BeyondPrompt {
        /// Elements computed.
        computed: TokenCount,
        /// Elements of the prompt.
        prompt: TokenCount,
    },
    /// A state of another position.
    #[error("the state is that after {state} elements, the hand-off is at {computed}")]
    State {
        /// Elements the state has seen.
        state: TokenCount,
        /// Elements computed.
        computed: TokenCount,
    },
    /// Prompt left to run and a first token already there, or neither of them.
    #[error("{left} prompt elements are left and the first token is {first_token}")]
    FirstToken {
        /// Elements not computed.
        left: TokenCount,
        /// `given` or `absent`.
        first_token: &'static str,
    },
}

impl fmt::Display for HandOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (computed, left) = (self.computed, self.run_as_prompt);
        write!(f, "{computed} elements with {left} left")?;
        match self.first_token {
            Some(token) => write!(f, " and first token {token}"),
            None => Ok(()),
        }
    }
}

impl HandOff {
    /// A hand-over of a prompt of `prompt` elements after `computed` of them.
    /// `state` is the number of elements that the recurrent states have seen, where
    /// the model has such. `first_token` comes with [`HandOffPoint::FirstToken`] only.
    ///
    /// # Errors
    /// See [`HandOffError`].
    pub const fn new(
        point: HandOffPoint,
        prompt: TokenCount,
        computed: TokenCount,
        state: Option<TokenCount>,
        first_token: Option<u32>,
    ) -> Result<Self, HandOffError> {
        if computed.get() > prompt.get() {
            return Err(HandOffError::BeyondPrompt { computed, prompt });
        }
        if let Some(state) = state
            && state.get() != computed.get()
        {
            return Err(HandOffError::State { state, computed });
        }
        let left = prompt.without(computed);
        let fits = match point {
            HandOffPoint::Recompute => first_token.is_none(),
            HandOffPoint::FirstToken => first_token.is_some() && left.is_zero(),
        };
        if !fits {
            let first_token = if first_token.is_some() {
                "given"
            } else {
                "absent"
            };
            return Err(HandOffError::FirstToken { left, first_token });
        }
        Ok(Self {
            computed,
            run_as_prompt: left,
            first_token,
        })
    }

    /// Elements that the handed-over cache covers, states included.
    #[must_use]
    pub const fn computed(&self) -> TokenCount {
        self.computed
    }

    /// Elements that decode has to run, as prompt and not as a decode step.
    #[must_use]
    pub const fn run_as_prompt(&self) -> TokenCount {
        self.run_as_prompt
    }

    /// Prefill's first token, where it hands over with one.
    #[must_use]
    pub const fn first_token(&self) -> Option<u32> {
        self.first_token
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::{HandOff, HandOffPoint};
    use crate::tokens::TokenCount;

    /// The hand-over of a prompt of ten elements, or why there is none.
    fn hand_off(
        point: HandOffPoint,
        computed: u32,
        state: Option<u32>,
        token: Option<u32>,
    ) -> Result<(u32, u32, Option<u32>), alloc::string::String> {
        let (prompt, computed) = (TokenCount::new(10), TokenCount::new(computed));
        let made = HandOff::new(point, prompt, computed, state.map(TokenCount::new), token);
        let parts = |made: HandOff| {
            let (computed, left) = (made.computed(), made.run_as_prompt());
            (computed.get(), left.get(), made.first_token())
        };
        made.map(parts).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_computed_is_left_to_run_as_prompt() {
        let recompute = |computed| hand_off(HandOffPoint::Recompute, computed, None, None);
        assert_eq!(recompute(9), Ok((9, 1, None)));
        assert_eq!(recompute(0), Ok((0, 10, None)));
        assert_eq!(recompute(10), Ok((10, 0, None)));
        let token = hand_off(HandOffPoint::FirstToken, 10, Some(10), Some(7));
        assert_eq!(token, Ok((10, 0, Some(7))));
    }

    #[test]
    fn counts_that_contradict_each_other_are_refused_with_both() {
        for (made, text) in [
            (
                hand_off(HandOffPoint::Recompute, 11, None, None),
                "11 elements computed of a prompt of 10",
            ),
            (
                hand_off(HandOffPoint::Recompute, 9, Some(10), None),
                "the state is that after 10 elements, the hand-off is at 9",
            ),
            (
                hand_off(HandOffPoint::Recompute, 9, Some(9), Some(7)),
                "1 prompt elements are left and the first token is given",
            ),
            (
                hand_off(HandOffPoint::Recompute, 10, None, Some(7)),
                "0 prompt elements are left and the first token is given",
            ),
            (
                hand_off(HandOffPoint::FirstToken, 9, None, Some(7)),
                "1 prompt elements are left and the first token is given",
            ),
            (
                hand_off(HandOffPoint::FirstToken, 10, None, None),
                "0 prompt elements are left and the first token is absent",
            ),
        ] {
            assert_eq!(made, Err(text.to_string()));
        }
    }
}
