//! A decode machine alone.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::{BTreeMap, HashMap, HashSet};

use mooncake_pd_layout::testing::arbitrary::Unstructured;

use super::{Draw, MAX_EVENTS, blocks, layout};
use crate::{
    Answer, BlockTables, Consumer, Decode, DecodeCommand, DecodeError, DecodeEvent, DecodeLimits,
    DecodeOutcome, Dialect, EngineId, FenceId, Generation, Load, Peer, Pull, PullNumber,
    Quiescence, Refusal, RequestId, ResolveError, Resolved, Source, Span, TablesError, Time,
    TransferFault, TransferId, Verdict, Want,
};

fn limits() -> DecodeLimits {
    DecodeLimits {
        live: 4,
        answer: Span::from_secs(9),
        cancel_retry: Span::from_millis(100),
        fence_after: Span::from_secs(2),
        stock_fence_after: Span::from_secs(3),
        fence_retry: Span::from_secs(3),
        resolve_attempts: 2,
        resolve_timeout: Span::from_secs(1),
        resolve_pause: Span::from_millis(100),
        sources: 2,
        source_idle: Span::from_secs(12),
        follow: 1,
    }
}

/// A pull that the machine sent.
struct Sent {
    transfer: TransferId,
    source: Source,
    sender: u16,
    generation: Generation,
    stock: bool,
    /// Of this load; none for a release.
    load: Option<RequestId>,
    /// Counts how often its load asked all senders.
    round: u64,
    quiet: bool,
    delivered: bool,
}

/// A load that is not ended.
struct Loading {
    transfer: TransferId,
    tables: Arc<BlockTables>,
}

/// What the machine said and was told, and what follows from it.
struct Seen {
    machine: Decode,
    now: Time,
    latest: Time,
    live: HashMap<RequestId, Loading>,
    sent: BTreeMap<PullNumber, Sent>,
    /// Fences that were asked for and are not up.
    fences: BTreeMap<FenceId, (Source, Generation)>,
    /// What was said of each source; late words are not heard.
    told: HashMap<Source, Vec<Resolved>>,
    round: u64,
    ended: u64,
}

/// For any bytes: no panic; an error changes nothing; each load ends once, with its
/// blocks, and not before every pull of it is quiet; no block belongs to two live
/// loads, and one of an ended load is free; who was fenced off is asked for nothing
/// until the fence is up; nothing is left at last.
pub fn check_decode_events(bytes: &[u8]) {
    let mut draw = Draw(Unstructured::new(bytes));
    let me = Peer {
        engine: EngineId::new("d").expect("a short name"),
        generation: Generation::new(1),
    };
    let mut seen = Seen {
        machine: Decode::new(me, Consumer::ALONE, layout(), limits(), 7),
        now: Time::from_micros(5_000_000),
        latest: Time::ZERO,
        live: HashMap::new(),
        sent: BTreeMap::new(),
        fences: BTreeMap::new(),
        told: HashMap::new(),
        round: 0,
        ended: 0,
    };
    for _ in 0..MAX_EVENTS {
        if draw.is_empty() {
            break;
        }
        draw.step(&mut seen.now);
        let event = seen.draw(&mut draw);
        seen.take(event);
    }
    seen.finish();
}

impl Seen {
    fn draw(&self, draw: &mut Draw<'_>) -> DecodeEvent {
        match draw.below(20) {
            0..=4 => DecodeEvent::Load(Load {
                request: request(draw),
                transfer: draw.transfer(),
                source: source(draw),
                expects: draw.tokens(),
                tables: draw.tables(),
            }),
            5 => DecodeEvent::Release {
                transfer: draw.transfer(),
                source: source(draw),
            },
            6 => DecodeEvent::Aborted {
                request: request(draw),
            },
            7..=8 => DecodeEvent::Resolved {
                source: source(draw),
                result: resolved(draw),
            },
            9..=14 => self.answered(draw),
            15 => DecodeEvent::Undelivered {
                number: self.number(draw),
            },
            16 => DecodeEvent::PeerLost {
                source: source(draw),
                generation: draw.generation(),
            },
            17 => self.fence(draw),
            18 if draw.once_in(2) => self.fence(draw),
            18 => DecodeEvent::Quiet {
                number: self.number(draw),
                proof: Quiescence::witnessed(),
            },
            _ => DecodeEvent::Tick,
        }
    }

    /// Mostly of a pull that is not quiet.
    fn number(&self, draw: &mut Draw<'_>) -> PullNumber {
        let open = self.sent.iter().filter(|(_, sent)| !sent.quiet);
        let open: Vec<PullNumber> = open.map(|(number, _)| *number).collect();
        if open.is_empty() || draw.once_in(8) {
            return draw.number();
        }
        open[draw.below(open.len() as u64) as usize]
    }

    /// Mostly from whom it was asked of.
    fn answered(&self, draw: &mut Draw<'_>) -> DecodeEvent {
        let answer = self.answer(draw);
        let sent = self.sent.get(&answer.number);
        let (source, sender) = match sent {
            Some(sent) if !draw.once_in(12) => (sent.source.clone(), sent.sender),
            _ => (source(draw), draw.below(3) as u16),
        };
        DecodeEvent::Answered {
            source,
            sender,
            answer,
        }
    }

    fn answer(&self, draw: &mut Draw<'_>) -> Answer {
        let number = self.number(draw);
        let asked = self.sent.get(&number).map(|sent| sent.generation);
        let mut from = draw.peer('p', 3);
        if let Some(asked) = asked
            && !draw.once_in(4)
        {
            from.generation = asked;
        }
        let mut to = self.machine.me().clone();
        if draw.once_in(16) {
            to = draw.peer('d', 2);
        }
        let verdict = match draw.below(12) {
            0..=4 => Verdict::Delivered {
                hand_off: draw.once_in(2).then(|| draw.hand_off()),
            },
            5 => Verdict::Released,
            6 => Verdict::Refused(Refusal::Cancelled),
            7 => Verdict::Refused(Refusal::Transfer(TransferFault { code: -1 })),
            8 => Verdict::Refused(Refusal::Stock),
            9 => Verdict::Refused(Refusal::Generation {
                asked: draw.generation(),
                actual: draw.generation(),
            }),
            _ => Verdict::Refused(Refusal::Generation {
                asked: asked.unwrap_or_default(),
                actual: from.generation,
            }),
        };
        Answer {
            from,
            to,
            number,
            verdict,
            quiescent: !draw.once_in(4),
        }
    }

    /// Mostly one that was asked for.
    fn fence(&self, draw: &mut Draw<'_>) -> DecodeEvent {
        let fences: Vec<FenceId> = self.fences.keys().copied().collect();
        let fence = if fences.is_empty() || draw.once_in(6) {
            FenceId::new(draw.below(8))
        } else {
            fences[draw.below(fences.len() as u64) as usize]
        };
        fenced(fence)
    }

    fn take(&mut self, event: DecodeEvent) {
        // What time alone does is not the event's doing.
        self.machine
            .handle(self.now, DecodeEvent::Tick)
            .expect("a tick is no mistake");
        self.latest = self.latest.max(self.now);
        self.poll();
        let state = |machine: &Decode| (machine.live(), machine.leases(), machine.records());
        let before = state(&self.machine);
        self.note(&event);
        self.drop_fences();
        let load = match &event {
            DecodeEvent::Load(load) => Some(load.clone()),
            _ => None,
        };
        let result = self.machine.handle(self.now, event);
        if let Err(error) = &result {
            assert_eq!(state(&self.machine), before, "{error}");
            assert!(self.machine.poll().is_none(), "{error}");
        }
        let held = |id: &u32| {
            let mut live = self.live.values();
            live.any(|loading| blocks(&loading.tables).contains(id))
        };
        if let Err(DecodeError::Tables(TablesError::Leased { id, .. })) = &result {
            assert!(held(id), "block {id} is nobody's");
        }
        if let (Ok(()), Some(load)) = (result, load) {
            let ours = blocks(&load.tables);
            assert!(!ours.iter().any(held), "a block of two live loads");
            let distinct: HashSet<_> = ours.iter().collect();
            assert_eq!(distinct.len(), ours.len(), "a block twice");
            let loading = Loading {
                transfer: load.transfer,
                tables: load.tables,
            };
            assert!(self.live.insert(load.request, loading).is_none());
        }
        self.poll();
    }

    /// Notes what an event proves, before the machine reacts to it.
    fn note(&mut self, event: &DecodeEvent) {
        match event {
            DecodeEvent::Answered {
                source,
                sender,
                answer,
            } => {
                let Some(sent) = self.sent.get_mut(&answer.number) else {
                    return;
                };
                let moved = Verdict::Refused(Refusal::Generation {
                    asked: sent.generation,
                    actual: answer.from.generation,
                });
                let theirs = (source, *sender) == (&sent.source, sent.sender)
                    && answer.to == *self.machine.me()
                    && answer.from.generation == sent.generation;
                if theirs && answer.verdict != moved && !sent.quiet {
                    sent.quiet = answer.quiescent;
                    sent.delivered = match answer.verdict {
                        Verdict::Delivered { .. } => true,
                        Verdict::Released | Verdict::Refused(_) => false,
                    };
                }
            }
            DecodeEvent::Undelivered { number } | DecodeEvent::Quiet { number, .. } => {
                if let Some(sent) = self.sent.get_mut(number) {
                    sent.quiet = true;
                }
            }
            DecodeEvent::Fenced { fence, .. } => {
                let Some((source, generation)) = self.fences.remove(fence) else {
                    return;
                };
                let theirs = self
                    .sent
                    .values_mut()
                    .filter(|sent| sent.source == source && sent.generation == generation);
                theirs.for_each(|sent| sent.quiet = true);
            }
            DecodeEvent::Resolved {
                source,
                result: Ok(resolved),
            } => {
                let told = self.told.entry(source.clone()).or_default();
                told.push(*resolved);
            }
            _ => {}
        }
    }

    /// A fence is taken back once nothing that it was asked for is open.
    fn drop_fences(&mut self) {
        let sent = &self.sent;
        self.fences.retain(|_, (source, generation)| {
            sent.values().any(|sent| {
                let theirs = sent.source == *source && sent.generation == *generation;
                theirs && !sent.quiet && sent.load.is_some()
            })
        });
    }

    fn poll(&mut self) {
        while let Some(command) = self.machine.poll() {
            match command {
                DecodeCommand::Resolve { .. } => {}
                DecodeCommand::Pull {
                    source,
                    sender,
                    pull,
                } => self.pulled(source, sender, &pull),
                DecodeCommand::Cancel { cancel, .. } => {
                    let sent = &self.sent[&cancel.number];
                    assert!(!sent.quiet && !sent.stock, "a needless cancel");
                    assert_eq!(
                        (&sent.transfer, sent.generation),
                        (&cancel.transfer, cancel.to)
                    );
                    assert!(cancel.floor <= cancel.number);
                }
                DecodeCommand::Fence {
                    fence,
                    source,
                    generation,
                } => {
                    let open = self
                        .sent
                        .values()
                        .any(|sent| sent.source == source && sent.generation == generation);
                    assert!(open, "a fence for nothing");
                    self.fences.insert(fence, (source, generation));
                }
                DecodeCommand::Ended {
                    request,
                    transfer,
                    outcome,
                    tables,
                } => {
                    let loading = self.live.remove(&request).expect("it ends once");
                    assert_eq!((loading.transfer, loading.tables), (transfer, tables));
                    self.ended += 1;
                    self.check_end(&request, &outcome);
                }
            }
        }
        assert_eq!(self.machine.leases(), self.live.len());
        assert_eq!(self.machine.live(), self.live.len());
        let next = self.machine.next_deadline();
        assert!(next.is_none_or(|at| at > self.latest), "late by itself");
    }

    fn pulled(&mut self, source: Source, sender: u16, pull: &Pull) {
        let last = self.sent.last_key_value();
        assert!(last.is_none_or(|(last, _)| *last < pull.number));
        let told = self.told[&source].iter();
        let mut told = told
            .filter(|told| told.generation() == pull.to && sender < told.senders())
            .peekable();
        assert!(told.peek().is_some(), "nobody said that it is there");
        let stock = told.all(|told| told.dialect() == Dialect::Stock);
        let place = (source.clone(), pull.to);
        let fenced = self.fences.values().any(|fenced| *fenced == place);
        assert!(!fenced, "asked before the fence is up");
        let writing = self
            .sent
            .iter()
            .find(|(_, sent)| sent.source == source && sent.load.is_some() && !sent.quiet);
        let oldest = writing.map_or(pull.number, |(number, _)| *number);
        assert!(pull.floor <= oldest, "the floor is above an open pull");
        self.round += u64::from(sender == 0);
        let load = self
            .live
            .iter()
            .find(|(_, loading)| loading.transfer == pull.transfer)
            .map(|(request, _)| request.clone());
        let load = match &pull.want {
            Want::Release => None,
            Want::Cache { tables, .. } => {
                let request = load.expect("a live load");
                assert_eq!(&self.live[&request].tables, tables);
                Some(request)
            }
        };
        let sent = Sent {
            transfer: pull.transfer.clone(),
            source,
            sender,
            generation: pull.to,
            stock,
            load,
            round: self.round,
            quiet: false,
            delivered: false,
        };
        self.sent.insert(pull.number, sent);
    }

    fn check_end(&mut self, request: &RequestId, outcome: &DecodeOutcome) {
        let theirs = || {
            let sent = self.sent.values();
            sent.filter(|sent| sent.load.as_ref() == Some(request))
        };
        assert!(theirs().all(|sent| sent.quiet), "ended while written");
        if let DecodeOutcome::Loaded { computed, hand_off } = outcome {
            let told = hand_off.is_none_or(|told| told.computed() == *computed);
            assert!(told, "loaded something else");
            let last = theirs().next_back().expect("it was pulled");
            let mut round = theirs().filter(|sent| sent.round == last.round);
            assert!(round.all(|sent| sent.delivered), "loaded, not delivered");
        }
        // The name may come again.
        for sent in self.sent.values_mut() {
            if sent.load.as_ref() == Some(request) {
                sent.load = None;
            }
        }
    }

    fn finish(&mut self) {
        for _ in 0..10 {
            self.now = self.latest.after(Span::from_secs(1_000));
            self.take(DecodeEvent::Tick);
            let fences: Vec<FenceId> = self.fences.keys().copied().collect();
            for fence in fences {
                self.take(fenced(fence));
            }
        }
        assert!(self.live.is_empty() && self.fences.is_empty());
        assert_eq!((self.machine.records(), self.machine.leases()), (0, 0));
        assert_eq!(self.machine.next_deadline(), None);
        let metrics = self.machine.metrics();
        assert_eq!(metrics.started, self.ended);
        assert_eq!(metrics.started, metrics.loaded + metrics.failed);
    }
}

fn request(draw: &mut Draw<'_>) -> RequestId {
    RequestId::new(&format!("r{}", draw.below(5))).expect("a short name")
}

fn source(draw: &mut Draw<'_>) -> Source {
    let engine = match draw.below(8) {
        0..=4 => "p0",
        5..=6 => "p1",
        _ => "p2",
    };
    Source {
        engine: EngineId::new(engine).expect("a short name"),
        bootstrap: "host:1".into(),
    }
}

fn resolved(draw: &mut Draw<'_>) -> Result<Resolved, ResolveError> {
    if draw.once_in(4) {
        return Err(ResolveError::Malformed);
    }
    let dialect = if draw.once_in(3) {
        Dialect::Stock
    } else {
        Dialect::Own
    };
    let senders = 1 + draw.below(3) as u16;
    Resolved::new(draw.generation(), senders, dialect).ok_or(ResolveError::Incompatible)
}

fn fenced(fence: FenceId) -> DecodeEvent {
    DecodeEvent::Fenced {
        fence,
        proof: Quiescence::witnessed(),
    }
}
