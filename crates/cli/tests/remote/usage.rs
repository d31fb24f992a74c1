//! What the command line can't ask for.

use std::fs;
use std::process::Command;

use crate::command::{Engine, ended, scratch, transfer};

#[test]
fn options_of_two_processes_need_an_engine_between_them() {
    for args in [["--target", "x"], ["--repeat", "2"], ["--memory", "cuda"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"));
        let ended = ended(command.arg("transfer").args(args));
        assert_eq!(ended.code, 2, "{}", ended.err);
        let expected = format!(
            "{} needs --engine loopback, mooncake or tokenspeed",
            match args {
                ["--memory", _] => "--memory cuda",
                [option, _] => option,
            }
        );
        assert!(ended.err.contains(&expected), "{}", ended.err);
    }
}

#[test]
fn memory_that_is_none_is_refused() {
    let ended = ended(transfer(Engine::Loopback).args(["--memory", "cuda:x"]));
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .err
            .contains(r#""cuda:x" is not `host`, `cuda` or `cuda:N`"#),
        "{}",
        ended.err
    );
}

#[test]
fn loopback_moves_no_device_memory() {
    let ended = ended(transfer(Engine::Loopback).args(["--memory", "cuda:1"]));
    assert_eq!(ended.code, 2);
    let expected =
        "engine loopback does not move memory of cuda:1; use host memory, or another engine";
    assert!(ended.err.contains(expected), "{}", ended.err);
}

#[test]
fn a_library_that_is_none_is_named_with_what_to_do() {
    let file = scratch("not-a-library.so");
    fs::write(&file, "text").unwrap();
    for (engine, variable) in [
        (Engine::Mooncake, "MOONCAKE_TRANSFER_ENGINE_LIB"),
        (Engine::Tokenspeed, "TOKENSPEED_TRANSFER_ENGINE_LIB"),
    ] {
        let missing = ended(transfer(engine).env(variable, "/no/such/library.so"));
        assert_eq!(missing.code, 2);
        let expected =
            format!("{variable} is set to /no/such/library.so, and there is no such file");
        assert!(missing.err.contains(&expected), "{}", missing.err);
        let json = missing.json();
        assert_eq!((&json["kind"], &json["exit"]), (&"usage".into(), &2.into()));

        let text = ended(transfer(engine).env(variable, &file));
        assert_eq!(text.code, 2);
        assert!(text.err.contains("not-a-library.so"), "{}", text.err);
    }
}

#[test]
fn a_target_by_hand_says_that_a_source_starts_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"));
    let ended = ended(command.arg("target").env_remove("MOONCAKE_PD_CHANNEL"));
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .err
            .contains("MOONCAKE_PD_CHANNEL is not set: a source starts its target itself")
    );
}

#[test]
fn tokenspeed_without_a_card_and_without_tcp_says_what_to_set() {
    let cards = fs::read_dir("/sys/class/infiniband");
    if cards.is_ok_and(|mut cards| cards.next().is_some())
        || !Engine::here().contains(&Engine::Tokenspeed)
    {
        eprintln!("skipped: there is a card, or no library");
        return;
    }
    let ended = ended(transfer(Engine::Tokenspeed).env_remove("MC_FORCE_TCP"));
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("set MC_FORCE_TCP=1"), "{}", ended.err);
}
