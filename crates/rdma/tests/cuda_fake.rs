//! Devices over a driver that is written in C for these tests.
#![cfg(test)]
#![cfg(all(feature = "cuda", target_os = "linux"))]
#![allow(unsafe_code, reason = "raw streams and functions of the stand-in")]

#[path = "common/fake.rs"]
mod fake;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use fake::{Fake, Found, with};
use mooncake_pd_layout::{Axis, ByteLen, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_rdma::cuda::{
    CudaError, Device, DeviceVisibility, Driver, EventFence, EventHandle, StreamHandle,
    StreamVisibility,
};
use mooncake_pd_rdma::{
    AccessError, Address, Bytes, EngineCode, Fault, Fence, Location, Memory, NativeMemory,
    Visibility,
};

fn len(bytes: u64) -> ByteLen {
    ByteLen::new(bytes).unwrap()
}

fn code(value: i64) -> EngineCode {
    EngineCode::new("cuda", value)
}

fn device(ordinal: u16) -> Device {
    Driver::find().unwrap().device(ordinal).unwrap()
}

/// Is set when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn devices_are_told_apart_and_their_contexts_released() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let driver = Driver::find().unwrap();
        assert_eq!(driver.version().unwrap(), (13, 2));
        assert_eq!(
            driver.device(2).unwrap_err(),
            CudaError::NoSuchDevice {
                ordinal: 2,
                count: 2
            }
        );
        let device = driver.device(1).unwrap();
        assert_eq!((device.ordinal(), device.name()), (1, "Fake 1"));
        assert_eq!(device.location(), Location::Cuda(1));
        let memory = device.memory().unwrap();
        assert_eq!((memory.free(), memory.total()), (1_000, 4_000));
        assert_eq!(fake.count("contexts"), 1);
        let fence = EventFence::of_default_stream(&device).unwrap();
        let block = device.allocate(len(8)).unwrap();
        drop(device);
        block.copy_in(0, &[1]).unwrap();
        drop(block);
        assert_eq!(fake.count("contexts"), 1);
        drop(fence);
        assert_eq!(fake.count("contexts"), 0);
    });
}

#[test]
fn memory_is_zero_holds_what_was_copied_in_and_is_freed_once() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let device = device(1);
        let memory = device.allocate(len(5_000)).unwrap();
        assert_eq!(memory.location(), Location::Cuda(1));
        assert_eq!(fake.count("unwaited"), 0);
        let mut out = vec![1; 5_000];
        memory.copy_out(0, &mut out).unwrap();
        assert!(out.iter().all(|byte| *byte == 0));
        memory.copy_in(4_998, &[7, 8]).unwrap();
        // The driver returns before pageable bytes are there.
        assert_eq!(fake.count("unwaited"), 0);
        let mut out = [1; 4];
        memory.copy_out(4_996, &mut out).unwrap();
        assert_eq!(out, [0, 0, 7, 8]);
        assert!(matches!(
            memory.copy_in(4_999, &[1, 2]),
            Err(AccessError::Outside {
                start: 4_999,
                end: 5_001,
                len: 5_000,
                ..
            })
        ));
        memory.copy_in(5_000, &[]).unwrap();
        let clone = memory.clone();
        drop(memory);
        assert_eq!(fake.count("blocks"), 1);
        drop(clone);
        assert_eq!(fake.count("blocks"), 0);
        assert_eq!(fake.count("entered"), 0);
    });
}

#[test]
fn a_layout_gets_a_block_for_each_allocation() {
    with(Found::Whole, || {
        let field = |allocation| {
            FieldSpec::new("kv", "uint8")
                .at(allocation, 0)
                .page_stride(32)
                .dim(Axis::Token, 1, 32)
                .dim(Axis::Content, 32, 1)
        };
        let layout = LayoutBuilder::new()
            .allocation(0, 128)
            .allocation(1, 256)
            .pool(0, 4, Some(0))
            .group(
                GroupSpec::new(0, "full_attention", 1, 0)
                    .layer("a", [field(0)])
                    .layer("b", [field(1)]),
            )
            .build()
            .unwrap();
        let device = device(0);
        let memory = device.of_layout(&layout).unwrap();
        let lengths: Vec<u64> = memory.values().map(|memory| memory.len().get()).collect();
        assert_eq!(lengths, [128, 256]);
        assert_eq!(Fake::get().count("blocks"), 2);
    });
}

#[test]
fn every_failure_keeps_the_drivers_code_and_leaks_nothing() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let device = device(0);
        let no_room = device.allocate(len(1 << 25)).unwrap_err();
        assert_eq!(
            no_room,
            CudaError::OutOfMemory {
                len: 1 << 25,
                location: Location::Cuda(0),
                free: 1_000,
                code: code(2),
            }
        );
        assert_eq!(no_room.fault(), Fault::Caller);
        for call in [
            "cuMemAlloc_v2",
            "cuMemsetD8_v2",
            "cuStreamSynchronize",
            "cuCtxPushCurrent_v2",
        ] {
            fake.fail(call, 700);
            let error = device.allocate(len(64)).unwrap_err();
            assert!(
                matches!(error, CudaError::Failed { call: c, .. } if c == call),
                "{error}"
            );
            assert_eq!(error.code(), Some(code(700)));
            fake.mend();
            assert_eq!(fake.count("blocks"), 0, "{call}");
        }
        let memory = device.allocate(len(64)).unwrap();
        let failed = |start, end, value| {
            Err(AccessError::Device {
                start,
                end,
                code: code(value),
            })
        };
        for (call, value) in [
            ("cuMemcpyHtoD_v2", 719),
            ("cuStreamSynchronize", 700),
            ("cuCtxPushCurrent_v2", 4),
        ] {
            fake.fail(call, value);
            assert_eq!(memory.copy_in(3, &[1; 4]), failed(3, 7, value.into()));
        }
        fake.fail("cuMemcpyDtoH_v2", 719);
        assert_eq!(memory.copy_out(3, &mut [1; 4]), failed(3, 7, 719));
        fake.mend();
        for call in ["cuEventCreate", "cuEventRecord"] {
            fake.fail(call, 901);
            let error = EventFence::of_default_stream(&device).unwrap_err();
            assert_eq!(error.code(), Some(code(901)));
            fake.mend();
            assert_eq!(fake.count("events"), 0, "{call}");
        }
        assert_eq!(fake.count("entered"), 0);
    });
}

#[test]
fn calls_leave_the_threads_context_as_it_was() {
    with(Found::Whole, || {
        let fake = Arc::new(Fake::get());
        let (one, other) = (device(0), device(1));
        let memory = other.allocate(len(64)).unwrap();
        assert_eq!(fake.current(), -1);
        one.bind().unwrap();
        memory.copy_in(0, &[5; 64]).unwrap();
        assert_eq!(fake.current(), 0);
        // A thread that nobody prepared.
        let (clone, fake_there) = (memory.clone(), Arc::clone(&fake));
        let there = thread::spawn(move || {
            let mut out = [0; 64];
            clone.copy_out(0, &mut out).unwrap();
            assert_eq!(out, [5; 64]);
            assert_eq!(fake_there.current(), -1);
            drop(clone);
        });
        drop(memory);
        there.join().unwrap();
        assert_eq!(fake.count("blocks"), 0);
    });
}

#[test]
fn an_address_inside_is_led_to_its_allocation() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let driver = Driver::find().unwrap();
        let device = driver.device(1).unwrap();
        let memory = device.allocate(len(4_096)).unwrap();
        let inner = Address::new(memory.base().get() + 4_095).unwrap();
        let found = driver.allocation_of(inner).unwrap();
        assert_eq!((found.base(), found.len()), (memory.base(), memory.len()));
        assert_eq!(found.location(), Location::Cuda(1));
        assert!(found.is_shareable());
        let pooled = Address::new(fake.block(64, 0, [2, 0, 0])).unwrap();
        assert!(!driver.allocation_of(pooled).unwrap().is_shareable());

        let address = |kind| Address::new(fake.block(64, 0, kind)).unwrap();
        let pinned = address([1, 0, 0]);
        assert_eq!(
            driver.allocation_of(pinned),
            Err(CudaError::HostMemory { address: pinned })
        );
        for where_it_is in [1, 2] {
            let managed = address([where_it_is, 1, 0]);
            assert_eq!(
                driver.allocation_of(managed),
                Err(CudaError::Managed { address: managed })
            );
        }
        let ordinary = NativeMemory::zeroed(len(64)).unwrap().base();
        for unknown in [ordinary, Address::new(0).unwrap()] {
            assert_eq!(
                driver.allocation_of(unknown),
                Err(CudaError::UnknownMemory { address: unknown })
            );
        }
        fake.fail("cuPointerGetAttributes", 999);
        let error = driver.allocation_of(inner).unwrap_err();
        assert_eq!(error.code(), Some(code(999)));
        assert_eq!(fake.count("contexts"), 1);
    });
}

#[test]
fn memory_of_others_is_copied_never_freed_and_kept() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let device = device(0);
        let base = fake.block(256, 0, [2, 0, 1]);
        let dropped = Arc::new(AtomicBool::new(false));
        let adopt = |base, bytes| {
            let keep = Box::new(Flag(Arc::clone(&dropped)));
            // SAFETY: the stand-in frees no block by itself.
            unsafe { device.adopt(Address::new(base).unwrap(), len(bytes), keep) }
        };
        let memory = adopt(base + 16, 240).unwrap();
        assert_eq!(memory.location(), Location::Cuda(0));
        memory.copy_in(0, &[9; 240]).unwrap();
        let mut out = [0; 2];
        memory.clone().copy_out(238, &mut out).unwrap();
        assert_eq!(out, [9, 9]);
        assert!(!dropped.load(Ordering::SeqCst));
        drop(memory);
        assert!(dropped.load(Ordering::SeqCst));
        assert_eq!(fake.count("blocks"), 1);

        let (start, end, limit) = (base + 16, base + 257, base + 256);
        let base = Address::new(base).unwrap();
        assert_eq!(
            adopt(start, 241).unwrap_err(),
            CudaError::OutsideAllocation {
                start,
                end,
                base,
                limit
            }
        );
        let address = Address::new(fake.block(64, 1, [2, 0, 1])).unwrap();
        let (found, expected) = (Location::Cuda(1), Location::Cuda(0));
        assert_eq!(
            adopt(address.get(), 64).unwrap_err(),
            CudaError::OtherDevice {
                address,
                found,
                expected
            }
        );
    });
}

#[test]
fn a_fence_is_past_when_its_stream_has_come_there_and_stays_so() {
    with(Found::Whole, || {
        let fake = Fake::get();
        let device = device(0);
        let stream = StreamHandle::new(0x51);
        // SAFETY: the stand-in takes any number for a stream.
        let fence = || unsafe { EventFence::of_stream(&device, stream) }.unwrap();
        let before = fence();
        fake.set("fake_hold", stream.get());
        let after = fence();
        assert_eq!(before.is_past(), Ok(true));
        assert_eq!(after.is_past(), Ok(false));
        assert_eq!(
            EventFence::of_default_stream(&device).unwrap().is_past(),
            Ok(true)
        );
        // A failed question is an error, and changes nothing.
        fake.fail("cuEventQuery", 700);
        assert_eq!(after.is_past().unwrap_err().code, code(700));
        // Once past, nobody is asked.
        assert_eq!(before.is_past(), Ok(true));
        fake.mend();
        assert_eq!(after.is_past(), Ok(false));
        fake.set("fake_run", 0);
        assert_eq!(after.is_past(), Ok(true));
        drop((before, after));
        assert_eq!(fake.count("events"), 0);

        // SAFETY: as above; this one is refused.
        let wrong = unsafe { EventFence::of_stream(&device, StreamHandle::new(0xBAD)) };
        assert_eq!(wrong.unwrap_err().code(), Some(code(400)));
        assert_eq!((fake.count("events"), fake.count("entered")), (0, 0));
    });
}

#[test]
fn an_event_of_others_is_asked_never_destroyed_and_kept() {
    with(Found::Whole, || {
        let device = device(0);
        // The stand-in's events are three numbers, the first of them 0 before it is recorded.
        let event = Box::new([0_usize; 3]);
        let number = EventHandle::new(event.as_ptr().expose_provenance());
        let dropped = Arc::new(AtomicBool::new(false));
        let keep = Box::new((event, Flag(Arc::clone(&dropped))));
        // SAFETY: the event is in `keep`.
        let fence = unsafe { EventFence::of_event(&device, number, keep) };
        assert_eq!(fence.is_past(), Ok(true));
        assert!(!dropped.load(Ordering::SeqCst));
        drop(fence);
        assert!(dropped.load(Ordering::SeqCst));
        assert_eq!(Fake::get().count("events"), 0);
    });
}

#[test]
fn visibility_waits_and_flushes_where_the_device_needs_it() {
    with(Found::Whole, || {
        let fake = Fake::get();
        for (ordering, flushes) in [(100, 0), (200, 0), (0, 2)] {
            fake.set("fake_ordering", ordering);
            let device = device(0);
            let before = fake.count("synchronized");
            DeviceVisibility::new(&device).make_visible().unwrap();
            StreamVisibility::of_default_stream(&device)
                .make_visible()
                .unwrap();
            assert_eq!(fake.count("synchronized"), before + 2);
            assert_eq!(fake.count("flushes"), flushes);
        }
        let device = device(0);
        // SAFETY: the stand-in takes any number for a stream; this one it refuses.
        let wrong =
            unsafe { StreamVisibility::of_stream(&device, StreamHandle::new(0xBAD), Box::new(())) };
        assert_eq!(wrong.make_visible().unwrap_err().code, code(400));
        fake.fail("cuCtxSynchronize", 700);
        let failed = DeviceVisibility::new(&device).make_visible();
        assert_eq!(failed.unwrap_err().code, code(700));
        fake.fail("cuFlushGPUDirectRDMAWrites", 801);
        let failed = DeviceVisibility::new(&device).make_visible();
        assert_eq!(failed.unwrap_err().code, code(801));
        assert_eq!(fake.count("entered"), 0);
    });
}

#[test]
fn what_is_held_at_the_end_or_after_the_drivers_does_no_harm() {
    static HELD: OnceLock<(Device, NativeMemory)> = OnceLock::new();
    with(Found::Whole, || {
        let fake = Fake::get();
        let one = device(0);
        let memory = one.allocate(len(64)).unwrap();
        let fence = EventFence::of_default_stream(&one).unwrap();
        HELD.set((one.clone(), memory.clone())).unwrap();
        thread_local! {
            static LAST: OnceLock<NativeMemory> = const { OnceLock::new() };
        }
        let there = memory.clone();
        thread::spawn(move || LAST.with(|last| last.set(there).unwrap()))
            .join()
            .unwrap();
        // CUDA_ERROR_DEINITIALIZED.
        fake.fail("cuCtxPushCurrent_v2", 4);
        assert_eq!(fence.is_past().unwrap_err().code, code(4));
        drop((fence, memory, one));
        drop(device(1).allocate(len(64)).unwrap_err());
    });
}
