//! Whoever connects can send what it likes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use quickcheck::{TestResult, quickcheck};

use super::bench::{Bench, CANARY, THERE};
use super::wire::{
    Answer, FRAME, Hello, MAX_DESCRIPTORS, Purpose, Reply, Request, SessionId, VERSION, Verdict,
    encode_descriptors,
};
use super::{TcpConfig, TcpLoopback};
use crate::batch::Operation;
use crate::engine::{Engine, Patience};
use crate::error::{Side, Violation};
use crate::transfer::transfer;

const LEN: u64 = 64 << 10;

fn hello(purpose: Purpose) -> Hello {
    Hello {
        version: VERSION,
        purpose,
        session: SessionId {
            client: 7,
            number: super::random(),
        },
        expected: 0,
    }
}

fn connect(name: &str) -> TcpStream {
    let stream = TcpStream::connect(name).unwrap();
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    stream
}

fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = [0; FRAME];
    stream.read_exact(&mut bytes).unwrap();
    Answer::decode(&bytes).unwrap()
}

fn reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = [0; FRAME];
    stream.read_exact(&mut bytes).unwrap();
    Reply::decode(&bytes).unwrap()
}

/// Whether the other side has hung up, within the time limit of reading.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// A welcomed session.
fn session(name: &str) -> TcpStream {
    let mut stream = connect(name);
    stream.write_all(&hello(Purpose::Session).encode()).unwrap();
    assert_eq!(answer(&mut stream).verdict, Verdict::Welcome);
    stream
}

fn request(operation: Operation, descriptors: &[(u64, u64)]) -> Vec<u8> {
    let request = Request {
        operation,
        count: u32::try_from(descriptors.len()).unwrap(),
        bytes: descriptors
            .iter()
            .fold(0, |sum, (_, len)| sum.wrapping_add(*len)),
    };
    let mut bytes = request.encode().to_vec();
    encode_descriptors(descriptors, &mut bytes);
    bytes
}

/// Everything that a client may say in one go: hello, a write of a page, a read.
fn conversation() -> Vec<u8> {
    let mut bytes = hello(Purpose::Session).encode().to_vec();
    bytes.extend(request(Operation::Write, &[(THERE, 4_096)]));
    bytes.extend([CANARY; 4_096]);
    bytes.extend(request(Operation::Read, &[(THERE + 64, 512), (THERE, 4)]));
    bytes
}

/// Says it, hears the engine out, and hangs up.
fn say(name: &str, bytes: &[u8]) {
    let mut stream = connect(name);
    // It may have hung up by now.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
}

/// An engine that has only these ranges, between which nothing may be written;
/// one for each test.
fn victim() -> &'static Bench {
    thread_local! {
        static BENCH: &'static Bench =
            Box::leak(Box::new(Bench::with_ranges(LEN, &[(0, 4_096), (8_192, 4_096)])));
    }
    BENCH.with(|bench| *bench)
}

/// A page can still be moved, and nothing outside of registered ranges changed.
fn is_sound(bench: &Bench) -> bool {
    let outside = {
        let bytes = bench.destination.read();
        let mut outside = bytes[4_096..8_192].iter().chain(&bytes[12_288..]);
        outside.all(|byte| *byte == CANARY)
    };
    let batch = bench.batch(Operation::Write, &[(0, 8_192, 4_096)]);
    let peer = bench.prefill.open(bench.decode.name()).unwrap();
    transfer(&*bench.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    let landed = bench.destination.read()[8_192..12_288] == bench.source.read()[..4_096];
    outside && landed
}

quickcheck! {
    fn random_bytes_change_nothing(bytes: Vec<u8>) -> bool {
        say(victim().decode.name(), &bytes);
        is_sound(victim())
    }

    fn random_bytes_behind_a_hello_change_nothing(bytes: Vec<u8>) -> bool {
        let mut all = hello(Purpose::Session).encode().to_vec();
        all.extend(bytes);
        say(victim().decode.name(), &all);
        is_sound(victim())
    }

    fn a_mutated_conversation_changes_nothing_that_is_not_registered(
        changes: Vec<(u16, u8)>,
        cut: u16
    ) -> bool {
        let mut bytes = conversation();
        let heads = 40 + 16 + 16;
        for (at, byte) in changes {
            let at = usize::from(at);
            // Most of it is payload; what is before it matters more.
            let at = if at % 8 == 0 { at % bytes.len() } else { at % heads };
            bytes[at] ^= byte;
        }
        bytes.truncate(bytes.len().saturating_sub(usize::from(cut) % 64 * 70));
        say(victim().decode.name(), &bytes);
        is_sound(victim())
    }

    fn descriptors_are_written_where_they_are_allowed_and_nowhere_else(
        raw: Vec<(u16, u16)>
    ) -> TestResult {
        if raw.is_empty() {
            return TestResult::discard();
        }
        let bench = victim();
        let descriptors: Vec<(u64, u64)> = raw
            .iter()
            .map(|(at, len)| (THERE + u64::from(*at), u64::from(len % 700)))
            .collect();
        let allowed = |start: u64, len: u64| {
            len > 0 && [0, 8_192].iter().any(|base| {
                start >= THERE + base && start + len <= THERE + base + 4_096
            })
        };
        let apart = descriptors.iter().enumerate().all(|(n, (start, len))| {
            descriptors[..n].iter().all(|(other, size)| start + len <= *other || other + size <= *start)
        });
        let fine = apart && descriptors.iter().all(|(start, len)| allowed(*start, *len));
        let mut stream = session(bench.decode.name());
        stream.write_all(&request(Operation::Write, &descriptors)).unwrap();
        match reply(&mut stream) {
            Reply::Go => assert!(fine, "{descriptors:?}"),
            Reply::Denied { .. } => assert!(!fine, "{descriptors:?}"),
            other => panic!("{other:?}"),
        }
        TestResult::from_bool(is_sound(bench))
    }
}

#[test]
fn what_a_network_card_refuses_is_refused_by_name_and_the_session_goes_on() {
    let bench = Bench::with_ranges(LEN, &[(0, 4_096), (4_096, 4_096)]);
    let mut stream = session(bench.decode.name());
    let side = Side::Remote;
    let end = THERE + 4_096;
    let cases = [
        (
            vec![(THERE, 1), (THERE, 0)],
            1,
            Violation::Empty {
                side,
                address: THERE,
            },
        ),
        (
            vec![(THERE - 1, 2)],
            0,
            Violation::Unregistered {
                side,
                address: THERE - 1,
            },
        ),
        (
            vec![(1 << 63, 2)],
            0,
            Violation::Unregistered {
                side,
                address: 1 << 63,
            },
        ),
        (
            vec![(end - 1, 2)],
            0,
            Violation::CrossesRegion {
                side,
                address: end - 1,
                len: 2,
                region_end: end,
            },
        ),
        (
            vec![(THERE + 9, u64::MAX)],
            0,
            Violation::CrossesRegion {
                side,
                address: THERE + 9,
                len: u64::MAX,
                region_end: end,
            },
        ),
        (
            vec![(THERE, 8), (THERE + 8, 8), (THERE + 7, 1)],
            2,
            Violation::DestinationTwice {
                address: THERE + 7,
                other: 0,
            },
        ),
    ];
    for (descriptors, index, violation) in cases {
        stream
            .write_all(&request(Operation::Write, &descriptors))
            .unwrap();
        assert_eq!(reply(&mut stream), Reply::Denied { index, violation });
    }
    stream
        .write_all(&request(Operation::Write, &[(THERE, 3)]))
        .unwrap();
    assert_eq!(reply(&mut stream), Reply::Go);
    stream.write_all(&[1, 2, 3]).unwrap();
    assert_eq!(reply(&mut stream), Reply::Done { count: 1 });
    assert_eq!(bench.destination.read()[..4], [1, 2, 3, CANARY]);
}

#[test]
fn more_descriptors_than_a_message_holds_close_the_connection() {
    let bench = Bench::new(LEN);
    for count in [0, MAX_DESCRIPTORS + 1, u32::MAX] {
        let mut stream = session(bench.decode.name());
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend(count.to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        stream.write_all(&bytes).unwrap();
        assert!(is_closed(&mut stream));
    }
    assert!(bench.destination.read().iter().all(|byte| *byte == CANARY));
}

#[test]
fn a_version_of_tomorrow_is_told_which_one_is_spoken() {
    let bench = Bench::new(LEN);
    let mut stream = connect(bench.decode.name());
    let tomorrow = Hello {
        version: VERSION + 1,
        ..hello(Purpose::Session)
    };
    stream.write_all(&tomorrow.encode()).unwrap();
    let answer = answer(&mut stream);
    assert_eq!(
        (answer.version, answer.verdict),
        (VERSION, Verdict::Version)
    );
}

#[test]
fn silent_and_slow_connections_are_dropped() {
    let config = TcpConfig::default().greeting_limit(Duration::from_millis(300));
    let engine = TcpLoopback::start(&config).unwrap();
    let mut silent: Vec<TcpStream> = (0..20).map(|_| connect(engine.name())).collect();
    // Each byte comes in time, all of them do not.
    let mut slow = connect(engine.name());
    let pace = Some(Duration::from_millis(50));
    slow.set_read_timeout(pace).unwrap();
    let hello = hello(Purpose::Session).encode();
    let bytes = hello.iter().take(FRAME - 1);
    let dropped = bytes.map(|byte| slow.write_all(&[*byte]).is_err() || is_closed(&mut slow));
    assert!(dropped.into_iter().any(|dropped| dropped));
    assert!(silent.iter_mut().all(is_closed));
}

#[test]
fn silent_connections_keep_nobody_out() {
    let config = TcpConfig::default().greeting_limit(Duration::from_mins(10));
    let engine = TcpLoopback::start(&config).unwrap();
    let _silent: Vec<TcpStream> = (0..300).map(|_| connect(engine.name())).collect();
    let other = TcpLoopback::start(&TcpConfig::default()).unwrap();
    // Threads of those that were dropped may still be about to end.
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(error) = other.open(engine.name()) {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::yield_now();
    }
}

#[test]
fn sessions_are_bounded_and_room_comes_back() {
    let config = TcpConfig::default().sessions(std::num::NonZeroU16::MIN);
    let engine = TcpLoopback::start(&config).unwrap();
    let other = TcpLoopback::start(&TcpConfig::default()).unwrap();
    let peer = other.open(engine.name()).unwrap();
    let error = other.open(engine.name()).unwrap_err();
    assert!(matches!(error, crate::OpenError::Refused { .. }), "{error}");
    drop(peer);
    let deadline = Instant::now() + Duration::from_secs(20);
    while other.open(engine.name()).is_err() {
        assert!(Instant::now() < deadline, "no room came back");
        std::thread::yield_now();
    }
}

#[test]
fn a_stalled_writer_neither_locks_memory_nor_delays_unregistering() {
    let mut bench = Bench::new(LEN);
    let mut stream = session(bench.decode.name());
    stream
        .write_all(&request(Operation::Write, &[(THERE, LEN)]))
        .unwrap();
    assert_eq!(reply(&mut stream), Reply::Go);
    stream.write_all(&vec![1; 40_000]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while bench.destination.read()[39_999] != 1 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    bench
        .decode
        .unregister(bench.registered.pop().unwrap())
        .unwrap();
    bench.destination.write().fill(CANARY);
    let rest = usize::try_from(LEN).unwrap() - 40_000;
    stream.write_all(&vec![2; rest]).unwrap();
    let violation = Violation::Unregistered {
        side: Side::Remote,
        address: THERE,
    };
    assert_eq!(
        reply(&mut stream),
        Reply::Denied {
            index: 0,
            violation
        }
    );
    assert!(bench.destination.read().iter().all(|byte| *byte == CANARY));
}

#[test]
fn an_ended_session_writes_no_more() {
    let bench = Bench::new(LEN);
    let mut stream = connect(bench.decode.name());
    let first = hello(Purpose::Session);
    stream.write_all(&first.encode()).unwrap();
    let generation = answer(&mut stream).generation;
    stream
        .write_all(&request(Operation::Write, &[(THERE, LEN)]))
        .unwrap();
    assert_eq!(reply(&mut stream), Reply::Go);
    stream.write_all(&[1; 100]).unwrap();
    let mut ending = connect(bench.decode.name());
    let end = Hello {
        purpose: Purpose::End,
        expected: generation,
        ..first
    };
    ending.write_all(&end.encode()).unwrap();
    assert_eq!(answer(&mut ending).verdict, Verdict::Ended);
    bench.destination.write().fill(CANARY);
    let _ = stream.write_all(&vec![2; 40_000]);
    let _ = stream.read(&mut [0; 1]);
    assert!(bench.destination.read().iter().all(|byte| *byte == CANARY));
}
