//! A decode engine.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use super::action::{Action, Rank, ToPrefill};
use super::defect::Defect;
use super::memory::{ATTENTION_TOKENS, DECODE_BLOCKS, Memory, Pool, STATE_TOKENS, tables};
use super::world::{Run, World};
use crate::{
    Accounting, Decode, DecodeCommand, DecodeError, DecodeEvent, DecodeFinish, DecodeHost,
    DecodeLimits, DecodeOutcome, EngineId, Generation, HostLimits, Peer, Ranks, RequestId,
    TokenCount, TransferId,
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
    accounting: Accounting,
    pub(super) pool: Pool,
    pub(super) ranks: Vec<DecodeRank>,
    pub(super) host: DecodeHost,
    pub(super) jobs: BTreeMap<String, DecodeJob>,
    /// Loads that a rank has taken and not ended.
    pub(super) open: BTreeSet<(usize, String)>,
    /// Loads whose result is to come.
    pub(super) results: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct DecodeJob {
    pub(super) spec: usize,
    pub(super) stage: Stage,
    pub(super) attention: Vec<u32>,
    pub(super) state: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
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
        accounting: Accounting,
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
            host: DecodeHost::new(
                accounting,
                Ranks::new(u16::try_from(ranks.1).expect("few ranks")).expect("some ranks"),
                HostLimits::default(),
                4,
            ),
            accounting,
            jobs: BTreeMap::new(),
            open: BTreeSet::new(),
            results: BTreeSet::new(),
        }
    }
}

impl World<'_> {
    pub(super) fn decode_arrival(&mut self, spec: usize) -> Run {
        let index = self.specs[spec].decode;
        let request = format!("d{spec}");
        let name = RequestId::new(&request).expect("a name");
        let source = Self::source(self.specs[spec].prefill);
        let this = &self.specs[spec];
        let engine = &mut self.decodes[index];
        let taken = engine.host.new_request(
            &name,
            &this.transfer,
            source,
            this.input(),
            this.skips_prefix_cache,
        );
        if taken.is_err() {
            // The router named a transfer that is live.
            return Ok(());
        }
        let job = DecodeJob {
            spec,
            stage: Stage::Queued,
            attention: Vec::new(),
            state: 0,
        };
        engine.jobs.insert(request.clone(), job);
        let generation = engine.generation;
        if self.fault(8) {
            let wait = self.choices.between(0, 60_000);
            let abort = Action::DecodeAbort(index, generation, request.clone());
            self.after(wait, abort);
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
                self.decode_over(index, request, DecodeFinish::Length)
            }
        }
    }

    pub(super) fn decode_abort(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &self.decodes[index];
        if engine.generation != generation || !engine.jobs.contains_key(request) {
            return Ok(());
        }
        self.decode_over(index, request, DecodeFinish::Abort)
    }

    pub(super) fn decode_free(&mut self, index: usize, request: &str) {
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
        let engine = &self.decodes[index];
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
        let (state, attention) = blocks.split_last().expect("one for the state");
        let engine = &mut self.decodes[index];
        if let Some(job) = engine.jobs.get_mut(request) {
            job.attention = attention.to_vec();
            job.state = *state;
        }
        // Sometimes decode has all it may have, and prefill's blocks are to be let go.
        let local = if self.choices.chance(8) {
            spec.prompt.len() - 1
        } else {
            spec.local
        };
        let name = RequestId::new(request).expect("a name");
        let engine = &mut self.decodes[index];
        let matched = match engine.host.matched_tokens(&name, TokenCount::new(local)) {
            Ok(matched) => matched,
            Err(error) => return self.violation(format!("{request} was refused: {error}")),
        };
        let first = local / ATTENTION_TOKENS;
        let end = matched.covered().get().div_ceil(ATTENTION_TOKENS);
        let listed = if self.choices.chance(30) {
            count
        } else {
            end as usize
        };
        let entries = attention[first as usize..listed.max(first as usize)].iter();
        let entries: Vec<Option<u32>> = entries.copied().map(Some).collect();
        let stated = listed != end as usize || self.choices.chance(50);
        let last = u64::from(matched.covered().get().div_ceil(STATE_TOKENS)).saturating_sub(1);
        let first_state = self.choices.chance(50).then_some(last);
        let tables = tables(
            stated.then_some(u64::from(first)),
            entries,
            first_state,
            std::vec![Some(*state)],
        );
        let load = matched.load();
        let engine = &mut self.decodes[index];
        if let Err(error) = engine.host.blocks_allocated(&name, tables, load) {
            return self.violation(format!("{request} was refused: {error}"));
        }
        if load.is_zero() {
            self.compute_locally(index, request);
        } else {
            if let Some(job) = engine.jobs.get_mut(request) {
                job.stage = Stage::Loading;
            }
            engine.results.insert(request.to_string());
            self.write_local(index, request, local);
        }
        self.decode_orders(index)?;
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

    /// Hands an event to a machine and carries its commands out; what is wrong with it.
    pub(super) fn decode_event(
        &mut self,
        rank: Rank,
        event: DecodeEvent,
    ) -> Run<Option<DecodeError>> {
        let now = self.told_time();
        self.report.events += 1;
        self.show("d", rank, &event);
        let machine = &mut self.decodes[rank.engine].ranks[rank.rank].machine;
        let refused = machine.handle(now, event).err();
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
        Ok(refused)
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
            DecodeCommand::Fence {
                fence,
                source,
                generation,
            } => {
                self.report.fences += 1;
                self.fence(rank, fence, source, generation);
            }
            DecodeCommand::Ended {
                request,
                transfer,
                outcome,
                ..
            } => return self.decode_ended(rank, &request, &transfer, &outcome),
        }
        Ok(())
    }

    fn free_early(&mut self, rank: Rank, transfer: &TransferId) {
        let jobs = &self.decodes[rank.engine].jobs;
        let job = jobs.iter().find(|(_, job)| {
            job.stage == Stage::Loading && self.specs[job.spec].transfer == *transfer
        });
        let Some(request) = job.map(|(request, _)| request.clone()) else {
            return;
        };
        let engine = &mut self.decodes[rank.engine];
        if let Some(job) = engine.jobs.get_mut(&request)
            && !job.attention.is_empty()
        {
            engine.pool.give_back(job.state);
            for block in job.attention.drain(..) {
                engine.pool.give_back(block);
            }
        }
    }

    fn decode_ended(
        &mut self,
        rank: Rank,
        request: &RequestId,
        transfer: &TransferId,
        outcome: &DecodeOutcome,
    ) -> Run {
        let repeat = self.defect == Some(Defect::EndedTwice) && self.choices.chance(20);
        if self.defect == Some(Defect::NeverEnded) && self.choices.chance(20) {
            return Ok(());
        }
        for _ in 0..if repeat { 2 } else { 1 } {
            let engine = &mut self.decodes[rank.engine];
            if !engine.open.remove(&(rank.rank, request.to_string())) {
                return self.violation(format!("{request} ended twice on decode"));
            }
            match outcome {
                DecodeOutcome::Loaded { .. } => self.report.loaded += 1,
                DecodeOutcome::Failed(_) => self.report.failed += 1,
            }
            let rank = u16::try_from(rank.rank).expect("few ranks");
            engine.host.ended(rank, request, transfer, outcome.clone());
        }
        self.decode_orders(rank.engine)
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
            old.accounting,
            old.limits,
        );
        self.decodes[index] = next;
        self.report.restarts += 1;
    }
}
