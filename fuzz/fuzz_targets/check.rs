//! Input of the check that the owning crate replays over `fuzz/corpus/check`.
#![no_main]

use mooncake_pd_plan::testing::check_check_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_check_bytes(data));
