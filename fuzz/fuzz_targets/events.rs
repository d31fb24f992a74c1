//! Input of the check that the owning crate replays over `fuzz/corpus/events`.
#![no_main]

use mooncake_pd_connector::testing::check_event_bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_event_bytes(data));
