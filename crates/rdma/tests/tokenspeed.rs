//! The real library over TCP on 127.0.0.1, where `TOKENSPEED_TRANSFER_ENGINE_LIB`
//! names one. Without it these tests say so and pass, unless
//! `MOONCAKE_PD_REQUIRE_ENGINES=1`.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::process::Command;
use std::sync::Arc;

use common::{checks, fixtures};
use mooncake_pd_rdma::tokenspeed::{Tokenspeed, TokenspeedConfig};
use mooncake_transfer_engine_sys::tokenspeed::{LIBRARY_ENV, Library};

type Engines = (Arc<Tokenspeed>, Arc<Tokenspeed>);

/// Runs a check over two engines, in a process of its own for the test `name`:
/// the library reads `MC_FORCE_TCP` when it starts, so it has to be there before.
fn over_tcp(name: &str, check: fn(&Engines)) {
    if std::env::var_os(LIBRARY_ENV).is_none() {
        let required = std::env::var("MOONCAKE_PD_REQUIRE_ENGINES").is_ok_and(|v| v == "1");
        assert!(!required, "{LIBRARY_ENV} names no library");
        eprintln!("skipped: {LIBRARY_ENV} names no library");
        return;
    }
    if std::env::var_os("MC_FORCE_TCP").is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env("MC_FORCE_TCP", "1")
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let library = Library::find().unwrap();
    let start = || Arc::new(Tokenspeed::start(&library, &TokenspeedConfig::default()).unwrap());
    check(&(start(), start()));
}

#[test]
fn c63_sizes_are_byte_exact() {
    over_tcp("c63_sizes_are_byte_exact", checks::sizes_are_byte_exact);
}

#[test]
fn four_submitters_while_ranges_come_and_go() {
    over_tcp(
        "four_submitters_while_ranges_come_and_go",
        checks::submitters_while_ranges_come_and_go,
    );
}

#[test]
fn every_layout_registers_without_overlap() {
    over_tcp("every_layout_registers_without_overlap", |engines| {
        fixtures::every_layout_registers_without_overlap(&*engines.0);
    });
}

#[test]
fn a_batch_that_fails_in_the_middle_spoils_nothing() {
    over_tcp(
        "a_batch_that_fails_in_the_middle_spoils_nothing",
        fixtures::a_batch_that_fails_in_the_middle_spoils_nothing,
    );
}
