//! A prefill engine.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use super::action::{Action, Rank};
use super::defect::Defect;
use super::memory::{Memory, PREFILL_BLOCKS, Pool};
use super::world::{Run, World};
use crate::{
    Accounting, EngineId, Generation, HostLimits, Peer, Prefill, PrefillCommand, PrefillError,
    PrefillEvent, PrefillFinish, PrefillHost, PrefillLimits, PrefillOutcome, Ranks, RequestId,
    TransferId,
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
    accounting: Accounting,
    pub(super) pool: Pool,
    pub(super) ranks: Vec<PrefillRank>,
    pub(super) host: PrefillHost,
    pub(super) jobs: BTreeMap<String, PrefillJob>,
    /// Requests that a rank has taken and not ended.
    pub(super) open: BTreeSet<(usize, String)>,
    /// Requests whose result is to come.
    pub(super) results: BTreeSet<String>,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Queued,
    Running,
    Finished,
}

impl PrefillEngine {
    pub(super) fn new(
        index: usize,
        generation: u64,
        ranks: usize,
        blocks: u32,
        accounting: Accounting,
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
            host: PrefillHost::new(
                accounting,
                Arc::clone(&World::model().prefill),
                Ranks::new(u16::try_from(ranks).expect("few ranks")).expect("some ranks"),
                HostLimits::default(),
                4,
            ),
            accounting,
            jobs: BTreeMap::new(),
            open: BTreeSet::new(),
            results: BTreeSet::new(),
            cached: BTreeMap::new(),
        }
    }

    /// What a rank stores where another would store something else.
    pub(super) fn mask(rank: usize) -> u64 {
        super::mix(rank as u64 + 0x55)
    }

    pub(super) fn release(&mut self, job: &PrefillJob) {
        for block in job.attention.iter().chain(&job.state) {
            if self.pool.give_back(*block) {
                self.cached.retain(|_, cached| cached != block);
            }
        }
    }
}

impl World<'_> {
    pub(super) fn prefill_arrival(&mut self, spec: usize, request: &str) -> Run {
        let index = self.specs[spec].prefill;
        let engine = &mut self.prefills[index];
        if !engine.up || engine.jobs.contains_key(request) {
            return Ok(());
        }
        let generation = engine.generation;
        if !self.offer(index, spec, request) {
            // The router named a transfer that is live.
            return Ok(());
        }
        let engine = &mut self.prefills[index];
        let name = RequestId::new(request).expect("a name");
        let spec_ = &self.specs[spec];
        let share = engine.host.new_request(
            &name,
            &spec_.transfer,
            spec_.input(),
            spec_.skips_prefix_cache,
        );
        let keep = share.expect("offered a second time").kept().keep().get();
        let job = PrefillJob {
            spec,
            keep,
            stage: Stage::Queued,
            attention: Vec::new(),
            state: Vec::new(),
        };
        engine.jobs.insert(request.to_string(), job);
        engine.results.insert(request.to_string());
        self.prefill_orders(index)?;
        let wait = self.choices.between(0, 8_000);
        let step = Action::PrefillStep(index, generation, request.to_string());
        self.after(wait, step);
        if self.fault(6) {
            let wait = self.choices.between(0, 60_000);
            let abort = Action::PrefillAbort(index, generation, request.to_string());
            self.after(wait, abort);
        }
        Ok(())
    }

    pub(super) fn prefill_abort(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &self.prefills[index];
        if !engine.up || engine.generation != generation || !engine.jobs.contains_key(request) {
            return Ok(());
        }
        self.prefill_done(index, request, PrefillFinish::Abort)
    }

    pub(super) fn prefill_step(&mut self, index: usize, generation: u64, request: &str) -> Run {
        let engine = &mut self.prefills[index];
        if !engine.up || engine.generation != generation {
            return Ok(());
        }
        let Some(job) = engine.jobs.get(request) else {
            return Ok(());
        };
        let (stage, spec) = (job.stage, job.spec);
        let again = Action::PrefillStep(index, generation, request.to_string());
        let name = RequestId::new(request).expect("a name");
        if stage != Stage::Finished && engine.host.is_over(&name) && self.choices.chance(50) {
            return self.prefill_done(index, request, PrefillFinish::Abort);
        }
        match stage {
            Stage::Finished => Ok(()),
            Stage::Queued => {
                let begun = self.prefill_begin(index, request)?;
                let wait = if begun {
                    self.choices.between(0, 4_000)
                } else {
                    2_000
                };
                self.after(wait, again);
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
                        job.keep = job.keep.saturating_sub(1).max(1);
                    }
                    engine.jobs.insert(request.to_string(), job);
                }
                if !self.offer(index, spec, request) {
                    return self.violation(format!("{request} was refused when offered again"));
                }
                self.after(1_000_u64, again);
                Ok(())
            }
            Stage::Running => self.prefill_finish(index, request),
        }
    }

    /// Hands an event to a machine and carries its commands out; what is wrong with it.
    pub(super) fn prefill_event(
        &mut self,
        rank: Rank,
        event: PrefillEvent,
    ) -> Run<Option<PrefillError>> {
        let now = self.told_time();
        self.report.events += 1;
        self.show("p", rank, &event);
        let machine = &mut self.prefills[rank.engine].ranks[rank.rank].machine;
        let refused = machine.handle(now, event).err();
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
        Ok(refused)
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
                transfer,
                outcome,
                ..
            } => self.prefill_ended(rank, &request, &transfer, &outcome),
        }
    }

    fn prefill_ended(
        &mut self,
        rank: Rank,
        request: &RequestId,
        transfer: &TransferId,
        outcome: &PrefillOutcome,
    ) -> Run {
        let repeat = self.defect == Some(Defect::EndedTwice) && self.choices.chance(20);
        if self.defect == Some(Defect::NeverEnded) && self.choices.chance(20) {
            return Ok(());
        }
        for _ in 0..if repeat { 2 } else { 1 } {
            let engine = &mut self.prefills[rank.engine];
            if !engine.open.remove(&(rank.rank, request.to_string())) {
                return self.violation(format!("{request} ended twice on prefill"));
            }
            let delivered = matches!(
                outcome,
                PrefillOutcome::Delivered | PrefillOutcome::Released
            );
            self.report.delivered += u64::from(delivered);
            let rank = u16::try_from(rank.rank).expect("few ranks");
            engine.host.ended(rank, request, transfer, outcome.clone());
        }
        self.prefill_orders(rank.engine)
    }

    /// The process dies; what its card was told to do goes on for a while.
    pub(super) fn prefill_down(&mut self, index: usize) {
        let engine = &mut self.prefills[index];
        if !engine.up {
            return;
        }
        engine.up = false;
        engine.jobs.clear();
        engine.open.clear();
        engine.results.clear();
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
        self.prefills[index] = PrefillEngine::new(
            old.index,
            old.generation + 1,
            ranks,
            old.blocks,
            old.accounting,
            old.limits,
        );
    }
}
