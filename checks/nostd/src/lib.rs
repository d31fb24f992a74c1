//! Layout and plan, with all their dependencies, in a static library that brings its own panic
//! handler and allocator.
//!
//! Whatever pulls std in brings std's panic handler too, and the build ends with
//! `error[E0152]: found duplicate lang item panic_impl`. Seen to fail so with `extern crate std`
//! in either crate, and with a dependency's `std` feature switched on.
#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_plan as _;

const ARENA_BYTES: usize = 1 << 20;

/// Hands out pieces of one arena and takes none back.
struct Bump {
    arena: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: pieces of the arena are disjoint, because `used` only grows, atomically.
unsafe impl Sync for Bump {}

// SAFETY: every piece lies in the arena, is aligned as asked, and is handed out once.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.arena.get().cast::<u8>();
        let mut start = 0;
        let claimed = self
            .used
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let padding = base.wrapping_add(used).align_offset(layout.align());
                start = used.checked_add(padding)?;
                let end = start.checked_add(layout.size())?;
                (end <= ARENA_BYTES).then_some(end)
            });
        if claimed.is_err() {
            return ptr::null_mut();
        }
        base.wrapping_add(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump {
    arena: UnsafeCell::new([0; ARENA_BYTES]),
    used: AtomicUsize::new(0),
};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Reads a manifest of `len` bytes at `json`; the number of its groups, or 0 if it is refused.
///
/// # Safety
/// `json` points to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nostd_check(json: *const u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    let json = unsafe { core::slice::from_raw_parts(json, len) };
    let layout = core::str::from_utf8(json)
        .ok()
        .and_then(|json| CacheLayout::from_json(json).ok());
    layout.map_or(0, |layout| layout.groups().len())
}
