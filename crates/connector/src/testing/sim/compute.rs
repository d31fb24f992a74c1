//! What a prefill engine computes.

use std::vec::Vec;

use super::defect::Defect;
use super::memory::{ATTENTION_TOKENS, STATE_TOKENS, tables};
use super::prefill::{PrefillEngine, PrefillRank, Stage};
use super::world::{Run, World};
use crate::{Computed, HandOffPoint, PrefillFinish};

impl World<'_> {
    /// Allocates and computes, if there is room.
    pub(super) fn prefill_begin(&mut self, index: usize, request: &str) -> Run<bool> {
        let engine = &mut self.prefills[index];
        let Some(job) = engine.jobs.get(request) else {
            return Ok(false);
        };
        let prompt = self.specs[job.spec].prompt.clone();
        let ahead = self.defect == Some(Defect::NotHeldBack);
        let keep = if ahead { prompt.len() } else { job.keep };
        let whole = (keep / ATTENTION_TOKENS) as usize;
        let blocks = prompt.len().div_ceil(ATTENTION_TOKENS) as usize;
        let hash = |block: usize| prompt.attention((block as u32 + 1) * ATTENTION_TOKENS - 1);
        let shared: Vec<u32> = (0..whole)
            .map_while(|block| engine.cached.get(&hash(block)).copied())
            .collect();
        let Some(new) = engine.pool.take(blocks - shared.len() + 1) else {
            return Ok(false);
        };
        for block in &shared {
            engine.pool.share(*block);
        }
        let generation = engine.generation;
        self.check_untouched(&new, Some((index, generation)), None)?;
        let engine = &mut self.prefills[index];
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(false);
        };
        let (state, fresh) = new.split_last().expect("one for the state");
        job.state = std::vec![*state];
        job.attention = shared.iter().chain(fresh).copied().collect();
        job.stage = Stage::Running;
        for (rank, PrefillRank { memory, .. }) in engine.ranks.iter().enumerate() {
            let mask = PrefillEngine::mask(rank);
            for token in 0..keep {
                let block = (token / ATTENTION_TOKENS) as usize;
                if block >= shared.len() {
                    let value = prompt.attention(token) ^ mask;
                    memory.write_token(job.attention[block], token % ATTENTION_TOKENS, value);
                }
            }
            memory.write_state(*state, prompt.state(keep) ^ mask);
        }
        for block in shared.len()..whole {
            engine.cached.insert(hash(block), job.attention[block]);
        }
        Ok(true)
    }

    pub(super) fn prefill_finish(&mut self, index: usize, request: &str) -> Run {
        let engine = &mut self.prefills[index];
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(());
        };
        job.stage = Stage::Finished;
        let spec = &self.specs[job.spec];
        // What the engine says, which a broken one may not have done.
        let share = self
            .accounting
            .prefill(spec.input(), spec.skips_prefix_cache);
        let keep = share.kept().keep();
        let attention = job.attention.iter().copied().map(Some).collect();
        let end = keep.get().div_ceil(STATE_TOKENS) as usize;
        let mut state: Vec<Option<u32>> = std::vec![None; end];
        if let (Some(last), Some(block)) = (state.last_mut(), job.state.first()) {
            *last = Some(*block);
        }
        if self.choices.chance(50) {
            for entry in state.iter_mut().filter(|entry| entry.is_none()) {
                *entry = Some(0);
            }
        }
        let comes = self.accounting.point == HandOffPoint::FirstToken;
        let computed = Computed {
            computed: keep,
            state: Some(keep),
            first_token: comes.then_some(9),
            tables: tables(Some(0), attention, Some(0), state),
        };
        let finish = if self.choices.chance(20) {
            PrefillFinish::Stop(computed)
        } else {
            PrefillFinish::Length(computed)
        };
        self.prefill_done(index, request, finish)
    }
}
