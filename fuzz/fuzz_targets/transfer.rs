//! Input of the check that the owning crate replays over `fuzz/corpus/transfer`.
#![no_main]

use mooncake_pd_rdma::testing::check_transfer_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_transfer_bytes(data));
