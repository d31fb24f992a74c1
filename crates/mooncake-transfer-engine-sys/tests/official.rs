//! The table of the official library, against a stand-in written in C.

#![allow(unsafe_code, reason = "calls functions of a C library")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::path::Path;
use std::ptr::{null_mut, without_provenance_mut};

use common::{compile, compile_empty, folder};
use libloading::os::unix::Library as Raw;
use mooncake_transfer_engine_sys::official::{
    BufferEntry, INVALID_BATCH, Library, NicLoadStat, NotifyMsg, OPCODE_WRITE, TransferRequest,
    TransferStatus,
};
use mooncake_transfer_engine_sys::{LoadError, Reason};

fn pointer(address: usize) -> *mut c_void {
    without_provenance_mut(address)
}

fn request() -> TransferRequest {
    TransferRequest {
        opcode: OPCODE_WRITE,
        source: pointer(2),
        target_id: 3,
        target_offset: 4 << 40,
        length: 5,
    }
}

#[test]
fn the_required_functions_reach_their_c_names_with_their_arguments() {
    let path = folder("official-required").join("libtransfer_engine.so");
    compile("official.c", &path, &[]);
    let library = Library::open(&path).unwrap();
    assert_eq!(library.path(), path);
    let functions = library.functions();
    let engine = pointer(7);
    let mut text: [c_char; 16] = [0; 16];
    let mut status = TransferStatus::default();
    let mut args = [pointer(3)];
    // SAFETY: the stand-in's functions read the strings and arrays that are given and take other
    // pointers for numbers. The same for each call below.
    let made = unsafe {
        (functions.create_transfer_engine)(c"a".as_ptr(), c"bc".as_ptr(), c"def".as_ptr(), 4, 1)
    };
    assert_eq!(made.addr(), 1 + 20 + 300 + 4_000 + 10_000_000);
    // SAFETY: as above.
    let transport =
        unsafe { (functions.install_transport)(engine, c"tcp".as_ptr(), args.as_mut_ptr()) };
    assert_eq!(transport.addr(), 7 + 30 + 300);
    // SAFETY: as above.
    let written =
        unsafe { (functions.get_local_ip_and_port)(engine, text.as_mut_ptr(), text.len()) };
    assert_eq!(written, 6);
    // SAFETY: the call ended the text with a zero byte.
    assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, c"host:7");
    // SAFETY: as above.
    let registered =
        unsafe { (functions.register_local_memory)(engine, pointer(2), 3, c"cpu:".as_ptr(), 5) };
    assert_eq!(registered, 7 + 20 + 300 + 4_000 + 50_000);
    // SAFETY: as above.
    let unregistered = unsafe { (functions.unregister_local_memory)(engine, pointer(2)) };
    assert_eq!(unregistered, 27);
    // SAFETY: as above.
    let opened = unsafe { (functions.open_segment)(engine, c"peer".as_ptr()) };
    assert_eq!(opened, 47);
    // SAFETY: as above.
    let opened = unsafe { (functions.open_segment_no_cache)(engine, c"peer".as_ptr()) };
    assert_eq!(opened, -47);
    // SAFETY: as above.
    assert_eq!(unsafe { (functions.close_segment)(engine, 9) }, -2);
    // SAFETY: as above.
    let batch = unsafe { (functions.allocate_batch_id)(engine, 6) };
    assert_eq!(batch, (6 << 40) + 7);
    // SAFETY: as above.
    let no_batch = unsafe { (functions.allocate_batch_id)(engine, 0) };
    assert_eq!(no_batch, INVALID_BATCH);
    let mut requests = [request(), request()];
    // SAFETY: as above.
    let submitted = unsafe { (functions.submit_transfer)(engine, batch, requests.as_mut_ptr(), 2) };
    assert_eq!(submitted, 7 + 6 + 2 * (1 + 20 + 300 + 4_000 + 50_000));
    // SAFETY: as above.
    let code = unsafe { (functions.get_transfer_status)(engine, batch, 4, &raw mut status) };
    assert_eq!((code, status.status), (0, 4));
    assert_eq!(status.transferred_bytes, batch + 7);
    // SAFETY: as above.
    assert_eq!(unsafe { (functions.free_batch_id)(engine, batch) }, 13);
    // SAFETY: as above.
    unsafe { (functions.destroy_transfer_engine)(engine) };
    assert_eq!(last_destroyed(&path), 7);
}

#[test]
fn the_optional_functions_reach_their_c_names_with_their_arguments() {
    let path = folder("official-optional").join("libtransfer_engine.so");
    compile("official.c", &path, &[]);
    let library = Library::open(&path).unwrap();
    let functions = *library.functions();
    let engine = pointer(7);
    let message = || NotifyMsg {
        name: c"ab".as_ptr().cast_mut(),
        msg: c"cde".as_ptr().cast_mut(),
    };
    // SAFETY: as in the test of the required functions. The same for each call below.
    assert_eq!(unsafe { functions.discover_topology.unwrap()(engine) }, 8);
    let name = c"abc".as_ptr();
    // SAFETY: as above.
    let uninstalled = unsafe { functions.uninstall_transport.unwrap()(engine, name) };
    assert_eq!(uninstalled, 67);
    // SAFETY: as above.
    let warmed = unsafe { functions.warmup_efa_segment.unwrap()(engine, name) };
    assert_eq!(warmed, 97);
    // SAFETY: as above.
    let removed = unsafe { functions.remove_local_segment.unwrap()(engine, name) };
    assert_eq!(removed, 127);
    let entry = |addr, length| BufferEntry {
        addr: pointer(addr),
        length,
    };
    let mut entries = [entry(1, 2), entry(3, 4)];
    let register = functions.register_local_memory_batch.unwrap();
    // SAFETY: as above.
    let registered = unsafe { register(engine, entries.as_mut_ptr(), 2, name) };
    assert_eq!(registered, 7 + 40 + 600 + 3_000);
    let mut addresses = [pointer(1), pointer(3)];
    let unregister = functions.unregister_local_memory_batch.unwrap();
    // SAFETY: as above.
    let unregistered = unsafe { unregister(engine, addresses.as_mut_ptr(), 2) };
    assert_eq!(unregistered, 47);
    let mut requests = [request()];
    let submit = functions.submit_transfer_with_notify.unwrap();
    // SAFETY: as above.
    let submitted = unsafe { submit(engine, 6 << 40, &raw mut requests[0], 1, message()) };
    assert_eq!(submitted, 7 + 6 + 54_321 + 200_000 + 3_000_000);
    let mut size: c_int = 0;
    // SAFETY: as above.
    let messages = unsafe { functions.get_notifs_from_engine.unwrap()(engine, &raw mut size) };
    assert_eq!(size, 7);
    // SAFETY: the stand-in returned one message.
    let first = unsafe { *messages };
    // SAFETY: its strings end with a zero byte.
    assert_eq!(unsafe { CStr::from_ptr(first.name) }, c"name");
    // SAFETY: its strings end with a zero byte.
    assert_eq!(unsafe { CStr::from_ptr(first.msg) }, c"message");
    // SAFETY: what `get_notifs_from_engine` returned, once.
    let freed = unsafe { functions.free_notifs_msg_buf.unwrap()(messages, 5) };
    assert_eq!(freed, 5);
    let notify = functions.gen_notify_in_engine.unwrap();
    // SAFETY: as above.
    let notified = unsafe { notify(engine, 4 << 40, message()) };
    assert_eq!(notified, 7 + 4 + 20 + 300);
    // SAFETY: as above.
    assert_eq!(unsafe { functions.sync_segment_cache.unwrap()(engine) }, 9);
    let mut stats = [NicLoadStat {
        device_name: [0; 64],
        inflight_bytes: 0,
        ewma_bandwidth_bps: 0.0,
    }; 2];
    let mut count = stats.len();
    let load = functions.get_nic_load_stats.unwrap();
    // SAFETY: as above.
    let code = unsafe { load(engine, stats.as_mut_ptr(), &raw mut count) };
    assert_eq!((code, count, stats[1].inflight_bytes), (0, 7, 1 << 40));
    assert!(stats[1].ewma_bandwidth_bps.total_cmp(&0.5).is_eq());
    // SAFETY: the stand-in ended the name with a zero byte.
    let device = unsafe { CStr::from_ptr(stats[1].device_name.as_ptr()) };
    assert_eq!(device, c"mlx5_0");
    // SAFETY: as above.
    unsafe { functions.enable_graceful_shutdown.unwrap()(engine) };
    assert_eq!(last_destroyed(&path), -7);
    let mut text: [c_char; 16] = [0; 16];
    let show = functions.show_links.unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { show(engine, text.as_mut_ptr(), text.len(), 1) }, 3);
    // SAFETY: the call ended the text with a zero byte.
    assert_eq!(unsafe { CStr::from_ptr(text.as_ptr()) }, c"7 1");
}

/// What the stand-in noted, by its own handle: it is one library however often it is opened.
fn last_destroyed(path: &Path) -> c_int {
    // SAFETY: the stand-in has no initialisers.
    let raw = unsafe { Raw::new(path) }.unwrap();
    // SAFETY: the type that the stand-in's source gives it.
    let function = unsafe { raw.get::<unsafe extern "C" fn() -> c_int>("last_destroyed") };
    // SAFETY: takes nothing.
    unsafe { function.unwrap()() }
}

#[test]
fn a_library_without_a_required_function_is_refused_with_its_c_name() {
    let path = folder("official-symbol").join("libtransfer_engine.so");
    compile("official.c", &path, &["-DWITHOUT_FREE_BATCH"]);
    let error = Library::open(&path).unwrap_err();
    let symbol = "freeBatchID";
    let text = format!("{} does not export freeBatchID", path.display());
    assert_eq!(error.to_string(), text);
    assert_eq!(error, LoadError::Symbol { path, symbol });
}

#[test]
fn a_library_without_an_optional_function_loads() {
    let path = folder("official-older").join("libtransfer_engine.so");
    compile("official.c", &path, &["-DWITHOUT_SHOW_LINKS"]);
    let library = Library::open(&path).unwrap();
    assert!(library.functions().show_links.is_none());
    assert!(library.functions().sync_segment_cache.is_some());
}

#[test]
fn a_file_that_is_no_library_is_refused_in_the_loaders_words() {
    let path = folder("official-text").join("libtransfer_engine.so");
    fs::write(&path, "not a library\n".repeat(100)).unwrap();
    let error = Library::open(&path).unwrap_err();
    let LoadError::Open { path: at, reason } = &error else {
        panic!("{error}");
    };
    assert_eq!(at, &path);
    assert_eq!(reason, &Reason::Loader("invalid ELF header".to_owned()));
    let text = format!("can't load {}: invalid ELF header", path.display());
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_dependency_that_is_missing_is_named() {
    let folder = folder("official-dependency");
    let needed = folder.join("libmooncake-needs-this.so.7");
    compile_empty(&needed);
    let path = folder.join("libtransfer_engine.so");
    compile("official.c", &path, &[needed.to_str().unwrap()]);
    fs::remove_file(&needed).unwrap();
    let error = Library::open(&path).unwrap_err().to_string();
    let expected = "libmooncake-needs-this.so.7: cannot open shared object file";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn functions_outlive_the_library_value() {
    let path = folder("official-life").join("libtransfer_engine.so");
    compile("official.c", &path, &[]);
    let functions = *Library::open(&path).unwrap().clone().functions();
    // SAFETY: the stand-in takes pointers for numbers.
    let closed = unsafe { (functions.close_segment)(null_mut(), 1) };
    assert_eq!(closed, -1);
}
