//! The engine between processes, by the checks that all engines pass.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::sync::Arc;

use common::{checks, fixtures};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback};

fn engines() -> (Arc<TcpLoopback>, Arc<TcpLoopback>) {
    let start = || Arc::new(TcpLoopback::start(&TcpConfig::default()).unwrap());
    (start(), start())
}

#[test]
fn c63_sizes_are_byte_exact() {
    checks::sizes_are_byte_exact(&engines());
}

#[test]
fn four_submitters_while_ranges_come_and_go() {
    checks::submitters_while_ranges_come_and_go(&engines());
}

#[test]
fn every_layout_registers_without_overlap() {
    fixtures::every_layout_registers_without_overlap(&*engines().0);
}

#[test]
fn a_batch_that_fails_in_the_middle_spoils_nothing() {
    fixtures::a_batch_that_fails_in_the_middle_spoils_nothing(&engines());
}
