//! What a prefill engine computes.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use super::action::Rank;
use super::defect::Defect;
use super::memory::{ATTENTION_TOKENS, STATE_TOKENS, tables};
use super::prefill::{PrefillEngine, PrefillRank, Stage, keep};
use super::world::{Run, World};
use crate::{HandOff, HandOffPoint, PrefillEvent, TokenCount};

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
        let transfer = spec.transfer.clone();
        // What the engine says, which a broken one may not have done.
        let keep = keep(spec.prompt.len());
        let attention = job.attention.iter().copied().map(Some).collect();
        let end = keep.div_ceil(STATE_TOKENS) as usize;
        let mut state: Vec<Option<u32>> = std::vec![None; end];
        if let (Some(last), Some(block)) = (state.last_mut(), job.state.first()) {
            *last = Some(*block);
        }
        if self.choices.chance(50) {
            for entry in state.iter_mut().filter(|entry| entry.is_none()) {
                *entry = Some(0);
            }
        }
        let tables = tables(Some(0), attention, Some(0), state);
        let computed = TokenCount::new(keep);
        let hand_off = HandOff::new(
            HandOffPoint::Recompute,
            TokenCount::new(self.specs[job.spec].prompt.len()),
            computed,
            Some(computed),
            None,
        )
        .expect("a hand-over");
        let open: Vec<usize> = (0..job.ended.len())
            .filter(|rank| !job.ended[*rank])
            .collect();
        for rank in open {
            let event = PrefillEvent::Finished {
                transfer: transfer.clone(),
                hand_off,
                tables: Arc::clone(&tables),
            };
            let at = Rank {
                engine: index,
                rank,
            };
            if !self.prefill_event(at, event)? {
                return self.violation(format!("{request} was refused as computed"));
            }
        }
        self.prefill_clean(index, request);
        Ok(())
    }
}
