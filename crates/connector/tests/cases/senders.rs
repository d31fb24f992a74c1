//! Several decode ranks per prefill rank, and several prefill ranks per decode rank.

use mooncake_pd_connector::{Consumer, Dialect, Pull, Refusal, Span, Verdict, Want};

use crate::common::peer;
use crate::decode_rank::{D, delivered};
use crate::prefill_rank::{P, cancel, pull};

/// The pull of one of two decode ranks, each with numbers of its own.
fn of_two(index: u16) -> Pull {
    Pull {
        from: peer(["d0", "d1"][usize::from(index)], 1),
        consumer: Consumer::new(index, 2).unwrap(),
        ..pull(0, "a")
    }
}

fn ready() -> P {
    let mut p = P::new();
    p.start("a").unwrap();
    p.finish("a").unwrap();
    p
}

#[test]
fn c47_a_request_ends_when_its_last_consumer_is_served() {
    let mut p = ready();
    p.pull(of_two(1));
    p.out();
    p.settle(0, Ok(()));
    assert_eq!(p.out(), ["answer d1 (generation 1) pull 0: delivered"]);
    assert_eq!(p.machine.leases(), 1);
    p.pull(of_two(0));
    p.out();
    p.settle(1, Ok(()));
    assert_eq!(
        p.out(),
        [
            "answer d0 (generation 1) pull 0: delivered",
            "a ended: delivered"
        ]
    );
    p.assert_idle();
}

#[test]
fn c47_one_consumers_failure_is_the_end_of_the_request_once_all_are_quiet() {
    let mut p = ready();
    p.pull(of_two(0));
    p.pull(of_two(1));
    p.out();
    p.settle(0, Err(-7));
    assert_eq!(
        p.out(),
        ["answer d0 (generation 1) pull 0: the transfer failed: engine error -7"]
    );
    assert_eq!(p.machine.leases(), 1);
    p.settle(1, Ok(()));
    assert_eq!(
        p.out(),
        [
            "answer d1 (generation 1) pull 0: delivered",
            "a ended: the transfer failed: engine error -7"
        ]
    );
    p.assert_idle();
}

#[test]
fn a_consumer_that_asks_twice_or_counts_otherwise_is_refused_and_others_unharmed() {
    let mut p = ready();
    p.pull(of_two(0));
    p.out();
    // The same consumer by another pull, and one of three.
    p.pull(Pull {
        number: mooncake_pd_connector::PullNumber::new(1),
        ..of_two(0)
    });
    p.pull(Pull {
        consumer: Consumer::new(1, 3).unwrap(),
        ..of_two(1)
    });
    assert_eq!(
        p.out(),
        [
            "answer d0 (generation 1) pull 1: consumer 0 of 2 can't ask: it has asked already",
            "answer d1 (generation 1) pull 0: consumer 1 of 3 can't ask: there are 2"
        ]
    );
    p.settle(0, Ok(()));
    p.pull(Pull {
        number: mooncake_pd_connector::PullNumber::new(1),
        ..of_two(1)
    });
    p.out();
    p.settle(1, Ok(()));
    assert_eq!(p.out().last().unwrap(), "a ended: delivered");
}

#[test]
fn a_released_consumer_and_a_served_one_are_both_done() {
    let mut p = ready();
    p.pull(Pull {
        want: Want::Release,
        ..of_two(0)
    });
    assert_eq!(p.out(), ["answer d0 (generation 1) pull 0: released"]);
    p.pull(of_two(1));
    p.out();
    p.settle(0, Ok(()));
    assert_eq!(p.out().last().unwrap(), "a ended: delivered");
    p.assert_idle();
}

#[test]
fn a_consumer_that_never_asks_lets_the_request_expire_and_not_the_others() {
    let mut p = ready();
    p.pull(of_two(0));
    p.out();
    p.settle(0, Ok(()));
    p.out();
    p.pass(Span::from_secs(480));
    assert_eq!(p.out(), ["a ended: not asked for within 480 s"]);
    p.assert_idle();
}

#[test]
fn a_cancel_of_one_consumer_leaves_the_other_alone() {
    let mut p = ready();
    p.pull(of_two(0));
    p.pull(of_two(1));
    p.out();
    p.cancel(cancel(&of_two(0)));
    assert_eq!(p.out(), ["drain 0"]);
    p.settle(1, Ok(()));
    p.settle(0, Err(1));
    assert_eq!(
        p.out(),
        [
            "answer d1 (generation 1) pull 0: delivered",
            "answer d0 (generation 1) pull 0: the pull was cancelled",
            "a ended: cancelled by decode"
        ]
    );
}

#[test]
fn c47_a_load_from_three_senders_ends_once_after_all_are_quiet() {
    let mut d = D::knowing(3, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    assert_eq!(
        d.out(),
        [
            "pull 3 of a from sender 0, generation 1",
            "pull 4 of a from sender 1, generation 1",
            "pull 5 of a from sender 2, generation 1"
        ]
    );
    d.answer(3, 1, delivered());
    assert_eq!(d.out().len(), 0);
    // One fails: the last one is cancelled, and the load ends when it is quiet.
    d.answer(4, 1, Verdict::Refused(Refusal::Aborted));
    assert_eq!(d.out(), ["cancel 5 at sender 2, generation 1"]);
    assert_eq!(d.machine.leases(), 1);
    d.answer(5, 1, delivered());
    assert_eq!(
        d.out(),
        ["a ended: prefill refused: aborted by the prefill engine"]
    );
    d.assert_idle();
}

#[test]
fn a_load_is_loaded_when_the_last_sender_delivered() {
    let mut d = D::knowing(2, Dialect::Own);
    d.load("a", &[&[6], &[7]]).unwrap();
    d.out();
    d.answer(3, 1, delivered());
    d.answer(3, 1, delivered());
    assert_eq!((d.out().len(), d.machine.metrics().unknown_answers), (0, 1));
    d.answer(2, 1, delivered());
    assert_eq!(d.out(), ["a ended: loaded 32"]);
}
