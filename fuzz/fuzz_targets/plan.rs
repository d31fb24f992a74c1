//! Input of the check that the owning crate replays over `fuzz/corpus/plan`.
#![no_main]

use mooncake_pd_plan::testing::check_plan_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_plan_bytes(data));
