//! Input of the check that the owning crate replays over `fuzz/corpus/schedule`.
#![no_main]

use mooncake_pd_connector::testing::sim::check_schedule_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_schedule_bytes(data));
