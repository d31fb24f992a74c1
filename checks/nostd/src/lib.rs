//! Layout, plan and connector, with all their dependencies, in a static library that brings its own panic
//! handler and allocator.
//!
//! Whatever pulls std in brings std's panic handler too, and the build ends with
//! `error[E0152]: found duplicate lang item panic_impl`. Seen to fail so with `extern crate std`
//! in either crate, and with a dependency's `std` feature switched on.
#![no_std]

extern crate alloc;

use alloc::borrow::ToOwned;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use alloc::sync::Arc;
use mooncake_pd_connector::{
    Consumer, Decode, DecodeEvent, DecodeLimits, EngineId, Generation, Peer, Prefill, PrefillEvent,
    PrefillLimits, Time,
};
use mooncake_pd_layout::CacheLayout;
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};

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

/// Plans the first `blocks` blocks of a manifest onto themselves.
///
/// The number of copies, or 0 if anything is refused.
///
/// # Safety
/// `json` points to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nostd_check(json: *const u8, len: usize, blocks: u64) -> u64 {
    // SAFETY: the caller's promise.
    let json = unsafe { core::slice::from_raw_parts(json, len) };
    plan(json, blocks).unwrap_or(0)
}

fn plan(json: &[u8], blocks: u64) -> Option<u64> {
    let layout = CacheLayout::from_json(core::str::from_utf8(json).ok()?).ok()?;
    let pairing = Pairing::new(&layout, &layout).ok()?;
    let groups = layout.groups().iter().map(|group| {
        let slots = RawSlots {
            first_block: Some(0),
            entries: (0..blocks).map(Some).collect(),
        };
        RawTables {
            group: group.id().get(),
            source: slots.clone(),
            destination: slots,
        }
    });
    let request = RawRequest {
        id: "all".to_owned(),
        computed_tokens: Some(blocks),
        tail_aligned: false,
        groups: groups.collect(),
    };
    let request = Request::new(&request, &pairing).ok()?;
    let batch = pairing.plan(&[request], &Options::default()).ok()?;
    connect(Arc::new(layout.clone()))?;
    Some(batch.plan.descriptors())
}

/// Runs both session machines for one event.
fn connect(layout: Arc<CacheLayout>) -> Option<()> {
    let me = Peer {
        engine: EngineId::new("engine").ok()?,
        generation: Generation::new(1),
    };
    let now = Time::from_micros(1);
    let mut prefill = Prefill::new(me.clone(), layout.clone(), PrefillLimits::default(), 0);
    prefill.handle(now, PrefillEvent::Tick).ok()?;
    let mut decode = Decode::new(me, Consumer::ALONE, layout, DecodeLimits::default(), 0);
    decode.handle(now, DecodeEvent::Tick).ok()
}
