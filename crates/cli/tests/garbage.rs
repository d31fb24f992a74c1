//! Damaged files end in typed errors, never in a panic.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::PathBuf;

use mooncake_pd::args::PairArgs;
use mooncake_pd::batch::Batch;
use mooncake_pd::failure::{Exit, Failure};
use mooncake_pd::pair::Pair;
use mooncake_pd::verify::demand;
use mooncake_pd::walk::lists;
use mooncake_pd_plan::Pairing;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::read_to_string(path.join(name)).unwrap()
}

/// Everything a command does before it moves a byte.
fn use_all(layout: &str, request: &str, name: &str) -> Result<(), Failure> {
    let request_name = name.parse().unwrap();
    let args = PairArgs::default();
    let sides = (("p", layout.to_owned()), ("d", layout.to_owned()));
    let pair = Pair::of(sides.0, sides.1, (&request_name, request), &args)?;
    let pairing = Pairing::new(pair.source.layout(), pair.destination.layout())?;
    let planned = Batch::new(&pairing, &pair.requests, pair.options()).plan()?;
    let admitted: Vec<_> = planned
        .admitted
        .iter()
        .filter_map(|&at| pair.requests.get(at))
        .map(lists)
        .collect();
    let found = demand(&pair.source.raw()?, &pair.destination.raw()?, &admitted)
        .map_err(Failure::Demand)?;
    let demanded: u64 = found.rows.iter().map(|row| row.len).sum();
    assert_eq!(demanded, planned.plan.payload_bytes());
    Ok(())
}

/// Replaces the numbers of a text one at a time, by numbers at borders.
fn mutants(text: &str, take: usize) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut starts = Vec::new();
    for (at, pair) in bytes.windows(2).enumerate() {
        if !pair.first().unwrap().is_ascii_digit() && pair.last().unwrap().is_ascii_digit() {
            starts.push(at + 1);
        }
    }
    let step = (starts.len() / take).max(1);
    let mut out = Vec::new();
    for start in starts.into_iter().step_by(step) {
        let end = start
            + text
                .get(start..)
                .unwrap()
                .find(|c: char| !c.is_ascii_digit())
                .unwrap();
        for number in [
            "0",
            "1",
            "3",
            "4294967296",
            "18446744073709551615",
            "-1",
            "null",
            "[]",
        ] {
            let (head, tail) = (text.get(..start).unwrap(), text.get(end..).unwrap());
            out.push(format!("{head}{number}{tail}"));
        }
    }
    let cut = (text.len() / take).max(1);
    for end in (0..text.len()).step_by(cut) {
        out.push(text.get(..end).unwrap_or_default().to_owned());
    }
    out
}

const REQUEST: &str = r#"{"format":"mooncake-pd-request/1","requests":[{"id":"r","computed_tokens":400,"groups":[
    {"group":0,"source":{"entries":[0,0,7]},"destination":{"entries":[9]}},
    {"group":1,"source":{"first_block":0,"entries":[1,2,3]},"destination":{"first_block":1,"entries":[4,5]}}]}]}"#;

#[test]
fn damaged_layouts_and_requests_are_invalid_or_incompatible() {
    let capture = fixture("vllm-0.26/qwen3-next-tiny.h200.json");
    let sglang = fixture("sglang-0.5.23/mla-deepseek-v3-ps64.json");
    let case = "f#two chunks";
    use_all(&capture, REQUEST, "r").unwrap();
    use_all(&sglang, &sglang, case).unwrap();
    let mut errors = 0;
    let runs = mutants(&capture, 60)
        .into_iter()
        .map(|layout| (layout, REQUEST.to_owned(), "r"))
        .chain(
            mutants(REQUEST, 60)
                .into_iter()
                .map(|request| (capture.clone(), request, "r")),
        )
        .chain(
            mutants(&sglang, 40)
                .into_iter()
                .map(|layout| (layout, sglang.clone(), case)),
        )
        .chain(
            mutants(&sglang, 40)
                .into_iter()
                .map(|request| (sglang.clone(), request, case)),
        );
    for (layout, request, name) in runs {
        if let Err(failure) = use_all(&layout, &request, name) {
            errors += 1;
            assert!(
                matches!(failure.exit(), Exit::Invalid | Exit::Incompatible),
                "{failure}"
            );
        }
    }
    assert!(errors > 400, "{errors} errors");
}
