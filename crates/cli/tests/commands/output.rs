//! What the commands print.

use serde_json::Value;

use crate::binary::{fixture, llama, request, run, run_with, sglang};
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
