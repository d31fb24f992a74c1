//! The real library over TCP on 127.0.0.1, where `TOKENSPEED_TRANSFER_ENGINE_LIB`
//! names one. Without it this test says so and passes, unless
//! `MOONCAKE_PD_REQUIRE_ENGINES=1`.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::process::Command;

use common::{bytes, pattern};
use mooncake_pd_layout::AllocationId;
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::tokenspeed::{Tokenspeed, TokenspeedConfig};
use mooncake_pd_rdma::{
    Bytes, Engine, Memory, NativeMemory, Operation, Patience, Registered, RegistrationPlan, bind,
    transfer,
};
use mooncake_transfer_engine_sys::tokenspeed::{LIBRARY_ENV, Library};

const ID: AllocationId = AllocationId::new(0);
const CANARY: u8 = 0xC5;
const COUNT: u32 = 19;

/// Moves blocks `1..=COUNT` to the same blocks in reverse order and looks at
/// every byte of the destination.
fn moves(prefill: &Tokenspeed, decode: &Tokenspeed, page: u64) {
    let stride = page + 7;
    let layout = common::layout(COUNT + 1, page, stride);
    let memory = || {
        let mut all = NativeMemory::of_layout(&layout).unwrap();
        all.swap_remove(&ID).unwrap()
    };
    let (source, destination) = (memory(), memory());
    let limits = prefill.capabilities().registration();
    let regions = RegistrationPlan::of_layout(&layout, limits).unwrap();
    let local = Registered::new(prefill, &regions, |_| Some(&source)).unwrap();
    let remote = Registered::new(decode, &regions, |_| Some(&destination)).unwrap();
    let len = usize::try_from(source.len().get()).unwrap();
    source.copy_in(0, &pattern(len)).unwrap();
    destination.copy_in(0, &vec![CANARY; len]).unwrap();

    let slots = |ids: Vec<u32>| RawSlots {
        first_block: Some(0),
        entries: ids.into_iter().map(|id| Some(id.into())).collect(),
    };
    let request = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(COUNT.into()),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots((1..=COUNT).collect()),
            destination: slots((1..=COUNT).rev().collect()),
        }],
    };
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let request = Request::new(&request, &pairing).unwrap();
    let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;
    let batch = bind(
        plan.copies(),
        Operation::Write,
        local.regions(),
        remote.regions(),
        prefill.capabilities().submission(),
    )
    .unwrap();
    let peer = prefill.open(decode.name()).unwrap();
    let moved = transfer(prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    assert_eq!(moved.bytes(), u64::from(COUNT) * page);

    let [page, stride] = [page, stride].map(|n| usize::try_from(n).unwrap());
    let count = usize::try_from(COUNT).unwrap();
    let sent = bytes(&source);
    assert!(sent == pattern(len));
    let mut expected = vec![CANARY; len];
    for block in 1..=count {
        let to = count + 1 - block;
        expected[to * stride..][..page].copy_from_slice(&sent[block * stride..][..page]);
    }
    assert!(bytes(&destination) == expected, "pages of {page} bytes");
    local.release(prefill).unwrap();
    remote.release(decode).unwrap();
}

#[test]
fn c63_sizes_are_byte_exact() {
    if std::env::var_os(LIBRARY_ENV).is_none() {
        let required = std::env::var("MOONCAKE_PD_REQUIRE_ENGINES").is_ok_and(|v| v == "1");
        assert!(!required, "{LIBRARY_ENV} names no library");
        eprintln!("skipped: {LIBRARY_ENV} names no library");
        return;
    }
    // The library reads this when it starts, so it has to be there before.
    if std::env::var_os("MC_FORCE_TCP").is_none() {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["c63_sizes_are_byte_exact", "--exact", "--nocapture"])
            .env("MC_FORCE_TCP", "1")
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let library = Library::find().unwrap();
    let start = || Tokenspeed::start(&library, &TokenspeedConfig::default()).unwrap();
    let (prefill, decode) = (start(), start());
    for page in [1, 511, 512, 513, (64 << 10) - 1, (64 << 10) + 1] {
        moves(&prefill, &decode, page);
    }
}
