//! A real device, and streams that stop until they are let go.

use std::env;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult, CUstream};
use mooncake_pd_rdma::cuda::{Device, Driver, StreamHandle};

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// A test that has the device to itself, with its context bound.
pub(crate) struct Gpu {
    pub(crate) driver: Driver,
    pub(crate) device: Device,
    _alone: MutexGuard<'static, ()>,
}

impl Gpu {
    /// The first device of this machine. Without one the test says so and
    /// passes, unless `MOONCAKE_PD_REQUIRE_CUDA=1`.
    pub(crate) fn get() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let driver = match Driver::find() {
            Ok(driver) => driver,
            Err(error) => {
                let required = env::var("MOONCAKE_PD_REQUIRE_CUDA").is_ok_and(|v| v == "1");
                assert!(!required, "{error}");
                eprintln!("skipped: {error}");
                return None;
            }
        };
        // Some calls of the driver wait for the work of every stream.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let device = driver.device(0).unwrap();
        device.bind().unwrap();
        Some(Self {
            driver,
            device,
            _alone: alone,
        })
    }
}

/// Fails the test unless the driver's call succeeded.
pub(crate) fn ok(result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS);
}

/// Work in a stream that waits to be let go, 20 s at most.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    passed: AtomicBool,
}

/// A non-blocking stream.
pub(crate) struct Stream {
    raw: CUstream,
    gate: Arc<Gate>,
}

unsafe extern "C" fn wait(gate: *mut c_void) {
    // SAFETY: a share made by `Stream::stop` for this call.
    let gate = unsafe { Arc::from_raw(gate.cast::<Gate>().cast_const()) };
    let open = gate.open.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = Duration::from_secs(20);
    let waited = gate.changed.wait_timeout_while(open, limit, |open| !*open);
    drop(waited);
}

unsafe extern "C" fn pass(gate: *mut c_void) {
    // SAFETY: a share made by `Stream::mark` for this call.
    let gate = unsafe { Arc::from_raw(gate.cast::<Gate>().cast_const()) };
    gate.passed.store(true, Ordering::SeqCst);
}

impl Stream {
    pub(crate) fn new() -> Self {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` takes a handle, and a context is bound.
        ok(unsafe { sys::cuStreamCreate(&raw mut raw, NON_BLOCKING) });
        Self {
            raw,
            gate: Arc::default(),
        }
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        StreamHandle::new(self.raw.expose_provenance())
    }

    /// What it is given from here on waits for [`go`](Self::go).
    pub(crate) fn stop(&self) {
        self.call(wait);
    }

    /// Makes [`has_passed`](Self::has_passed) true when it comes here.
    pub(crate) fn mark(&self) {
        self.call(pass);
    }

    fn call(&self, function: unsafe extern "C" fn(*mut c_void)) {
        let share = Arc::into_raw(Arc::clone(&self.gate)).cast_mut();
        // SAFETY: the function takes the share that it is given.
        ok(unsafe { sys::cuLaunchHostFunc(self.raw, Some(function), share.cast()) });
    }

    pub(crate) fn go(&self) {
        *self.gate.open.lock().unwrap() = true;
        self.gate.changed.notify_all();
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.gate.passed.load(Ordering::SeqCst)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A failed test must not leave work that waits.
        *self
            .gate
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.gate.changed.notify_all();
        // SAFETY: made by `new`; the driver ends what it was given first.
        ok(unsafe { sys::cuStreamDestroy_v2(self.raw) });
    }
}
