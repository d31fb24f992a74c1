//! A real device, where there is one. Needs no file of this repository when it
//! runs: the binary may be carried to a machine with a GPU.
#![cfg(test)]
#![cfg(all(feature = "cuda", target_os = "linux"))]
#![allow(unsafe_code, reason = "streams and memory that are not ours")]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;
#[path = "common/gpu.rs"]
mod gpu;

use std::ptr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::pair::{CANARY, Pair};
use common::{bytes, layout, pattern};
use cudarc::driver::sys::{self, CUresult};
use gpu::{Gpu, Stream, ok};
use mooncake_pd_layout::ByteLen;
use mooncake_pd_rdma::cuda::{
    CudaError, DeviceVisibility, Driver, EventFence, EventHandle, StreamVisibility,
};
use mooncake_pd_rdma::{
    Address, Bytes, Engine, EngineCode, Fabric, Fence, InFlight, Location, Memory, NativeMemory,
    Outcome, Patience, Standing, Visibility,
};

const MIB: u64 = 1 << 20;

type Kind = fn(&Gpu, &Stream) -> Box<dyn Visibility>;

fn len(bytes: u64) -> ByteLen {
    ByteLen::new(bytes).unwrap()
}

fn wait_for(fence: &EventFence) {
    let start = Instant::now();
    while !fence.is_past().unwrap() {
        assert!(start.elapsed() < Duration::from_secs(30), "never past");
        thread::yield_now();
    }
}

#[test]
fn the_driver_of_this_machine_is_found_or_the_error_says_what_to_do() {
    match Driver::find() {
        Ok(driver) => assert!(driver.devices() > 0),
        Err(error) => assert!(error.to_string().contains(';'), "{error}"),
    }
}

#[test]
fn memory_of_the_device_is_zero_and_holds_every_byte() {
    let Some(gpu) = Gpu::get() else { return };
    let device = &gpu.device;
    let (info, (major, minor)) = (device.memory().unwrap(), gpu.driver.version().unwrap());
    let (free, total) = (info.free() / MIB, info.total() / MIB);
    eprintln!(
        "{}, {free} of {total} MiB free, CUDA {major}.{minor}",
        device.name()
    );
    assert!(0 < info.free() && info.free() <= info.total());
    for size in [1, 511, 4_096, 64 * MIB + 1] {
        let memory = device.allocate(len(size)).unwrap();
        assert_eq!(memory.location(), Location::Cuda(0));
        assert!(bytes(&memory).iter().all(|byte| *byte == 0), "{size} bytes");
        let expected = pattern(usize::try_from(size).unwrap());
        memory.copy_in(0, &expected).unwrap();
        assert!(bytes(&memory) == expected, "{size} bytes");
    }
    let memory = device.allocate(len(10_000)).unwrap();
    memory.copy_in(4_095, &[7, 8]).unwrap();
    let mut out = [9; 4];
    memory.copy_out(4_094, &mut out).unwrap();
    assert_eq!(out, [0, 7, 8, 0]);
}

#[test]
fn memory_that_does_not_exist_is_an_error_and_memory_is_given_back() {
    let Some(gpu) = Gpu::get() else { return };
    let total = gpu.device.memory().unwrap().total();
    let error = gpu.device.allocate(len(2 * total)).unwrap_err();
    assert!(
        matches!(error, CudaError::OutOfMemory { code, .. } if code == EngineCode::new("cuda", 2)),
        "{error}"
    );
    // More in turn than there is at a time.
    for _ in 0..24 {
        drop(gpu.device.allocate(len(total / 16)).unwrap());
    }
}

#[test]
fn an_address_inside_is_led_to_its_allocation_and_others_are_refused_by_name() {
    let Some(gpu) = Gpu::get() else { return };
    let (driver, device) = (&gpu.driver, &gpu.device);
    let at = |address| driver.allocation_of(Address::new(address).unwrap());
    let memory = device.allocate(len(5 * MIB)).unwrap();
    for offset in [0, 1, 3 * MIB + 7, 5 * MIB - 1] {
        let found = at(memory.base().get() + offset).unwrap();
        assert_eq!(found.base(), memory.base());
        assert!(found.len() >= memory.len(), "{} bytes", found.len());
        assert_eq!(found.location(), Location::Cuda(0));
        assert!(found.is_shareable());
    }
    let freed = memory.base().get();
    drop(memory);
    assert!(
        matches!(at(freed), Err(CudaError::UnknownMemory { .. })),
        "{:?}",
        at(freed)
    );

    let ordinary = NativeMemory::zeroed(len(4_096)).unwrap();
    let found = at(ordinary.base().get());
    assert!(
        matches!(found, Err(CudaError::UnknownMemory { .. })),
        "{found:?}"
    );

    let mut pinned = ptr::null_mut();
    // SAFETY: `pinned` takes an address, and a context is bound.
    ok(unsafe { sys::cuMemAllocHost_v2(&raw mut pinned, 4_096) });
    let found = at(u64::try_from(pinned.addr()).unwrap());
    // SAFETY: allocated above.
    ok(unsafe { sys::cuMemFreeHost(pinned) });
    assert!(
        matches!(found, Err(CudaError::HostMemory { .. })),
        "{found:?}"
    );

    let (mut managed, global) = (0, 1);
    // SAFETY: `managed` takes an address, and a context is bound.
    ok(unsafe { sys::cuMemAllocManaged(&raw mut managed, 65_536, global) });
    let found = at(managed);
    // SAFETY: allocated above.
    ok(unsafe { sys::cuMemFree_v2(managed) });
    assert!(matches!(found, Err(CudaError::Managed { .. })), "{found:?}");

    let mut pooled = 0;
    // SAFETY: `pooled` takes an address, and a context is bound.
    ok(unsafe { sys::cuMemAllocAsync(&raw mut pooled, 65_536, ptr::null_mut()) });
    let found = at(pooled);
    // SAFETY: allocated above.
    ok(unsafe { sys::cuMemFreeAsync(pooled, ptr::null_mut()) });
    assert!(!found.unwrap().is_shareable());
}

#[test]
fn an_allocation_is_found_in_a_thread_without_a_context() {
    let Some(gpu) = Gpu::get() else { return };
    let memory = gpu.device.allocate(len(MIB)).unwrap();
    let (driver, base) = (gpu.driver, memory.base());
    let found = thread::spawn(move || driver.allocation_of(base)).join();
    assert_eq!(found.unwrap().unwrap().base(), base);
}

#[test]
fn memory_of_others_is_copied_and_not_freed() {
    let Some(gpu) = Gpu::get() else { return };
    let owner = gpu.device.allocate(len(MIB)).unwrap();
    let base = Address::new(owner.base().get() + 4_096).unwrap();
    let adopt = |bytes| {
        // SAFETY: the owner of the memory is kept.
        unsafe { gpu.device.adopt(base, len(bytes), Box::new(owner.clone())) }
    };
    let whole = gpu.driver.allocation_of(base).unwrap().len().get();
    let error = adopt(whole - 4_095).unwrap_err();
    assert!(
        matches!(error, CudaError::OutsideAllocation { .. }),
        "{error}"
    );
    let memory = adopt(MIB - 4_096).unwrap();
    memory.copy_in(1, &[1, 2, 3]).unwrap();
    drop(memory);
    let mut out = [9; 5];
    owner.copy_out(4_096, &mut out).unwrap();
    assert_eq!(out, [0, 1, 2, 3, 0]);
}

#[test]
fn a_fence_is_past_when_the_work_before_it_is_done_and_its_bytes_are_there() {
    let Some(gpu) = Gpu::get() else { return };
    let size = 256 * MIB;
    let memory = gpu.device.allocate(len(size)).unwrap();
    let stream = Stream::new();
    let fence = || {
        // SAFETY: the stream lives to the end of this test.
        unsafe { EventFence::of_stream(&gpu.device, stream.handle()) }.unwrap()
    };
    let idle = fence();
    wait_for(&idle);
    stream.stop();
    for value in 1..=64 {
        let count = usize::try_from(size).unwrap();
        // SAFETY: the memory outlives the stream's work, which `wait_for` awaits.
        ok(unsafe { sys::cuMemsetD8Async(memory.base().get(), value, count, stream.raw()) });
    }
    let after = fence();
    // Streams that were not stopped are not waited for, and nor is this one by others.
    assert_eq!(idle.is_past(), Ok(true));
    for _ in 0..1_000 {
        assert_eq!(after.is_past(), Ok(false));
    }
    stream.go();
    let start = Instant::now();
    wait_for(&after);
    eprintln!(
        "64 memsets of 256 MiB were past after {:?}",
        start.elapsed()
    );
    assert!(bytes(&memory).iter().all(|byte| *byte == 64));
    assert_eq!(after.is_past(), Ok(true));
}

#[test]
fn work_that_is_only_queued_is_not_past() {
    let Some(gpu) = Gpu::get() else { return };
    let size = 512 * MIB;
    let memory = gpu.device.allocate(len(size)).unwrap();
    let stream = Stream::new();
    let mut seen = false;
    for rounds in [64, 256, 1_024, 4_096] {
        for _ in 0..rounds {
            let count = usize::try_from(size).unwrap();
            // SAFETY: the memory outlives the stream's work, which `wait_for` awaits.
            ok(unsafe { sys::cuMemsetD8Async(memory.base().get(), 1, count, stream.raw()) });
        }
        // SAFETY: the stream lives to the end of this test.
        let fence = unsafe { EventFence::of_stream(&gpu.device, stream.handle()) }.unwrap();
        seen = !fence.is_past().unwrap();
        wait_for(&fence);
        if seen {
            break;
        }
    }
    assert!(seen, "always past at once");
}

#[test]
fn an_event_of_others_is_asked_and_left_alone() {
    let Some(gpu) = Gpu::get() else { return };
    let stream = Stream::new();
    let mut event = ptr::null_mut();
    // SAFETY: `event` takes a handle, and a context is bound.
    ok(unsafe { sys::cuEventCreate(&raw mut event, 2) });
    stream.stop();
    // SAFETY: both exist.
    ok(unsafe { sys::cuEventRecord(event, stream.raw()) });
    let number = EventHandle::new(event.expose_provenance());
    // SAFETY: the event is destroyed below, after the fence.
    let fence = unsafe { EventFence::of_event(&gpu.device, number, Box::new(())) };
    assert_eq!(fence.is_past(), Ok(false));
    stream.go();
    wait_for(&fence);
    drop(fence);
    // SAFETY: made above; it is still there.
    ok(unsafe { sys::cuEventDestroy_v2(event) });
}

#[test]
fn a_transfer_starts_when_its_fence_is_past() {
    let Some(gpu) = Gpu::get() else { return };
    let fabric = Fabric::new();
    let attach = |name| Arc::new(fabric.attach(name).unwrap());
    let pair = Pair::new(&(attach("prefill"), attach("decode")), layout(20, 512, 519));
    let peer = pair.prefill.open("decode").unwrap();
    let stream = Stream::new();
    stream.stop();
    // SAFETY: the stream lives to the end of this test.
    let fence = unsafe { EventFence::of_stream(&gpu.device, stream.handle()) }.unwrap();
    let mut flight = InFlight::new(Arc::clone(&pair.prefill), peer, pair.batch(19), ())
        .after(Box::new(fence))
        .then(Box::new(DeviceVisibility::new(&gpu.device)));
    for _ in 0..100 {
        assert_eq!(flight.poll(), Standing::Fenced);
    }
    assert_eq!(
        flight.drain(Patience::new(Duration::from_millis(5))),
        Standing::Fenced
    );
    assert!(bytes(&pair.destination).iter().all(|byte| *byte == CANARY));
    stream.go();
    let standing = flight.drain(Patience::default());
    let Standing::Ended(Outcome::Completed(moved)) = standing else {
        panic!("{standing:?}")
    };
    assert_eq!(moved.descriptors(), 19);
    pair.assert_landed(19, 512, 519);
    pair.release();
}

#[test]
fn visibility_waits_for_the_work_before_it() {
    let Some(gpu) = Gpu::get() else { return };
    let kinds: [Kind; 2] = [
        |gpu, _| Box::new(DeviceVisibility::new(&gpu.device)),
        |gpu, stream| {
            // SAFETY: the stream lives longer than what is made here.
            let of =
                unsafe { StreamVisibility::of_stream(&gpu.device, stream.handle(), Box::new(())) };
            Box::new(of)
        },
    ];
    for kind in kinds {
        let stream = Stream::new();
        stream.stop();
        stream.mark();
        let visibility = kind(&gpu, &stream);
        let (starting, started) = mpsc::channel();
        let waiting = thread::spawn(move || {
            starting.send(()).unwrap();
            visibility.make_visible()
        });
        started.recv().unwrap();
        assert!(!stream.has_passed());
        stream.go();
        waiting.join().unwrap().unwrap();
        assert!(stream.has_passed(), "it did not wait");
    }
    // The default stream does not wait for one that is non-blocking.
    let stream = Stream::new();
    stream.stop();
    stream.mark();
    StreamVisibility::of_default_stream(&gpu.device)
        .make_visible()
        .unwrap();
    assert!(!stream.has_passed());
}

#[test]
fn a_thread_has_a_context_from_its_binding_on_and_copies_need_none() {
    let Some(gpu) = Gpu::get() else { return };
    let current = || {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both take a number.
        unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) }
    };
    let size = 8 * MIB;
    thread::scope(|scope| {
        for fill in [0x11, 0x22] {
            let device = &gpu.device;
            scope.spawn(move || {
                let memory = device.allocate(len(size)).unwrap();
                assert_eq!(current(), CUresult::CUDA_ERROR_INVALID_CONTEXT);
                device.bind().unwrap();
                assert_eq!(current(), CUresult::CUDA_SUCCESS);
                let count = usize::try_from(size).unwrap();
                for round in 0..20_u8 {
                    memory.copy_in(0, &vec![fill + round; count]).unwrap();
                    assert!(bytes(&memory).iter().all(|byte| *byte == fill + round));
                }
                drop(memory);
                assert_eq!(current(), CUresult::CUDA_SUCCESS);
            });
        }
    });
}
