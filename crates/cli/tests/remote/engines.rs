//! Every engine moves real layouts between two processes.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use crate::command::{Engine, ended, scratch, transfer};

/// Descriptors of the two bundled examples.
const BUNDLED: [u64; 2] = [42, 1_111];

#[test]
fn both_bundled_models_arrive_byte_for_byte() {
    for engine in Engine::here() {
        let ended = ended(&mut transfer(engine));
        assert_eq!(ended.verified(engine.name()), BUNDLED, "{engine:?}");
    }
}

#[test]
fn the_official_package_is_the_other_end() {
    let (python, path) = ("MOONCAKE_PD_PEER_PYTHON", "MOONCAKE_PD_PEER_PATH");
    let [Some(python), Some(path)] = [python, path].map(env::var_os) else {
        eprintln!("skipped: {python} and {path} name no package");
        return;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers/official.py");
    for engine in Engine::here() {
        if engine == Engine::Loopback {
            continue;
        }
        let mut command = transfer(engine);
        command
            .env("PYTHONPATH", &path)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.args(["--repeat", "2"]);
        for part in [&python, script.as_os_str()] {
            command.arg("--target").arg(part);
        }
        let ended = ended(&mut command);
        assert_eq!(ended.verified(engine.name()), BUNDLED, "{engine:?}");
    }
}

/// `blocks` blocks of one token of `page` bytes, `stride` apart.
fn layout(blocks: u64, page: u64, stride: u64) -> String {
    format!(
        r#"{{"format":"mooncake-pd-layout/1",
 "allocations":[{{"id":0,"len":{}}}],
 "pools":[{{"id":0,"capacity":{blocks},"null_id":0}}],
 "groups":[{{"id":0,"kind":"full_attention","tokens_per_block":1,"pool":0,"layers":[{{"name":"a","fields":[
   {{"name":"kv","dtype":"uint8","allocation":0,"offset":0,"page_stride":{stride},
    "dims":[{{"axis":"token","extent":1,"stride":{page}}},{{"axis":"content","extent":{page},"stride":1}}]}}]}}]}}]}}"#,
        blocks * stride
    )
}

/// All blocks but the null one, to the same blocks in reverse order.
fn request(blocks: u64) -> String {
    let list = |ids: &mut dyn Iterator<Item = u64>| {
        ids.fold(String::new(), |mut list, id| {
            let comma = if list.is_empty() { "" } else { "," };
            let _ = write!(list, "{comma}{id}");
            list
        })
    };
    format!(
        r#"{{"format":"mooncake-pd-request/1","requests":[{{"id":"r","computed_tokens":{},"groups":[
        {{"group":0,"source":{{"entries":[{}]}},"destination":{{"entries":[{}]}}}}]}}]}}"#,
        blocks - 1,
        list(&mut (1..blocks)),
        list(&mut (1..blocks).rev())
    )
}

fn moves(engine: Engine, blocks: u64, page: u64, stride: u64) {
    let name = format!("{}-{blocks}-{page}", engine.name());
    let (at, asked) = (
        scratch(&format!("{name}.layout.json")),
        scratch(&format!("{name}.request.json")),
    );
    fs::write(&at, layout(blocks, page, stride)).unwrap();
    fs::write(&asked, request(blocks)).unwrap();
    let mut command = transfer(engine);
    command.args([&at, &at]).arg("--request").arg(&asked);
    let ended = ended(&mut command);
    assert_eq!(ended.verified(engine.name()), [blocks - 1], "{engine:?}");
    let json = ended.json();
    let transfer = &json["transfers"][0];
    assert_eq!(transfer["bytes"], (blocks - 1) * page);
    assert_eq!(transfer["verified_bytes"], 2 * blocks * stride);
}

#[test]
fn c62_100_000_descriptors_arrive() {
    for engine in Engine::here() {
        moves(engine, 100_001, 48, 64);
    }
}

#[test]
fn c63_sizes_are_byte_exact() {
    for engine in Engine::here() {
        for page in [1, 511, 512, 513, (64 << 10) - 1, (64 << 10) + 1] {
            moves(engine, 20, page, page + 7);
        }
    }
}
