//! Targets that say or do what they must not.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;

use mooncake_pd_layout::{ByteLen, ByteSpan, Offset};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback, TcpRegistration};
use mooncake_pd_rdma::{Bytes, Engine as _, HostBuffer, Memory};
use serde_json::{Value, json};

use crate::command::{Ended, Engine, ended, transfer};

/// Set for the process that is the bad target.
const ROLE: &str = "MOONCAKE_PD_TEST_TARGET";

fn with_target(role: &str) -> Ended {
    let mut command = transfer(Engine::Loopback);
    let this = env::current_exe().unwrap();
    for part in [this.to_str().unwrap(), "bad_targets::process", "--exact"] {
        command.arg("--target").arg(part);
    }
    ended(command.env(ROLE, role))
}

/// Not a test: the target, when a test starts it.
#[test]
fn process() {
    let Ok(role) = env::var(ROLE) else { return };
    let mut stream = TcpStream::connect(env::var("MOONCAKE_PD_CHANNEL").unwrap()).unwrap();
    let token = match role.as_str() {
        "stranger" => "0".repeat(32),
        _ => env::var("MOONCAKE_PD_TOKEN").unwrap(),
    };
    say(&mut stream, &json!({ "token": token }), &[]);
    let engine = TcpLoopback::start(&TcpConfig::default()).unwrap();
    let mut memory: Vec<(HostBuffer, TcpRegistration)> = Vec::new();
    while let Some((ask, payload)) = hear(&mut stream) {
        let number = |key: &str| ask[key].as_u64().unwrap();
        let (mut answer, mut bytes) = match ask["ask"].as_str().unwrap() {
            "hello" => {
                let protocol = if role == "other protocol" { 2 } else { 1 };
                (
                    json!({"answer": "hello", "protocol": protocol, "name": engine.name()}),
                    vec![],
                )
            }
            "serve" => {
                memory.clear();
                let regions: Vec<Value> = ask["layout"]["allocations"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|allocation| {
                        let len = ByteLen::new(allocation["len"].as_u64().unwrap()).unwrap();
                        let buffer = HostBuffer::zeroed(len).unwrap();
                        let span = ByteSpan::new(Offset::ZERO, len).unwrap();
                        let registration = engine.register(&buffer, span).unwrap();
                        let address = buffer.base().get();
                        memory.push((buffer, registration));
                        json!({"allocation": allocation["id"], "start": 0, "len": len.get(), "address": address})
                    })
                    .collect();
                (json!({"answer": "serving", "regions": regions}), vec![])
            }
            "write" => {
                let (buffer, _) = &memory[usize::try_from(number("allocation")).unwrap()];
                buffer.copy_in(number("offset"), &payload).unwrap();
                (json!({"answer": "done"}), vec![])
            }
            "read" => {
                let (buffer, _) = &memory[usize::try_from(number("allocation")).unwrap()];
                let mut bytes = vec![0; usize::try_from(number("len")).unwrap()];
                buffer.copy_out(number("offset"), &mut bytes).unwrap();
                (json!({"answer": "bytes"}), bytes)
            }
            _ => (json!({"answer": "done"}), vec![]),
        };
        match (role.as_str(), ask["ask"].as_str().unwrap()) {
            ("flips a bit", "read") if number("offset") == 0 => bytes[4_097] ^= 4,
            ("answers too little", "read") => {
                bytes.pop();
            }
            ("tells a range twice", "serve") => {
                let regions = answer["regions"].as_array_mut().unwrap();
                regions.push(regions[0].clone());
            }
            ("tells less memory", "serve") => answer["regions"][0]["len"] = 4_096.into(),
            ("tells other memory", "serve") => {
                let address = answer["regions"][0]["address"].as_u64().unwrap();
                answer["regions"][0]["address"] = (address + (1 << 40)).into();
            }
            ("refuses", "serve") => answer = json!({"answer": "error", "error": "no room today"}),
            ("answers something else", "write") => answer = json!({"answer": "bytes"}),
            ("shouts", "serve") => {
                stream.write_all(&[0xFF; 64]).unwrap();
                continue;
            }
            ("dies", "write") => return,
            _ => {}
        }
        say(&mut stream, &answer, &bytes);
    }
}

fn say(stream: &mut TcpStream, message: &Value, payload: &[u8]) {
    let header = message.to_string();
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let frame = [
        &len(header.as_bytes()),
        &len(payload),
        header.as_bytes(),
        payload,
    ]
    .concat();
    // A source that has hung up is the end of it.
    let _ = stream.write_all(&frame);
}

fn hear(stream: &mut TcpStream) -> Option<(Value, Vec<u8>)> {
    let mut lens = [0; 8];
    stream.read_exact(&mut lens).ok()?;
    let len = |at: usize| u32::from_le_bytes(lens[at..at + 4].try_into().unwrap());
    let mut take = |len: u32| {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        stream.read_exact(&mut bytes).ok()?;
        Some(bytes)
    };
    let (header, payload) = (take(len(0))?, take(len(4))?);
    Some((serde_json::from_slice(&header).unwrap(), payload))
}

#[test]
fn a_wrong_byte_is_found_where_it_is() {
    let ended = with_target("flips a bit");
    let json = ended.json();
    assert_eq!(ended.code, 1, "{json}");
    for transfer in json["transfers"].as_array().unwrap() {
        assert_eq!(transfer["verdict"], "failed");
        let first = &transfer["mismatches"][0];
        assert_eq!(
            (&first["side"], &first["offset"]),
            (&"destination".into(), &4_097.into())
        );
        let byte = |key: &str| first[key].as_u64().unwrap();
        assert_eq!(byte("expected") ^ byte("found"), 4);
    }
    // One in each allocation; the others are right.
    assert_eq!(json["transfers"][0]["wrong_bytes"], 1);
}

#[test]
fn what_a_target_must_not_say_is_named() {
    for (role, code, expected) in [
        ("stranger", 5, "the target ended with"),
        (
            "other protocol",
            5,
            "the other side speaks version 2 of the channel, this one version 1",
        ),
        ("answers too little", 5, "bytes where"),
        ("tells a range twice", 5, "the target's ranges can't be"),
        (
            "tells less memory",
            5,
            "the plan does not fit the registered memory",
        ),
        ("tells other memory", 5, "is in no registered region"),
        ("refuses", 5, "the target says: no room today"),
        ("answers something else", 5, "where done was asked for"),
        ("shouts", 5, "a header of 4294967295 bytes"),
        ("dies", 5, "the channel:"),
    ] {
        let ended = with_target(role);
        assert_eq!(ended.code, code, "{role}: {}", ended.err);
        assert!(ended.err.contains(expected), "{role}: {}", ended.err);
        assert!(ended.json()["error"].is_string(), "{role}");
    }
}

#[test]
fn a_program_that_is_no_target_is_named() {
    let absent = ended(transfer(Engine::Loopback).args(["--target", "/no/such/program"]));
    assert_eq!(absent.code, 2);
    assert!(
        absent
            .err
            .contains("/no/such/program can't be run as target"),
        "{}",
        absent.err
    );
    let other = ended(transfer(Engine::Loopback).args(["--target", "true"]));
    assert_eq!(other.code, 5);
    assert!(other.err.contains("before it had called"), "{}", other.err);
}
