//! Input of the check that the owning crate replays over `fuzz/corpus/layout`.
#![no_main]

use mooncake_pd_layout::testing::check_layout_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_layout_bytes(data));
