//! A decode engine.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use super::action::{Action, Rank, ToPrefill};
use super::defect::Defect;
use super::memory::{ATTENTION_TOKENS, DECODE_BLOCKS, Memory, Pool, STATE_TOKENS, tables};
use super::prefill::keep;
use super::world::{Run, World};
use crate::{
    Decode, DecodeCommand, DecodeEvent, DecodeLimits, DecodeOutcome, EngineId, Generation, Load,
    Peer, RequestId, TokenCount,
};

#[derive(Debug)]
pub(super) struct DecodeRank {
    pub(super) machine: Decode,
    /// Memory that each sender writes.
    pub(super) planes: Vec<Memory>,
    ticked: Option<u64>,
}

#[derive(Debug)]
pub(super) struct DecodeEngine {
    index: usize,
    pub(super) generation: u64,
    limits: DecodeLimits,
    blocks: u32,
    pub(super) pool: Pool,
    pub(super) ranks: Vec<DecodeRank>,
    pub(super) jobs: BTreeMap<String, DecodeJob>,
}

#[derive(Debug)]
pub(super) struct DecodeJob {
    pub(super) spec: usize,
    stage: Stage,
    pub(super) attention: Vec<u32>,
    pub(super) state: u32,
    ended: Vec<bool>,
    failed: bool,
    aborted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    Loading,
    /// The cache is whole; it decodes.
    Holding,
}

impl DecodeEngine {
    pub(super) fn new(
        index: usize,
        generation: u64,
        ranks: (usize, usize),
        blocks: u32,
        limits: DecodeLimits,
    ) -> Self {
        let planes = if ranks.1 == 1 { ranks.0 } else { 1 };
        let rank = |rank| {
            let me = Peer {
                engine: EngineId::new(&format!("d{index}/{rank}")).expect("a name"),
                generation: Generation::new(generation),
            };
            let consumer = World::consumer(ranks, rank);
            let layout = Arc::clone(&World::model().decode);
            DecodeRank {
                machine: Decode::new(me, consumer, layout, limits, 6),
                planes: (0..planes)
                    .map(|_| Memory::new(DECODE_BLOCKS, 0xee))
                    .collect(),
                ticked: None,
            }
        };
        Self {
            index,
            generation,
            limits,
            blocks,
            pool: Pool::new(blocks),
            ranks: (0..ranks.1).map(rank).collect(),
            jobs: BTreeMap::new(),
        }
    }
}

impl World<'_> {
    pub(super) fn decode_arrival(&mut self, spec: usize) -> Run {
        let index = self.specs[spec].decode;
        let engine = &mut self.decodes[index];
        let request = format!("d{spec}");
        let job = DecodeJob {
            spec,
            stage: Stage::Queued,
            attention: Vec::new(),
            state: 0,
            ended: std::vec![false; engine.ranks.len()],
            failed: false,
            aborted: false,
        };
        engine.jobs.insert(request.clone(), job);
        let generation = engine.generation;
        if self.fault(8) {
            let wait = self.choices.between(0, 60_000);
            let abort = Action::DecodeAbort(index, generation, request.clone());
            self.after(u64::from(wait), abort);
        }
        self.decode_step(index, generation, &request)
    }

    pub(super) fn decode_step(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &self.decodes[index];
        if engine.generation != generation {
            return Ok(());
        }
        let Some(job) = engine.jobs.get(request) else {
            return Ok(());
        };
        match job.stage {
            Stage::Loading => Ok(()),
            Stage::Queued => {
                if !self.decode_begin(index, request)? {
                    let again = Action::DecodeStep(index, generation, request.to_string());
                    self.after(2_000_u64, again);
                }
                Ok(())
            }
            Stage::Holding => {
                self.verify(index, request, "when its request ended")?;
                self.decode_free(index, request);
                Ok(())
            }
        }
    }

    pub(super) fn decode_abort(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &mut self.decodes[index];
        if engine.generation != generation {
            return Ok(());
        }
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(());
        };
        match job.stage {
            Stage::Queued => {
                engine.jobs.remove(request);
                Ok(())
            }
            Stage::Holding => {
                self.decode_free(index, request);
                Ok(())
            }
            Stage::Loading => {
                job.aborted = true;
                let open: Vec<usize> = (0..job.ended.len())
                    .filter(|rank| !job.ended[*rank])
                    .collect();
                for rank in open {
                    let request = RequestId::new(request).expect("a name");
                    let at = Rank {
                        engine: index,
                        rank,
                    };
                    self.decode_event(at, DecodeEvent::Aborted { request })?;
                }
                Ok(())
            }
        }
    }

    fn decode_free(&mut self, index: usize, request: &str) {
        let engine = &mut self.decodes[index];
        if let Some(job) = engine.jobs.remove(request)
            && !job.attention.is_empty()
        {
            for block in job.attention.iter().chain([&job.state]) {
                engine.pool.give_back(*block);
            }
        }
    }

    /// Allocates and asks for the cache, if there is room.
    fn decode_begin(&mut self, index: usize, request: &str) -> Run<bool> {
        let engine = &mut self.decodes[index];
        let Some(job) = engine.jobs.get(request) else {
            return Ok(true);
        };
        let spec = self.specs[job.spec].clone();
        let ahead = self.choices.below(2);
        let count = (spec.prompt.len() + ahead).div_ceil(ATTENTION_TOKENS) as usize;
        let Some(blocks) = self.decodes[index].pool.take(count + 1) else {
            return Ok(false);
        };
        let generation = self.decodes[index].generation;
        self.check_untouched(&blocks, None, Some((index, generation)))?;
        let engine = &mut self.decodes[index];
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(true);
        };
        let (state, attention) = blocks.split_last().expect("one for the state");
        job.attention = attention.to_vec();
        job.state = *state;
        job.stage = Stage::Loading;
        let source = Self::source(spec.prefill);
        if self.choices.chance(8) {
            // Decode has it all, and only prefill's blocks are to be let go.
            let ranks = self.decodes[index].ranks.len();
            for rank in 0..ranks {
                let transfer = spec.transfer.clone();
                let source = source.clone();
                let at = Rank {
                    engine: index,
                    rank,
                };
                self.decode_event(at, DecodeEvent::Release { transfer, source })?;
            }
            self.compute_locally(index, request);
            return Ok(true);
        }
        self.write_local(index, request, spec.local);
        let expects = keep(spec.prompt.len());
        let first = spec.local / ATTENTION_TOKENS;
        let end = expects.div_ceil(ATTENTION_TOKENS);
        let listed = if self.choices.chance(30) {
            count
        } else {
            end as usize
        };
        let entries = attention[first as usize..listed.max(first as usize)].iter();
        let entries: Vec<Option<u32>> = entries.copied().map(Some).collect();
        let stated = listed != end as usize || self.choices.chance(50);
        let first_state = self
            .choices
            .chance(50)
            .then(|| u64::from(expects.div_ceil(STATE_TOKENS)) - 1);
        let tables = tables(
            stated.then_some(u64::from(first)),
            entries,
            first_state,
            std::vec![Some(*state)],
        );
        let ranks = self.decodes[index].ranks.len();
        let mut refused = false;
        for rank in 0..ranks {
            let load = Load {
                request: RequestId::new(request).expect("a name"),
                transfer: spec.transfer.clone(),
                source: source.clone(),
                expects: TokenCount::new(expects),
                tables: Arc::clone(&tables),
            };
            let at = Rank {
                engine: index,
                rank,
            };
            if !self.decode_event(at, DecodeEvent::Load(load))? {
                refused = true;
                if let Some(job) = self.decodes[index].jobs.get_mut(request) {
                    job.ended[rank] = true;
                    job.failed = true;
                }
            }
        }
        if refused {
            self.decode_abort(index, generation, request)?;
            self.decode_done(index, request)?;
        }
        Ok(true)
    }

    /// Decodes for a while.
    pub(super) fn hold(&mut self, index: usize, request: &str) {
        let engine = &mut self.decodes[index];
        let generation = engine.generation;
        if let Some(job) = engine.jobs.get_mut(request) {
            job.stage = Stage::Holding;
        }
        let wait = self.choices.between(0, 40_000);
        let step = Action::DecodeStep(index, generation, request.to_string());
        self.after(u64::from(wait), step);
    }

    /// Goes on with a job whose every rank has ended.
    fn decode_done(&mut self, index: usize, request: &str) -> Run {
        let Some(job) = self.decodes[index].jobs.get(request) else {
            return Ok(());
        };
        if !job.ended.iter().all(|ended| *ended) || job.stage != Stage::Loading {
            return Ok(());
        }
        let valid = !job.failed || self.defect == Some(Defect::FailureIgnored);
        if job.aborted {
            self.decode_free(index, request);
        } else if valid {
            self.run_rest(index, request)?;
            self.hold(index, request);
        } else if self.choices.chance(50) {
            self.compute_locally(index, request);
        } else {
            self.decode_free(index, request);
        }
        Ok(())
    }

    /// Hands an event to a machine and carries its commands out; whether it took it.
    pub(super) fn decode_event(&mut self, rank: Rank, event: DecodeEvent) -> Run<bool> {
        let now = self.told_time();
        self.report.events += 1;
        self.show("d", rank, &event);
        let machine = &mut self.decodes[rank.engine].ranks[rank.rank].machine;
        let taken = machine.handle(now, event).is_ok();
        while let Some(command) = self.decodes[rank.engine].ranks[rank.rank].machine.poll() {
            self.show("  d", rank, &command);
            self.decode_command(rank, command)?;
        }
        let engine = &mut self.decodes[rank.engine];
        let generation = engine.generation;
        let this = &mut engine.ranks[rank.rank];
        let deadline = this.machine.next_deadline().map(crate::Time::as_micros);
        if let Some(at) = deadline
            && (deadline != this.ticked || at <= self.now)
        {
            this.ticked = Some(at);
            // The machine was told an earlier time than this: it is told again.
            let wait = at
                .saturating_sub(self.now)
                .max(u64::from(at <= self.now) * 1_000);
            self.after(wait, Action::DecodeTick(rank, generation));
        }
        Ok(taken)
    }

    fn decode_command(&mut self, rank: Rank, command: DecodeCommand) -> Run {
        match command {
            DecodeCommand::Resolve { source } => self.look_up(rank, source),
            DecodeCommand::Pull {
                source,
                sender,
                pull,
            } => self.send_to_prefill(rank, &source, sender, ToPrefill::Pull(pull)),
            DecodeCommand::Cancel {
                source,
                sender,
                cancel,
            } => {
                if self.defect == Some(Defect::FreedOnTimeout) {
                    self.free_early(rank, &cancel.transfer);
                }
                self.send_to_prefill(rank, &source, sender, ToPrefill::Cancel(cancel));
            }
            DecodeCommand::Fence { source, generation } => {
                self.report.fences += 1;
                self.fence(rank, &source, generation);
            }
            DecodeCommand::Ended {
                request, outcome, ..
            } => return self.decode_ended(rank, &request, &outcome),
        }
        Ok(())
    }

    fn free_early(&mut self, rank: Rank, transfer: &crate::TransferId) {
        let jobs = &self.decodes[rank.engine].jobs;
        let job = jobs.iter().find(|(_, job)| {
            job.stage == Stage::Loading && self.specs[job.spec].transfer == *transfer
        });
        if let Some(request) = job.map(|(request, _)| request.clone()) {
            self.decode_free(rank.engine, &request);
        }
    }

    fn decode_ended(&mut self, rank: Rank, request: &RequestId, outcome: &DecodeOutcome) -> Run {
        let repeat = self.defect == Some(Defect::EndedTwice) && self.choices.chance(20);
        if self.defect == Some(Defect::NeverEnded) && self.choices.chance(20) {
            return Ok(());
        }
        for _ in 0..if repeat { 2 } else { 1 } {
            let Some(job) = self.decodes[rank.engine].jobs.get_mut(request.as_str()) else {
                if self.defect == Some(Defect::FreedOnTimeout) {
                    return Ok(());
                }
                return self.violation(format!("{request} ended and nobody knows it"));
            };
            if job.ended[rank.rank] {
                return self.violation(format!("{request} ended twice on decode"));
            }
            job.ended[rank.rank] = true;
            match outcome {
                DecodeOutcome::Loaded { .. } => self.report.loaded += 1,
                DecodeOutcome::Failed(failure) => {
                    job.failed = true;
                    self.report.failed += 1;
                    if self.calm {
                        return self
                            .violation(format!("{request} failed without a fault: {failure}"));
                    }
                }
            }
            self.decode_done(rank.engine, request.as_str())?;
        }
        Ok(())
    }

    pub(super) fn decode_restart(&mut self, index: usize) {
        let old = &self.decodes[index];
        for rank in &old.ranks {
            self.report.followed += rank.machine.metrics().followed;
        }
        let next = DecodeEngine::new(
            old.index,
            old.generation + 1,
            self.ranks,
            old.blocks,
            old.limits,
        );
        self.decodes[index] = next;
        self.report.restarts += 1;
    }
}
