//! What a network does to messages, and what strangers send.

use mooncake_pd_connector::{Consumer, PrefillLimits, Pull, PullNumber, Span, Want};

use crate::common::{peer, tables};
use crate::prefill_rank::{P, cancel, pull};

fn number(number: u64, floor: u64, pull: Pull) -> Pull {
    Pull {
        number: PullNumber::new(number),
        floor: PullNumber::new(floor),
        ..pull
    }
}

#[test]
fn a_pull_that_comes_twice_is_served_once() {
    let mut p = P::new();
    p.start("a").unwrap();
    // While it waits, while it is served, and when it is over.
    p.pull(pull(0, "a"));
    p.pull(pull(0, "a"));
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    assert_eq!(p.out().len(), 1);
    p.settle(0, Ok(()));
    p.out();
    p.pull(pull(0, "a"));
    assert_eq!(p.out(), ["answer d (generation 1) pull 0: pull 0 is over"]);
    assert_eq!(p.machine.metrics().repeated, 3);
    p.assert_idle();
}

#[test]
fn a_pull_is_served_once_also_when_its_transfer_id_is_used_again() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.settle(0, Ok(()));
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.out();
    p.pull(pull(0, "a"));
    assert_eq!(p.out(), ["answer d (generation 1) pull 0: pull 0 is over"]);
}

#[test]
fn a_cancel_that_overtakes_its_pull_is_answered_and_the_pull_refused() {
    // At each stage of the request: not named, computing, computed.
    for stage in 0..3 {
        let mut p = P::new();
        if stage > 0 {
            p.start("a").unwrap();
        }
        if stage > 1 {
            p.finish("a").unwrap();
        }
        p.cancel(cancel(&pull(0, "a")));
        let mut out = p.out();
        assert_eq!(
            out.remove(0),
            "answer d (generation 1) pull 0: the pull was cancelled"
        );
        p.pull(pull(0, "a"));
        assert_eq!(p.out(), ["answer d (generation 1) pull 0: pull 0 is over"]);
        if stage < 1 {
            p.start("a").unwrap();
        }
        if stage < 2 {
            assert!(out.is_empty());
            p.finish("a").unwrap();
            out = p.out();
        }
        assert_eq!(out, ["a ended: cancelled by decode"], "stage {stage}");
        p.assert_idle();
    }
}

#[test]
fn a_waiting_pull_is_cancelled_at_once() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.pull(pull(0, "a"));
    p.cancel(cancel(&pull(0, "a")));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: the pull was cancelled"]
    );
    p.cancel(cancel(&pull(0, "a")));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: the pull was cancelled"]
    );
    p.finish("a").unwrap();
    assert_eq!(p.out(), ["a ended: cancelled by decode"]);
    p.assert_idle();
}

#[test]
fn a_cancel_that_names_another_consumer_or_transfer_still_is_of_its_pull() {
    let mut p = P::new();
    p.start("a").unwrap();
    let mine = Pull {
        consumer: Consumer::new(0, 2).unwrap(),
        ..pull(0, "a")
    };
    p.pull(mine.clone());
    let mut wrong = cancel(&pull(0, "b"));
    wrong.consumer = Consumer::new(1, 2).unwrap();
    p.cancel(wrong);
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: the pull was cancelled"]
    );
    // It was told that nothing is under way, so nothing may start.
    p.finish("a").unwrap();
    assert_eq!(p.out().len(), 0);
}

#[test]
fn numbers_below_the_floor_are_over() {
    let mut p = P::new();
    for name in ["a", "b"] {
        p.start(name).unwrap();
        p.finish(name).unwrap();
    }
    p.pull(number(5, 5, pull(5, "a")));
    p.out();
    p.pull(number(4, 4, pull(4, "b")));
    assert_eq!(p.out(), ["answer d (generation 1) pull 4: pull 4 is over"]);
    // A floor above its own number can't be meant.
    p.pull(number(6, 1_000, pull(6, "b")));
    assert_eq!(p.out(), ["transfer 1 of b to d (generation 1) for pull 6"]);
}

#[test]
fn c44_a_pull_for_an_unknown_id_waits_and_is_answered_once() {
    let mut p = P::new();
    p.pull(pull(0, "a"));
    p.pass(Span::from_secs(29));
    assert_eq!(p.out().len(), 0);
    p.pass(Span::from_secs(1));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: unknown transfer"]
    );
    // The engine may name it later, for somebody else.
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(1, "a"));
    assert_eq!(p.out(), ["transfer 0 of a to d (generation 1) for pull 1"]);
    p.settle(0, Ok(()));
    p.out();
    p.assert_idle();
}

#[test]
fn c44_unknown_ids_by_the_ten_thousand_stay_within_their_limits() {
    let limits = PrefillLimits {
        unknown: 100,
        ended: 50,
        peers: 20,
        ..PrefillLimits::default()
    };
    let mut p = P::with(limits);
    for index in 0..10_000 {
        let from = peer(&format!("d{}", index % 40), 1);
        let mut stray = pull(index, &format!("x{index}"));
        stray.from = from;
        if index % 3 == 0 {
            p.cancel(cancel(&stray));
        } else {
            p.pull(stray);
        }
        // A record and a timer each, a peer and a timer each.
        assert!(p.machine.records() <= 2 * 100 + 2 * 20);
    }
    let answers = p.out();
    assert!(answers.len() <= 10_000);
    let busy = "too many pulls or transfers";
    assert!(answers.iter().filter(|text| text.contains(busy)).count() > 9_000 / 2);
    p.pass(Span::from_secs(30));
    assert!(p.machine.records() <= 2 * 20);
    // Ended ones are remembered, some.
    for index in 0..1_000 {
        let name = format!("e{index}");
        p.start(&name).unwrap();
        p.abort(&name).unwrap();
        assert!(p.machine.records() <= 2 * 20 + 50 + 1);
    }
    p.out();
    p.assert_idle();
}

#[test]
fn c44_a_request_that_is_named_or_forgotten_makes_room_for_unknown_ones() {
    let mut p = P::with(PrefillLimits {
        unknown: 1,
        ..PrefillLimits::default()
    });
    p.pull(pull(0, "a"));
    p.pull(pull(1, "b"));
    let busy = "answer d (generation 1) pull 1: too many pulls or transfers";
    assert_eq!(p.out(), [busy]);
    p.start("a").unwrap();
    p.pull(pull(2, "b"));
    assert_eq!(p.out().len(), 0);
    p.pass(Span::from_secs(30));
    p.out();
    p.pull(pull(3, "c"));
    assert_eq!(p.out().len(), 0);
}

#[test]
fn an_engine_over_its_limit_is_told_and_the_others_go_on() {
    let limits = PrefillLimits {
        live: 2,
        ..PrefillLimits::default()
    };
    let mut p = P::with(limits);
    p.start("a").unwrap();
    p.start("b").unwrap();
    let error = p.start("c").unwrap_err();
    assert_eq!(error.to_string(), "2 requests are live, the limit is 2");
    p.abort("a").unwrap();
    p.start("c").unwrap();
}

#[test]
fn a_refused_stranger_is_told_nothing_that_a_repeated_pull_would_belie() {
    let limits = PrefillLimits {
        peers: 1,
        peer_idle: Span::from_secs(10),
        ..PrefillLimits::default()
    };
    let mut p = P::with(limits);
    for name in ["a", "b"] {
        p.start(name).unwrap();
        p.finish(name).unwrap();
    }
    p.pull(pull(0, "a"));
    p.out();
    p.settle(0, Ok(()));
    p.out();
    let stranger = Pull {
        from: peer("e", 1),
        ..pull(0, "b")
    };
    p.pull(stranger.clone());
    assert_eq!(
        p.out(),
        ["answer e (generation 1) pull 0: too many pulls or transfers (not quiet)"]
    );
    // Its cancel can't be remembered either, so it is not answered.
    p.cancel(cancel(&stranger));
    assert_eq!(p.out().len(), 0);
    // The network repeats the pull when there is room: it is served.
    p.pass(Span::from_secs(10));
    p.pull(stranger);
    assert_eq!(p.out(), ["transfer 1 of b to e (generation 1) for pull 0"]);
}

#[test]
fn a_peer_with_too_many_pulls_is_refused_for_good() {
    let limits = PrefillLimits {
        pulls_per_peer: 2,
        ..PrefillLimits::default()
    };
    let mut p = P::with(limits);
    for name in ["a", "b", "c"] {
        p.start(name).unwrap();
        p.finish(name).unwrap();
    }
    p.pull(pull(0, "a"));
    p.pull(pull(1, "b"));
    p.out();
    p.pull(pull(2, "c"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 2: too many pulls or transfers"]
    );
    p.settle(0, Ok(()));
    p.out();
    // The answer said that nothing will come of it.
    p.pull(pull(2, "c"));
    assert_eq!(p.out(), ["answer d (generation 1) pull 2: pull 2 is over"]);
    p.pull(pull(3, "c"));
    assert_eq!(p.out(), ["transfer 2 of c to d (generation 1) for pull 3"]);
}

#[test]
fn one_pull_that_waits_long_does_not_stop_its_peers_later_ones() {
    let mut p = P::with(PrefillLimits {
        pulls_per_peer: 2,
        ..PrefillLimits::default()
    });
    p.start("slow").unwrap();
    p.pull(pull(0, "slow"));
    // Its number is the floor of all others.
    for index in 1..70_000 {
        p.start("a").unwrap();
        p.finish("a").unwrap();
        p.pull(pull(index, "a"));
        p.out();
        p.settle(p.attempts.len() - 1, Ok(()));
        assert_eq!(p.out().last().unwrap(), "a ended: delivered", "{index}");
    }
    // It is under way all the time.
    p.pull(pull(0, "slow"));
    assert_eq!(p.out().len(), 0);
    p.finish("slow").unwrap();
    assert_eq!(
        p.out(),
        ["transfer 69999 of slow to d (generation 1) for pull 0"]
    );
    p.settle(p.attempts.len() - 1, Ok(()));
    p.out();
    p.pull(pull(0, "slow"));
    assert_eq!(p.out(), ["answer d (generation 1) pull 0: pull 0 is over"]);
}

#[test]
fn c64_block_tables_of_waiting_pulls_are_bounded_in_all() {
    let mut p = P::with(PrefillLimits {
        waiting_entries: 24,
        ..PrefillLimits::default()
    });
    let big = |number, name: &str| {
        let mut pull = pull(number, name);
        pull.want = Want::Cache {
            tables: tables(&[&[1, 2, 3], &[4]]),
            expects: None,
        };
        pull
    };
    p.pull(big(0, "a"));
    p.pull(big(1, "b"));
    assert_eq!(p.out().len(), 0);
    p.pull(big(2, "c"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 2: too many pulls or transfers"]
    );
    // Served at once, it does not wait.
    p.start("d").unwrap();
    p.finish("d").unwrap();
    p.pull(big(3, "d"));
    assert_eq!(p.out().len(), 1);
    // What waits no more makes room.
    p.cancel(cancel(&big(0, "a")));
    p.pull(big(4, "e"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: the pull was cancelled"]
    );
    p.pull(big(5, "f"));
    assert_eq!(p.out().len(), 1);
    p.pass(Span::from_secs(30));
    p.out();
    p.pull(big(6, "g"));
    p.pull(big(7, "h"));
    assert_eq!(p.out().len(), 0);
}
