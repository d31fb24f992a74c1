//! Prompts, and what local execution makes of them.

use std::vec::Vec;

use super::mix;

/// A prompt. What computing it leaves in a cache depends on every token before, so
/// that a token left out, counted twice or taken from elsewhere shows.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// The recurrent state after each number of tokens; one longer than the prompt.
    states: Vec<u64>,
    tokens: Vec<u64>,
}

impl Prompt {
    /// `len` tokens, the first `common` of which every prompt of the family shares.
    pub(super) fn new(family: u64, unique: u64, common: u32, len: u32) -> Self {
        let token = |index: u32| {
            let of = if index < common { family } else { unique };
            mix(of.wrapping_mul(0x1_0001).wrapping_add(u64::from(index)))
        };
        let tokens: Vec<u64> = (0..len).map(token).collect();
        let mut states = std::vec![1];
        for token in &tokens {
            let last = states[states.len() - 1];
            states.push(step(last, *token));
        }
        Self { states, tokens }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.tokens.len()).expect("a short prompt")
    }

    pub(super) fn token(&self, index: u32) -> u64 {
        self.tokens[index as usize]
    }

    /// The recurrent state after `count` tokens.
    pub(super) fn state(&self, count: u32) -> u64 {
        self.states[count as usize]
    }

    /// What attention keeps of a token.
    pub(super) fn attention(&self, index: u32) -> u64 {
        mix(self.state(index + 1))
    }
}

/// One token on top of a state.
pub(super) fn step(state: u64, token: u64) -> u64 {
    mix(state.rotate_left(17) ^ token)
}
