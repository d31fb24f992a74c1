//! A decode rank and whoever speaks to it.

use std::collections::HashMap;
use std::sync::Arc;

use mooncake_pd_connector::{
    Answer, BlockTables, Cancel, Consumer, Decode, DecodeCommand, DecodeError, DecodeEvent,
    DecodeLimits, DecodeOutcome, Dialect, EngineId, FenceId, Generation, Load, Pull, PullNumber,
    Quiescence, Refusal, ResolveError, Resolved, Source, Span, Time, TokenCount, Verdict, Want,
};

use crate::common::{hand_off, layout, peer, request, tables, transfer};
use crate::prefill_rank::COMPUTED;

/// Decode `d`, generation 1, 64 blocks; every request `x` loads transfer `x` of `p`.
pub(crate) struct D {
    pub(crate) machine: Decode,
    pub(crate) now: Time,
    /// Messages that were not taken yet, with the sender they go to.
    pub(crate) pulls: Vec<(u16, Pull)>,
    pub(crate) cancels: Vec<(u16, Cancel)>,
    /// Whom each pull went to.
    senders: HashMap<PullNumber, u16>,
    /// What it asks for and `out` has not told.
    commands: Vec<DecodeCommand>,
    /// Fences that were asked for.
    pub(crate) fences: Vec<(Generation, FenceId)>,
}

pub(crate) fn source() -> Source {
    Source {
        engine: EngineId::new("p").unwrap(),
        bootstrap: "host:8998".into(),
    }
}

impl D {
    pub(crate) fn new() -> Self {
        Self::with(DecodeLimits::default())
    }

    pub(crate) fn with(limits: DecodeLimits) -> Self {
        Self {
            machine: Decode::new(peer("d", 1), Consumer::ALONE, layout(64), limits, 7),
            now: Time::from_micros(1_000),
            pulls: Vec::new(),
            cancels: Vec::new(),
            senders: HashMap::new(),
            commands: Vec::new(),
            fences: Vec::new(),
        }
    }

    /// It knows `p`, generation 1, with this many senders.
    pub(crate) fn knowing(senders: u16, dialect: Dialect) -> Self {
        Self::new().resolving(senders, dialect)
    }

    pub(crate) fn resolving(mut self, senders: u16, dialect: Dialect) -> Self {
        self.load("first", &[&[60], &[61]]).unwrap();
        self.resolve(1, senders, dialect);
        self.out();
        for number in 0..u64::from(senders) {
            self.answer(number, 1, delivered());
        }
        self.out();
        self.pulls.clear();
        self
    }

    pub(crate) fn take(&mut self, event: DecodeEvent) -> Result<(), DecodeError> {
        let result = self.machine.handle(self.now, event);
        while let Some(command) = self.machine.poll() {
            match &command {
                DecodeCommand::Fence {
                    fence, generation, ..
                } => self.fences.push((*generation, *fence)),
                DecodeCommand::Pull { sender, pull, .. } => {
                    self.senders.insert(pull.number, *sender);
                }
                _ => {}
            }
            self.commands.push(command);
        }
        result
    }

    pub(crate) fn load_with(
        &mut self,
        name: &str,
        tables: Arc<BlockTables>,
    ) -> Result<(), DecodeError> {
        self.take(DecodeEvent::Load(Load {
            request: request(name),
            transfer: transfer(name),
            source: source(),
            expects: TokenCount::new(COMPUTED),
            tables,
        }))
    }

    pub(crate) fn load(&mut self, name: &str, lists: &[&[u32]]) -> Result<(), DecodeError> {
        self.load_with(name, tables(lists))
    }

    pub(crate) fn release(&mut self, name: &str) {
        let event = DecodeEvent::Release {
            transfer: transfer(name),
            source: source(),
        };
        self.take(event).unwrap();
    }

    pub(crate) fn abort(&mut self, name: &str) -> Result<(), DecodeError> {
        self.take(DecodeEvent::Aborted {
            request: request(name),
        })
    }

    pub(crate) fn resolve(&mut self, generation: u64, senders: u16, dialect: Dialect) {
        let found = Resolved::new(Generation::new(generation), senders, dialect).unwrap();
        self.resolved(Ok(found));
    }

    pub(crate) fn resolved(&mut self, result: Result<Resolved, ResolveError>) {
        let source = source();
        self.take(DecodeEvent::Resolved { source, result }).unwrap();
    }

    /// A quiet answer of `p` in this generation.
    pub(crate) fn answer(&mut self, number: u64, generation: u64, verdict: Verdict) {
        self.answered(answer(number, generation, verdict));
    }

    pub(crate) fn answered(&mut self, answer: Answer) {
        let sender = self.senders.get(&answer.number).copied().unwrap_or(0);
        self.answered_by(source(), sender, answer);
    }

    /// An answer that comes from anybody.
    pub(crate) fn answered_by(&mut self, source: Source, sender: u16, answer: Answer) {
        let event = DecodeEvent::Answered {
            source,
            sender,
            answer,
        };
        self.take(event).unwrap();
    }

    pub(crate) fn lose(&mut self, generation: u64) {
        let (source, generation) = (source(), Generation::new(generation));
        let event = DecodeEvent::PeerLost { source, generation };
        self.take(event).unwrap();
    }

    /// The last fence that was asked for against a generation is up.
    pub(crate) fn fenced(&mut self, generation: u64) {
        let generation = Generation::new(generation);
        let mut fences = self.fences.iter().rev();
        let (_, fence) = fences.find(|(of, _)| *of == generation).unwrap();
        let fence = *fence;
        self.up(fence);
    }

    pub(crate) fn up(&mut self, fence: FenceId) {
        let proof = Quiescence::witnessed();
        self.take(DecodeEvent::Fenced { fence, proof }).unwrap();
    }

    pub(crate) fn quiet(&mut self, number: u64) {
        let number = PullNumber::new(number);
        let proof = Quiescence::witnessed();
        self.take(DecodeEvent::Quiet { number, proof }).unwrap();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now.after(span);
        self.take(DecodeEvent::Tick).unwrap();
    }

    /// The next command that `out` has not told.
    pub(crate) fn command(&mut self) -> Option<DecodeCommand> {
        (!self.commands.is_empty()).then(|| self.commands.remove(0))
    }

    /// What it asks for, since the last time.
    pub(crate) fn out(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        for command in std::mem::take(&mut self.commands) {
            texts.push(text(&command));
            match command {
                DecodeCommand::Pull { sender, pull, .. } => self.pulls.push((sender, pull)),
                DecodeCommand::Cancel { sender, cancel, .. } => {
                    self.cancels.push((sender, cancel));
                }
                _ => {}
            }
        }
        texts
    }

    /// Nothing is left but what is remembered for a while, and that not for ever.
    pub(crate) fn assert_idle(&mut self) {
        assert_eq!((self.machine.live(), self.machine.leases()), (0, 0));
        // What ends may have a release to follow, and that its own time.
        for _ in 0..4 {
            self.pass(Span::from_secs(100_000));
        }
        assert_eq!(self.machine.records(), 0);
        assert_eq!(self.machine.next_deadline(), None);
    }
}

fn text(command: &DecodeCommand) -> String {
    match command {
        DecodeCommand::Resolve { source } => format!("resolve {source}"),
        DecodeCommand::Pull { sender, pull, .. } => {
            let (number, to, transfer) = (pull.number.get(), pull.to, &pull.transfer);
            let kind = match pull.want {
                Want::Release => "release",
                Want::Cache { .. } => "pull",
            };
            format!("{kind} {number} of {transfer} from sender {sender}, generation {to}")
        }
        DecodeCommand::Cancel { sender, cancel, .. } => {
            let (number, to) = (cancel.number.get(), cancel.to);
            format!("cancel {number} at sender {sender}, generation {to}")
        }
        DecodeCommand::Fence {
            source, generation, ..
        } => {
            format!("fence {}, generation {generation}", source.engine)
        }
        DecodeCommand::Ended {
            request, outcome, ..
        } => match outcome {
            DecodeOutcome::Loaded { computed, .. } => format!("{request} ended: loaded {computed}"),
            DecodeOutcome::Failed(failure) => format!("{request} ended: {failure}"),
        },
    }
}

pub(crate) fn delivered() -> Verdict {
    Verdict::Delivered {
        hand_off: Some(hand_off(COMPUTED)),
    }
}

/// What generation `actual` answers to a pull for generation `asked`.
pub(crate) fn moved(asked: u64, actual: u64) -> Verdict {
    let (asked, actual) = (Generation::new(asked), Generation::new(actual));
    Verdict::Refused(Refusal::Generation { asked, actual })
}

pub(crate) fn answer(number: u64, generation: u64, verdict: Verdict) -> Answer {
    Answer {
        from: peer("p", generation),
        to: peer("d", 1),
        number: PullNumber::new(number),
        verdict,
        quiescent: true,
    }
}
