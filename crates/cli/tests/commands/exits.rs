//! Exit codes and what stands beside them.

use std::process::{Command, Stdio};

use crate::binary::{fixture, llama, request, run, run_with};
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
