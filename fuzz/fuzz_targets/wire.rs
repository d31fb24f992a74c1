//! Input of the check that the owning crate replays over `fuzz/corpus/wire`.
#![no_main]

use mooncake_pd_connector::testing::check_wire_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_wire_bytes(data));
