//! Calls in any order, also in impossible ones: one result for each request, when and
//! only when it has ended everywhere.

use std::collections::{BTreeMap, BTreeSet};

use mooncake_pd_connector::{
    Blocks, Computed, DecodeEnd, DecodeError, DecodeFinish, DecodeOrder, DecodeOutcome, Failure,
    Matched, PrefillEnd, PrefillError, PrefillFinish, PrefillOrder, PrefillOutcome,
};
use quickcheck::{Arbitrary, Gen, quickcheck};

use super::{
    computed, decode_host, ids, loaded, prefill_host, request, source, tables, tokens, transfer,
};

const RANKS: u16 = 2;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A call, its subject, and how it is varied.
#[derive(Clone, Copy, Debug)]
struct Call {
    what: u8,
    name: &'static str,
    /// Mostly the same name.
    transfer: &'static str,
    rank: u16,
    vary: u8,
}

impl Arbitrary for Call {
    fn arbitrary(g: &mut Gen) -> Self {
        let name = *g.choose(&NAMES).unwrap();
        let other = u8::arbitrary(g).is_multiple_of(8);
        Self {
            what: u8::arbitrary(g) % 8,
            name,
            transfer: if other {
                *g.choose(&NAMES).unwrap()
            } else {
                name
            },
            // One rank that is not there.
            rank: u16::from(u8::arbitrary(g)) % (RANKS + 1),
            vary: u8::arbitrary(g),
        }
    }
}

/// What an onlooker knows of a request.
#[derive(Debug, Default)]
struct Seen {
    transfer: &'static str,
    ended: BTreeSet<u16>,
    failed: bool,
    finished: bool,
    blocks: Option<Blocks>,
    loads: bool,
}

impl Seen {
    /// A rank ends it; false where that is nobody's business.
    fn end(&mut self, call: Call, failed: bool) {
        if call.transfer == self.transfer && call.rank < RANKS && self.ended.insert(call.rank) {
            self.failed |= failed;
        }
    }

    fn everywhere(&self) -> bool {
        self.ended.len() == usize::from(RANKS)
    }
}

fn prefill_outcome(call: Call) -> (PrefillOutcome, bool) {
    match call.vary % 3 {
        0 => (PrefillOutcome::Delivered, false),
        1 => (PrefillOutcome::Released, false),
        _ => (PrefillOutcome::Failed(Failure::Undelivered), true),
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each call")]
fn prefill(calls: &[Call]) {
    let mut host = prefill_host(RANKS);
    let mut live: BTreeMap<&str, Seen> = BTreeMap::new();
    // In the end all is finished and ended.
    let last = NAMES.into_iter().flat_map(|name| {
        let call = |what, rank| Call {
            what,
            name,
            transfer: name,
            rank,
            vary: 0,
        };
        [call(2, 0), call(3, 0), call(3, 1), call(7, 0)]
    });
    let closing = [7; NAMES.len()].map(|what| Call {
        what,
        name: "a",
        transfer: "a",
        rank: 0,
        vary: 0,
    });
    for mut call in calls.iter().copied().chain(last).chain(closing) {
        if let (3, Some(seen), 0) = (call.what, live.get(call.name), call.vary) {
            call.transfer = seen.transfer;
        }
        let (name, id) = (request(call.name), transfer(call.transfer));
        match call.what {
            0 => {
                let taken = live.values().any(|seen| seen.transfer == call.transfer);
                let answer = host.new_request(&name, &id, ids(10), false);
                match live.get(call.name) {
                    Some(seen) => assert_eq!(answer.is_ok(), seen.transfer == call.transfer),
                    None => assert_eq!(answer.is_ok(), !taken && live.len() < 3),
                }
                if answer.is_ok() {
                    live.entry(call.name).or_default().transfer = call.transfer;
                }
            }
            1 => {
                let wrong = call.vary % 4 == 0;
                let empty = call.vary % 4 == 1;
                let done = Computed {
                    tables: if empty {
                        tables(&[0], &[0])
                    } else {
                        tables(&[1], &[2])
                    },
                    ..computed(if wrong { 10 } else { 9 })
                };
                let answer = host.finished(&name, PrefillFinish::Length(done));
                let seen = live.get_mut(call.name).filter(|seen| !seen.finished);
                assert_eq!(answer.is_ok(), seen.is_some() && !wrong);
                if let (Ok(blocks), Some(seen)) = (answer, seen) {
                    assert!(blocks == Blocks::Free || !empty && !seen.everywhere());
                    (seen.finished, seen.blocks) = (true, Some(blocks));
                }
            }
            2 => {
                let answer = host.finished(&name, PrefillFinish::Abort);
                let seen = live.get_mut(call.name);
                assert!(answer.is_err() || seen.is_some());
                if let (Ok(blocks), Some(seen)) = (answer, seen) {
                    // Blocks that are held stay so.
                    let held = seen.blocks.unwrap_or(Blocks::Free);
                    assert_eq!(blocks, held);
                    seen.failed |= !(seen.finished && seen.everywhere());
                    (seen.finished, seen.blocks) = (true, Some(blocks));
                }
            }
            3 => {
                let (outcome, failed) = prefill_outcome(call);
                host.ended(call.rank, &name, &id, outcome);
                if let Some(seen) = live.get_mut(call.name) {
                    seen.end(call, failed);
                }
            }
            4 => {
                let order = PrefillOrder::Started {
                    request: name,
                    transfer: id,
                };
                let error = PrefillError::Full { live: 0, limit: 0 };
                host.rejected(call.rank, &order, error);
                if let Some(seen) = live.get_mut(call.name) {
                    seen.end(call, true);
                }
            }
            5 => {
                let _ = host.matched_tokens(&name, tokens(u32::from(call.vary) % 12));
                assert_eq!(
                    host.is_over(&name),
                    live.get(call.name).is_some_and(Seen::everywhere)
                );
            }
            6 => drop(host.step()),
            _ => {
                let Some(result) = host.poll() else {
                    let due = live.values().any(|seen| seen.finished && seen.everywhere());
                    assert!(!due, "{live:?}");
                    continue;
                };
                let seen = live.remove(result.request.as_str()).unwrap();
                assert!(seen.finished && seen.everywhere(), "{seen:?}");
                assert_eq!(result.transfer.as_str(), seen.transfer);
                assert_eq!(result.returns_blocks, seen.blocks == Some(Blocks::Hold));
                assert_eq!(matches!(result.end, PrefillEnd::Failed(_)), seen.failed);
            }
        }
        assert_eq!(host.live(), live.len());
    }
    assert_eq!(host.live(), 0);
}

#[expect(clippy::too_many_lines, reason = "one arm for each call")]
fn decode(calls: &[Call]) {
    let mut host = decode_host(RANKS);
    let mut live: BTreeMap<&str, Seen> = BTreeMap::new();
    let mut releases: usize = 0;
    let mut expected = 0;
    let last = NAMES.into_iter().flat_map(|name| {
        let call = |what, rank| Call {
            what,
            name,
            transfer: name,
            rank,
            vary: 0,
        };
        [
            call(3, 0),
            call(4, 0),
            call(4, 1),
            call(7, 0),
            call(7, 0),
            call(7, 0),
            call(3, 0),
        ]
    });
    for mut call in calls.iter().copied().chain(last) {
        if let (4, Some(seen), 0) = (call.what, live.get(call.name), call.vary) {
            call.transfer = seen.transfer;
        }
        let (name, id) = (request(call.name), transfer(call.transfer));
        match call.what {
            0 => {
                let taken = live.values().any(|seen| seen.transfer == call.transfer);
                let answer = host.new_request(&name, &id, source(), ids(10), false);
                match live.get(call.name) {
                    Some(seen) => assert_eq!(answer.is_ok(), seen.transfer == call.transfer),
                    None => assert_eq!(answer.is_ok(), !taken && live.len() < 3),
                }
                if answer.is_ok() {
                    live.entry(call.name).or_default().transfer = call.transfer;
                }
            }
            1 => {
                let answer = host.matched_tokens(&name, tokens(u32::from(call.vary) % 12));
                let seen = live.get(call.name);
                assert!(answer.is_err() || seen.is_some_and(|seen| !seen.loads));
            }
            2 => {
                let load = tokens([0, 9, 4][usize::from(call.vary % 3)]);
                let local = host.matched_tokens(&name, tokens(0));
                let answer = host.blocks_allocated(&name, tables(&[1], &[2]), load);
                let Some(seen) = live.get_mut(call.name) else {
                    assert!(answer.is_err());
                    continue;
                };
                let Ok(matched) = local else {
                    assert!(answer.is_err() && seen.loads);
                    continue;
                };
                assert_eq!(answer.is_ok(), load.is_zero() || load == matched.load());
                if answer.is_ok() && matched.is_asynchronous() {
                    seen.loads = !load.is_zero();
                    expected += usize::from(load.is_zero());
                }
            }
            3 => {
                let waits = live.get(call.name).is_some_and(|seen| !seen.loads)
                    && host
                        .matched_tokens(&name, tokens(0))
                        .is_ok_and(Matched::is_asynchronous);
                let answer = host.finished(&name, DecodeFinish::Abort);
                match (live.get_mut(call.name), answer) {
                    (Some(seen), Ok(Blocks::Hold)) => {
                        assert!(seen.loads && !seen.finished);
                        (seen.finished, seen.failed) = (true, true);
                    }
                    (Some(seen), Ok(Blocks::Free)) => {
                        assert!(!seen.loads);
                        expected += usize::from(waits);
                        live.remove(call.name);
                    }
                    (Some(seen), Err(_)) => assert!(seen.finished),
                    (None, answer) => assert!(answer.is_err()),
                }
            }
            4 => {
                let (outcome, failed) = match call.vary % 3 {
                    0 => (loaded(10, 9), false),
                    1 => (loaded(10, 8), true),
                    _ => (DecodeOutcome::Failed(Failure::Undelivered), true),
                };
                host.ended(call.rank, &name, &id, outcome);
                if let Some(seen) = live.get_mut(call.name).filter(|seen| seen.loads) {
                    seen.end(call, failed);
                }
            }
            5 => {
                let orders = host.step();
                let count = |order: &&DecodeOrder| matches!(order, DecodeOrder::Release { .. });
                releases += orders.iter().filter(count).count();
                // One of the loads is refused by a rank.
                for order in orders
                    .iter()
                    .filter(|order| matches!(order, DecodeOrder::Load(_)))
                {
                    let subject = live
                        .iter()
                        .find(|(name, _)| **name == order.request().as_str());
                    let (Some((&name, seen)), true) = (subject, call.vary % 3 == 0) else {
                        continue;
                    };
                    let open = seen.loads
                        && seen.transfer == order.transfer().as_str()
                        && call.rank < RANKS
                        && !seen.ended.contains(&call.rank);
                    let error = DecodeError::RequestTaken {
                        request: order.request().clone(),
                    };
                    let follow_up = host.rejected(call.rank, order, error);
                    assert_eq!(follow_up.is_some(), open);
                    let call = Call {
                        transfer: seen.transfer,
                        ..call
                    };
                    if open {
                        live.get_mut(name).unwrap().end(call, true);
                    }
                }
            }
            6 => {
                let stopped = host.finished(&name, DecodeFinish::Stop);
                if stopped.is_ok() {
                    let seen = live.remove(call.name).unwrap();
                    assert!(!seen.loads && stopped == Ok(Blocks::Free));
                }
            }
            _ => {
                let Some(result) = host.poll() else {
                    assert!(
                        !live.values().any(|seen| seen.loads && seen.everywhere()),
                        "{live:?}"
                    );
                    continue;
                };
                let name = result.request.as_str();
                let seen = live.get_mut(name).unwrap();
                assert!(seen.loads && seen.everywhere(), "{seen:?}");
                assert_eq!(result.returns_blocks, seen.finished);
                assert_eq!(matches!(result.end, DecodeEnd::Failed(_)), seen.failed);
                if seen.finished {
                    live.remove(name);
                } else {
                    let transfer = seen.transfer;
                    *seen = Seen {
                        transfer,
                        ..Seen::default()
                    };
                }
            }
        }
        assert_eq!(host.live(), live.len());
    }
    let orders = host.step();
    let count = |order: &&DecodeOrder| matches!(order, DecodeOrder::Release { .. });
    releases += orders.iter().filter(count).count();
    // Prefill is told to let go once for each request that loaded nothing.
    assert_eq!((host.live(), releases), (0, expected));
}

quickcheck! {
    fn each_prefill_request_has_one_result(calls: Vec<Call>) -> bool {
        prefill(&calls);
        true
    }

    fn each_load_has_one_result(calls: Vec<Call>) -> bool {
        decode(&calls);
        true
    }
}
