//! Each request ends once, whoever gives it up and when.

use std::sync::Arc;

use mooncake_pd_connector::{
    DecodeCommand, DecodeError, DecodeEvent, DecodeOutcome, Dialect, PrefillError, PrefillEvent,
    Pull, PullNumber, Quiescence, Refusal, Span, TokenCount, TransferFault, Verdict, Want,
};
use mooncake_pd_plan::RequestError;

use crate::common::{request, tables, transfer};
use crate::decode_rank::{D, answer, delivered};
use crate::prefill_rank::{P, cancel, pull};

#[test]
fn c38_a_request_that_ended_at_its_first_token_is_sent_like_any_other() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.pull(pull(0, "a"));
    p.finish("a").unwrap();
    p.settle_all();
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: delivered",
            "a ended: delivered"
        ]
    );
    p.assert_idle();
}

impl P {
    /// Runs what was asked for, well.
    fn settle_all(&mut self) {
        let from = self.attempts.len();
        self.out();
        for index in from..self.attempts.len() {
            self.settle(index, Ok(()));
        }
    }
}

#[test]
fn c40_blocks_of_an_aborted_load_are_kept_until_the_writer_is_quiet() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.abort("a").unwrap();
    assert_eq!(
        d.out(),
        [
            "pull 1 of a from sender 0, generation 1",
            "cancel 1 at sender 0, generation 1"
        ]
    );
    assert_eq!(d.machine.leases(), 1);
    d.load("b", &[&[6], &[7]]).unwrap_err();
    // It wrote all of it before it saw the cancel: the load is aborted all the same.
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: aborted by its engine"]);
    d.load("b", &[&[6], &[7]]).unwrap();
}

#[test]
fn c40_a_writer_is_drained_and_answers_when_it_is_quiet() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.cancel(cancel(&pull(0, "a")));
    p.cancel(cancel(&pull(0, "a")));
    assert_eq!(p.out(), ["drain 0"]);
    assert_eq!(p.machine.leases(), 1);
    p.settle(0, Err(-7));
    // That a drained transfer fails is no news.
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: the pull was cancelled",
            "a ended: cancelled by decode"
        ]
    );
    p.assert_idle();
}

#[test]
fn c42_completions_that_nobody_knows_are_counted_and_change_nothing() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.abort("a").unwrap();
    p.settle(0, Ok(()));
    assert_eq!(
        p.out(),
        [
            "drain 0",
            "answer d (generation 1) pull 0: delivered",
            "a ended: delivered"
        ]
    );
    let before = p.machine.records();
    p.settle(0, Ok(()));
    p.settle(0, Err(1));
    let attempt = p.attempts[0];
    let error = Arc::new(RequestError::Foreign);
    p.take(PrefillEvent::Refused { attempt, error }).unwrap();
    assert_eq!(p.machine.metrics().unknown_completions, 3);
    assert_eq!((p.out().len(), p.machine.records()), (0, before));

    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(1, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
    for number in [1, 0, 9] {
        d.answer(number, 1, delivered());
    }
    let number = PullNumber::new(1);
    d.take(DecodeEvent::Undelivered { number }).unwrap();
    assert_eq!(d.machine.metrics().unknown_answers, 4);
    assert_eq!(d.out().len(), 0);
    // Nor does an engine's own second word do any harm.
    assert_eq!(
        d.abort("a"),
        Err(DecodeError::UnknownRequest {
            request: request("a")
        })
    );
    d.assert_idle();
}

#[test]
fn an_answer_of_another_incarnation_or_to_another_settles_nothing() {
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(1, 2, delivered());
    let mut other = answer(1, 1, delivered());
    other.to.generation = mooncake_pd_connector::Generation::new(2);
    d.answered(other);
    assert_eq!(d.machine.metrics().unknown_answers, 2);
    assert_eq!((d.out().len(), d.machine.leases()), (0, 1));
}

#[test]
fn c43_an_abort_at_prefill_is_answered_at_once_at_every_stage() {
    let aborted = "answer d (generation 1) pull 0: aborted by the prefill engine";
    let ended = "a ended: aborted by its engine";
    // Computing, nobody asked.
    let mut p = P::new();
    p.start("a").unwrap();
    p.abort("a").unwrap();
    assert_eq!(p.out(), [format!("{ended} (no blocks)")]);
    // What comes later need not wait.
    p.pull(pull(0, "a"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 0: the transfer has ended"]
    );
    p.assert_idle();
    // Computing, a pull waits.
    let mut p = P::new();
    p.start("a").unwrap();
    p.pull(pull(0, "a"));
    p.abort("a").unwrap();
    assert_eq!(
        p.out(),
        [aborted, "a ended: aborted by its engine (no blocks)"]
    );
    p.assert_idle();
    // Computed, nobody asked.
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.abort("a").unwrap();
    assert_eq!(p.out(), [ended]);
    p.assert_idle();
    // Under way: once it is quiet, and no sooner.
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.abort("a").unwrap();
    p.abort("a").unwrap();
    assert_eq!(p.out(), ["drain 0"]);
    p.pull(pull(1, "a"));
    assert_eq!(
        p.out(),
        ["answer d (generation 1) pull 1: aborted by the prefill engine"]
    );
    p.settle(0, Err(-7));
    assert_eq!(p.out(), [aborted, ended]);
    p.assert_idle();
    // Ended: the engine's mistake, and nothing happens.
    assert_eq!(
        p.abort("a"),
        Err(PrefillError::UnknownTransfer {
            request: request("a"),
            transfer: transfer("a")
        })
    );
    assert_eq!(p.out().len(), 0);
}

#[test]
fn an_abort_at_decode_ends_a_load_at_every_stage() {
    // Looking its source up: prefill is told that it may let go.
    let mut d = D::new();
    d.load("a", &[&[6], &[7]]).unwrap();
    d.abort("a").unwrap();
    assert_eq!(
        d.out(),
        ["resolve p at host:8998", "a ended: aborted by its engine"]
    );
    assert_eq!((d.machine.live(), d.machine.leases()), (0, 0));
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(d.out(), ["release 0 of a from sender 0, generation 1"]);
    d.answer(0, 1, Verdict::Released);
    assert_eq!(d.out().len(), 0);
    d.assert_idle();
    // Pulled: see c40. Cancelled already: the first reason stays.
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.pass(Span::from_secs(540));
    d.abort("a").unwrap();
    d.out();
    d.answer(1, 1, Verdict::Refused(Refusal::Cancelled));
    assert_eq!(d.out(), ["a ended: no answer within 540 s"]);
    // Being fenced off.
    d.load("b", &[&[6], &[7]]).unwrap();
    d.lose(1);
    d.abort("b").unwrap();
    d.out();
    d.fenced(1);
    assert_eq!(d.out(), ["b ended: aborted by its engine"]);
    d.assert_idle();
}

#[test]
fn c45_a_second_request_with_a_live_transfer_is_refused_and_the_first_unharmed() {
    let mut p = P::new();
    p.start("a").unwrap();
    let error = p
        .take(PrefillEvent::Started {
            request: request("other"),
            transfer: transfer("a"),
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "transfer a belongs to live request a");
    p.finish("a").unwrap();
    assert_eq!(
        p.finish("a"),
        Err(PrefillError::FinishedTwice {
            transfer: transfer("a")
        })
    );
    p.pull(pull(0, "a"));
    p.settle_all();
    assert_eq!(p.out().last().unwrap(), "a ended: delivered");

    let mut d = D::new();
    d.load("a", &[&[6], &[7]]).unwrap();
    let error = d.load("a", &[&[8], &[9]]).unwrap_err();
    assert_eq!(error.to_string(), "transfer a is live already, for a");
    assert_eq!((d.machine.live(), d.machine.leases()), (1, 1));
    d.load("b", &[&[8], &[9]]).unwrap();
}

#[test]
fn c45_a_transfer_id_can_be_used_again_after_its_end() {
    let mut p = P::new();
    for number in 0..2 {
        p.start("a").unwrap();
        p.finish("a").unwrap();
        p.pull(pull(number, "a"));
        p.settle_all();
        assert_eq!(p.out().last().unwrap(), "a ended: delivered");
    }
    p.assert_idle();
}

#[test]
fn c46_one_bad_request_of_eight_fails_alone() {
    let mut p = P::new();
    for number in 0..8 {
        let name = format!("r{number}");
        p.start(&name).unwrap();
        p.finish(&name).unwrap();
        p.pull(pull(number, &name));
    }
    p.out();
    let attempt = p.attempts[3];
    let error = Arc::new(RequestError::Foreign);
    p.take(PrefillEvent::Refused { attempt, error }).unwrap();
    let bad = p.out();
    assert_eq!(
        bad[0],
        "answer d (generation 1) pull 3: block tables can't be planned: foreign"
    );
    assert!(bad[1].starts_with("r3 ended: block tables can't be planned: "));
    for index in [0, 1, 2, 4, 5, 6, 7] {
        p.settle(index, Ok(()));
        assert_eq!(
            p.out(),
            [
                format!("answer d (generation 1) pull {index}: delivered"),
                format!("r{index} ended: delivered")
            ]
        );
    }
    p.assert_idle();
}

#[test]
fn c49_a_failed_transfer_fails_its_load_once_and_the_blocks_hold_nothing() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.settle(0, Err(-7));
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: the transfer failed: engine error -7",
            "a ended: the transfer failed: engine error -7"
        ]
    );
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let fault = TransferFault { code: -7 };
    d.answer(1, 1, Verdict::Refused(Refusal::Transfer(fault)));
    d.answer(1, 1, delivered());
    match d.command() {
        Some(DecodeCommand::Ended {
            outcome: DecodeOutcome::Failed(failure),
            tables: blocks,
            ..
        }) => {
            assert_eq!(
                failure.to_string(),
                "prefill refused: the transfer failed: engine error -7"
            );
            assert_eq!(blocks, tables(&[&[6], &[7]]));
        }
        other => panic!("{other:?}"),
    }
    assert!(d.command().is_none());
    d.assert_idle();
}

#[test]
fn c41_an_error_without_proof_is_no_end() {
    // The engine's proof comes with the settling alone: a late transfer is drained
    // and stays leased however long it takes.
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(pull(0, "a"));
    p.out();
    p.pass(Span::from_secs(60));
    assert_eq!(p.out(), ["drain 0"]);
    p.pass(Span::from_secs(100_000));
    assert_eq!((p.out().len(), p.machine.leases()), (0, 1));
    let proof = Quiescence::witnessed();
    let (attempt, result) = (p.attempts[0], Err(TransferFault { code: 5 }));
    p.take(PrefillEvent::Settled {
        attempt,
        result,
        proof,
    })
    .unwrap();
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: the transfer failed: engine error 5",
            "a ended: the transfer failed: engine error 5"
        ]
    );
    p.assert_idle();
}

#[test]
fn a_release_ends_a_request_whose_cache_nobody_needs() {
    let release = |number| Pull {
        want: Want::Release,
        ..pull(number, "a")
    };
    let done = [
        "answer d (generation 1) pull 0: released",
        "a ended: released",
    ];
    // Before the prompt is computed, and after.
    let mut p = P::new();
    p.start("a").unwrap();
    p.pull(release(0));
    assert_eq!(p.out().len(), 0);
    p.finish("a").unwrap();
    assert_eq!(p.out(), done);
    p.assert_idle();
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p.pull(release(0));
    assert_eq!(p.out(), done);
    p.assert_idle();

    let mut d = D::new();
    d.release("a");
    d.resolve(1, 1, Dialect::Own);
    assert_eq!(
        d.out(),
        [
            "resolve p at host:8998",
            "release 0 of a from sender 0, generation 1"
        ]
    );
    // Whatever the answer, nothing was written: it is over.
    d.answer(0, 1, Verdict::Refused(Refusal::Unknown));
    assert_eq!(d.out().len(), 0);
    d.assert_idle();
}

#[test]
fn sides_that_count_differently_are_refused_before_anything_is_written() {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    let mut other = pull(0, "a");
    other.want = Want::Cache {
        tables: tables(&[&[6, 7], &[0, 8]]),
        expects: Some(TokenCount::new(31)),
    };
    p.pull(other);
    assert_eq!(
        p.out(),
        [
            "answer d (generation 1) pull 0: prefill hands over 32 elements, 31 were expected",
            "a ended: prefill hands over 32 elements, decode expects 31"
        ]
    );
    // A prefill rank that delivers something else is not believed.
    let mut d = D::knowing(1, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    let hand_off = Some(crate::common::hand_off(31));
    d.answer(1, 1, Verdict::Delivered { hand_off });
    assert_eq!(
        d.out(),
        ["a ended: prefill hands over 31 elements, decode expects 32"]
    );
    // Nor one that released what it was to deliver.
    d.load("b", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(2, 1, Verdict::Released);
    assert_eq!(
        d.out(),
        ["b ended: prefill refused: the transfer has ended"]
    );
}
