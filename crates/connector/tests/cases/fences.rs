//! What ends a load when nobody says that all is quiet.

use mooncake_pd_connector::{Answer, Dialect, Refusal, Span, Verdict};

use crate::decode_rank::{D, answer, delivered, moved};

const FENCE: &str = "fence p, generation 1";

/// A stock peer's error: it does not say whether it still writes.
fn error(number: u64) -> Answer {
    Answer {
        quiescent: false,
        ..answer(number, 1, Verdict::Refused(Refusal::Stock))
    }
}

#[test]
fn a_stock_error_keeps_the_blocks_until_the_fence_and_nobody_is_sent_a_cancel() {
    let mut d = D::knowing(1, Dialect::Stock);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answered(error(1));
    d.answered(error(1));
    d.pass(Span::from_millis(9_999));
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    d.pass(Span::from_millis(1));
    assert_eq!(d.out(), [FENCE]);
    d.fenced(1);
    assert_eq!(d.out(), ["a ended: prefill refused: stock peer's error"]);
    assert_eq!(d.machine.metrics().cancels, 0);
    d.assert_idle();
}

#[test]
fn an_abort_at_a_stock_peer_waits_for_its_answer_or_the_fence() {
    let mut d = D::knowing(1, Dialect::Stock);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.abort("a").unwrap();
    assert_eq!(d.out(), ["pull 1 of a from sender 0, generation 1"]);
    d.answer(1, 1, Verdict::Delivered { hand_off: None });
    assert_eq!(d.out(), ["a ended: aborted by its engine"]);
    d.load("b", &[&[6], &[7]]).unwrap();
    d.abort("b").unwrap();
    d.pass(Span::from_secs(10));
    assert_eq!(d.out(), ["pull 2 of b from sender 0, generation 1", FENCE]);
    d.fenced(1);
    assert_eq!(d.out(), ["b ended: aborted by its engine"]);
}

#[test]
fn a_stock_peer_that_delivers_says_enough() {
    let mut d = D::knowing(1, Dialect::Stock);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(1, 1, Verdict::Delivered { hand_off: None });
    assert_eq!(d.out(), ["a ended: loaded 32"]);
}

#[test]
fn a_fence_is_repeated_until_it_is_up() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.lose(1);
    for _ in 0..5 {
        assert_eq!(d.out(), [FENCE]);
        d.pass(Span::from_millis(9_999));
        assert_eq!(d.out().len(), 0);
        d.pass(Span::from_millis(1));
    }
    d.out();
    d.fenced(1);
    d.out();
    d.pass(Span::from_secs(20));
    assert_eq!(d.out().len(), 0);
    d.assert_idle();
}

#[test]
fn a_fence_that_nobody_asked_for_changes_nothing() {
    let mut d = D::knowing(1, Dialect::Own);
    d.fenced(1);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    // Not asked for at all, and of another incarnation than asked for.
    d.fenced(1);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    d.lose(1);
    d.fenced(2);
    d.fenced(0);
    assert_eq!(
        (d.out().as_slice(), d.machine.leases()),
        (&[FENCE.to_owned()][..], 1)
    );
    d.fenced(1);
    assert_eq!(d.out(), ["a ended: the peer's generation 1 is gone"]);
    // Once more: it covers what was asked for until then, not what comes.
    d.load("b", &[&[6], &[7]]).unwrap();
    d.resolve(1, 1, Dialect::Own);
    d.out();
    d.fenced(1);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
}

#[test]
fn a_lost_peer_of_another_incarnation_than_the_pulled_one_is_not_fenced() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.lose(0);
    d.lose(2);
    assert_eq!(d.out().len(), 0);
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
}

#[test]
fn new_loads_wait_for_the_fence_and_for_a_look_up_after_it() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.answer(1, 2, moved(1, 2));
    d.out();
    d.load("b", &[&[8], &[9]]).unwrap();
    d.pass(Span::from_secs(10));
    assert_eq!(d.out(), [FENCE]);
    d.fenced(1);
    assert_eq!(d.out(), ["resolve p at host:8998"]);
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [
            "pull 2 of b from sender 0, generation 2",
            "pull 3 of a from sender 0, generation 2"
        ]
    );
}

#[test]
fn a_fenced_incarnation_that_comes_back_from_a_look_up_is_asked_after_its_fence() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.lose(1);
    d.fenced(1);
    d.out();
    d.load("b", &[&[6], &[7]]).unwrap();
    // The same incarnation was only cut off for a while.
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [
            "resolve p at host:8998",
            "pull 2 of b from sender 0, generation 1"
        ]
    );
    d.answer(2, 1, delivered());
    assert_eq!(d.out(), ["b ended: loaded 32"]);
    d.assert_idle();
}

#[test]
fn an_answer_that_is_not_quiet_is_pressed_for() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answered(Answer {
        quiescent: false,
        ..answer(1, 1, Verdict::Refused(Refusal::Busy))
    });
    assert_eq!(d.out(), ["cancel 1 at sender 0, generation 1"]);
    assert_eq!(d.machine.leases(), 1);
    d.answer(1, 1, Verdict::Refused(Refusal::Cancelled));
    assert_eq!(
        d.out(),
        ["a ended: prefill refused: too many pulls or transfers"]
    );
}
