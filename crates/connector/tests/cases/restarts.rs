//! Either side is started again.

use mooncake_pd_connector::{
    DecodeCommand, DecodeOutcome, Dialect, Generation, HandOff, HandOffPoint, Pull, Refusal, Span,
    TokenCount, Verdict,
};

use crate::common::peer;
use crate::decode_rank::{D, delivered, moved};
use crate::prefill_rank::{COMPUTED, P, cancel, pull};

/// Decode `d`, started again.
fn second(pull: Pull) -> Pull {
    Pull {
        from: peer("d", 2),
        ..pull
    }
}

#[test]
fn c48_a_pull_for_an_earlier_incarnation_of_prefill_is_refused_at_once() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    let old = Pull {
        to: Generation::new(0),
        ..pull(0, "a")
    };
    let text = "answer d (generation 1) pull 0: generation 0 was asked, this is 1 (not quiet)";
    p.pull(old.clone());
    assert_eq!(p.out(), [text]);
    p.cancel(cancel(&old));
    assert_eq!(p.out(), [text]);
    // Nothing of it is remembered: the same number may come for this incarnation.
    p.pull(pull(0, "a"));
    assert_eq!(p.out(), ["transfer 0 of a to d (generation 1) for pull 0"]);
}

#[test]
fn c48_what_a_restarted_decode_rank_asked_for_is_given_up() {
    let mut p = P::new();
    for name in ["flying", "waiting", "new"] {
        p.start(name).unwrap();
    }
    p.finish("flying").unwrap();
    p.finish("new").unwrap();
    p.pull(pull(0, "flying"));
    p.pull(pull(1, "waiting"));
    p.out();
    p.pull(second(pull(0, "new")));
    assert_eq!(
        p.out(),
        [
            "drain 0",
            "transfer 1 of new to d (generation 2) for pull 0"
        ]
    );
    p.settle(0, Err(1));
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: the asking engine was started again since",
            "flying ended: the peer's generation 1 is gone"
        ]
    );
    p.finish("waiting").unwrap();
    assert_eq!(p.out(), ["waiting ended: the peer's generation 1 is gone"]);
    // The new one's pull of the same number is not touched by any of that.
    p.settle(1, Ok(()));
    assert_eq!(
        p.out(),
        [
            "answer d (generation 2) pull 0: delivered",
            "new ended: delivered"
        ]
    );
    p.assert_idle();
}

#[test]
fn an_earlier_incarnation_is_never_told_that_all_is_quiet() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.pull(second(pull(0, "b")));
    p.out();
    // Its transfer is still under way.
    let text = "the asking engine was started again since (not quiet)";
    p.pull(pull(0, "a"));
    assert_eq!(p.out(), [format!("answer d (generation 1) pull 0: {text}")]);
    p.cancel(cancel(&pull(0, "a")));
    assert_eq!(p.out(), [format!("answer d (generation 1) pull 0: {text}")]);
}

#[test]
fn c48_decode_follows_a_restarted_prefill_after_a_fence_without_a_restart_of_its_own() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(1, 2, moved(1, 2));
    d.answer(1, 2, moved(1, 2));
    assert_eq!(d.out(), ["fence p, generation 1"]);
    d.fenced(1);
    assert_eq!(d.out(), ["resolve p at host:8998"]);
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(d.out(), ["pull 2 of a from sender 0, generation 2"]);
    d.answer(2, 2, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
    assert_eq!(d.machine.metrics().followed, 1);
    d.assert_idle();
}

#[test]
fn c48_every_load_that_was_refused_by_the_new_incarnation_follows_it() {
    let mut d = D::knowing(1, Dialect::Own);
    for (index, name) in (0..).zip(["a", "b", "c"]) {
        d.load(name, &[&[6 + index], &[16 + index]]).unwrap();
    }
    d.out();
    // c's pull got lost with the old one.
    d.answer(1, 2, moved(1, 2));
    d.answer(2, 2, moved(1, 2));
    assert_eq!(d.out(), ["fence p, generation 1"]);
    d.fenced(1);
    assert_eq!(
        d.out(),
        [
            "resolve p at host:8998",
            "c ended: the peer's generation 1 is gone"
        ]
    );
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [
            "pull 4 of a from sender 0, generation 2",
            "pull 5 of b from sender 0, generation 2"
        ]
    );
    d.answer(5, 2, delivered());
    d.answer(4, 2, delivered());
    assert_eq!(d.out(), ["b ended: loaded 32", "a ended: loaded 32"]);
    d.assert_idle();
}

#[test]
fn c48_a_load_follows_only_so_often() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    for generation in 1..=2 {
        d.answer(
            generation,
            generation + 1,
            moved(generation, generation + 1),
        );
        d.fenced(generation);
        d.resolve(generation + 1, 1, Dialect::Own);
    }
    d.answer(3, 4, moved(3, 4));
    d.out();
    d.fenced(3);
    assert_eq!(d.out(), ["a ended: the peer's generation 3 is gone"]);
    d.assert_idle();
}

#[test]
fn a_load_that_follows_keeps_no_word_of_the_incarnation_before() {
    let mut d = D::knowing(2, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let said = |token| {
        let computed = TokenCount::new(COMPUTED);
        let point = HandOffPoint::FirstToken;
        let hand_off = HandOff::new(point, computed, computed, None, Some(token)).unwrap();
        Verdict::Delivered {
            hand_off: Some(hand_off),
        }
    };
    d.answer(2, 1, said(5));
    d.answer(3, 2, moved(1, 2));
    d.fenced(1);
    d.resolve(2, 2, Dialect::Own);
    d.answer(4, 2, said(9));
    d.answer(5, 2, said(9));
    let last = std::iter::from_fn(|| d.command()).last();
    match last {
        Some(DecodeCommand::Ended {
            outcome: DecodeOutcome::Loaded { hand_off, .. },
            ..
        }) => assert_eq!(hand_off.unwrap().first_token(), Some(9)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn c48_a_release_needs_no_fence_and_follows_nobody() {
    let mut d = D::knowing(1, Dialect::Own);
    d.release("a");
    d.out();
    d.answer(1, 2, moved(1, 2));
    assert_eq!(d.out().len(), 0);
    d.assert_idle();
}

#[test]
fn c48_a_lost_peer_ends_its_loads_once_it_is_fenced_off() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.release("r");
    d.out();
    d.lose(1);
    d.lose(1);
    assert_eq!(d.out(), ["fence p, generation 1"]);
    d.load("b", &[&[8], &[9]]).unwrap();
    assert_eq!(d.out(), ["resolve p at host:8998"]);
    d.fenced(1);
    assert_eq!(d.out(), ["a ended: the peer's generation 1 is gone"]);
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(d.out(), ["pull 3 of b from sender 0, generation 2"]);
    d.answer(3, 2, delivered());
    d.out();
    d.assert_idle();
}

#[test]
fn an_answer_that_was_under_way_when_its_peer_was_lost_still_counts() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.lose(1);
    d.out();
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
    d.fenced(1);
    d.assert_idle();
}

#[test]
fn a_pull_that_never_left_ends_its_load_at_once_and_its_peer_is_looked_up_again() {
    let mut d = D::knowing(2, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let undelivered = |number| mooncake_pd_connector::DecodeEvent::Undelivered {
        number: mooncake_pd_connector::PullNumber::new(number),
    };
    d.take(undelivered(2)).unwrap();
    assert_eq!(d.out(), ["cancel 3 at sender 1, generation 1"]);
    d.take(undelivered(3)).unwrap();
    assert_eq!(d.out(), ["a ended: the pull could not be sent"]);
    d.load("b", &[&[6], &[7]]).unwrap();
    assert_eq!(d.out(), ["resolve p at host:8998"]);
}

#[test]
fn an_unknown_id_after_a_restart_ends_the_load_and_nothing_else() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.load("b", &[&[8], &[9]]).unwrap();
    d.out();
    d.answer(1, 1, Verdict::Refused(Refusal::Unknown));
    assert_eq!(d.out(), ["a ended: prefill refused: unknown transfer"]);
    d.answer(2, 1, delivered());
    assert_eq!(d.out(), ["b ended: loaded 32"]);
    d.pass(Span::from_secs(1));
    assert_eq!(d.machine.leases(), 0);
}

#[test]
fn senders_of_one_load_that_differ_fail_it() {
    let hand_off = |token| {
        let computed = TokenCount::new(COMPUTED);
        let point = HandOffPoint::FirstToken;
        HandOff::new(point, computed, computed, None, Some(token)).unwrap()
    };
    let said = |token| Verdict::Delivered {
        hand_off: Some(hand_off(token)),
    };
    let mut d = D::knowing(2, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(2, 1, said(5));
    d.answer(3, 1, said(6));
    assert_eq!(
        d.out(),
        [
            "a ended: one prefill rank hands over 32 elements with 0 left and first token 5, \
             another 32 elements with 0 left and first token 6"
        ]
    );
}

#[test]
fn a_load_that_is_given_up_before_it_is_asked_for_lets_prefill_go() {
    // Between two incarnations.
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.answer(1, 2, moved(1, 2));
    d.fenced(1);
    d.out();
    d.abort("a").unwrap();
    assert_eq!(d.out(), ["a ended: aborted by its engine"]);
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(d.out(), ["release 2 of a from sender 0, generation 2"]);
    // Not found in time.
    let mut d = D::new();
    d.load("b", &[&[6], &[7]]).unwrap();
    for _ in 0..6 {
        d.pass(Span::from_secs(90));
        d.out();
        d.load("c", &[&[8], &[9]]).unwrap_or_default();
    }
    d.resolve(1, 1, Dialect::Own);
    assert!(
        d.out()
            .iter()
            .any(|text| text.starts_with("release") && text.contains("of b"))
    );
}
