//! The table of tokenspeed's library, against a stand-in written in C.

#![allow(unsafe_code, reason = "calls functions of a C library")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::without_provenance_mut;

use common::{compile, folder};
use libloading::os::unix::Library as Raw;
use mooncake_transfer_engine_sys::LoadError;
use mooncake_transfer_engine_sys::tokenspeed::{ABI_VERSION, Library};

fn pointer(address: usize) -> *mut c_void {
    without_provenance_mut(address)
}

#[test]
fn every_function_reaches_its_c_name_with_its_arguments() {
    let path = folder("tokenspeed-full").join("libtokenspeed_transfer_engine.so");
    compile("tokenspeed.c", &path, &["-DVERSION=1"]);
    let library = Library::open(&path).unwrap();
    assert_eq!(library.path(), path);
    let functions = library.functions();
    let engine = pointer(7);
    // SAFETY: the stand-in's functions read the strings and arrays that are given and take other
    // pointers for numbers. The same for each call below.
    assert_eq!(unsafe { (functions.abi_version)() }, ABI_VERSION);
    let (a, b, c, d) = (c"a".as_ptr(), c"ab".as_ptr(), c"abc".as_ptr(), c"".as_ptr());
    // SAFETY: as above.
    let made = unsafe { (functions.create)(a, b, c, d) };
    assert_eq!(made.addr(), 321);
    // SAFETY: as above.
    assert_eq!(unsafe { (functions.rpc_port)(engine) }, 8);
    // SAFETY: as above.
    let registered = unsafe { (functions.register)(engine, pointer(2), 3) };
    assert_eq!(registered, 327);
    // SAFETY: as above.
    assert_eq!(unsafe { (functions.unregister)(engine, pointer(2)) }, 27);
    let (from, to, len) = ([1_u64, 2], [1_u64 << 40, 3 << 40], [2_u64, 3]);
    // SAFETY: as above.
    let wrote =
        unsafe { (functions.write)(engine, b, from.as_ptr(), to.as_ptr(), len.as_ptr(), 2) };
    assert_eq!(wrote, 7 + 20 + 300 + 4_000 + 50_000);
    let (from, to, fields) = ([1_i64, 2], [1_i64, 3], [1_i64, 2, 3, 4, 5]);
    // SAFETY: as above.
    let wrote = unsafe {
        (functions.write_pages)(
            engine,
            b,
            from.as_ptr(),
            to.as_ptr(),
            2,
            fields.as_ptr(),
            1,
            6,
        )
    };
    assert_eq!(wrote, 7 + 20 + 300 + 4_000 + 150_000 + 60_000_000);
    // SAFETY: as above.
    unsafe { (functions.destroy)(engine) };
    assert_eq!(last_destroyed(&path), 7);
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
fn another_version_is_refused_before_its_functions_are_looked_for() {
    let path = folder("tokenspeed-two").join("libtokenspeed_transfer_engine.so");
    compile("tokenspeed.c", &path, &["-DVERSION=2", "-DONLY_VERSION"]);
    let error = Library::open(&path).unwrap_err();
    let (found, expected) = (2, 1);
    assert_eq!(
        error,
        LoadError::AbiVersion {
            path,
            found,
            expected
        }
    );
}

#[test]
fn a_library_without_a_function_is_refused_with_its_c_name() {
    let path = folder("tokenspeed-symbol").join("libtokenspeed_transfer_engine.so");
    compile("tokenspeed.c", &path, &["-DVERSION=1", "-DONLY_VERSION"]);
    let error = Library::open(&path).unwrap_err();
    let symbol = "ts_mooncake_create";
    assert_eq!(error, LoadError::Symbol { path, symbol });
}
