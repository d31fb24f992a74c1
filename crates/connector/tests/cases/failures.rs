//! Every reason says whose fault it is, and both values where there are two.

use std::sync::Arc;

use mooncake_pd_connector::{
    Consumer, ConsumerProblem, Failure, Fault, Generation, PullNumber, Refusal, ResolveError, Span,
    TokenCount, TransferFault,
};
use mooncake_pd_plan::RequestError;

#[test]
fn every_failure_has_a_fault_and_a_text() {
    let fault = TransferFault { code: -7 };
    let after = Span::from_millis(1_500);
    let (prefill, decode) = (TokenCount::new(9), TokenCount::new(10));
    let generation = Generation::new(3);
    let address = Arc::from("host:1");
    let last = ResolveError::Incompatible;
    let attempts = 8;
    let all = [
        (Failure::Aborted, Fault::Caller, "aborted by its engine"),
        (
            Failure::Tables(Arc::new(RequestError::Foreign)),
            Fault::Caller,
            "block tables can't be planned: ",
        ),
        (
            Failure::Refused(Refusal::Busy),
            Fault::Limit,
            "prefill refused: too many pulls or transfers",
        ),
        (Failure::Cancelled, Fault::Peer, "cancelled by decode"),
        (
            Failure::HandOff { prefill, decode },
            Fault::IncompatiblePeer,
            "prefill hands over 9 elements, decode expects 10",
        ),
        (
            Failure::PeerLost { generation },
            Fault::Peer,
            "the peer's generation 3 is gone",
        ),
        (
            Failure::Bootstrap {
                address,
                attempts,
                last,
            },
            Fault::Transport,
            "bootstrap at host:1 gave no peer after 8 attempts: incompatible ranks",
        ),
        (
            Failure::Undelivered,
            Fault::Transport,
            "the pull could not be sent",
        ),
        (
            Failure::Timeout { after },
            Fault::Transport,
            "no answer within 1500 ms",
        ),
        (
            Failure::Transfer(fault),
            Fault::Transport,
            "the transfer failed: engine error -7",
        ),
        (
            Failure::Expired { after },
            Fault::Peer,
            "not asked for within 1500 ms",
        ),
        (
            Failure::NotComputed { after },
            Fault::Caller,
            "not computed within 1500 ms",
        ),
    ];
    for (failure, fault, text) in all {
        assert_eq!(failure.fault(), fault, "{failure}");
        assert!(failure.to_string().starts_with(text), "{failure}");
    }
}

#[test]
fn every_refusal_has_a_fault_and_a_text() {
    let after = Span::from_secs(480);
    let (prefill, decode) = (TokenCount::new(9), TokenCount::new(10));
    let (asked, actual) = (Generation::new(3), Generation::new(4));
    let consumer = |reason| Refusal::Consumer {
        asked: Consumer::new(1, 3).unwrap(),
        reason,
    };
    let all = [
        (Refusal::Unknown, Fault::Peer, "unknown transfer"),
        (Refusal::Ended, Fault::Peer, "the transfer has ended"),
        (
            Refusal::Aborted,
            Fault::Peer,
            "aborted by the prefill engine",
        ),
        (
            Refusal::NotReady { after },
            Fault::Peer,
            "not computed within 480 s",
        ),
        (Refusal::Cancelled, Fault::Caller, "the pull was cancelled"),
        (
            Refusal::HandOff { prefill, decode },
            Fault::IncompatiblePeer,
            "prefill hands over 9 elements, 10 were expected",
        ),
        (
            Refusal::Tables("entry"),
            Fault::Caller,
            "block tables can't be planned: entry",
        ),
        (
            Refusal::Transfer(TransferFault { code: 5 }),
            Fault::Transport,
            "the transfer failed: engine error 5",
        ),
        (
            Refusal::Generation { asked, actual },
            Fault::Peer,
            "generation 3 was asked, this is 4",
        ),
        (
            Refusal::Superseded,
            Fault::Peer,
            "the asking engine was started again since",
        ),
        (
            Refusal::Over(PullNumber::new(6)),
            Fault::Peer,
            "pull 6 is over",
        ),
        (
            consumer(ConsumerProblem::Twice),
            Fault::Peer,
            "consumer 1 of 3 can't ask: it has asked already",
        ),
        (
            consumer(ConsumerProblem::Count(2)),
            Fault::Peer,
            "consumer 1 of 3 can't ask: there are 2",
        ),
        (Refusal::Busy, Fault::Limit, "too many pulls or transfers"),
        (Refusal::Stock, Fault::Peer, "stock peer's error"),
    ];
    for (refusal, fault, text) in all {
        assert_eq!(
            (refusal.fault(), refusal.to_string().as_str()),
            (fault, text)
        );
        assert_eq!(Failure::Refused(refusal).fault(), fault);
    }
}

#[test]
fn faults_are_told_apart_by_name() {
    let all = [
        (Fault::Caller, "caller"),
        (Fault::IncompatiblePeer, "incompatible peer"),
        (Fault::Peer, "peer"),
        (Fault::Transport, "transport"),
        (Fault::Limit, "limit"),
    ];
    for (fault, name) in all {
        assert_eq!(fault.to_string(), name);
    }
}
