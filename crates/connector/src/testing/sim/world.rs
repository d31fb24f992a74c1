//! The world: its clock, its agenda, and what is checked.

use std::collections::BTreeMap;
use std::fmt;
use std::string::String;
use std::vec::Vec;

use super::action::{Action, Path, Rank};
use super::choices::Choices;
use super::decode::DecodeEngine;
use super::defect::Defect;
use super::flight::Flight;
use super::memory::{DECODE_BLOCKS, PREFILL_BLOCKS, model};
use super::prefill::PrefillEngine;
use super::prompt::Prompt;
use super::report::{Options, Report};
use super::schedule::{limits, settle_bound};
use crate::{
    Accounting, Consumer, DecodeLimits, Dialect, HandOffPoint, Holdback, Peer, PrefillLimits,
    PromptInput, PullNumber, Time, TokenCount, TransferId,
};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at} us: {what}")]
pub struct Violation {
    /// Microseconds since the schedule began.
    pub at: u64,
    /// What was seen.
    pub what: String,
}

pub(super) type Run<T = ()> = Result<T, Violation>;

/// A request as the router sees it.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) transfer: TransferId,
    pub(super) prompt: Prompt,
    pub(super) prefill: usize,
    pub(super) decode: usize,
    /// It comes as embeddings.
    pub(super) embedded: bool,
    pub(super) skips_prefix_cache: bool,
    /// Tokens that decode has by itself.
    pub(super) local: u32,
}

impl Spec {
    /// The prompt as hosts see it.
    pub(super) fn input(&self) -> PromptInput {
        let count = TokenCount::new(self.prompt.len());
        if self.embedded {
            PromptInput::Embeddings(count)
        } else {
            PromptInput::TokenIds(count)
        }
    }
}

/// Blocks of a pool, null included, in which the longest prompt has room.
const NARROWEST: u32 = 8;

/// How often faults come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faults {
    None,
    Few,
    Many,
}

#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) choices: Choices<'a>,
    pub(super) defect: Option<Defect>,
    trace: bool,
    pub(super) now: u64,
    agenda: BTreeMap<(u64, u64), Action>,
    sequence: u64,
    faults: Faults,
    /// No fault happens in the whole schedule.
    pub(super) calm: bool,
    pub(super) dialect: Dialect,
    pub(super) accounting: Accounting,
    /// Ranks of each prefill and each decode engine.
    pub(super) ranks: (usize, usize),
    pub(super) limits: (PrefillLimits, DecodeLimits),
    pub(super) prefills: Vec<PrefillEngine>,
    pub(super) decodes: Vec<DecodeEngine>,
    pub(super) specs: Vec<Spec>,
    pub(super) flights: BTreeMap<u64, Flight>,
    pub(super) next_flight: u64,
    pub(super) epochs: BTreeMap<Path, u64>,
    pub(super) keys: BTreeMap<(Rank, PeerKey, PullNumber), u64>,
    pub(super) report: Report,
}

/// Runs one schedule to its end.
///
/// # Errors
/// The first invariant that does not hold.
pub fn simulate(choices: Choices<'_>, options: Options) -> Result<Report, Violation> {
    let mut world = World::new(choices, options);
    world.plan();
    world.run()?;
    let machines = world.decodes.iter().flat_map(|engine| &engine.ranks);
    let followed = machines.map(|rank| rank.machine.metrics().followed);
    world.report.followed += followed.sum::<u64>();
    Ok(world.report)
}

impl<'a> World<'a> {
    fn new(mut choices: Choices<'a>, options: Options) -> Self {
        let faults = match choices.below(10) {
            0 => Faults::None,
            1..6 => Faults::Few,
            _ => Faults::Many,
        };
        let calm = faults == Faults::None;
        let ranks = [(1, 1), (2, 1), (1, 2), (2, 2)][choices.below(4) as usize];
        let dialect = if choices.chance(15) {
            Dialect::Stock
        } else {
            Dialect::Own
        };
        let mut accounting = Accounting::mooncake(Holdback::plain().gdn());
        // A stock peer can't say the first token.
        if dialect == Dialect::Own && choices.chance(20) {
            accounting.point = HandOffPoint::FirstToken;
        }
        let limits = if calm {
            limits(&mut Choices::bytes(&[]))
        } else {
            limits(&mut choices)
        };
        let counts = (1 + choices.below(2), 1 + choices.below(2));
        let mut world = Self {
            choices,
            defect: options.defect,
            trace: options.trace,
            now: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            faults,
            calm,
            dialect,
            accounting,
            ranks,
            limits,
            prefills: Vec::new(),
            decodes: Vec::new(),
            specs: Vec::new(),
            flights: BTreeMap::new(),
            next_flight: 0,
            epochs: BTreeMap::new(),
            keys: BTreeMap::new(),
            report: Report::default(),
        };
        // In a narrow pool a block that was let go too early is soon used again.
        let narrow = !calm && world.choices.chance(40);
        let blocks = |choices: &mut Choices<'_>, wide: u32| {
            if narrow {
                choices.between(NARROWEST, wide)
            } else {
                wide
            }
        };
        for engine in 0..counts.0 as usize {
            let blocks = blocks(&mut world.choices, PREFILL_BLOCKS);
            let engine = PrefillEngine::new(engine, 1, ranks.0, blocks, accounting, limits.0);
            world.prefills.push(engine);
        }
        for engine in 0..counts.1 as usize {
            let blocks = blocks(&mut world.choices, DECODE_BLOCKS);
            let engine = DecodeEngine::new(engine, 1, ranks, blocks, accounting, limits.1);
            world.decodes.push(engine);
        }
        world
    }

    /// Prefill ranks that each decode rank pulls from.
    pub(super) fn senders(&self) -> usize {
        if self.ranks.1 == 1 { self.ranks.0 } else { 1 }
    }

    /// The prefill rank behind a sender of a decode rank.
    pub(super) fn paired(&self, decode_rank: usize, sender: usize) -> usize {
        match self.ranks {
            (1, _) => 0,
            (_, 1) => sender,
            _ => decode_rank,
        }
    }

    /// Which of the decode ranks it is to its prefill rank.
    pub(super) fn consumer(ranks: (usize, usize), rank: usize) -> Consumer {
        let (index, count) = match ranks {
            (1, 2) => (rank, 2),
            _ => (0, 1),
        };
        let small = |number: usize| u16::try_from(number).expect("few ranks");
        Consumer::new(small(index), small(count)).expect("an index below its count")
    }

    /// Whether a fault happens now.
    pub(super) fn fault(&mut self, percent: u32) -> bool {
        match self.faults {
            Faults::None => false,
            Faults::Few => self.choices.chance(percent) && self.choices.chance(25),
            Faults::Many => self.choices.chance(percent),
        }
    }

    pub(super) fn after(&mut self, micros: impl Into<u64>, action: Action) {
        self.agenda
            .insert((self.now + micros.into(), self.sequence), action);
        self.sequence += 1;
    }

    /// Prints what happens, if it is asked for.
    pub(super) fn show(&self, who: &str, rank: Rank, what: &dyn fmt::Debug) {
        if self.trace {
            let Rank { engine, rank } = rank;
            std::eprintln!("{:>9} {who}{engine}/{rank} {what:?}", self.now);
        }
    }

    pub(super) fn violation<T>(&self, what: String) -> Run<T> {
        Err(Violation { at: self.now, what })
    }

    /// The time as a machine is told it: sometimes it goes back.
    pub(super) fn told_time(&mut self) -> Time {
        let back = self.fault(2);
        let back = if back {
            self.choices.between(0, 50_000)
        } else {
            0
        };
        Time::from_micros(self.now.saturating_sub(u64::from(back)))
    }

    fn run(&mut self) -> Run {
        let bound = settle_bound(&self.limits.0, &self.limits.1).as_micros();
        let mut last = None;
        while let Some(((at, _), action)) = self.agenda.pop_first() {
            self.now = at;
            if let Some(end) = last
                && at > end + bound
                && !self.is_quiet()
            {
                return self.violation(self.unsettled());
            }
            if matches!(action, Action::FaultsEnd) {
                self.faults = Faults::None;
                last = Some(at);
            }
            self.act(action)?;
        }
        if !self.is_quiet() {
            return self.violation(self.unsettled());
        }
        self.check_calm()?;
        self.check_empty()
    }

    fn act(&mut self, action: Action) -> Run {
        match action {
            Action::PrefillArrival(spec, request) => self.prefill_arrival(spec, &request),
            Action::DecodeArrival(spec) => self.decode_arrival(spec),
            Action::PrefillStep(engine, generation, request) => {
                self.prefill_step(engine, generation, &request)
            }
            Action::PrefillAbort(engine, generation, request) => {
                self.prefill_abort(engine, generation, &request)
            }
            Action::DecodeStep(engine, generation, request) => {
                self.decode_step(engine, generation, &request)
            }
            Action::DecodeAbort(engine, generation, request) => {
                self.decode_abort(engine, generation, &request)
            }
            Action::AtPrefill(rank, message, epoch) => self.at_prefill(rank, message, epoch),
            Action::AtDecode(rank, from, answer) => self.at_decode(rank, from, answer),
            Action::Undelivered(rank, generation, number) => {
                if self.decodes[rank.engine].generation != generation {
                    return Ok(());
                }
                self.decode_event(rank, crate::DecodeEvent::Undelivered { number })
                    .map(drop)
            }
            Action::LookedUp(rank, generation, source) => {
                if self.decodes[rank.engine].generation != generation {
                    return Ok(());
                }
                self.looked_up(rank, source)
            }
            Action::FenceUp(rank, generation, fence, source, fenced) => {
                if self.decodes[rank.engine].generation == generation {
                    self.fence_up(rank, fence, &source, fenced);
                }
                Ok(())
            }
            Action::Fenced(rank, generation, fence) => {
                if self.decodes[rank.engine].generation != generation {
                    return Ok(());
                }
                self.fenced(rank, fence)
            }
            Action::PeerLost(rank, generation, source, lost) => {
                if self.decodes[rank.engine].generation != generation {
                    return Ok(());
                }
                let generation = lost;
                let event = crate::DecodeEvent::PeerLost { source, generation };
                self.decode_event(rank, event).map(drop)
            }
            Action::Flight(number) => self.fly(number),
            Action::PrefillDown(engine) => {
                self.prefill_down(engine);
                Ok(())
            }
            Action::PrefillUp(engine) => {
                self.prefill_up(engine);
                Ok(())
            }
            Action::DecodeRestart(engine) => {
                self.decode_restart(engine);
                Ok(())
            }
            Action::PrefillTick(rank, generation) => {
                let engine = &self.prefills[rank.engine];
                if !engine.up || engine.generation != generation {
                    return Ok(());
                }
                self.prefill_event(rank, crate::PrefillEvent::Tick)
                    .map(drop)
            }
            Action::DecodeTick(rank, generation) => {
                if self.decodes[rank.engine].generation != generation {
                    return Ok(());
                }
                self.decode_event(rank, crate::DecodeEvent::Tick).map(drop)
            }
            Action::FaultsEnd => Ok(()),
        }
    }

    /// The model's layouts.
    pub(super) fn model() -> &'static super::memory::Model {
        model()
    }
}

pub(super) type PeerKey = Peer;
