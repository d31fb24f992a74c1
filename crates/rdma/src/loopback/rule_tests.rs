//! Each rule of a network card, broken and just not broken.

use super::bench::{Bench, ID, buffer, len, map, pattern, span};
use super::*;
use crate::bind::{Part, bind_parts};
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::error::{Fault, Side, Violation};
use crate::transfer::transfer;

const LOCAL: u64 = 1 << 20;
const REMOTE: u64 = 1 << 40;

fn raw(bench: &Bench, descriptors: &[(u64, u64, u64)]) -> Result<LoopbackTicket, SubmitError> {
    let descriptors: Vec<RawDescriptor> = descriptors
        .iter()
        .map(|(local, remote, len)| RawDescriptor {
            local: *local,
            remote: *remote,
            len: *len,
        })
        .collect();
    bench
        .prefill
        .submit_raw(&bench.peer, Operation::Write, &descriptors)
}

fn refused(index: usize, violation: Violation) -> SubmitError {
    SubmitError::Descriptor { index, violation }
}

#[test]
fn source_and_destination_must_be_registered() {
    let bench = Bench::new(64);
    raw(&bench, &[(LOCAL, REMOTE, 64)]).unwrap();
    for (side, address, descriptor) in [
        (Side::Local, LOCAL - 1, (LOCAL - 1, REMOTE, 1)),
        (Side::Local, LOCAL + 64, (LOCAL + 64, REMOTE, 1)),
        (Side::Remote, REMOTE - 1, (LOCAL, REMOTE - 1, 1)),
        (Side::Remote, REMOTE + 64, (LOCAL, REMOTE + 64, 1)),
    ] {
        let violation = Violation::Unregistered { side, address };
        let error = raw(&bench, &[(LOCAL, REMOTE, 1), descriptor]).unwrap_err();
        assert_eq!(error, refused(1, violation));
        assert_eq!(error.fault(), Fault::Caller);
    }
}

#[test]
fn a_refused_submission_moves_nothing() {
    let bench = Bench::new(64);
    raw(&bench, &[(LOCAL, REMOTE, 8), (LOCAL, REMOTE + 64, 1)]).unwrap_err();
    bench.prefill.advance(10);
    bench.assert_landed(&[]);
}

#[test]
fn a_descriptor_lies_within_one_region_even_where_another_touches_it() {
    let bench = Bench::new(64);
    let neighbour = buffer(REMOTE + 64, 64);
    bench.decode.register(&neighbour, span(0, 64)).unwrap();
    raw(&bench, &[(LOCAL, REMOTE + 60, 4), (LOCAL, REMOTE + 64, 4)]).unwrap();
    let violation = Violation::CrossesRegion {
        side: Side::Remote,
        address: REMOTE + 60,
        len: 5,
        region_end: REMOTE + 64,
    };
    let error = raw(&bench, &[(LOCAL, REMOTE + 60, 5)]).unwrap_err();
    assert_eq!(error, refused(0, violation));
}

#[test]
fn a_descriptor_that_wraps_is_refused() {
    let bench = Bench::new(64);
    let violation = Violation::CrossesRegion {
        side: Side::Local,
        address: LOCAL + 1,
        len: u64::MAX,
        region_end: LOCAL + 64,
    };
    let error = raw(&bench, &[(LOCAL + 1, REMOTE, u64::MAX)]).unwrap_err();
    assert_eq!(error, refused(0, violation));
}

#[test]
fn a_descriptor_moves_at_least_one_byte() {
    let bench = Bench::new(64);
    raw(&bench, &[(LOCAL, REMOTE, 1)]).unwrap();
    let violation = Violation::Empty {
        side: Side::Local,
        address: LOCAL,
    };
    let error = raw(&bench, &[(LOCAL, REMOTE, 0)]).unwrap_err();
    assert_eq!(error, refused(0, violation));
}

#[test]
fn destinations_of_a_submission_touch_but_do_not_overlap() {
    let bench = Bench::new(64);
    raw(&bench, &[(LOCAL, REMOTE + 8, 8), (LOCAL, REMOTE, 8)]).unwrap();
    let violation = Violation::DestinationTwice {
        address: REMOTE,
        other: 0,
    };
    let error = raw(&bench, &[(LOCAL, REMOTE + 8, 8), (LOCAL, REMOTE, 9)]).unwrap_err();
    assert_eq!(error, refused(1, violation));
}

#[test]
fn a_destination_is_not_a_source_of_the_same_submission() {
    let bench = Bench::new(64);
    let peer = bench.prefill.open("prefill").unwrap();
    let submit = |from: u64, to: u64, len: u64| {
        let descriptor = RawDescriptor {
            local: LOCAL + from,
            remote: LOCAL + to,
            len,
        };
        bench
            .prefill
            .submit_raw(&peer, Operation::Write, &[descriptor])
    };
    let before = bench.source.read().clone();
    let mut ticket = submit(0, 8, 8).unwrap();
    assert!(bench.prefill.poll(&mut ticket).is_quiescent());
    assert_eq!(bench.source.read()[8..16], before[..8]);
    assert_eq!(bench.source.read()[16..], before[16..]);
    let violation = Violation::DestinationIsSource {
        address: LOCAL + 8,
        other: 0,
    };
    assert_eq!(submit(0, 8, 9).unwrap_err(), refused(0, violation));
    // A destination that ends where its source begins.
    submit(32, 24, 8).unwrap();
    assert!(submit(32, 24, 9).is_err());
}

#[test]
fn registered_ranges_touch_but_do_not_overlap() {
    let engine = Fabric::new().attach("prefill").unwrap();
    let at = |base, bytes| engine.register(&buffer(base, bytes), span(0, bytes));
    at(1_000, 100).unwrap();
    at(1_100, 100).unwrap();
    at(900, 100).unwrap();
    // The same, nested, containing, and overlapping at either end.
    for (base, bytes) in [(1_000, 100), (1_010, 10), (800, 500), (1_199, 5), (899, 2)] {
        let error = at(base, bytes).unwrap_err();
        let RegisterError::Overlap { start, code, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((start, code.value()), (base, -7));
        assert_eq!(error.fault(), Fault::Caller);
    }
}

#[test]
fn a_range_of_no_bytes_is_refused() {
    let engine = Fabric::new().attach("prefill").unwrap();
    let memory = buffer(1_000, 8);
    let error = engine.register_raw(1_000, 0, &memory, 0).unwrap_err();
    assert!(matches!(error, RegisterError::Empty { code, .. } if code.value() == -1));
    engine.register_raw(1_000, 1, &memory, 0).unwrap();
}

#[test]
fn a_range_is_inside_its_memory() {
    let engine = Fabric::new().attach("prefill").unwrap();
    let memory = buffer(1_000, 8);
    engine.register(&memory, span(4, 4)).unwrap();
    assert_eq!(
        engine.register(&memory, span(0, 9)).unwrap_err(),
        RegisterError::OutsideMemory {
            start: 0,
            end: 9,
            len: 8
        }
    );
}

#[test]
fn declared_registration_limits_are_enforced() {
    let limits = RegistrationLimits::new(2)
        .unwrap()
        .with_max_len(len(64), len(16))
        .unwrap();
    let engine = Fabric::new()
        .attach_with("prefill", limits, SubmissionLimits::default())
        .unwrap();
    let at = |base, bytes| engine.register(&buffer(base, bytes), span(0, bytes));
    assert_eq!(
        at(0, 65).unwrap_err(),
        RegisterError::TooLong { len: 65, limit: 64 }
    );
    at(0, 64).unwrap();
    at(100, 64).unwrap();
    assert_eq!(
        at(200, 1).unwrap_err(),
        RegisterError::TooMany {
            regions: 2,
            limit: 2
        }
    );
}

#[test]
fn ranges_are_unregistered_one_by_one_and_once() {
    let engine = Fabric::new().attach("prefill").unwrap();
    let memory = buffer(1_000, 8);
    let first = engine.register(&memory, span(0, 4)).unwrap();
    engine.register(&memory, span(4, 4)).unwrap();
    let again = LoopbackRegistration {
        address: first.address,
    };
    engine.unregister(first).unwrap();
    assert_eq!(
        engine.unregister(again).unwrap_err(),
        UnregisterError::NotRegistered {
            address: memory.base(),
            code: NOT_REGISTERED
        }
    );
    engine.register(&memory, span(0, 4)).unwrap();
}

#[test]
fn no_more_is_outstanding_to_a_peer_than_it_queues() {
    let limits = SubmissionLimits::new(3, len(1_000)).unwrap();
    let bench = Bench::with_limits(64, limits);
    let mut first = bench.submit(&[(0, 0, 4), (0, 4, 4)]).unwrap();
    let error = bench.submit(&[(0, 8, 4), (0, 12, 4)]).unwrap_err();
    assert_eq!(
        error,
        SubmitError::QueueFull {
            peer: "decode".to_owned(),
            outstanding: 2,
            adding: 2,
            limit: 3
        }
    );
    bench.submit(&[(0, 8, 4)]).unwrap();
    assert!(bench.prefill.poll(&mut first).is_quiescent());
    bench.submit(&[(0, 12, 4), (0, 16, 4)]).unwrap();
}

#[test]
fn more_bytes_than_a_submission_takes_are_refused() {
    let bench = Bench::with_limits(64, SubmissionLimits::new(8, len(16)).unwrap());
    let parts = [16, 17].map(|len| Part {
        source: (ID, 0),
        destination: (ID, 0),
        len,
    });
    let submit = |part: Part| {
        let (local, remote) = (map(&bench.source), map(&bench.destination));
        let limits = SubmissionLimits::default();
        let batch = bind_parts([part], Operation::Write, &local, &remote, limits).unwrap();
        let submission = batch.submissions().next().unwrap();
        bench.prefill.submit(&bench.peer, submission).map(|_| ())
    };
    let [fits, over] = parts.map(submit);
    fits.unwrap();
    assert_eq!(
        over.unwrap_err(),
        SubmitError::TooManyBytes {
            bytes: 17,
            limit: 16
        }
    );
}

#[test]
fn a_read_brings_the_peers_bytes() {
    let bench = Bench::new(64);
    let part = Part {
        source: (ID, 3),
        destination: (ID, 9),
        len: 5,
    };
    // Decode pulls: its own side is local.
    let (local, remote) = (map(&bench.destination), map(&bench.source));
    let limits = SubmissionLimits::default();
    let batch = bind_parts([part], Operation::Read, &local, &remote, limits).unwrap();
    let peer = bench.decode.open("prefill").unwrap();
    transfer(&bench.decode, &peer, &batch, Patience::default(), |_| {}).unwrap();
    bench.assert_landed(&[(3, 9, 5)]);
}

#[test]
fn c63_sizes_around_powers_of_two_are_byte_exact() {
    for size in [1, 511, 512, 513, (64 << 10) - 1, (64 << 10) + 1] {
        let bench = Bench::new(size * 2 + 100);
        let copies = [(7, 50 + size, size), (size, 31, 1)];
        let batch = bench.batch(&copies);
        let moved = transfer(
            &bench.prefill,
            &bench.peer,
            &batch,
            Patience::default(),
            |_| {},
        )
        .unwrap();
        assert_eq!((moved.descriptors(), moved.bytes()), (2, size + 1));
        bench.assert_landed(&copies);
    }
}

#[test]
fn c62_100_000_descriptors_go_through_within_the_queue() {
    let bench = Bench::new(100_000 * 8);
    // Every piece of 5 bytes to a far and different place.
    let copies: Vec<(u64, u64, u64)> = (0..100_000_u64)
        .map(|n| (n * 8, (n * 7_919 % 100_000) * 8 + 1, 5))
        .collect();
    let batch = bench.batch(&copies);
    let mut steps = 0;
    let moved = transfer(
        &bench.prefill,
        &bench.peer,
        &batch,
        Patience::default(),
        |_| {
            steps += 1;
        },
    )
    .unwrap();
    assert_eq!(
        (moved.descriptors(), moved.submissions(), steps),
        (100_000, 98, 98)
    );
    bench.assert_landed(&copies);
}

#[test]
fn c28_bytes_beyond_4_gib_of_a_base_near_2_to_the_47_are_moved() {
    let size = (1 << 32) + (1 << 20);
    let base = (1 << 47) - 4_096;
    let fabric = Fabric::new();
    let (prefill, decode) = (fabric.attach("p").unwrap(), fabric.attach("d").unwrap());
    let (source, destination) = (buffer(base, size), buffer(base, size));
    prefill.register(&source, span(0, size)).unwrap();
    decode.register(&destination, span(0, size)).unwrap();
    let (from, to) = ((1 << 32) + 5, (1 << 32) + 70_000);
    let [at, end] = [to, to + 300].map(|n| usize::try_from(n).unwrap());
    let first = usize::try_from(from).unwrap();
    for (n, byte) in source.write()[first..][..300].iter_mut().enumerate() {
        *byte = pattern(n);
    }
    let part = Part {
        source: (ID, from),
        destination: (ID, to),
        len: 300,
    };
    let (local, remote) = (map(&source), map(&destination));
    let limits = SubmissionLimits::default();
    let batch = bind_parts([part], Operation::Write, &local, &remote, limits).unwrap();
    let peer = prefill.open("d").unwrap();
    transfer(&prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    let bytes = destination.read();
    assert!(bytes[at..end].iter().copied().eq((0..300).map(pattern)));
    assert_eq!((bytes[at - 1], bytes[end]), (0, 0));
    // The same offsets modulo 2^32 stay as they were.
    assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0));
}
