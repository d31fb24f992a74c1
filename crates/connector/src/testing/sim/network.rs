//! Messages, look-ups and fences.

use std::string::ToString;
use std::sync::Arc;

use super::action::{Action, Path, Rank, ToPrefill};
use super::defect::Defect;
use super::world::{Run, World};
use crate::{
    Answer, DecodeEvent, Dialect, EngineId, FenceId, Generation, PrefillEvent, Quiescence, Refusal,
    ResolveError, Resolved, Source, Verdict,
};

impl World<'_> {
    pub(super) fn source(engine: usize) -> Source {
        Source {
            engine: EngineId::new(&std::format!("p{engine}")).expect("a name"),
            bootstrap: Arc::from("boot"),
        }
    }

    pub(super) fn engine_of(source: &Source) -> usize {
        source.engine.as_str()[1..].parse().expect("a number")
    }

    /// When a message arrives, if it does; twice, if it is repeated.
    fn send(&mut self, action: &Action) {
        let copies = if self.fault(4) { 2 } else { 1 };
        for _ in 0..copies {
            if self.fault(5) {
                continue;
            }
            let long = self.fault(10);
            let delay = if long {
                self.choices.between(0, 300_000)
            } else {
                self.choices.between(0, 3_000)
            };
            self.after(delay, action.clone());
        }
    }

    pub(super) fn send_to_prefill(
        &mut self,
        from: Rank,
        source: &Source,
        sender: u16,
        message: ToPrefill,
    ) {
        let engine = Self::engine_of(source);
        let rank = self.paired(from.rank, usize::from(sender));
        let (to, number) = match &message {
            ToPrefill::Pull(pull) => (pull.to, pull.number),
            ToPrefill::Cancel(cancel) => (cancel.to, cancel.number),
        };
        let is_pull = matches!(message, ToPrefill::Pull(_));
        if is_pull && !self.prefills[engine].up && self.choices.chance(50) {
            let generation = self.decodes[from.engine].generation;
            self.after(500_u64, Action::Undelivered(from, generation, number));
            return;
        }
        let path = Path {
            decode: from,
            decode_generation: self.decodes[from.engine].generation,
            prefill: engine,
            prefill_generation: to.get(),
        };
        let epoch = self.epoch(path);
        self.send(&Action::AtPrefill(Rank { engine, rank }, message, epoch));
    }

    pub(super) fn at_prefill(&mut self, rank: Rank, message: ToPrefill, epoch: u64) -> Run {
        if !self.prefills[rank.engine].up {
            return Ok(());
        }
        let event = match message {
            ToPrefill::Pull(pull) => {
                let key = (rank, pull.from.clone(), pull.number);
                // The keys that came with the first copy of a pull are those that count.
                self.keys.entry(key).or_insert(epoch);
                PrefillEvent::Pulled(pull)
            }
            ToPrefill::Cancel(cancel) => PrefillEvent::Cancelled(cancel),
        };
        self.prefill_event(rank, event).map(drop)
    }

    pub(super) fn send_to_decode(&mut self, from: Rank, mut answer: Answer) {
        let name = answer.to.engine.as_str();
        let (engine, rank) = name[1..].split_once('/').expect("a rank's name");
        let to = Rank {
            engine: engine.parse().expect("a number"),
            rank: rank.parse().expect("a number"),
        };
        debug_assert_eq!(
            answer.from.engine.to_string(),
            std::format!("p{}/{}", from.engine, from.rank)
        );
        if self.dialect == Dialect::Stock {
            // A stock answer has no hand-off, no generations, and an error of it
            // says nothing of quiescence.
            match &mut answer.verdict {
                Verdict::Delivered { hand_off } => *hand_off = None,
                Verdict::Released => {}
                Verdict::Refused(refusal) => {
                    answer.quiescent = false;
                    *refusal = Refusal::Stock;
                }
            }
        }
        self.send(&Action::AtDecode(to, from, answer));
    }

    pub(super) fn look_up(&mut self, rank: Rank, source: Source) {
        if self.fault(5) {
            return;
        }
        let generation = self.decodes[rank.engine].generation;
        let delay = self.choices.between(200, 4_000);
        self.after(delay, Action::LookedUp(rank, generation, source));
    }

    pub(super) fn looked_up(&mut self, rank: Rank, source: Source) -> Run {
        let engine = &self.prefills[Self::engine_of(&source)];
        let (up, generation) = (engine.up, engine.generation);
        // A registry may name an incarnation that is gone.
        let stale = self.fault(5) && generation > 1;
        let generation = if stale { generation - 1 } else { generation };
        let result = if !up && !stale || self.fault(5) {
            Err(ResolveError::Unreachable)
        } else {
            let senders = u16::try_from(self.senders()).expect("few ranks");
            let generation = Generation::new(generation);
            Ok(Resolved::new(generation, senders, self.dialect).expect("some senders"))
        };
        self.decode_event(rank, DecodeEvent::Resolved { source, result })
            .map(drop)
    }

    /// An answer comes over the connection of the rank that sent it.
    pub(super) fn at_decode(&mut self, rank: Rank, from: Rank, answer: Answer) -> Run {
        let mut sender =
            (0..self.senders()).find(|sender| self.paired(rank.rank, *sender) == from.rank);
        let mut source = Self::source(from.engine);
        if self.fault(2) {
            // Somebody else says the same; it must not count.
            match self.choices.below(2) {
                0 => source = Self::source(from.engine + 1),
                _ => sender = sender.map(|sender| sender + 1),
            }
        }
        let event = DecodeEvent::Answered {
            source,
            sender: u16::try_from(sender.expect("a paired rank")).expect("few ranks"),
            answer,
        };
        self.decode_event(rank, event).map(drop)
    }

    pub(super) fn fence(
        &mut self,
        rank: Rank,
        fence: FenceId,
        source: Source,
        generation: Generation,
    ) {
        if self.fault(10) {
            return;
        }
        let now = self.decodes[rank.engine].generation;
        let delay = self.choices.between(100, 5_000);
        self.after(delay, Action::FenceUp(rank, now, fence, source, generation));
    }

    /// From here on nothing lands that was asked for before.
    pub(super) fn fence_up(
        &mut self,
        rank: Rank,
        fence: FenceId,
        source: &Source,
        generation: Generation,
    ) {
        let now = self.decodes[rank.engine].generation;
        let path = Path {
            decode: rank,
            decode_generation: now,
            prefill: Self::engine_of(source),
            prefill_generation: generation.get(),
        };
        if self.defect != Some(Defect::FencedEarly) {
            *self.epochs.entry(path).or_insert(0) += 1;
        }
        let reports = if self.fault(20) { 2 } else { 1 };
        for _ in 0..reports {
            let long = self.fault(20);
            let delay = self.choices.between(0, if long { 60_000 } else { 500 });
            self.after(delay, Action::Fenced(rank, now, fence));
        }
    }

    pub(super) fn fenced(&mut self, rank: Rank, fence: FenceId) -> Run {
        let proof = Quiescence::witnessed();
        let event = DecodeEvent::Fenced { fence, proof };
        self.decode_event(rank, event).map(drop)
    }

    pub(super) fn epoch(&self, path: Path) -> u64 {
        self.epochs.get(&path).copied().unwrap_or(0)
    }
}
