//! A prefill engine.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use super::action::{Action, Rank};
use super::defect::Defect;
use super::memory::{Memory, PREFILL_BLOCKS, Pool};
use super::world::{Run, World};
use crate::{
    EngineId, Generation, Peer, Prefill, PrefillCommand, PrefillEvent, PrefillLimits,
    PrefillOutcome, RequestId,
};

#[derive(Debug)]
pub(super) struct PrefillRank {
    pub(super) machine: Prefill,
    pub(super) memory: Memory,
    ticked: Option<u64>,
}

#[derive(Debug)]
pub(super) struct PrefillEngine {
    index: usize,
    pub(super) generation: u64,
    pub(super) up: bool,
    limits: PrefillLimits,
    blocks: u32,
    pub(super) pool: Pool,
    pub(super) ranks: Vec<PrefillRank>,
    pub(super) jobs: BTreeMap<String, PrefillJob>,
    /// Computed blocks of live requests, by content: a common prefix is computed once.
    pub(super) cached: BTreeMap<u64, u32>,
}

#[derive(Debug)]
pub(super) struct PrefillJob {
    pub(super) spec: usize,
    /// Elements to compute.
    pub(super) keep: u32,
    pub(super) stage: Stage,
    pub(super) attention: Vec<u32>,
    pub(super) state: Vec<u32>,
    pub(super) ended: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Queued,
    Running,
    Finished,
    /// Over, but for the engine's own work.
    Dropped,
}

impl PrefillEngine {
    pub(super) fn new(
        index: usize,
        generation: u64,
        ranks: usize,
        blocks: u32,
        limits: PrefillLimits,
    ) -> Self {
        let rank = |rank| {
            let me = Peer {
                engine: EngineId::new(&format!("p{index}/{rank}")).expect("a name"),
                generation: Generation::new(generation),
            };
            PrefillRank {
                machine: Prefill::new(me, Arc::clone(&World::model().prefill), limits, 5),
                memory: Memory::new(PREFILL_BLOCKS, 0xaa),
                ticked: None,
            }
        };
        Self {
            index,
            generation,
            up: true,
            limits,
            blocks,
            pool: Pool::new(blocks),
            ranks: (0..ranks).map(rank).collect(),
            jobs: BTreeMap::new(),
            cached: BTreeMap::new(),
        }
    }

    /// What a rank stores where another would store something else.
    pub(super) fn mask(rank: usize) -> u64 {
        super::mix(rank as u64 + 0x55)
    }

    fn release(&mut self, job: &PrefillJob) {
        for block in job.attention.iter().chain(&job.state) {
            if self.pool.give_back(*block) {
                self.cached.retain(|_, cached| cached != block);
            }
        }
    }
}

/// What is held back of a prompt for decode.
pub(super) fn keep(prompt: u32) -> u32 {
    if prompt >= 2 { prompt - 1 } else { prompt }
}

impl World<'_> {
    pub(super) fn prefill_arrival(&mut self, spec: usize, request: &str) -> Run {
        let index = self.specs[spec].prefill;
        let engine = &mut self.prefills[index];
        if !engine.up || engine.jobs.contains_key(request) {
            return Ok(());
        }
        let generation = engine.generation;
        let ranks = engine.ranks.len();
        let job = PrefillJob {
            spec,
            keep: keep(self.specs[spec].prompt.len()),
            stage: Stage::Queued,
            attention: Vec::new(),
            state: Vec::new(),
            ended: std::vec![false; ranks],
        };
        engine.jobs.insert(request.to_string(), job);
        let mut refused = false;
        for rank in 0..ranks {
            let event = PrefillEvent::Started {
                request: RequestId::new(request).expect("a name"),
                transfer: self.specs[spec].transfer.clone(),
            };
            let at = Rank {
                engine: index,
                rank,
            };
            if !self.prefill_event(at, event)? {
                refused = true;
                if let Some(job) = self.prefills[index].jobs.get_mut(request) {
                    job.ended[rank] = true;
                }
            }
        }
        if refused {
            self.prefill_abort(index, generation, request)?;
        }
        let wait = self.choices.between(0, 8_000);
        let step = Action::PrefillStep(index, generation, request.to_string());
        self.after(u64::from(wait), step);
        if self.fault(6) {
            let wait = self.choices.between(0, 60_000);
            let abort = Action::PrefillAbort(index, generation, request.to_string());
            self.after(u64::from(wait), abort);
        }
        Ok(())
    }

    pub(super) fn prefill_abort(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &mut self.prefills[index];
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(());
        };
        if !engine.up || engine.generation != generation {
            return Ok(());
        }
        let transfer = self.specs[job.spec].transfer.clone();
        if job.stage != Stage::Finished {
            job.stage = Stage::Dropped;
        }
        let open: Vec<usize> = (0..job.ended.len())
            .filter(|rank| !job.ended[*rank])
            .collect();
        for rank in open {
            let transfer = transfer.clone();
            let at = Rank {
                engine: index,
                rank,
            };
            self.prefill_event(at, PrefillEvent::Aborted { transfer })?;
        }
        self.prefill_clean(index, request);
        Ok(())
    }

    /// Lets a job go whose every rank has ended.
    pub(super) fn prefill_clean(&mut self, index: usize, request: &str) {
        let engine = &mut self.prefills[index];
        let done = |job: &PrefillJob| {
            job.ended.iter().all(|ended| *ended)
                && matches!(job.stage, Stage::Finished | Stage::Dropped)
        };
        if engine.jobs.get(request).is_some_and(done)
            && let Some(job) = engine.jobs.remove(request)
        {
            engine.release(&job);
        }
    }

    pub(super) fn prefill_step(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &mut self.prefills[index];
        if !engine.up || engine.generation != generation {
            return Ok(());
        }
        let Some(job) = engine.jobs.get_mut(request) else {
            return Ok(());
        };
        if job.ended.iter().all(|ended| *ended) && job.stage != Stage::Finished {
            job.stage = Stage::Dropped;
            self.prefill_clean(index, request);
            return Ok(());
        }
        let again = Action::PrefillStep(index, generation, request.to_string());
        let stage = job.stage;
        match stage {
            Stage::Dropped | Stage::Finished => Ok(()),
            Stage::Queued => {
                let begun = self.prefill_begin(index, request)?;
                let wait = if begun {
                    self.choices.between(0, 4_000)
                } else {
                    2_000
                };
                self.after(u64::from(wait), again);
                Ok(())
            }
            Stage::Running if self.fault(10) => {
                // Preempted: its blocks go to others, and the prompt is offered again.
                let engine = &mut self.prefills[index];
                if let Some(mut job) = engine.jobs.remove(request) {
                    engine.release(&job);
                    job.attention.clear();
                    job.state.clear();
                    job.stage = Stage::Queued;
                    if self.defect == Some(Defect::HeldBackTwice) {
                        job.keep = keep(job.keep);
                    }
                    engine.jobs.insert(request.to_string(), job);
                }
                self.after(1_000_u64, again);
                Ok(())
            }
            Stage::Running => self.prefill_finish(index, request),
        }
    }

    /// Hands an event to a machine and carries its commands out; whether it took it.
    pub(super) fn prefill_event(&mut self, rank: Rank, event: PrefillEvent) -> Run<bool> {
        let now = self.told_time();
        self.report.events += 1;
        self.show("p", rank, &event);
        let machine = &mut self.prefills[rank.engine].ranks[rank.rank].machine;
        let taken = machine.handle(now, event).is_ok();
        while let Some(command) = self.prefills[rank.engine].ranks[rank.rank].machine.poll() {
            self.show("  p", rank, &command);
            self.prefill_command(rank, command)?;
        }
        let engine = &mut self.prefills[rank.engine];
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
            self.after(wait, Action::PrefillTick(rank, generation));
        }
        Ok(taken)
    }

    fn prefill_command(&mut self, rank: Rank, command: PrefillCommand) -> Run {
        match command {
            PrefillCommand::Answer(answer) => {
                self.send_to_decode(rank, answer);
                Ok(())
            }
            PrefillCommand::Drain { attempt } => {
                let generation = self.prefills[rank.engine].generation;
                let theirs = self.flights.values_mut().find(|flight| {
                    flight.attempt == attempt
                        && flight.prefill == rank
                        && flight.path.prefill_generation == generation
                });
                let Some(flight) = theirs else {
                    return Ok(());
                };
                if self.defect == Some(Defect::SettledEarly) && !flight.reported {
                    flight.reported = true;
                    return self.report_settled(rank, generation, attempt, false);
                }
                flight.draining = true;
                if self.defect == Some(Defect::FreedOnDrain) {
                    // What is read goes on, but its blocks are somebody else's.
                    flight.draining = false;
                    let engine = &mut self.prefills[rank.engine];
                    let mut jobs = core::mem::take(&mut engine.jobs);
                    let finished = jobs.values_mut().find(|job| job.stage == Stage::Finished);
                    if let Some(job) = finished {
                        engine.release(job);
                        job.attention.clear();
                        job.state.clear();
                    }
                    engine.jobs = jobs;
                }
                Ok(())
            }
            PrefillCommand::Transfer {
                attempt,
                to,
                number,
                hand_off,
                source,
                destination,
                ..
            } => {
                let name = to.engine.as_str();
                let (engine, decode_rank) = name[1..].split_once('/').expect("a rank's name");
                let decode = Rank {
                    engine: engine.parse().expect("a number"),
                    rank: decode_rank.parse().expect("a number"),
                };
                let raw = source.request(&destination, "r", hand_off.computed());
                self.begin_flight(rank, decode, to.generation, &to, number, attempt, &raw)
            }
            PrefillCommand::Ended {
                request,
                outcome,
                tables,
                ..
            } => {
                let repeat = self.defect == Some(Defect::EndedTwice) && self.choices.chance(20);
                if self.defect == Some(Defect::NeverEnded) && self.choices.chance(20) {
                    return Ok(());
                }
                for _ in 0..if repeat { 2 } else { 1 } {
                    let engine = &mut self.prefills[rank.engine];
                    let Some(job) = engine.jobs.get_mut(request.as_str()) else {
                        return self.violation(format!("{request} ended and nobody knows it"));
                    };
                    if job.ended[rank.rank] {
                        return self.violation(format!("{request} ended twice on prefill"));
                    }
                    if tables.is_some() != (job.stage == Stage::Finished) {
                        return self
                            .violation(format!("{request} ended as {outcome:?} with {tables:?}"));
                    }
                    job.ended[rank.rank] = true;
                    let delivered = matches!(
                        outcome,
                        PrefillOutcome::Delivered | PrefillOutcome::Released
                    );
                    self.report.delivered += u64::from(delivered);
                    self.prefill_clean(rank.engine, request.as_str());
                }
                Ok(())
            }
        }
    }

    /// The process dies; what its card was told to do goes on for a while.
    pub(super) fn prefill_down(&mut self, index: usize) {
        let engine = &mut self.prefills[index];
        if !engine.up {
            return;
        }
        engine.up = false;
        engine.jobs.clear();
        let generation = engine.generation;
        self.report.restarts += 1;
        let wait = self.choices.between(0, 120_000);
        self.after(u64::from(wait), Action::PrefillUp(index));
        for engine in 0..self.decodes.len() {
            for rank in 0..self.decodes[engine].ranks.len() {
                // A broken connection tells it, or nothing does.
                if self.choices.chance(50) {
                    let wait = self.choices.between(100, 20_000);
                    let lost = Action::PeerLost(
                        Rank { engine, rank },
                        self.decodes[engine].generation,
                        Self::source(index),
                        Generation::new(generation),
                    );
                    self.after(u64::from(wait), lost);
                }
            }
        }
    }

    pub(super) fn prefill_up(&mut self, index: usize) {
        let old = &self.prefills[index];
        let ranks = old.ranks.len();
        self.prefills[index] =
            PrefillEngine::new(old.index, old.generation + 1, ranks, old.blocks, old.limits);
    }
}
