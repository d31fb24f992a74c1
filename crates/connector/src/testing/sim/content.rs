//! What is in decode's caches.

use std::format;

use super::memory::ATTENTION_TOKENS;
use super::prefill::PrefillEngine;
use super::prompt::step;
use super::world::{Run, World};
use crate::TokenCount;

impl World<'_> {
    /// Content that decode computes by itself, up to `count` tokens.
    pub(super) fn write_local(&mut self, index: usize, request: &str, count: u32) {
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return;
        };
        let prompt = &self.specs[job.spec].prompt;
        for (rank, this) in self.decodes[index].ranks.iter().enumerate() {
            for (sender, plane) in this.planes.iter().enumerate() {
                let mask = PrefillEngine::mask(self.paired(rank, sender));
                for token in 0..count {
                    let block = job.attention[(token / ATTENTION_TOKENS) as usize];
                    let value = prompt.attention(token) ^ mask;
                    plane.write_token(block, token % ATTENTION_TOKENS, value);
                }
            }
        }
    }

    pub(super) fn compute_locally(&mut self, index: usize, request: &str) {
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return;
        };
        let prompt = self.specs[job.spec].prompt.clone();
        self.write_local(index, request, prompt.len());
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return;
        };
        for (rank, this) in self.decodes[index].ranks.iter().enumerate() {
            for (sender, plane) in this.planes.iter().enumerate() {
                let mask = PrefillEngine::mask(self.paired(rank, sender));
                plane.write_state(job.state, prompt.state(prompt.len()) ^ mask);
            }
        }
        self.hold(index, request);
    }

    /// Runs what the result says is left of the prompt on top of what was loaded.
    pub(super) fn run_rest(
        &mut self,
        index: usize,
        request: &str,
        computed: TokenCount,
        run_as_prompt: TokenCount,
        run_again: TokenCount,
    ) -> Run {
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return Ok(());
        };
        let prompt = &self.specs[job.spec].prompt;
        let end = computed.get() + run_as_prompt.get();
        if run_again.get() > 0 && prompt.len() > 1 {
            return self.violation(format!("{request} is to run {run_again} elements again"));
        }
        for (rank, this) in self.decodes[index].ranks.iter().enumerate() {
            for (sender, plane) in this.planes.iter().enumerate() {
                let mask = PrefillEngine::mask(self.paired(rank, sender));
                let mut state = plane.state(job.state) ^ mask;
                let mut start = computed.get();
                if run_again.get() > 0 {
                    // A prompt of one element is run from an empty state.
                    (state, start) = (prompt.state(0), 0);
                }
                for token in start..end {
                    state = step(state, prompt.token(token));
                    let block = job.attention[(token / ATTENTION_TOKENS) as usize];
                    let value = super::mix(state) ^ mask;
                    plane.write_token(block, token % ATTENTION_TOKENS, value);
                }
                plane.write_state(job.state, state ^ mask);
            }
        }
        self.verify(index, request, "after it was loaded")
    }

    /// Whether a cache is what local execution gives.
    pub(super) fn verify(&self, index: usize, request: &str, when: &str) -> Run {
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return Ok(());
        };
        let prompt = &self.specs[job.spec].prompt;
        for (rank, this) in self.decodes[index].ranks.iter().enumerate() {
            for (sender, plane) in this.planes.iter().enumerate() {
                let mask = PrefillEngine::mask(self.paired(rank, sender));
                for token in 0..prompt.len() {
                    let block = job.attention[(token / ATTENTION_TOKENS) as usize];
                    let found = plane.token(block, token % ATTENTION_TOKENS) ^ mask;
                    if found != prompt.attention(token) {
                        return self.violation(format!(
                            "{request} sees another token {token} of {} in block {block} of rank {rank}, plane {sender}, {when}",
                            prompt.len()
                        ));
                    }
                }
                if plane.state(job.state) ^ mask != prompt.state(prompt.len()) {
                    return self.violation(format!(
                        "{request} sees another state in block {} of rank {rank}, plane {sender}, {when}",
                        job.state
                    ));
                }
            }
        }
        Ok(())
    }
}
