//! What ends a load when nobody says that all is quiet.

use mooncake_pd_connector::{Answer, Dialect, EngineId, Refusal, Span, Verdict};

use crate::decode_rank::{D, answer, delivered, moved, source};

const FENCE: &str = "fence p, generation 1";
const RESOLVE: &str = "resolve p at host:8998";

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
    d.pass(Span::from_millis(59_999));
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
    d.load("c", &[&[8], &[9]]).unwrap();
    // The peer may be healthy, and still compute: a fence would end c as well.
    d.out();
    d.pass(Span::from_millis(539_999));
    d.answer(3, 1, Verdict::Delivered { hand_off: None });
    assert_eq!(d.out(), ["c ended: loaded 32"]);
    d.pass(Span::from_millis(1));
    assert_eq!(d.out(), [FENCE]);
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
fn a_fence_is_proof_only_of_what_was_asked_for_before_it() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.lose(1);
    let (_, first) = d.fences[0];
    // Due again in the moment in which it is reported.
    d.now = d.now.after(Span::from_secs(10));
    d.up(first);
    let ended = "a ended: the peer's generation 1 is gone";
    assert_eq!(d.out(), [FENCE, FENCE, ended]);
    d.load("b", &[&[6], &[7]]).unwrap();
    d.resolve(1, 1, Dialect::Own);
    d.out();
    // The repetition is carried out and reported: nobody waits for it.
    d.up(first);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    d.lose(1);
    assert_eq!(d.out(), [FENCE]);
    d.up(first);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    d.fenced(1);
    assert_eq!(d.out(), ["b ended: the peer's generation 1 is gone"]);
    d.assert_idle();
}

#[test]
fn a_pull_that_is_known_to_be_over_needs_no_fence() {
    let mut d = D::knowing(1, Dialect::Stock);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.load("b", &[&[8], &[9]]).unwrap();
    d.answered(error(1));
    d.out();
    d.quiet(1);
    assert_eq!(d.out(), ["a ended: prefill refused: stock peer's error"]);
    d.quiet(2);
    assert_eq!(d.out(), ["b ended: the pull ended without an answer"]);
    d.quiet(2);
    assert_eq!(d.machine.metrics().unknown_answers, 1);
    d.assert_idle();
}

#[test]
fn an_answer_of_somebody_else_settles_nothing() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let mut other = source();
    other.engine = EngineId::new("q").unwrap();
    d.answered_by(other, 0, answer(1, 1, delivered()));
    d.answered_by(source(), 1, answer(1, 1, delivered()));
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    assert_eq!(d.machine.metrics().unknown_answers, 2);
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
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
fn a_new_incarnation_is_asked_while_the_old_one_is_fenced_off() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.answer(1, 2, moved(1, 2));
    d.out();
    d.load("b", &[&[8], &[9]]).unwrap();
    assert_eq!(d.out(), [RESOLVE]);
    d.resolve(2, 1, Dialect::Own);
    assert_eq!(d.out(), ["pull 2 of b from sender 0, generation 2"]);
    d.answer(2, 2, delivered());
    assert_eq!(d.out(), ["b ended: loaded 32"]);
    d.fenced(1);
    assert_eq!(d.out(), ["pull 3 of a from sender 0, generation 2"]);
}

#[test]
fn new_loads_of_an_incarnation_wait_for_its_fence() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.lose(1);
    d.out();
    d.load("b", &[&[8], &[9]]).unwrap();
    for _ in 0..3 {
        assert_eq!(
            d.out().into_iter().find(|text| text != FENCE).unwrap(),
            RESOLVE
        );
        // Still the same one: asked again a little later.
        d.resolve(1, 1, Dialect::Own);
        assert_eq!(d.out().len(), 0);
        d.pass(Span::from_secs(5));
    }
    d.resolve(1, 1, Dialect::Own);
    d.out();
    d.fenced(1);
    assert_eq!(
        d.out(),
        ["a ended: the peer's generation 1 is gone", RESOLVE]
    );
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(d.out(), ["pull 2 of b from sender 0, generation 1"]);
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

#[test]
fn a_fence_that_nothing_waits_for_any_more_is_taken_away() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.abort("a").unwrap();
    d.pass(Span::from_secs(10));
    assert!(d.out().contains(&FENCE.to_owned()));
    d.answer(1, 1, Verdict::Refused(Refusal::Cancelled));
    assert_eq!(d.out(), ["a ended: aborted by its engine"]);
    d.load("b", &[&[6], &[7]]).unwrap();
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [RESOLVE, "pull 2 of b from sender 0, generation 1"]
    );
    // Reported all the same: it says nothing of b.
    d.fenced(1);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
    d.answer(2, 1, delivered());
    assert_eq!(d.out(), ["b ended: loaded 32"]);
    d.assert_idle();
}

#[test]
fn the_fence_of_a_stock_error_is_not_put_off_by_another_sender() {
    for late in [false, true] {
        let mut d = D::knowing(2, Dialect::Stock);
        d.load("a", &[&[6], &[7]]).unwrap();
        d.out();
        let well = || answer(3, 1, Verdict::Delivered { hand_off: None });
        if !late {
            d.answered(well());
        }
        d.answered(error(2));
        if late {
            d.answered(well());
        }
        d.pass(Span::from_millis(59_999));
        assert_eq!(d.out().len(), 0);
        d.pass(Span::from_millis(1));
        assert_eq!(d.out(), [FENCE]);
    }
}

#[test]
fn what_was_delivered_and_is_quiet_at_last_is_loaded() {
    let mut d = D::knowing(1, Dialect::Stock);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answered(Answer {
        quiescent: false,
        ..answer(1, 1, Verdict::Delivered { hand_off: None })
    });
    assert_eq!(d.out().len(), 0);
    d.quiet(1);
    assert_eq!(d.out(), ["a ended: loaded 32"]);
    // One that was told to go elsewhere still goes there.
    let mut d = D::knowing(1, Dialect::Own);
    d.load("b", &[&[6], &[7]]).unwrap();
    d.answer(1, 2, moved(1, 2));
    d.out();
    d.quiet(1);
    assert_eq!(d.out(), [RESOLVE]);
}

#[test]
fn a_fence_that_is_up_leaves_a_look_up_its_time() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.lose(1);
    d.load("b", &[&[8], &[9]]).unwrap();
    // The look-up's answer is lost, b is given up, and nobody waits for it.
    d.abort("b").unwrap();
    d.fenced(1);
    d.out();
    d.pass(Span::from_secs(6));
    d.load("c", &[&[6], &[7]]).unwrap();
    d.pass(Span::from_secs(6));
    assert!(d.out().contains(&RESOLVE.to_owned()));
}
