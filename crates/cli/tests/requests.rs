//! Request files of every format, and what is wrong with bad ones.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::path::PathBuf;
use std::{fs, iter};

use mooncake_pd::request::{RequestFileError, RequestName, Requests, parse};

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(name: &str, case: &str) -> Result<Requests, RequestFileError> {
    let file: RequestName = format!("{name}#{case}").parse().unwrap();
    parse(&file, &fixture(name))
}

#[test]
fn an_oracle_case_has_the_tokens_that_were_computed() {
    let name = "vllm-0.33/qwen3.5-0.8b.oracle.json";
    let read = read(name, "sequential/consumer-prefix-hit").unwrap();
    assert_eq!(read.blocks, None);
    let request = &read.requests[0];
    assert_eq!(request.id, "d-b");
    // 2176 cached on the decode side and 1723 asked for.
    assert_eq!(request.computed_tokens, Some(3899));
    assert!(!request.tail_aligned);
    assert_eq!(request.groups.len(), 4);
    assert_eq!(request.groups[0].source.entries[7], Some(25));
    assert_eq!(request.groups[0].destination.entries, [Some(22)]);
}

#[test]
fn a_case_without_counts_is_aligned_at_its_tail() {
    let name = "vllm-0.33/qwen3.5-0.8b.oracle.json";
    let read = read(name, "sequential/batch-2").unwrap();
    assert_eq!(read.requests.len(), 2);
    assert!(
        read.requests
            .iter()
            .all(|r| r.tail_aligned && r.computed_tokens.is_none())
    );
}

#[test]
fn every_case_of_every_oracle_parses_or_is_a_group_mismatch() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-0.33");
    let mut cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".oracle.json") {
            continue;
        }
        let name = format!("vllm-0.33/{name}");
        let Err(RequestFileError::UnknownCase { known, .. }) = read(&name, "nowhere") else {
            panic!("{name}: a case that isn't there was found");
        };
        for case in known {
            cases += 1;
            match read(&name, &case) {
                Ok(read) => assert!(!read.requests.is_empty(), "{name} {case}"),
                Err(error) => assert!(
                    matches!(error, RequestFileError::GroupCounts { .. })
                        && case == "synthetic/group-count-mismatch",
                    "{error}"
                ),
            }
        }
    }
    assert!(cases > 200, "{cases} cases");
}

#[test]
fn a_bench_names_its_block_counts_and_holds_back_a_token_for_states() {
    let name = "vllm-0.33/planning-bench.json";
    let qwen = read(name, "qwen3.5-0.8b/shuffled").unwrap();
    assert_eq!(qwen.blocks, Some((2048, 2300)));
    assert_eq!(qwen.requests[0].computed_tokens, Some(131_071));
    let llama = read(name, "llama3-8b/contiguous").unwrap();
    assert_eq!(llama.requests[0].computed_tokens, Some(131_072));
    assert_eq!(llama.requests[0].groups[0].source.entries.len(), 8192);
}

#[test]
fn sglang_chunks_are_one_list_and_states_follow_as_groups() {
    let name = "sglang-0.5.23/hybrid-qwen3-next-80b-a3b-ps64.json";
    let read = read(name, "two chunks").unwrap();
    let request = &read.requests[0];
    assert_eq!(request.computed_tokens, Some(150));
    assert_eq!(
        request.groups[0].source.entries,
        [Some(5), Some(6), Some(7)]
    );
    assert_eq!(request.groups[1].group, 1);
    assert_eq!(request.groups[1].destination.entries, [Some(3)]);
    let v4 = "sglang-0.5.23/dsv4-deepseek-v4-flash.json";
    let empty = self::read(v4, "N=640: N % 128 == 0, no request state").unwrap();
    assert_eq!(empty.requests[0].groups.len(), 3);
    assert!(empty.requests[0].groups[2].source.entries.is_empty());
}

#[test]
fn an_sglang_case_of_unequal_tp_is_refused() {
    let name = "sglang-0.5.23/mha-llama3-8b-ps64.json";
    let error = read(name, "prefill tp1 -> decode tp2 rank1").unwrap_err();
    assert!(matches!(error, RequestFileError::UnequalTp { .. }));
}

#[test]
fn an_unknown_case_lists_the_known_ones() {
    let name = "vllm-0.33/planning-bench.json";
    for case in ["", "llama3-8b", "llama3-8b/x", "x/shuffled", "/"] {
        let error = read(name, case).unwrap_err().to_string();
        assert!(error.contains("llama3-8b/shuffled"), "{error}");
    }
    let name = "vllm-0.33/llama3-8b.oracle.json";
    let file: RequestName = name.parse().unwrap();
    let error = parse(&file, &fixture(name)).unwrap_err().to_string();
    assert!(
        error.contains("fragmented/full") && error.contains(name),
        "{error}"
    );
}

#[test]
fn our_own_format_keeps_nulls_and_positions() {
    let text = r#"{"format":"mooncake-pd-request/1","requests":[{"id":"a","computed_tokens":9,
        "groups":[{"group":3,"source":{"first_block":1,"entries":[null,7]},"destination":{"entries":[2]}}]}]}"#;
    let read = parse(&"r.json".parse().unwrap(), text).unwrap();
    let tables = &read.requests[0].groups[0];
    assert_eq!(tables.source.first_block, Some(1));
    assert_eq!(tables.source.entries, [None, Some(7)]);
    assert_eq!(
        parse(&"r.json#x".parse().unwrap(), text).unwrap_err(),
        RequestFileError::NotACase {
            file: "r.json".to_owned(),
            case: "x".to_owned()
        }
    );
}

fn error(name: &str, text: &str) -> String {
    parse(&name.parse().unwrap(), text).unwrap_err().to_string()
}

#[test]
fn a_wrong_value_of_our_own_format_is_named_with_its_line_and_column() {
    let file = |tail: &str| {
        format!("{{\"format\":\"mooncake-pd-request/1\",\n\"requests\":[{{\"id\":\"a\",{tail}")
    };
    assert_eq!(
        error("r.json", &file("\"computed_tokens\":-3}]}")),
        "r.json: invalid value: integer `-3`, expected u64 at line 2 column 42"
    );
    assert_eq!(
        error("r.json", &file("\"id\":\"b\",\"groups\":[]}]}")),
        "r.json: duplicate field `id` at line 2 column 26"
    );
    let twice = r#"{"format":"mooncake-pd-request/1","format":"x","requests":[]}"#;
    let message = error("r.json", twice);
    assert!(
        message.contains("duplicate field `format` at line 1"),
        "{message}"
    );
}

#[test]
fn a_key_twice_is_refused_in_recorded_files_too() {
    let text =
        "{\"format\":\"vllm-mooncake-oracle/1\",\n\"cases\":[{\"case\":\"a\",\"case\":\"b\"}]}";
    assert_eq!(
        error("f.json#a", text),
        "f.json: duplicate field `case` at line 2 column 27"
    );
}

#[test]
fn a_file_without_requests_is_an_error() {
    for text in [
        r#"{"format":"mooncake-pd-request/1","requests":[]}"#,
        r#"{"format":"vllm-mooncake-oracle/1","cases":[{"case":"a","requests":[]}]}"#,
    ] {
        let name = if text.contains("oracle") { "f#a" } else { "f" };
        let message = error(name, text);
        assert_eq!(
            message,
            "f: `requests` is empty, 1 request or more is needed"
        );
    }
}

#[test]
fn a_wrong_value_of_a_case_is_named_with_its_place() {
    let oracle = |request: &str| {
        format!(
            r#"{{"format":"vllm-mooncake-oracle/1","cases":[{{"case":"a","requests":[{request}]}}]}}"#
        )
    };
    let lists = |lists: &str| oracle(&format!(r#"{{"req_id":"r",{lists}}}"#));
    for (text, message) in [
        (oracle("{}"), "`requests[0].req_id` is absent, not a text"),
        (
            lists(r#""producer_block_ids":7"#),
            "`requests[0].producer_block_ids` is 7, not a list",
        ),
        (
            lists(r#""producer_block_ids":[[1],[2,3,-4]],"consumer_block_ids":[[],[]]"#),
            "`requests[0].producer_block_ids[1][2]` is -4, not an id",
        ),
        (
            lists(r#""producer_block_ids":[[1],[2]],"consumer_block_ids":[[1]]"#),
            "requests[0] has lists of 2 producer and 1 consumer groups",
        ),
    ] {
        assert_eq!(error("f#a", &text), format!("f: case \"a\": {message}"));
    }
    assert_eq!(
        error("f", r#"{"format":"mooncake-pd-request/2"}"#),
        "f: `format` is \"mooncake-pd-request/2\", not one of mooncake-pd-request/1, \
         vllm-mooncake-oracle/1, sglang-pd-layout-facts/1"
    );
}

#[test]
fn a_path_with_a_hash_can_be_given() {
    let folder = std::env::temp_dir().join(format!("mooncake-pd-#{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a#b.json");
    fs::write(&file, "{}").unwrap();
    let path = file.to_str().unwrap();
    let name = |text: &str| text.parse::<RequestName>().unwrap();
    assert_eq!(name(path).file, path);
    assert_eq!(name(path).case, None);
    for case in ["one", "one#two", ""] {
        let named = name(&format!("{path}#{case}"));
        assert_eq!(
            (named.file.as_str(), named.case.as_deref()),
            (path, Some(case))
        );
    }
    // Where there is no such file, the last one cuts.
    let missing = name("no#where#case");
    assert_eq!(
        (missing.file.as_str(), missing.case.as_deref()),
        ("no#where", Some("case"))
    );
    assert_eq!(name("-#a").file, "-");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn garbage_is_a_typed_error_that_names_the_file() {
    let oracle = r#"{"format":"vllm-mooncake-oracle/1","cases":[{"case":"a","requests":"#;
    let texts = [
        "",
        "{",
        "[]",
        "7",
        "null",
        "{}",
        r#"{"format":7}"#,
        r#"{"format":"x"}"#,
        r#"{"format":"mooncake-pd-request/1"}"#,
        r#"{"format":"mooncake-pd-request/1","requests":[{"id":1}]}"#,
        r#"{"format":"mooncake-pd-request/1","requests":[],"more":1}"#,
        r#"{"a":{"cases":{"b":{}}}}"#,
        r#"{"format":"sglang-pd-layout-facts/1","cases":[{"label":"a"}]}"#,
        r#"{"schema":"sglang-pd-layout-facts/1","cases":[{"label":"a","steps":[{"step":"kv"}]}]}"#,
    ];
    let more = ["7}]}", "[7]}]}", r#"[{"req_id":"r"}]}]}"#, "[{}]}]}"];
    let more = more.iter().map(|tail| format!("{oracle}{tail}"));
    let deep = iter::once("[".repeat(100_000));
    for text in texts
        .iter()
        .map(|&text| text.to_owned())
        .chain(more)
        .chain(deep)
    {
        for name in ["f.json", "f.json#a", "f.json#a/b"] {
            let error = parse(&name.parse().unwrap(), &text).unwrap_err();
            assert!(error.to_string().starts_with("f.json"), "{error}");
        }
    }
}
