//! What README and docs say, done.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panic"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use std::{env, fs, iter, process};

use mooncake_pd::args::PairArgs;
use mooncake_pd::batch::Batch;
use mooncake_pd::commands::verified;
use mooncake_pd::failure::Exit;
use mooncake_pd::pair::Pair;
use mooncake_pd_plan::{Pairing, Section, UnfilledReason};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn doc(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let ends = |rest: &'a str| rest.split("```").next().unwrap();
    text.split(fence.as_str()).skip(1).map(ends).collect()
}

/// Runs the command in the repository's folder.
fn run<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mooncake-pd"))
        .args(args.into_iter().map(|arg| arg.as_ref().to_owned()))
        .current_dir(root())
        .output()
        .unwrap()
}

#[test]
fn the_examples_of_the_manifest_move_what_the_text_says() {
    let text = doc("docs/manifest.md");
    let [layout, request] = <[&str; 2]>::try_from(blocks(&text, "json")).unwrap();
    let pair = Pair::of(
        ("layout", layout.to_owned()),
        ("layout", layout.to_owned()),
        (&"request".parse().unwrap(), request),
        &PairArgs::default(),
    )
    .unwrap();
    let pairing = Pairing::new(pair.source.layout(), pair.destination.layout()).unwrap();
    let planned = Batch::new(&pairing, &pair.requests, pair.options())
        .plan()
        .unwrap();
    assert_eq!(planned.exit(), Exit::Ok);
    let moved: Vec<Vec<_>> = planned
        .plan
        .sections()
        .iter()
        .map(|section| {
            let pairs = section.pairs().iter();
            pairs
                .map(|p| (p.position(), p.source(), p.destination()))
                .collect()
        })
        .collect();
    // The latest state, and blocks 1 and 2 of the attention group.
    assert_eq!(moved, [vec![(2, 5, 2)], vec![(1, 3, 6), (2, 4, 7)]]);
    assert_eq!(planned.plan.unfilled(), []);
    assert_eq!(planned.plan.descriptors(), 3);
    let bytes: Vec<u64> = planned.plan.sections().iter().map(Section::bytes).collect();
    // Of two blocks: two heads, 16 tokens of 256 bytes.
    assert_eq!(bytes, [8_576, 2 * 2 * 16 * 256]);
    let report = verified(
        "doc",
        &pair,
        &planned,
        Duration::ZERO,
        planned.plan.copies(),
    )
    .unwrap();
    assert_eq!(report.exit(), Exit::Ok, "{report}");
}

#[test]
fn the_commands_of_the_readme_run_as_they_are_written() {
    let text = doc("README.md");
    let binary = "target/release/mooncake-pd ";
    let commands: Vec<String> = blocks(&text, "sh")
        .into_iter()
        .flat_map(|block| {
            let block = block.replace("\\\n", " ");
            let lines = block.lines().filter_map(|line| line.strip_prefix(binary));
            lines.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let codes: Vec<_> = commands
        .iter()
        .map(|command| {
            let words = command.split_whitespace();
            let ended = run(words.map(|word| word.trim_matches('\'')));
            let shown = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(!ended.stdout.is_empty(), "{command}: {shown}");
            (command.split(' ').next().unwrap(), ended.status.code())
        })
        .collect();
    let expected = [("inspect", 0), ("diff", 4), ("plan", 0), ("transfer", 0)];
    assert_eq!(codes, expected.map(|(name, code)| (name, Some(code))));
}

/// The keys of a value, under the keys that they lie in.
fn keys(value: &Value, under: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = if under.is_empty() {
                    key.clone()
                } else {
                    format!("{under}.{key}")
                };
                keys(value, &path, out);
                out.insert(path);
            }
        }
        Value::Array(list) => {
            for value in list {
                keys(value, &format!("{under}[]"), out);
            }
        }
        _ => {}
    }
}

/// The keys in the table of a section.
fn documented(text: &str, format: &str) -> BTreeSet<String> {
    let heading = format!("## `{format}`\n");
    let section = text.split(heading.as_str()).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned())
        .collect()
}

fn read(file: &str) -> String {
    format!("fixtures/vllm-0.33/{file}.json")
}

/// Two requests, of which the first is refused and the second asks for a block
/// that the source does not have.
const REQUESTS: &str = r#"{"format":"mooncake-pd-request/1","requests":[
    {"id":"bad","computed_tokens":16,"groups":[
        {"group":0,"source":{"entries":[1]},"destination":{"entries":[4000]}}]},
    {"id":"good","computed_tokens":32,"groups":[
        {"group":0,"source":{"entries":[0,1]},"destination":{"entries":[2,3]}}]}]}"#;

/// A transfer report in which nothing was moved that should have been.
fn failed() -> Value {
    let text = doc("docs/manifest.md");
    let examples = blocks(&text, "json");
    let pair = Pair::of(
        ("layout", examples[0].to_owned()),
        ("layout", examples[0].to_owned()),
        (&"request".parse().unwrap(), examples[1]),
        &PairArgs::default(),
    )
    .unwrap();
    let pairing = Pairing::new(pair.source.layout(), pair.destination.layout()).unwrap();
    let planned = Batch::new(&pairing, &pair.requests, pair.options())
        .plan()
        .unwrap();
    let report = verified("doc", &pair, &planned, Duration::ZERO, iter::empty()).unwrap();
    assert_eq!(report.exit(), Exit::Unverified);
    serde_json::json!({ "transfers": [serde_json::to_value(&report).unwrap()] })
}

#[test]
fn every_key_of_the_output_is_documented_and_every_documented_key_is_put_out() {
    let text = doc("docs/json.md");
    let requests = env::temp_dir().join(format!("mooncake-pd-docs-{}.json", process::id()));
    fs::write(&requests, REQUESTS).unwrap();
    let requests_name = requests.to_str().unwrap();
    let (source, destination) = (read("llama3-8b-tp4"), read("llama3-8b-tp4.consumer"));
    let (source, destination) = (source.as_str(), destination.as_str());
    let other = read("llama3-8b");
    let pair = [
        source,
        destination,
        "--request",
        requests_name,
        "--blocks",
        "8,9",
        "--contract",
        "bridge-dead=9",
        "--json",
    ];
    let with = |command| iter::once(command).chain(pair).collect::<Vec<_>>();
    let (qwen, sglang) = (
        read("qwen3.5-0.8b"),
        "fixtures/sglang-0.5.23/swa-gpt-oss.json",
    );
    let documents = [
        ("mooncake-pd-plan/1", vec![with("plan")], None),
        (
            "mooncake-pd-transfer/1",
            vec![with("transfer")],
            Some(failed()),
        ),
        (
            "mooncake-pd-inspect/1",
            vec![
                vec!["inspect", &qwen, "--json"],
                vec!["inspect", sglang, "--json"],
            ],
            None,
        ),
        (
            "mooncake-pd-diff/1",
            vec![vec!["diff", source, &other, "--json"]],
            None,
        ),
        (
            "mooncake-pd-error/1",
            vec![vec!["inspect", "nowhere.json", "--json"]],
            None,
        ),
    ];
    for (format, commands, more) in documents {
        let mut found = BTreeSet::new();
        for command in commands {
            let ended = run(&command);
            let shown = String::from_utf8_lossy(&ended.stderr).into_owned();
            let json: Value = serde_json::from_slice(&ended.stdout).expect(&shown);
            assert_eq!(json["format"], format, "{command:?}");
            keys(&json, "", &mut found);
        }
        if let Some(more) = more {
            keys(&more, "", &mut found);
        }
        assert_eq!(found, documented(&text, format), "{format}");
    }
    fs::remove_file(requests).unwrap();
    for reason in [
        UnfilledReason::SourceNull,
        UnfilledReason::NotHeld,
        UnfilledReason::BeyondComputed,
        UnfilledReason::NotLatestState,
        UnfilledReason::OutsideWindow,
    ] {
        assert!(text.contains(&format!("`{}`", reason.name())), "{reason}");
    }
}
