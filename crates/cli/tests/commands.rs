//! The binary from the outside: exit codes, standard input, JSON.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

fn fixture(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

fn llama(name: &str) -> String {
    fixture(&format!("vllm-0.33/llama3-8b-tp4{name}.json"))
}

fn sglang() -> String {
    fixture("sglang-0.5.23/mla-deepseek-v3-ps64.json")
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

fn run_with(args: &[&str], input: &str) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that doesn't read its input closes it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    Ended {
        code: ended.status.code().unwrap(),
        out: String::from_utf8(ended.stdout).unwrap(),
        err,
    }
}

fn run(args: &[&str]) -> Ended {
    run_with(args, "")
}

/// A request of one block of group 0.
fn request(source: u64, destination: u64) -> String {
    format!(
        r#"{{"format":"mooncake-pd-request/1","requests":[{{"id":"r","computed_tokens":16,"groups":[
        {{"group":0,"source":{{"entries":[{source}]}},"destination":{{"entries":[{destination}]}}}}]}}]}}"#
    )
}

#[test]
fn exit_0_for_help_and_version() {
    for args in [&["--help"][..], &["--version"], &["plan", "--help"]] {
        let ended = run(args);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(!ended.out.is_empty());
    }
}

#[test]
fn exit_2_for_a_wrong_command_line() {
    let (source, destination) = (llama(""), llama(".consumer"));
    let wrong: [&[&str]; 14] = [
        &[],
        &["move"],
        &["inspect"],
        &["inspect", "/nowhere.json"],
        &["inspect", &source, "--side", "left"],
        &["diff", &source],
        &["transfer", &source],
        &["transfer", &source, &destination],
        &["transfer", "--request", "x"],
        &["plan", &source, &destination],
        &["plan", "-", &destination, "--request", "-"],
        &[
            "plan",
            &source,
            &destination,
            "--request",
            "x",
            "--time",
            "0",
        ],
        &["transfer", "--blocks", "1"],
        &["transfer", "--contract", "bridge-dead=0"],
    ];
    for args in wrong {
        let ended = run(args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.err);
        assert!(ended.out.is_empty() && !ended.err.is_empty(), "{args:?}");
    }
    // Several pools can't be re-sized by two numbers.
    let several = fixture("sglang-0.5.23/swa-gpt-oss.json");
    let case = format!("{several}#two chunks, N < window");
    let args = [
        "plan",
        &several,
        &several,
        "--request",
        &case,
        "--blocks",
        "9,9",
    ];
    let ended = run(&args);
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("this one has 2"), "{}", ended.err);
}

#[test]
fn exit_3_for_an_invalid_layout() {
    for text in ["", "{", "{}", "[]", "\u{0}", r#"{"format":"x"}"#] {
        for args in [&["inspect", "-"][..], &["diff", "-", "-"]] {
            let ended = run_with(args, text);
            assert_eq!(ended.code, 3, "{args:?} {text:?}: {}", ended.err);
            assert!(ended.err.starts_with("error: -: "), "{}", ended.err);
        }
    }
}

#[test]
fn exit_3_for_an_invalid_request_that_names_both_values() {
    let (source, destination) = (llama(""), llama(".consumer"));
    for command in ["plan", "transfer"] {
        let args = [command, &source, &destination, "--request", "-"];
        let ended = run_with(&args, &request(64, 1));
        assert_eq!(ended.code, 3, "{}", ended.err);
        assert_eq!(
            ended.err,
            "refused: request 0 (r): source entry 0: block 64 is outside 0..64 in group 0\n"
        );
        let ended = run_with(&args, "{");
        assert_eq!(ended.code, 3, "{}", ended.err);
    }
    let unknown = format!("{}#nowhere", llama(".oracle"));
    let ended = run(&["plan", &source, &destination, "--request", &unknown]);
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("sequential/full"), "{}", ended.err);
}

#[test]
fn exit_4_for_layouts_that_do_not_fit() {
    let (source, other) = (llama(""), fixture("vllm-0.33/llama3-8b.json"));
    let diff = run(&["diff", &source, &other]);
    assert_eq!(diff.code, 4, "{}", diff.err);
    assert!(
        diff.out
            .lines()
            .all(|line| line.starts_with("incompatible: ") || line.starts_with("note: "))
    );
    for command in ["plan", "transfer"] {
        let ended = run_with(
            &[command, &source, &other, "--request", "-", "--json"],
            &request(1, 1),
        );
        assert_eq!(ended.code, 4, "{}", ended.err);
        assert_eq!(ended.json()["exit"], 4);
        assert!(ended.json()["error"].as_str().unwrap().contains("head"));
    }
}

#[test]
fn diff_lists_differences_as_json() {
    let same = run(&["diff", &llama(""), &llama(".consumer"), "--json"]);
    assert_eq!(same.code, 0);
    let json = same.json();
    assert_eq!(json["compatible"], true);
    assert_eq!(json["fingerprints"][0], json["fingerprints"][1]);
    let other = fixture("vllm-0.33/llama3-8b.json");
    let json = run(&["diff", &llama(""), &other, "--json"]).json();
    assert_eq!(json["compatible"], false);
    let differences = json["differences"].as_array().unwrap();
    assert!(differences.iter().any(|d| d["incompatible"] == true));
    assert!(differences.iter().all(|d| d["message"].is_string()));
    assert!(differences.iter().any(|d| d["kind"] == "shape"));
}

#[test]
fn inspect_prints_a_manifest_that_it_reads_back() {
    for (file, side) in [(llama(""), "prefill"), (sglang(), "decode")] {
        let manifest = run(&["inspect", &file, "--side", side, "--manifest"]);
        assert_eq!(manifest.code, 0, "{}", manifest.err);
        let again = run_with(&["inspect", "-", "--manifest"], &manifest.out);
        assert_eq!(manifest.out, again.out);
        let json = run_with(&["inspect", "-", "--json"], &manifest.out).json();
        let direct = run(&["inspect", &file, "--side", side, "--json"]).json();
        assert_eq!(json, direct);
        for key in ["fingerprint", "allocations", "pools", "groups", "overlays"] {
            assert!(!json[key].is_null(), "{key}");
        }
    }
}

#[test]
fn inspect_sees_that_groups_share_bytes() {
    let json = run(&["inspect", &fixture("vllm-0.33/qwen3.5-0.8b.json"), "--json"]).json();
    assert_eq!(
        json["overlays"][0]["groups"],
        serde_json::json!([0, 1, 2, 3])
    );
    assert_eq!(json["overlays"][0]["bytes_per_block"], 6_684_672);
    // A state of 1,085,440 bytes in a page of 1,114,112, in six layers.
    assert_eq!(json["groups"][0]["payload_per_block"], 6 * 1_085_440);
    assert_eq!(json["groups"][0]["padding_per_block"], 6 * 28_672);
}

#[test]
fn a_plan_lists_its_descriptors() {
    let case = format!("{}#sequential/full", llama(".oracle"));
    let args = ["plan", &llama(""), &llama(".consumer"), "--request", &case];
    let text = run(&args);
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(text.out.contains("25 blocks"), "{}", text.out);
    let json = run(&[&args[..], &["--json", "--time", "3"]].concat()).json();
    let descriptors = json["descriptors"].as_array().unwrap();
    assert_eq!(descriptors.len(), 32);
    let bytes: u64 = descriptors
        .iter()
        .map(|d| {
            let numbers = d.as_array().unwrap();
            assert_eq!(numbers.len(), 5);
            numbers[4].as_u64().unwrap()
        })
        .sum();
    // 25 blocks of 16 KiB in 32 layers.
    assert_eq!(bytes, 25 * 16_384 * 32);
    assert_eq!(json["bytes"], bytes);
    assert_eq!(json["format"], "mooncake-pd-plan/1");
    assert_eq!(
        json["contract"],
        serde_json::json!({"kind": "payload_only"})
    );
    assert_eq!(json["bounds"], "proved");
    assert_eq!(json["unfilled"], serde_json::json!([]));
    assert_eq!(json["refused"], serde_json::json!([]));
    assert!(json["ns_per_descriptor"].as_f64().unwrap() > 0.0);
}

#[test]
fn c46_one_bad_request_does_not_stop_the_others() {
    let one = request(5, 6);
    let both = one.replace(
        r#""requests":["#,
        r#""requests":[{"id":"bad","computed_tokens":16,"groups":[
        {"group":0,"source":{"entries":[1]},"destination":{"entries":[4000]}}]},"#,
    );
    for (command, key) in [("plan", "/refused"), ("transfer", "/transfers/0/refused")] {
        let args = [
            command,
            &llama(""),
            &llama(".consumer"),
            "--request",
            "-",
            "--json",
            "--blocks",
            "8,9",
        ];
        let ended = run_with(&args, &both);
        assert_eq!(ended.code, 0, "{}", ended.err);
        let json = ended.json();
        let refused = json.pointer(key).unwrap();
        assert_eq!(refused.as_array().unwrap().len(), 1, "{refused}");
        assert_eq!(refused[0]["request"], 0);
        assert_eq!(refused[0]["id"], "bad");
        assert_eq!(refused[0]["reason"], "entry");
        assert!(refused[0]["message"].as_str().unwrap().contains("4000"));
    }
}

#[test]
fn a_bench_resizes_the_layouts_and_blocks_override_it() {
    let bench = format!(
        "{}#llama3-8b/contiguous",
        fixture("vllm-0.33/planning-bench.json")
    );
    let (source, destination) = (
        fixture("vllm-0.33/llama3-8b.json"),
        fixture("vllm-0.33/llama3-8b.consumer.json"),
    );
    let args = ["plan", &source, &destination, "--request", &bench, "--json"];
    let json = run(&args).json();
    assert_eq!(json["descriptors"].as_array().unwrap().len(), 32);
    let small = run(&[&args[..], &["--blocks", "100,100"]].concat());
    assert_eq!(small.code, 3, "{}", small.err);
}

#[test]
fn a_transfer_of_a_real_layout_verifies_every_byte() {
    let case = format!("{}#sequential/full", llama(".oracle"));
    let args = [
        "transfer",
        &llama(""),
        &llama(".consumer"),
        "--request",
        &case,
        "--blocks",
        "26,27",
        "--json",
    ];
    let ended = run(&args);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let json = ended.json();
    assert_eq!(json["verdict"], "ok");
    let report = &json["transfers"][0];
    assert_eq!(report["wrong_bytes"], 0);
    assert_eq!(report["verified_bytes"], (26 + 27) * 16_384 * 32);
    assert_eq!(report["groups"][0]["blocks"], 25);
    assert_eq!(report["groups"][0]["kind"], "full_attention");
    let text = run(&args[..7]);
    assert!(text.out.contains("verified: ok"), "{}", text.out);
}

#[test]
fn both_sides_of_an_sglang_file_transfer_from_standard_input() {
    let (file, text) = (sglang(), std::fs::read_to_string(sglang()).unwrap());
    let case = format!("{file}#two chunks");
    let ended = run_with(&["transfer", "-", "-", "--request", &case], &text);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("663,552"), "{}", ended.out);
}

#[test]
fn bundled_examples_refuse_blocks_too_few_for_their_requests() {
    let ended = run(&["transfer", "--blocks", "15,15", "--json"]);
    assert_eq!(ended.code, 3, "{}{}", ended.out, ended.err);
    let json = ended.json();
    assert_eq!(json["verdict"], "refused");
    assert_eq!(json["transfers"].as_array().unwrap().len(), 2);
    assert_eq!(json["transfers"][0]["verified_bytes"], 0);
    assert!(ended.err.contains("is outside 0..15"), "{}", ended.err);
    assert!(json["transfers"][0]["transfer_ns"].is_null());
    let text = run(&["transfer", "--blocks", "15,15"]).out;
    let closing = "every request was refused, nothing was moved";
    assert!(text.lines().any(|line| line == closing), "{text}");
    assert!(!text.contains("moved in"), "{text}");
}

#[test]
fn a_plan_without_copies_has_no_time_per_descriptor() {
    // A state group would be asked for; nothing of this one is on the source.
    let nothing = request(0, 6);
    let args = [
        "plan",
        &llama(""),
        &llama(".consumer"),
        "--request",
        "-",
        "--time",
        "2",
    ];
    let text = run_with(&args, &nothing);
    assert_eq!(text.code, 0, "{}", text.err);
    let closing = "nothing to plan, no time per descriptor";
    assert_eq!(text.out.lines().last(), Some(closing));
    let json = run_with(&[&args[..], &["--json"]].concat(), &nothing).json();
    assert_eq!(json["ns_per_descriptor"], Value::Null);
    assert!(json["ns"].is_u64());
    assert_eq!(json["descriptors"], serde_json::json!([]));
    assert_eq!(json["unfilled"][0]["reason"], "source_null");
    let message = "the source has a placeholder there";
    assert_eq!(json["unfilled"][0]["message"], message);
}

#[test]
fn a_transfer_without_copies_verifies_and_does_not_claim_to_have_moved() {
    let args = [
        "transfer",
        &llama(""),
        &llama(".consumer"),
        "--request",
        "-",
        "--blocks",
        "8,9",
    ];
    let ended = run_with(&args, &request(0, 6));
    assert_eq!(ended.code, 0, "{}", ended.err);
    let verified = "nothing to move, 8,912,896 bytes of both sides verified: ok";
    assert!(ended.out.contains(verified), "{}", ended.out);
}

#[test]
fn a_contract_is_written_for_machines() {
    let args = [
        "plan",
        &llama(""),
        &llama(".consumer"),
        "--request",
        "-",
        "--contract",
        "bridge-dead=7",
        "--json",
    ];
    let json = run_with(&args, &request(5, 6)).json();
    let contract = serde_json::json!({"kind": "bridge_dead", "max_gap": 7});
    assert_eq!(json["contract"], contract);
}

#[test]
fn a_gap_that_no_gap_can_have_is_named_with_the_longest() {
    for gap in ["9999999999999999999", "4611686018427387904", "0", "x", "-1"] {
        let contract = format!("bridge-dead={gap}");
        let ended = run(&["transfer", "--contract", &contract]);
        assert_eq!(ended.code, 2);
        let message =
            format!("MAXGAP is {gap:?}, not a number of bytes from 1 to 4611686018427387903");
        assert!(ended.err.contains(&message), "{}", ended.err);
    }
    let ended = run(&["transfer", "--contract", "all"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("\"all\" is not `payload-only`"),
        "{}",
        ended.err
    );
}

#[test]
fn a_tag_that_one_side_does_not_state_is_not_quoted() {
    let manifest = |revision: &str| {
        let file = llama("");
        let text = run(&["inspect", &file, "--manifest"]).out;
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json["content"]["model_revision"] = revision.into();
        json.to_string()
    };
    let stated = std::env::temp_dir().join(format!("mooncake-pd-{}.json", std::process::id()));
    std::fs::write(&stated, manifest("llama@1")).unwrap();
    let stated_name = stated.to_str().unwrap();
    let silent = manifest("");
    for (args, message) in [
        (
            ["diff", "-", stated_name],
            "the source does not state its model revision, the destination's is `llama@1`",
        ),
        (
            ["diff", stated_name, "-"],
            "the destination does not state its model revision, the source's is `llama@1`",
        ),
    ] {
        let ended = run_with(&args, &silent);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert_eq!(ended.out, format!("note: content: {message}\ncompatible\n"));
    }
    std::fs::remove_file(stated).unwrap();
}

#[test]
fn help_names_every_exit_code() {
    let help = run(&["--help"]).out;
    for code in ["0  ok", "1  ver", "2  usage", "3  inv", "4  inc", "5  int"] {
        assert!(
            help.lines().any(|line| line.starts_with(code)),
            "{code}: {help}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn exit_2_for_a_result_that_can_not_be_written() {
    let layout = llama("");
    for args in [&["inspect", &layout][..], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let ended = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"))
            .args(args)
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.starts_with("error: can't write the result: "), "{err}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &[
            "inspect",
            &fixture("vllm-0.33/deepseek-v4-flash.json"),
            "--manifest",
        ][..],
        &["--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{err}");
        assert!(err.is_empty(), "{err}");
    }
}
