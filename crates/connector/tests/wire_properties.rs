//! Properties of the codecs over drawn messages, damaged messages and bytes.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use mooncake_pd_connector::testing::{WIRE_CODECS, check_wire_bytes, draw_answer, draw_pull};
use mooncake_pd_connector::wire::{Answer, Limits, Pull, Version};
use mooncake_pd_layout::testing::arbitrary::Unstructured;
use quickcheck::{Arbitrary, Gen, QuickCheck};

fn bytes(g: &mut Gen, most: u16) -> Vec<u8> {
    let len = u16::arbitrary(g) % most;
    (0..len).map(|_| u8::arbitrary(g)).collect()
}

/// Bytes for a codec.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Arbitrary for Bytes {
    fn arbitrary(g: &mut Gen) -> Self {
        Self(bytes(g, 768))
    }
}

/// A message of the corpus or a drawn one, with some bytes changed, taken away or added.
#[derive(Clone, Debug)]
struct Damaged(Vec<u8>);

fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
        let mut paths: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths.iter().map(|path| fs::read(path).unwrap()).collect()
    })
}

fn at(g: &mut Gen, len: usize) -> usize {
    usize::from(u16::arbitrary(g)) % len.max(1)
}

impl Arbitrary for Damaged {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut message = match u8::arbitrary(g) % 4 {
            0 => {
                let drawn = bytes(g, 256);
                let pull = draw_pull(&mut Unstructured::new(&drawn)).unwrap();
                [vec![0], pull.encode(Version::V033).unwrap()].concat()
            }
            1 => {
                let drawn = bytes(g, 256);
                let answer = draw_answer(&mut Unstructured::new(&drawn)).unwrap();
                [vec![1], answer.encode(Version::V033).unwrap()].concat()
            }
            _ => corpus()[at(g, corpus().len())].clone(),
        };
        if bool::arbitrary(g) {
            message[0] = message[0] % WIRE_CODECS + 130;
        }
        for _ in 0..u8::arbitrary(g) % 4 {
            if message.len() < 2 {
                break;
            }
            let place = 1 + at(g, message.len() - 1);
            match u8::arbitrary(g) % 6 {
                0 => message[place] = u8::arbitrary(g),
                1 => message[place] = message[place].wrapping_add(1),
                2 => message[place] ^= 1 << (u8::arbitrary(g) % 8),
                3 => message.truncate(place),
                4 => drop(message.remove(place)),
                _ => message.insert(
                    place,
                    *g.choose(&[0, 0x80, 0x90, 0xa0, 0xc0, 0xc1, 0xcf, 0xdd, 0xdf, 0xff])
                        .unwrap(),
                ),
            }
        }
        Self(message)
    }
}

fn hold<A: Arbitrary + std::fmt::Debug>(property: fn(A), cases: u64) {
    let tests = std::env::var("QUICKCHECK_TESTS").ok();
    let cases = tests.and_then(|tests| tests.parse().ok()).unwrap_or(cases);
    QuickCheck::new().tests(cases).quickcheck(property);
}

#[test]
fn whatever_is_read_is_written_and_read_as_the_same() {
    hold(|bytes: Bytes| check_wire_bytes(&bytes.0), 20_000);
}

#[test]
fn damaged_messages_are_refused_or_are_messages() {
    hold(|damaged: Damaged| check_wire_bytes(&damaged.0), 20_000);
}

#[test]
fn drawn_messages_are_of_all_kinds() {
    let mut pulls = [0; 5];
    let mut answers = [0; 5];
    for seed in 0..2000_u32 {
        let drawn: Vec<u8> = (0..512_u32)
            .map(|i| {
                (seed.wrapping_mul(2_654_435_761).rotate_left(i % 32) ^ i.wrapping_mul(0x9e37_79b1))
                    .to_be_bytes()[0]
            })
            .collect();
        let pull = draw_pull(&mut Unstructured::new(&drawn)).unwrap();
        pulls[0] += u32::from(pull.layout().is_some());
        pulls[1] += u32::from(pull.layout_id().is_some());
        pulls[2] += u32::from(
            pull.requests()
                .iter()
                .any(|asked| asked.blocks.is_release()),
        );
        pulls[3] += u32::from(pull.requests().len() > 15);
        pulls[4] += u32::from(pull.puller().pp_size().get() > 1);
        match draw_answer(&mut Unstructured::new(&drawn)).unwrap() {
            Answer::Error { .. } => answers[0] += 1,
            Answer::LayoutMiss { .. } => answers[1] += 1,
            Answer::Progress(done) => {
                answers[2] += u32::from(done.layout_id.is_some());
                answers[3] += u32::from(done.ok.len() > 15);
                answers[4] += u32::from(done.message.is_some_and(|m| m.len() > 65_535));
            }
        }
    }
    assert!(
        pulls.iter().chain(&answers).all(|seen| *seen > 5),
        "{pulls:?} {answers:?}"
    );
}

#[test]
fn every_byte_of_a_small_pull_may_be_any_byte() {
    let pull = draw_pull(&mut Unstructured::new(&[3; 40])).unwrap();
    let written = pull.encode(Version::V033).unwrap();
    let limits = Limits::default();
    let mut read = 0;
    for place in 0..written.len().min(400) {
        for byte in 0..=255 {
            let mut changed = written.clone();
            changed[place] = byte;
            read += u32::from(Pull::decode(&changed, &limits).is_ok());
        }
    }
    assert!(read > 400, "{read}");
}
