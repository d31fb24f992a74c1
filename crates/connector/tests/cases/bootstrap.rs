//! C50: who is there is looked up, a bounded number of times.

use mooncake_pd_connector::{DecodeError, DecodeLimits, Dialect, ResolveError, Resolved, Span};

use crate::decode_rank::{D, delivered};

const RESOLVE: &str = "resolve p at host:8998";

#[test]
fn c50_look_ups_pause_longer_each_time_and_then_say_where_how_often_and_why() {
    let mut d = D::new();
    d.load("a", &[&[6], &[7]]).unwrap();
    d.load("b", &[&[8], &[9]]).unwrap();
    d.release("r");
    assert_eq!(d.out(), [RESOLVE]);
    for pause in [100, 200, 400, 800, 1_600, 3_200, 5_000] {
        d.resolved(Err(ResolveError::Unreachable));
        d.pass(Span::from_millis(pause - 1));
        assert_eq!(d.out().len(), 0, "{pause}");
        d.pass(Span::from_millis(1));
        assert_eq!(d.out(), [RESOLVE], "{pause}");
    }
    d.resolved(Err(ResolveError::UnknownEngine));
    let why = "bootstrap at host:8998 gave no peer after 8 attempts: the engine is not registered";
    assert_eq!(
        d.out(),
        [format!("a ended: {why}"), format!("b ended: {why}")]
    );
    d.assert_idle();
}

#[test]
fn c50_a_look_up_that_never_comes_back_counts_as_unreachable() {
    let mut d = D::with(DecodeLimits {
        resolve_attempts: 2,
        ..DecodeLimits::default()
    });
    d.load("a", &[&[6], &[7]]).unwrap();
    d.pass(Span::from_secs(5));
    d.pass(Span::from_millis(100));
    assert_eq!(d.out(), [RESOLVE, RESOLVE]);
    d.pass(Span::from_secs(5));
    assert_eq!(
        d.out(),
        ["a ended: bootstrap at host:8998 gave no peer after 2 attempts: unreachable"]
    );
    d.assert_idle();
}

#[test]
fn c50_no_attempts_still_are_one() {
    let mut d = D::with(DecodeLimits {
        resolve_attempts: 0,
        ..DecodeLimits::default()
    });
    d.load("a", &[&[6], &[7]]).unwrap();
    d.resolved(Err(ResolveError::Malformed));
    assert_eq!(
        d.out(),
        [
            RESOLVE,
            "a ended: bootstrap at host:8998 gave no peer after 1 attempts: malformed answer"
        ]
    );
}

#[test]
fn c50_a_bootstrap_that_comes_up_serves_all_who_wait() {
    let mut d = D::new();
    d.load("a", &[&[6], &[7]]).unwrap();
    d.resolved(Err(ResolveError::Unreachable));
    d.load("b", &[&[8], &[9]]).unwrap();
    d.pass(Span::from_millis(100));
    assert_eq!(d.out(), [RESOLVE, RESOLVE]);
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [
            "pull 0 of a from sender 0, generation 1",
            "pull 1 of b from sender 0, generation 1"
        ]
    );
    // Known now: no other look-up.
    d.answer(0, 1, delivered());
    d.load("c", &[&[6], &[7]]).unwrap();
    assert_eq!(
        d.out(),
        [
            "a ended: loaded 32",
            "pull 2 of c from sender 0, generation 1"
        ]
    );
}

#[test]
fn late_and_repeated_results_of_look_ups_change_nothing() {
    let mut d = D::new();
    let found = |generation| {
        let generation = mooncake_pd_connector::Generation::new(generation);
        Ok(Resolved::new(generation, 1, Dialect::Own).unwrap())
    };
    d.resolved(found(1));
    assert_eq!(d.machine.records(), 0);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.resolved(found(1));
    d.resolved(found(9));
    d.resolved(Err(ResolveError::Unreachable));
    assert_eq!(
        d.out(),
        [RESOLVE, "pull 0 of a from sender 0, generation 1"]
    );
    d.load("b", &[&[8], &[9]]).unwrap();
    assert_eq!(d.out(), ["pull 1 of b from sender 0, generation 1"]);
}

#[test]
fn after_a_failure_the_next_load_looks_up_anew() {
    let mut d = D::with(DecodeLimits {
        resolve_attempts: 1,
        ..DecodeLimits::default()
    });
    d.load("a", &[&[6], &[7]]).unwrap();
    d.resolved(Err(ResolveError::Incompatible));
    d.out();
    d.load("b", &[&[6], &[7]]).unwrap();
    assert_eq!(d.out(), [RESOLVE]);
}

#[test]
fn a_load_that_waits_for_a_look_up_is_bounded_in_time_too() {
    let mut d = D::with(DecodeLimits {
        resolve_attempts: 1_000_000,
        ..DecodeLimits::default()
    });
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    for _ in 0..600 {
        d.pass(Span::from_secs(1));
    }
    let out = d.out();
    let ended: Vec<_> = out.iter().filter(|text| *text != RESOLVE).collect();
    assert_eq!(ended, ["a ended: no answer within 540 s"]);
    d.assert_idle();
}

#[test]
fn loads_and_sources_are_bounded_and_a_refused_load_leaves_nothing() {
    let mut d = D::with(DecodeLimits {
        live: 1,
        ..DecodeLimits::default()
    });
    d.load("a", &[&[6], &[7]]).unwrap();
    let records = d.machine.records();
    let error = d.load("b", &[&[8], &[9]]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 loads and releases are live, the limit is 1"
    );
    assert_eq!(d.machine.records(), records);
    let mut d = D::with(DecodeLimits {
        sources: 0,
        ..DecodeLimits::default()
    });
    let error = d.load("a", &[&[6], &[7]]).unwrap_err();
    assert_eq!(
        error,
        DecodeError::TooManySources {
            sources: 0,
            limit: 0
        }
    );
    assert_eq!(
        error.to_string(),
        "0 prefill engines are known, the limit is 0"
    );
    assert_eq!((d.machine.records(), d.machine.leases()), (0, 0));
}
