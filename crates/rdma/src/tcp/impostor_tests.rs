//! Whoever is opened can answer what it likes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use quickcheck::quickcheck;

use super::bench::Bench;
use super::wire::{Answer, FRAME, Hello, Reply, VERSION, Verdict};
use super::{TcpConfig, TcpLoopback};
use crate::batch::Operation;
use crate::engine::{Drained, Engine, Patience, TaskStatus};
use crate::error::OpenError;

const LEN: u64 = 128 << 10;

/// Welcomes one session, says `words` to whatever it asks first, and is gone.
fn impostor(words: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        welcome(&mut stream);
        stream.read_exact(&mut [0]).unwrap();
        // It may have been hung up on by now.
        let _ = stream.write_all(&words);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    (name, thread)
}

fn welcome(stream: &mut TcpStream) {
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).unwrap();
    let mut bytes = [0; FRAME];
    stream.read_exact(&mut bytes).unwrap();
    let answer = Answer {
        version: VERSION,
        verdict: Verdict::Welcome,
        generation: 1,
        number: Hello::decode(&bytes).unwrap().session.number,
    };
    stream.write_all(&answer.encode()).unwrap();
}

/// Replies that say anything, with some bytes behind a part of a read.
fn replies(raw: &[(u8, u16)]) -> Vec<u8> {
    let mut words = Vec::new();
    for (kind, number) in raw {
        let number = u32::from(*number);
        let reply = match kind % 6 {
            0 | 1 => Reply::Go,
            2 => Reply::Done { count: number % 5 },
            3 => Reply::Denied {
                index: number % 5,
                violation: crate::Violation::DestinationTwice {
                    address: number.into(),
                    other: 0,
                },
            },
            _ => Reply::Data { len: number.into() },
        };
        words.extend(reply.encode());
        if let Reply::Data { len } = reply {
            // Sometimes too few.
            let len = usize::try_from(len).unwrap();
            words.resize(
                words.len() + len.saturating_sub(usize::from(kind % 2)),
                0xEE,
            );
        }
    }
    words
}

/// Four tasks at an impostor. They end, and only destinations of reads, which
/// are the first three quarters of the buffer, have changed.
fn check(operation: Operation, words: &[u8]) -> bool {
    thread_local! {
        static BENCH: &'static Bench = Box::leak(Box::new(Bench::new(LEN)));
    }
    let bench = BENCH.with(|bench| *bench);
    let before = bench.source.read().to_vec();
    let copies: Vec<_> = (0..4)
        .map(|n| (n * LEN / 4, n * LEN / 4, LEN * 3 / 16))
        .collect();
    let batch = bench.batch(operation, &copies);
    let (name, thread) = impostor(words.to_owned());
    let peer = bench.prefill.open(&name).unwrap();
    let mut ticket = bench
        .prefill
        .submit(&peer, batch.submission(0).unwrap())
        .unwrap();
    let Drained::Quiescent(progress) = bench.prefill.drain(&mut ticket, Patience::default()) else {
        panic!("nobody listens there, so it has ended");
    };
    bench.prefill.release(ticket).unwrap();
    drop(peer);
    thread.join().unwrap();
    let after = bench.source.read().to_vec();
    let quarter = usize::try_from(LEN / 4).unwrap();
    let kept = quarter * 3 / 4;
    for (task, (old, new)) in before
        .chunks(quarter)
        .zip(after.chunks(quarter))
        .enumerate()
    {
        assert!(old[kept..] == new[kept..], "no descriptor has these bytes");
        match operation {
            Operation::Write => assert!(old == new, "a write has changed its source"),
            Operation::Read if progress.tasks()[task] == TaskStatus::Completed => {
                assert!(
                    new[..kept]
                        .iter()
                        .all(|byte| *byte == 0xEE || words.contains(byte))
                );
            }
            Operation::Read => {}
        }
    }
    true
}

quickcheck! {
    fn random_replies_to_a_write_end_it(words: Vec<u8>) -> bool {
        check(Operation::Write, &words)
    }

    fn replies_without_sense_to_a_write_end_it(raw: Vec<(u8, u16)>) -> bool {
        check(Operation::Write, &replies(&raw))
    }

    fn replies_without_sense_to_a_read_end_it(raw: Vec<(u8, u16)>) -> bool {
        let mut words = Reply::Go.encode().to_vec();
        words.extend(replies(&raw));
        check(Operation::Read, &words)
    }
}

#[test]
fn a_read_with_too_few_or_too_many_bytes_is_not_completed() {
    let bench = Bench::new(4_096);
    let batch = bench.batch(Operation::Read, &[(0, 0, 64)]);
    for (len, fine) in [(0, false), (63, false), (64, true), (65, false)] {
        let mut words = Reply::Go.encode().to_vec();
        if len > 0 {
            words.extend(Reply::Data { len }.encode());
            words.resize(words.len() + usize::try_from(len).unwrap(), 0xEE);
        }
        words.extend(Reply::Done { count: 1 }.encode());
        let (name, thread) = impostor(words);
        let peer = bench.prefill.open(&name).unwrap();
        let submission = batch.submission(0).unwrap();
        let mut ticket = bench.prefill.submit(&peer, submission).unwrap();
        let drained = bench.prefill.drain(&mut ticket, Patience::default());
        let Drained::Quiescent(progress) = drained else {
            panic!("it has ended");
        };
        assert_eq!(progress.first_failure().is_none(), fine, "{len}");
        drop(peer);
        thread.join().unwrap();
    }
}

#[test]
fn what_is_no_engine_can_not_be_opened() {
    let engine =
        TcpLoopback::start(&TcpConfig::default().greeting_limit(Duration::from_millis(300)))
            .unwrap();
    for words in [
        &b""[..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n and so on and on and on",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(words).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = engine.open(&name).unwrap_err();
        assert!(matches!(error, OpenError::NoAnswer { .. }), "{error}");
        thread.join().unwrap();
    }
}
