//! Recorded messages of stock vLLM 0.32 and 0.33 (`fixtures/wire`) against the codecs.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::Path;

use mooncake_pd_connector::wire::{
    Answer, BlockLists, Bootstrap, DecodeError, Directory, LayoutId, Limits, PeerLayout, Pull,
    Puller, Region, RegionGroups, Register, Version,
};
use mooncake_pd_layout::Offset;
use serde_json::{Map, Value, json};

fn fixture() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/wire-samples.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let digits = text.as_bytes().chunks(2);
    let digits = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16));
    digits.collect::<Result<_, _>>().unwrap()
}

fn samples(kind: &str) -> Vec<Value> {
    let all = fixture()["samples"].take();
    let Value::Array(all) = all else {
        panic!("a list")
    };
    all.into_iter()
        .filter(|sample| sample["type"] == kind)
        .collect()
}

fn version(sample: &Value) -> Version {
    match sample["vllm_version"].as_str() {
        Some("0.32.0") => Version::V032,
        Some("0.33.0") => Version::V033,
        other => panic!("{other:?}"),
    }
}

/// An object without what stock leaves out.
fn object(entries: Vec<(&str, Value, Value)>) -> Value {
    let entries = entries
        .into_iter()
        .filter(|(_, value, default)| value != default);
    let entries: Map<_, _> = entries.map(|(key, value, _)| (key.into(), value)).collect();
    entries.into()
}

fn shown(pull: &Pull) -> Value {
    let required = Value::Null;
    let none = json!([]);
    let puller: &Puller = pull.puller();
    let requests = pull.requests().iter().map(|asked| {
        let groups: Vec<_> = BlockLists::groups(&asked.blocks).collect();
        let value = json!([asked.transfer.as_str(), groups]);
        (asked.request.as_str().to_owned(), value)
    });
    let requests: Map<_, _> = requests.collect();
    let regions = pull.layout().map_or(&[][..], PeerLayout::regions);
    let list = |entry: fn(&Region) -> Value| regions.iter().map(entry).collect::<Value>();
    let groups = list(|region| match region.groups() {
        RegionGroups::One(group) => group.get().into(),
        RegionGroups::Shared(_) => (-1).into(),
    });
    let shared = list(|region| match region.groups() {
        RegionGroups::One(group) => json!([group.get()]),
        RegionGroups::Shared(groups) => groups.iter().map(|group| group.get()).collect(),
    });
    let rows = list(|region| {
        region
            .row_offset()
            .map_or(json!(-1), |row| Offset::get(row).into())
    });
    let layout_id = pull.layout_id().map_or(0, LayoutId::get);
    object(vec![
        (
            "remote_hostname",
            puller.host().as_str().into(),
            required.clone(),
        ),
        ("remote_port", puller.port().get().into(), required.clone()),
        (
            "remote_tp_size",
            puller.tp_size().get().into(),
            required.clone(),
        ),
        ("remote_tp_rank", puller.tp_rank().into(), required.clone()),
        ("req_blocks", requests.into(), required.clone()),
        (
            "kv_caches_base_addr",
            list(|r| r.base().get().into()),
            required.clone(),
        ),
        (
            "block_lens",
            list(|r| r.block_len().get().into()),
            required.clone(),
        ),
        (
            "kv_block_lens",
            list(|r| r.kv_block_len().get().into()),
            required,
        ),
        (
            "registered_layer_names",
            list(|r| r.layer().as_str().into()),
            none.clone(),
        ),
        (
            "registered_layer_indices",
            list(|r| r.layer_index().into()),
            none.clone(),
        ),
        ("registered_group_indices", groups, none.clone()),
        ("registered_shared_group_ids", shared, none.clone()),
        ("registered_row_offsets", rows, none),
        ("remote_pp_size", puller.pp_size().get().into(), json!(1)),
        ("layout_id", layout_id.into(), json!(0)),
    ])
}

#[test]
fn recorded_pulls_are_read_and_written_byte_for_byte() {
    let samples = samples("MooncakeXferMetadata");
    assert_eq!(samples.len(), 7);
    for sample in samples {
        let bytes = hex(&sample["hex"]);
        let received = Pull::decode(&bytes, &Limits::default()).unwrap();
        assert_eq!(received.refused, []);
        assert_eq!(
            shown(&received.pull),
            sample["decoded"],
            "{}",
            sample["name"]
        );
        assert_eq!(received.pull.encode(version(&sample)).unwrap(), bytes);
    }
}

#[test]
fn the_pull_of_one_version_is_written_for_the_other() {
    let samples = samples("MooncakeXferMetadata");
    let of = |version: &str, name: &str| {
        let found = samples
            .iter()
            .find(|s| s["vllm_version"] == version && s["name"] == name);
        hex(&found.unwrap()["hex"])
    };
    for name in [
        "pull_layout_llama_1group",
        "pull_layout_qwen35_hybrid_4groups",
    ] {
        let newer = Pull::decode(&of("0.33.0", name), &Limits::default()).unwrap();
        assert_eq!(
            newer.pull.encode(Version::V032).unwrap(),
            of("0.32.0", name)
        );
    }
    let bare = Pull::decode(&of("0.33.0", "pull_no_layout_ack"), &Limits::default()).unwrap();
    let error = bare.pull.encode(Version::V032).unwrap_err();
    assert_eq!(error.to_string(), "vLLM 0.32 has no pull without layout");
}

fn answered(answer: &Answer) -> Value {
    let (status, progress, message) = match answer {
        Answer::Progress(done) => (i32::from(!done.last), Some(done), &done.message),
        Answer::Error { message } => (2, None, message),
        Answer::LayoutMiss { message } => (3, None, message),
    };
    let none = json!([]);
    let names = |names: &[_]| {
        names
            .iter()
            .map(|name: &mooncake_pd_connector::RequestId| Value::from(name.as_str()))
            .collect::<Value>()
    };
    let ok = progress.map_or(none.clone(), |done| names(&done.ok));
    let failed = progress.map_or(none.clone(), |done| names(&done.failed));
    let layout_id = progress
        .and_then(|done| done.layout_id)
        .map_or(0, LayoutId::get);
    object(vec![
        ("status", status.into(), Value::Null),
        ("ok_reqs", ok, none.clone()),
        ("err_reqs", failed, none),
        ("err_msg", message.clone().into(), Value::Null),
        ("layout_id", layout_id.into(), json!(0)),
    ])
}

#[test]
fn recorded_answers_are_read_and_written_byte_for_byte() {
    let samples = samples("MooncakeXferResponse");
    assert_eq!(samples.len(), 12);
    for sample in samples {
        let bytes = hex(&sample["hex"]);
        let answer = Answer::decode(&bytes, &Limits::default()).unwrap();
        assert_eq!(answered(&answer), sample["decoded"], "{}", sample["name"]);
        assert_eq!(answer.encode(version(&sample)).unwrap(), bytes);
        // What 0.32's decoder refuses we don't write for it.
        let taken = sample["decodes_with"]["0.32.0"] == "ok";
        assert_eq!(answer.encode(Version::V032).is_ok(), taken);
    }
}

#[test]
fn the_recorded_bootstrap_exchange_is_repeated() {
    let fixture = fixture();
    let samples = fixture["samples"].as_array().unwrap().iter();
    let mut bootstrap = Bootstrap::default();
    let mut seen = [0, 0];
    for sample in samples.filter(|sample| sample["response"].is_object()) {
        let response = &sample["response"];
        match (
            sample["method"].as_str().unwrap(),
            sample["path"].as_str().unwrap(),
        ) {
            ("POST", "/register") => {
                seen[0] += 1;
                let body = hex(&sample["hex"]);
                let reply = bootstrap.post(&body).unwrap();
                assert_eq!(reply.status, response["status"], "{}", sample["name"]);
                if reply.status == 200 {
                    assert_eq!(reply.body, hex(&response["hex"]));
                }
                // Other spellings are read, one is written.
                if let Ok(worker) = Register::decode(&body, &Limits::default()) {
                    let plain = sample["decoded"]["tp_rank"].is_u64()
                        && sample["decoded"]["extra"].is_null();
                    assert_eq!(
                        worker.encode().unwrap() == body,
                        plain,
                        "{}",
                        sample["name"]
                    );
                }
            }
            ("GET", "/query") => {
                seen[1] += 1;
                let body = hex(&response["hex"]);
                assert_eq!(bootstrap.directory().encode().unwrap(), body);
                let directory = Directory::decode(&body, &Limits::default()).unwrap();
                assert_eq!(directory, *bootstrap.directory());
            }
            // An HTTP server's affair.
            _ => {}
        }
    }
    assert_eq!(seen, [10, 2]);
    let raw = fixture["bootstrap_raw_response"].as_str().unwrap();
    let (_, body) = raw.split_once("\r\n\r\n").unwrap();
    assert_eq!(bootstrap.directory().encode().unwrap(), body.as_bytes());
}

#[test]
fn one_bad_worker_does_not_hide_the_others() {
    let raw = fixture()["bootstrap_raw_response"].take();
    let (_, body) = raw.as_str().unwrap().split_once("\r\n\r\n").unwrap();
    let directory = Directory::decode(body.as_bytes(), &Limits::default()).unwrap();
    let engines: Vec<_> = directory.engines().collect();
    let (dp_rank, engine) = engines[0];
    assert_eq!((dp_rank.get(), engine.tp_size()), (0, 4));
    let found = engine.stages(mooncake_pd_connector::wire::Rank::new(1));
    let found: Vec<_> = found
        .map(|(rank, addr)| (rank.get(), addr.address().unwrap().port().get()))
        .collect();
    assert_eq!(found, [(0, 41235), (1, 41236)]);
    let rank = mooncake_pd_connector::wire::Rank::new;
    let bad = engine
        .worker(rank(2), rank(0))
        .unwrap()
        .address()
        .unwrap_err();
    assert_eq!(
        bad.to_string(),
        "\"not-an-address\" does not begin with tcp://"
    );
    let other = directory.engine(engines[1].1.engine()).unwrap();
    let addr = other.worker(rank(0), rank(0)).unwrap().address().unwrap();
    assert_eq!((addr.host().as_str(), addr.port().get()), ("::1", 41237));
}

/// The fields that both versions have, so that none is forgotten.
#[test]
fn every_field_of_both_versions_is_written() {
    let fixture = fixture();
    for (version, written) in [("0.32.0", Version::V032), ("0.33.0", Version::V033)] {
        for (kind, keys) in fixture["struct_fields"][version].as_object().unwrap() {
            let fields = keys
                .as_array()
                .unwrap()
                .iter()
                .map(|field| field[0].as_str().unwrap());
            let fields: Vec<_> = fields.collect();
            let message = match kind.as_str() {
                "MooncakeXferMetadata" => full_pull().encode(written),
                _ => full_answer().encode(written),
            };
            let message = message.unwrap();
            let mut at = 0;
            for field in fields {
                let key = [
                    &[0xa0 | u8::try_from(field.len()).unwrap()],
                    field.as_bytes(),
                ]
                .concat();
                let found = message[at..]
                    .windows(key.len())
                    .position(|part| part == key);
                at += found.unwrap_or_else(|| panic!("{field} of {version} in its order"));
            }
        }
    }
}

fn full_pull() -> Pull {
    let mut all = samples("MooncakeXferMetadata");
    let first = all.swap_remove(0);
    let pull = Pull::decode(&hex(&first["hex"]), &Limits::default())
        .unwrap()
        .pull;
    let one = pull.puller();
    let two = 2.try_into().unwrap();
    let puller = Puller::new(one.host().clone(), one.port(), (one.tp_size(), 0), two).unwrap();
    let (layout, id) = (pull.layout().cloned(), pull.layout_id());
    Pull::new(puller, pull.requests().to_vec(), layout, id).unwrap()
}

fn full_answer() -> Answer {
    let all = samples("MooncakeXferResponse");
    let full = all
        .iter()
        .find(|sample| sample["name"] == "resp_continue_ok_and_err");
    Answer::decode(&hex(&full.unwrap()["hex"]), &Limits::default()).unwrap()
}

#[test]
fn no_part_of_a_recorded_message_is_a_message() {
    for sample in samples("MooncakeXferMetadata") {
        let bytes = hex(&sample["hex"]);
        for len in 0..bytes.len() {
            let error = Pull::decode(&bytes[..len], &Limits::default()).unwrap_err();
            assert!(
                matches!(
                    error,
                    DecodeError::Truncated { .. } | DecodeError::Count { .. }
                ),
                "{error}"
            );
        }
    }
}
