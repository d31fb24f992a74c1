//! A prefill machine alone.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::{HashMap, HashSet};

use mooncake_pd_layout::testing::arbitrary::Unstructured;
use mooncake_pd_plan::RequestError;

use super::{Draw, MAX_EVENTS, layout};
use crate::{
    Answer, AttemptId, BlockTables, Cancel, EngineId, Generation, Peer, Prefill, PrefillCommand,
    PrefillError, PrefillEvent, PrefillLimits, PrefillOutcome, Pull, PullNumber, Quiescence,
    Refusal, RequestId, Span, Time, TransferFault, TransferId, Verdict, Want,
};

fn limits() -> PrefillLimits {
    PrefillLimits {
        live: 3,
        unknown: 3,
        unknown_wait: Span::from_secs(3),
        ready_wait: Span::from_secs(5),
        compute: Span::from_secs(20),
        hold: Span::from_secs(7),
        transfer: Span::from_secs(4),
        waiting_entries: 40,
        ended: 2,
        ended_memory: Span::from_secs(6),
        peers: 2,
        peer_idle: Span::from_secs(3_600),
        pulls_per_peer: 3,
    }
}

type Name = (Peer, PullNumber);

/// A transfer that the machine asked for.
struct Flight {
    name: Name,
    drained: bool,
}

/// What the machine said and was told, and what follows from it.
struct Seen {
    machine: Prefill,
    now: Time,
    latest: Time,
    /// Requests that are not ended, and the blocks they reported.
    live: HashMap<TransferId, (RequestId, Option<Arc<BlockTables>>)>,
    named: u64,
    flights: HashMap<AttemptId, Flight>,
    /// Attempts of which the last event said that they went well.
    well: HashSet<Name>,
    settled: Vec<AttemptId>,
    /// Pulls that were served, that were told that all is quiet, that came, that
    /// were answered, and that were answered for good.
    served: HashSet<Name>,
    quiet: HashSet<Name>,
    asked: HashSet<Name>,
    answered: HashSet<Name>,
    closed: HashSet<Name>,
    newest: HashMap<EngineId, Generation>,
}

/// For any bytes: no panic; an error changes nothing; each request ends once, with
/// its blocks; a lease for each that reported blocks; each pull is served once at
/// most, answered, and told that all is quiet only when nothing of it is under way
/// or will be; nothing is left at last.
pub fn check_prefill_events(bytes: &[u8]) {
    let mut draw = Draw(Unstructured::new(bytes));
    let me = Peer {
        engine: EngineId::new("p").expect("a short name"),
        generation: Generation::new(1),
    };
    let mut seen = Seen {
        machine: Prefill::new(me, layout(), limits(), 7),
        now: Time::from_micros(5_000_000),
        latest: Time::ZERO,
        live: HashMap::new(),
        named: 0,
        flights: HashMap::new(),
        well: HashSet::new(),
        settled: Vec::new(),
        served: HashSet::new(),
        quiet: HashSet::new(),
        asked: HashSet::new(),
        answered: HashSet::new(),
        closed: HashSet::new(),
        newest: HashMap::new(),
    };
    for _ in 0..MAX_EVENTS {
        if draw.is_empty() {
            break;
        }
        draw.step(&mut seen.now);
        let event = seen.draw(&mut draw);
        seen.take(event);
    }
    seen.finish(&mut draw);
}

impl Seen {
    fn draw(&mut self, draw: &mut Draw<'_>) -> PrefillEvent {
        match draw.below(16) {
            0..=2 => {
                self.named += 1;
                PrefillEvent::Started {
                    request: RequestId::new(&format!("r{}", self.named)).expect("a short name"),
                    transfer: draw.transfer(),
                }
            }
            3..=4 => {
                let (request, transfer) = self.of(draw);
                PrefillEvent::Finished {
                    request,
                    transfer,
                    hand_off: draw.hand_off(),
                    tables: draw.tables(),
                }
            }
            5 => {
                let (request, transfer) = self.of(draw);
                PrefillEvent::Aborted { request, transfer }
            }
            6..=9 => {
                let number = draw.number();
                PrefillEvent::Pulled(Pull {
                    from: draw.peer('d', 3),
                    to: to(draw),
                    number,
                    floor: floor(draw, number),
                    transfer: draw.transfer(),
                    consumer: draw.consumer(),
                    want: if draw.once_in(6) {
                        Want::Release
                    } else {
                        Want::Cache {
                            tables: draw.tables(),
                            expects: (!draw.once_in(4)).then(|| draw.tokens()),
                        }
                    },
                })
            }
            10..=11 => {
                let number = draw.number();
                PrefillEvent::Cancelled(Cancel {
                    from: draw.peer('d', 3),
                    to: to(draw),
                    number,
                    floor: floor(draw, number),
                    transfer: draw.transfer(),
                    consumer: draw.consumer(),
                })
            }
            12..=14 => match self.attempt(draw) {
                None => PrefillEvent::Tick,
                Some(attempt) if draw.once_in(6) => PrefillEvent::Refused {
                    attempt,
                    error: Arc::new(RequestError::Foreign),
                },
                Some(attempt) => settled(attempt, draw),
            },
            _ => PrefillEvent::Tick,
        }
    }

    /// A transfer and, mostly, the request that has it.
    fn of(&self, draw: &mut Draw<'_>) -> (RequestId, TransferId) {
        let transfer = draw.transfer();
        let owner = self.live.get(&transfer).map(|(request, _)| request.clone());
        let other = || RequestId::new("another").expect("a short name");
        match owner {
            Some(owner) if !draw.once_in(8) => (owner, transfer),
            _ => (other(), transfer),
        }
    }

    /// Mostly one that is under way.
    fn attempt(&self, draw: &mut Draw<'_>) -> Option<AttemptId> {
        let mut under_way: Vec<AttemptId> = self.flights.keys().copied().collect();
        under_way.sort_unstable();
        let from = if under_way.is_empty() || draw.once_in(8) {
            &self.settled
        } else {
            &under_way
        };
        if from.is_empty() {
            return None;
        }
        from.get(draw.below(from.len() as u64) as usize).copied()
    }

    fn take(&mut self, event: PrefillEvent) {
        // What time alone does is not the event's doing.
        self.machine
            .handle(self.now, PrefillEvent::Tick)
            .expect("a tick is no mistake");
        self.poll();
        let state = |machine: &Prefill| (machine.live(), machine.leases(), machine.records());
        let before = state(&self.machine);
        self.note(&event);
        let started = match &event {
            PrefillEvent::Started { request, transfer } => {
                Some((request.clone(), transfer.clone()))
            }
            _ => None,
        };
        let finished = match &event {
            PrefillEvent::Finished {
                transfer, tables, ..
            } => Some((transfer.clone(), Arc::clone(tables))),
            _ => None,
        };
        let result = self.machine.handle(self.now, event);
        if let Err(error) = result {
            assert_eq!(state(&self.machine), before, "{error}");
            assert!(self.machine.poll().is_none(), "{error}");
            if let PrefillError::TransferTaken { transfer, owner } = &error {
                assert_eq!(&self.live[transfer].0, owner);
            }
            return;
        }
        if let Some((request, transfer)) = started {
            let before = self.live.insert(transfer, (request, None));
            assert!(before.is_none(), "one transfer of two live requests");
        }
        if let Some((transfer, tables)) = finished {
            let (_, blocks) = self.live.get_mut(&transfer).expect("a live request");
            assert!(blocks.replace(tables).is_none(), "computed twice");
        }
        self.poll();
    }

    /// Notes what an event says, before the machine reacts to it.
    fn note(&mut self, event: &PrefillEvent) {
        self.latest = self.latest.max(self.now);
        match event {
            PrefillEvent::Pulled(pull) => {
                self.see(&pull.from, pull.to);
                self.asked.insert((pull.from.clone(), pull.number));
            }
            PrefillEvent::Cancelled(cancel) => self.see(&cancel.from, cancel.to),
            PrefillEvent::Settled {
                attempt, result, ..
            } => {
                if let Some(flight) = self.flights.remove(attempt) {
                    self.settled.push(*attempt);
                    if result.is_ok() {
                        self.well.insert(flight.name);
                    }
                }
            }
            PrefillEvent::Refused { attempt, .. } if self.flights.remove(attempt).is_some() => {
                self.settled.push(*attempt);
            }
            _ => {}
        }
    }

    fn see(&mut self, from: &Peer, to: Generation) {
        if to == self.machine.me().generation {
            let newest = self.newest.entry(from.engine.clone()).or_default();
            *newest = from.generation.max(*newest);
        }
    }

    fn poll(&mut self) {
        while let Some(command) = self.machine.poll() {
            match command {
                PrefillCommand::Transfer {
                    attempt,
                    to,
                    number,
                    transfer,
                    source,
                    ..
                } => {
                    let name = (to, number);
                    let (_, blocks) = &self.live[&transfer];
                    assert_eq!(blocks.as_ref(), Some(&source));
                    assert!(!self.quiet.contains(&name), "served after a quiet answer");
                    assert!(self.served.insert(name.clone()), "served twice");
                    let drained = false;
                    let flight = Flight { name, drained };
                    assert!(self.flights.insert(attempt, flight).is_none());
                }
                PrefillCommand::Drain { attempt } => {
                    let flight = self.flights.get_mut(&attempt).expect("it is under way");
                    assert!(!flight.drained, "drained twice");
                    flight.drained = true;
                }
                PrefillCommand::Answer(answer) => self.answered(answer),
                PrefillCommand::Ended {
                    request,
                    transfer,
                    outcome,
                    tables,
                } => {
                    let (owner, blocks) = self.live.remove(&transfer).expect("it ends once");
                    assert_eq!((owner, blocks), (request, tables.clone()));
                    if !matches!(outcome, PrefillOutcome::Failed(_)) {
                        assert!(tables.is_some(), "delivered without blocks");
                    }
                }
            }
        }
        let reported = self.live.values().filter(|(_, blocks)| blocks.is_some());
        assert_eq!(self.machine.leases(), reported.count());
        assert_eq!(self.machine.live(), self.live.len());
        let next = self.machine.next_deadline();
        assert!(next.is_none_or(|at| at > self.latest), "late by itself");
    }

    fn answered(&mut self, answer: Answer) {
        let name = (answer.to, answer.number);
        let repeated = matches!(
            answer.verdict,
            Verdict::Refused(Refusal::Over(_) | Refusal::Cancelled)
        );
        if matches!(answer.verdict, Verdict::Delivered { .. }) {
            assert!(self.well.contains(&name), "delivered what was not");
        }
        if answer.quiescent {
            let under_way = self.flights.values().any(|flight| flight.name == name);
            assert!(!under_way, "quiet while under way");
            self.quiet.insert(name.clone());
            if !repeated {
                assert!(self.closed.insert(name.clone()), "answered twice");
            }
        }
        self.answered.insert(name);
    }

    fn finish(&mut self, draw: &mut Draw<'_>) {
        self.now = self.latest;
        let flights: Vec<AttemptId> = self.flights.keys().copied().collect();
        for attempt in flights {
            self.take(settled(attempt, draw));
        }
        // Ends that time brings are remembered for some more time.
        for _ in 0..2 {
            self.now = self.now.after(Span::from_secs(10_000));
            self.take(PrefillEvent::Tick);
        }
        assert!(self.flights.is_empty() && self.live.is_empty());
        assert_eq!((self.machine.records(), self.machine.leases()), (0, 0));
        assert_eq!(self.machine.next_deadline(), None);
        for (peer, number) in &self.asked {
            // Who was started again waits for nothing.
            let newest = self.newest.get(&peer.engine);
            let superseded = newest.is_some_and(|newest| *newest > peer.generation);
            let answered = self.answered.contains(&(peer.clone(), *number));
            assert!(answered || superseded, "no answer to {peer}, {number:?}");
        }
        let metrics = self.machine.metrics();
        assert_eq!(metrics.started, metrics.delivered + metrics.failed);
    }
}

/// Mostly this incarnation.
fn to(draw: &mut Draw<'_>) -> Generation {
    if draw.once_in(16) {
        draw.generation()
    } else {
        Generation::new(1)
    }
}

fn floor(draw: &mut Draw<'_>, number: PullNumber) -> PullNumber {
    match draw.below(16) {
        0..=11 => PullNumber::new(0),
        12..=13 => number,
        _ => draw.number(),
    }
}

fn settled(attempt: AttemptId, draw: &mut Draw<'_>) -> PrefillEvent {
    let result = if draw.once_in(4) {
        Err(TransferFault { code: -1 })
    } else {
        Ok(())
    };
    PrefillEvent::Settled {
        attempt,
        result,
        proof: Quiescence::witnessed(),
    }
}
