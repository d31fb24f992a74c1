//! KV cache layouts of prefill and decode engines.
//!
//! This crate knows bytes, groups and pools. It knows no request, no address and no peer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
