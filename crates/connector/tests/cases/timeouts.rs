//! Nothing waits for ever, and no time passes for an end.

use mooncake_pd_connector::{DecodeLimits, Dialect, PrefillEvent, PrefillLimits, Span, Time};

use crate::decode_rank::{D, delivered};
use crate::prefill_rank::{P, pull};

const MICRO: Span = Span::from_micros(1);

/// Just before a span is over, and just after.
fn around(span: Span) -> [Span; 2] {
    [Span::from_micros(span.as_micros() - 1), MICRO]
}

#[test]
fn a_prompt_that_is_not_computed_ends_in_time() {
    let mut p = P::new();
    p.start("a").unwrap();
    let [before, then] = around(Span::from_secs(3_600));
    p.pass(before);
    assert_eq!(p.out().len(), 0);
    p.pass(then);
    assert_eq!(p.out(), ["a ended: not computed within 3600 s (no blocks)"]);
    p.assert_idle();
}

#[test]
fn a_pull_waits_for_its_prompt_for_a_time_and_the_prompt_goes_on() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.pass(Span::from_secs(100));
    p.pull(pull(0, "a"));
    let [before, then] = around(Span::from_secs(480));
    p.pass(before);
    assert_eq!(p.out().len(), 0);
    p.pass(then);
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: not computed within 480 s"]
    );
    assert_eq!(p.machine.live(), 1);
    // Its only consumer went without: the blocks come back at once.
    p.finish("a").unwrap();
    assert_eq!(p.out(), ["a ended: not computed within 480 s"]);
    p.assert_idle();
}

#[test]
fn a_pull_that_came_before_its_request_waits_anew_once_it_is_named() {
    let mut p = P::new();
    p.pull(pull(0, "a"));
    p.pass(Span::from_secs(29));
    p.start("a").unwrap();
    let [before, then] = around(Span::from_secs(480));
    p.pass(before);
    assert_eq!(p.out().len(), 0);
    p.pass(then);
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: not computed within 480 s"]
    );
}

#[test]
fn a_cache_that_nobody_asks_for_is_let_go() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    let [before, then] = around(Span::from_secs(480));
    p.pass(before);
    assert_eq!((p.out().len(), p.machine.leases()), (0, 1));
    p.pass(then);
    assert_eq!(p.out(), ["a ended: not asked for within 480 s"]);
    p.assert_idle();
}

#[test]
fn who_asked_in_time_is_served_after_the_cache_expired() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pass(Span::from_secs(479));
    p.pull(pull(0, "a"));
    p.out();
    p.pass(Span::from_secs(2));
    assert_eq!(p.out().len(), 0);
    // Nobody else, though.
    p.pull(pull(1, "a"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 1: the transfer has ended"]
    );
    p.settle(0, Ok(()));
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: delivered",
            "a ended: delivered"
        ]
    );
    p.assert_idle();
}

#[test]
fn c41_a_late_answer_is_pressed_for_and_ends_nothing_by_itself() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let [before, then] = around(Span::from_secs(540));
    d.pass(before);
    assert_eq!(d.out().len(), 0);
    d.pass(then);
    let cancel = "cancel 1 at sender 0, generation 1";
    assert_eq!(d.out(), [cancel]);
    // Pauses grow: 100 ms, 200 ms, and so on.
    for pause in [100, 200, 400, 800, 1_600, 3_200] {
        let [before, then] = around(Span::from_millis(pause));
        d.pass(before);
        assert_eq!(d.out().len(), 0, "{pause}");
        d.pass(then);
        assert_eq!(d.out(), [cancel], "{pause}");
    }
    // After 10 s the peer is fenced off, again and again until it is.
    let [before, then] = around(Span::from_millis(10_000 - 6_300));
    d.pass(before);
    assert_eq!(d.out().len(), 0);
    d.pass(then);
    for _ in 0..3 {
        assert_eq!(d.out(), ["fence p, generation 1"]);
        assert_eq!(d.machine.leases(), 1);
        d.pass(Span::from_secs(10));
    }
    d.out();
    d.fenced(1);
    assert_eq!(d.out(), ["a ended: no answer within 540 s"]);
    d.assert_idle();
}

#[test]
fn a_release_whose_answer_is_late_is_let_go() {
    let mut d = D::knowing(2, Dialect::Own);
    d.release("a");
    d.out();
    d.pass(Span::from_secs(540));
    assert_eq!(d.out().len(), 0);
    d.assert_idle();
}

#[test]
fn a_clock_that_goes_back_is_counted_and_moves_nothing() {
    let (mut p, mut d) = (P::new(), D::knowing(1, Dialect::Own));
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pass(Span::from_secs(470));
    p.now = Time::ZERO;
    p.pass(Span::ZERO);
    assert_eq!(p.machine.metrics().clock_regressions, 1);
    assert_eq!(p.out().len(), 0);
    // Pulled in the past: it counts from the latest time that was seen.
    p.pull(pull(0, "a"));
    p.out();
    p.settle(0, Ok(()));
    assert_eq!(p.out().last().unwrap(), "a ended: delivered");
    assert_eq!(p.machine.metrics().waited.sum_micros(), 0);

    d.pass(Span::from_secs(1));
    d.load("a", &[&[6], &[7]]).unwrap();
    d.now = Time::ZERO;
    d.pass(Span::ZERO);
    d.out();
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
    assert_eq!(d.machine.metrics().clock_regressions, 2);
    assert_eq!(d.machine.metrics().took.count(), 2);
}

#[test]
fn limits_of_no_time_and_the_end_of_time_are_no_endless_loop() {
    for (now, span) in [(1_000, Span::ZERO), (u64::MAX, Span::from_secs(1))] {
        let mut p = P::with(PrefillLimits {
            unknown_wait: span,
            ready_wait: span,
            compute: span,
            hold: Span::from_secs(100),
            transfer: span,
            ended_memory: span,
            peer_idle: span,
            ..PrefillLimits::default()
        });
        p.now = Time::from_micros(now);
        p.start("a").unwrap();
        p.finish("a").unwrap_or_default();
        p.pull(pull(0, "a"));
        p.pull(pull(1, "b"));
        for _ in 0..3 {
            p.take(PrefillEvent::Tick).unwrap();
        }
        let mut d = D::with(DecodeLimits {
            cancel_retry: span,
            fence_after: span.doubled(span),
            fence_retry: span,
            source_idle: span,
            ..DecodeLimits::default()
        });
        d.now = Time::from_micros(now);
        d.load("a", &[&[6], &[7]]).unwrap();
        d.resolve(1, 1, Dialect::Own);
        d.abort("a").unwrap_or_default();
        for _ in 0..3 {
            d.pass(Span::ZERO);
        }
        let all = d.out();
        assert!(all.len() < 20, "{all:?}");
        if let Some((_, fence)) = d.fences.last().copied() {
            d.up(fence);
        }
        assert_eq!((d.machine.live(), d.machine.leases()), (0, 0));
    }
}

#[test]
fn what_is_repeated_is_repeated_at_most_once_a_millisecond() {
    let zero = DecodeLimits {
        cancel_retry: Span::ZERO,
        fence_retry: Span::ZERO,
        resolve_pause: Span::ZERO,
        resolve_timeout: Span::ZERO,
        source_idle: Span::ZERO,
        ..DecodeLimits::default()
    };
    let mut d = D::with(zero);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.resolve(1, 1, Dialect::Own);
    d.abort("a").unwrap();
    d.lose(1);
    d.out();
    for _ in 0..1_000 {
        d.pass(Span::from_micros(10));
    }
    // Ten milliseconds: cancels double their pauses, fences don't.
    assert!(d.out().len() <= 16);
}
