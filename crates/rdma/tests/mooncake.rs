//! The real library over TCP on 127.0.0.1, where `MOONCAKE_TRANSFER_ENGINE_LIB`
//! names one; no registry has it. Without it these tests say so and pass.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::pair::{ID, Pair};
use common::{checks, fixtures, layout};
use mooncake_pd_layout::ByteLen;
use mooncake_pd_rdma::mooncake::{Mooncake, MooncakeConfig, Transport};
use mooncake_pd_rdma::{
    Engine, InFlight, NativeMemory, Outcome, Patience, Registered, RegistrationPlan, Standing,
    transfer,
};
use mooncake_transfer_engine_sys::official::{LIBRARY_ENV, Library};

fn library() -> Option<Library> {
    if std::env::var_os(LIBRARY_ENV).is_none() {
        eprintln!("skipped: {LIBRARY_ENV} names no library");
        return None;
    }
    Some(Library::find().unwrap())
}

fn engine(library: &Library) -> Arc<Mooncake> {
    let config = MooncakeConfig::default().transport(Transport::Tcp);
    Arc::new(Mooncake::start(library, &config).unwrap())
}

fn engines(library: &Library) -> (Arc<Mooncake>, Arc<Mooncake>) {
    (engine(library), engine(library))
}

#[test]
fn c63_sizes_are_byte_exact() {
    let Some(library) = library() else { return };
    checks::sizes_are_byte_exact(&engines(&library));
}

#[test]
fn every_layout_registers_without_overlap() {
    let Some(library) = library() else { return };
    fixtures::every_layout_registers_without_overlap(&*engine(&library));
}

#[test]
fn a_batch_that_fails_in_the_middle_spoils_nothing() {
    let Some(library) = library() else { return };
    fixtures::a_batch_that_fails_in_the_middle_spoils_nothing(&engines(&library));
}

#[test]
fn c62_100_000_descriptors_arrive_in_portions() {
    let Some(library) = library() else { return };
    let pair = Pair::new(&engines(&library), layout(100_001, 48, 64));
    let batch = pair.batch(100_000);
    assert_eq!(batch.descriptors().len(), 100_000);
    let peer = pair.prefill.open(pair.decode.name()).unwrap();
    let start = Instant::now();
    let moved = transfer(&*pair.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    eprintln!("100,000 descriptors in {:?}", start.elapsed());
    assert_eq!(moved.submissions(), 98);
    pair.assert_landed(100_000, 48, 64);
}

#[test]
fn a_peer_that_unregistered_fails_the_transfer_and_can_be_opened_again() {
    let Some(library) = library() else { return };
    let mut pair = Pair::new(&engines(&library), layout(9, 4_096, 5_000));
    let batch = pair.batch(8);
    let peer = pair.prefill.open(pair.decode.name()).unwrap();
    let limits = pair.decode.capabilities().registration();
    let one = RegistrationPlan::of([(ID, 1)], limits).unwrap();
    let spare = NativeMemory::zeroed(ByteLen::new(1).unwrap()).unwrap();
    let spare = Registered::new(&*pair.decode, &one, |_| Some(&spare)).unwrap();
    let gone = std::mem::replace(&mut pair.remote, spare);
    gone.release(&*pair.decode).unwrap();
    let engine = Arc::clone(&pair.prefill);
    let mut flight = InFlight::new(engine, peer.clone(), batch.clone(), ());
    let standing = flight.drain(Patience::default());
    let Standing::Ended(outcome) = standing else {
        panic!("{standing:?}");
    };
    assert!(matches!(
        outcome,
        Outcome::Failed { .. } | Outcome::NotTaken { .. }
    ));
    assert!(flight.end().is_ok());
    let submission = batch.submission(0).unwrap();
    assert!(pair.prefill.submit(&peer, submission).is_err());
    let regions = RegistrationPlan::of_layout(&pair.layout, limits).unwrap();
    pair.remote = Registered::new(&*pair.decode, &regions, |_| Some(&pair.destination)).unwrap();
    // Rejected descriptors hold later ones up for a while.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let peer = pair.prefill.open(pair.decode.name()).unwrap();
        match transfer(&*pair.prefill, &peer, &batch, Patience::default(), |_| {}) {
            Ok(_) => break,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
    pair.assert_landed(8, 4_096, 5_000);
}

#[test]
fn nobody_at_a_port_is_an_error_that_names_it() {
    let Some(library) = library() else { return };
    let engine = engine(&library);
    let error = engine.open("127.0.0.1:1").unwrap_err();
    assert!(error.to_string().contains("`127.0.0.1:1`"), "{error}");
}

#[test]
fn four_submitters_while_ranges_come_and_go() {
    let Some(library) = library() else { return };
    checks::submitters_while_ranges_come_and_go(&engines(&library));
}
