//! What an engine refuses, and when a peer is another one.

use std::sync::Arc;

use super::bench::{Bench, CANARY, buffer, span};
use super::{StartError, TcpConfig, TcpLoopback};
use crate::batch::Operation;
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::engine::{Drained, Engine, Patience};
use crate::error::{
    OpenError, RegisterError, Side, SubmitError, TaskFailure, UnregisterError, Violation,
};
use crate::transfer::{TransferError, transfer};

fn write(bench: &Bench, copies: &[(u64, u64, u64)]) -> Result<(), TransferError<super::TcpTicket>> {
    let batch = bench.batch(Operation::Write, copies);
    let engine = &*bench.prefill;
    transfer(engine, &bench.peer, &batch, Patience::default(), |_| {}).map(drop)
}

#[test]
fn ranges_are_disjoint_and_may_touch() {
    let engine = TcpLoopback::start(&TcpConfig::default()).unwrap();
    let memory = buffer(4_096, 100);
    let first = engine.register(&memory, span(10, 10)).unwrap();
    let _second = engine.register(&memory, span(20, 10)).unwrap();
    for (start, len) in [(0, 11), (12, 2), (19, 2), (29, 1), (0, 100)] {
        let error = engine.register(&memory, span(start, len)).unwrap_err();
        assert!(matches!(error, RegisterError::Overlap { .. }), "{error}");
    }
    assert!(engine.register(&memory, span(99, 2)).is_err());
    engine.unregister(first).unwrap();
    engine.register(&memory, span(0, 20)).unwrap();
}

#[test]
fn the_peer_refuses_what_it_has_not_registered_and_stays_open() {
    let bench = Bench::with_ranges(8_192, &[(0, 4_096)]);
    let copies = [(0, 0, 64), (64, 4_000, 200), (300, 5_000, 1)];
    let Err(TransferError::Task { failure, .. }) = write(&bench, &copies) else {
        panic!("it was taken");
    };
    let base = super::bench::THERE;
    let violation = Violation::CrossesRegion {
        side: Side::Remote,
        address: base + 4_000,
        len: 200,
        region_end: base + 4_096,
    };
    assert_eq!(
        failure,
        TaskFailure::Denied {
            index: 1,
            violation
        }
    );
    bench.assert_landed(&[]);
    write(&bench, &[(0, 0, 4_096)]).unwrap();
    bench.assert_landed(&[(0, 0, 4_096)]);
}

#[test]
fn a_read_is_refused_like_a_write() {
    let bench = Bench::with_ranges(8_192, &[(0, 4_096)]);
    let batch = bench.batch(Operation::Read, &[(0, 0, 64), (64, 4_096, 1)]);
    let before = bench.source.read().to_vec();
    let patience = Patience::default();
    let Err(TransferError::Task { failure, .. }) =
        transfer(&*bench.prefill, &bench.peer, &batch, patience, |_| {})
    else {
        panic!("it was taken");
    };
    let (side, address) = (Side::Remote, super::bench::THERE.wrapping_add(4_096));
    let violation = Violation::Unregistered { side, address };
    assert_eq!(
        failure,
        TaskFailure::Denied {
            index: 1,
            violation
        }
    );
    assert!(**bench.source.read() == *before);
}

#[test]
fn an_address_of_version_6_is_a_name_in_brackets() {
    let config = TcpConfig::new(std::net::Ipv6Addr::LOCALHOST.into());
    let Ok(engine) = TcpLoopback::start(&config) else {
        eprintln!("skipped: no IPv6 here");
        return;
    };
    assert!(engine.name().starts_with("[::1]:"), "{}", engine.name());
    engine.open(engine.name()).unwrap();
}

#[test]
fn destinations_that_overlap_are_refused_before_anything_is_sent() {
    let bench = Bench::new(4_096);
    let batch = bench.batch(Operation::Write, &[(0, 0, 64), (64, 63, 1)]);
    let submission = batch.submission(0).unwrap();
    let error = bench.prefill.submit(&bench.peer, submission).unwrap_err();
    assert!(matches!(
        error,
        SubmitError::Descriptor {
            index: 1,
            violation: Violation::DestinationTwice { other: 0, .. }
        }
    ));
}

#[test]
fn an_unregistered_source_is_refused() {
    let mut bench = Bench::new(4_096);
    let source = bench.registered.remove(0);
    bench.prefill.unregister(source).unwrap();
    let batch = bench.batch(Operation::Write, &[(0, 0, 64)]);
    let error = bench
        .prefill
        .submit(&bench.peer, batch.submission(0).unwrap());
    assert!(matches!(
        error.unwrap_err(),
        SubmitError::Descriptor {
            index: 0,
            violation: Violation::Unregistered {
                side: Side::Local,
                ..
            }
        }
    ));
}

#[test]
fn a_queue_takes_as_many_as_its_limit_over_all_openings_of_a_peer() {
    let limits = SubmissionLimits::new(2, super::bench::len(1 << 20)).unwrap();
    let config = TcpConfig::default().limits(RegistrationLimits::default(), limits);
    let bench = Bench::new(4_096);
    let engine = TcpLoopback::start(&config).unwrap();
    let _source = engine.register(&bench.source, span(0, 4_096)).unwrap();
    let (first, second) = (
        engine.open(bench.decode.name()).unwrap(),
        engine.open(bench.decode.name()).unwrap(),
    );
    // Nothing lands while somebody reads.
    let reading = bench.destination.read();
    let batch = bench.batch(Operation::Write, &[(0, 0, 64), (64, 64, 64)]);
    let submission = batch.submission(0).unwrap();
    let mut ticket = engine.submit(&first, submission).unwrap();
    let error = engine.submit(&second, submission).unwrap_err();
    assert!(matches!(
        error,
        SubmitError::QueueFull {
            outstanding: 2,
            limit: 2,
            ..
        }
    ));
    drop(reading);
    assert!(matches!(
        engine.drain(&mut ticket, Patience::default()),
        Drained::Quiescent(progress) if progress.first_failure().is_none()
    ));
    engine.release(ticket).unwrap();
    engine.submit(&second, submission).unwrap();
}

#[test]
fn a_range_in_use_is_unregistered_when_its_transfer_has_ended() {
    let mut bench = Bench::new(4_096);
    let source = bench.registered.remove(0);
    let batch = bench.batch(Operation::Write, &[(0, 0, 64)]);
    let reading = bench.destination.read();
    let mut ticket = bench
        .prefill
        .submit(&bench.peer, batch.submission(0).unwrap())
        .unwrap();
    let error = bench.prefill.unregister(source).unwrap_err();
    assert!(matches!(error, UnregisterError::InFlight { .. }));
    assert!(bench.prefill.register(&bench.source, span(0, 64)).is_err());
    drop(reading);
    let drained = bench.prefill.drain(&mut ticket, Patience::default());
    assert!(matches!(drained, Drained::Quiescent(_)));
    bench.prefill.register(&bench.source, span(0, 64)).unwrap();
    bench.assert_landed(&[(0, 0, 64)]);
}

#[test]
fn a_peer_that_was_replaced_is_stale_and_can_be_opened_again() {
    let Bench {
        prefill,
        decode,
        peer,
        source,
        destination,
        registered,
        ..
    } = Bench::new(4_096);
    let name = decode.name().to_owned();
    let port = name.rsplit(':').next().unwrap().parse().unwrap();
    drop((decode, registered));
    let _source = prefill.register(&source, span(0, 4_096)).unwrap();
    let limits = prefill.capabilities().submission();
    let (local, remote) = (super::bench::map(&source), super::bench::map(&destination));
    let copy = crate::bind::Part {
        source: (super::bench::ID, 0),
        destination: (super::bench::ID, 0),
        len: 64,
    };
    let batch = crate::bind::bind_parts([copy], Operation::Write, &local, &remote, limits).unwrap();
    let submission = batch.submission(0).unwrap();
    let error = prefill.submit(&peer, submission).unwrap_err();
    assert!(matches!(error, SubmitError::PeerGone { .. }), "{error}");

    let decode = TcpLoopback::start(&TcpConfig::default().port(port)).unwrap();
    let _destination = decode.register(&destination, span(0, 4_096)).unwrap();
    let error = prefill.submit(&peer, submission).unwrap_err();
    assert!(
        matches!(
            error,
            SubmitError::PeerGone { .. } | SubmitError::StalePeer { .. }
        ),
        "{error}"
    );
    assert!(destination.read().iter().all(|byte| *byte == CANARY));

    let again = prefill.open(&name).unwrap();
    drop(decode);
    let _decode = TcpLoopback::start(&TcpConfig::default().port(port)).unwrap();
    let error = prefill.submit(&again, submission).unwrap_err();
    assert!(matches!(error, SubmitError::StalePeer { .. }), "{error}");
    let third = prefill.open(&name).unwrap();
    let Err(TransferError::Task {
        failure: TaskFailure::Denied { .. },
        ..
    }) = transfer(&*prefill, &third, &batch, Patience::default(), |_| {})
    else {
        panic!("it has registered nothing");
    };
}

#[test]
fn names_and_configurations_that_make_no_sense_are_refused() {
    let engine = Arc::new(TcpLoopback::start(&TcpConfig::default()).unwrap());
    assert!(matches!(engine.open("nonsense"), Err(OpenError::Name(_))));
    assert!(matches!(
        engine.open("127.0.0.1:1"),
        Err(OpenError::Unreachable { .. })
    ));
    let any = TcpConfig::new([0, 0, 0, 0].into());
    assert!(matches!(
        TcpLoopback::start(&any),
        Err(StartError::Unspecified { .. })
    ));
    let limits = SubmissionLimits::new(16_385, super::bench::len(1)).unwrap();
    let large = TcpConfig::default().limits(RegistrationLimits::default(), limits);
    assert!(matches!(
        TcpLoopback::start(&large),
        Err(StartError::Descriptors {
            descriptors: 16_385,
            ..
        })
    ));
    let port = engine.name().rsplit(':').next().unwrap().parse().unwrap();
    let taken = TcpConfig::default().port(port);
    assert!(matches!(
        TcpLoopback::start(&taken),
        Err(StartError::Listen { .. })
    ));
}
