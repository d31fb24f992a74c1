//! Blocking calls of the native libraries with nothing around them.
#![allow(unsafe_code, reason = "calls C libraries through function pointers")]

use std::ffi::{CString, c_void};
use std::ptr;

use mooncake_pd_rdma::{Memory, NativeMemory};
use mooncake_transfer_engine_sys::official::{
    self, INVALID_BATCH, OPCODE_WRITE, STATUS_COMPLETED, STATUS_PENDING, STATUS_WAITING,
    TransferRequest, TransferStatus,
};
use mooncake_transfer_engine_sys::tokenspeed;

use crate::case::{Case, PORTION};

fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap())
}

/// Source and destination of every descriptor.
fn places(case: Case, here: u64, there: u64) -> Vec<(u64, u64)> {
    case.slots()
        .map(|(from, to)| (here + from * case.len, there + to * case.len))
        .collect()
}

/// Bare blocking calls to one peer.
pub(crate) trait Bare {
    /// Registers the memory for ever, which the caller keeps as long, and makes
    /// the requests.
    fn prepare(&mut self, case: Case, memory: &NativeMemory, there: u64);

    /// Sends them all and waits for their end.
    fn write(&mut self);
}

/// The official C interface. It is never taken down: the process ends.
pub(crate) struct Official {
    functions: official::Functions,
    engine: *mut c_void,
    segment: official::SegmentHandle,
    portions: Vec<Vec<TransferRequest>>,
}

impl Official {
    pub(crate) fn start(functions: official::Functions, target: &str) -> Self {
        let (host, target) = (c"127.0.0.1".as_ptr(), CString::new(target).unwrap());
        let create = functions.create_transfer_engine;
        // SAFETY: strings with an end.
        let engine = unsafe { create(c"P2PHANDSHAKE".as_ptr(), host, host, 0, 0) };
        assert!(!engine.is_null());
        let install = functions.install_transport;
        // SAFETY: the engine is alive, the string has an end, null is no arguments.
        let transport = unsafe { install(engine, c"tcp".as_ptr(), ptr::null_mut()) };
        assert!(!transport.is_null());
        let open = functions.open_segment;
        // SAFETY: the engine is alive, the string has an end.
        let segment = unsafe { open(engine, target.as_ptr()) };
        assert!(segment >= 0);
        Self {
            functions,
            engine,
            segment,
            portions: Vec::new(),
        }
    }
}

impl Bare for Official {
    fn prepare(&mut self, case: Case, memory: &NativeMemory, there: u64) {
        let (here, len) = (memory.base().get(), memory.len().get());
        let len = usize::try_from(len).unwrap();
        let register = self.functions.register_local_memory;
        // SAFETY: the engine is alive, the caller keeps the memory.
        let code = unsafe { register(self.engine, pointer(here), len, c"cpu:0".as_ptr(), 1) };
        assert_eq!(code, 0);
        let requests: Vec<TransferRequest> = places(case, here, there)
            .into_iter()
            .map(|(from, to)| TransferRequest {
                opcode: OPCODE_WRITE,
                source: pointer(from),
                target_id: self.segment,
                target_offset: to,
                length: case.len,
            })
            .collect();
        self.portions = requests.chunks(PORTION).map(<[_]>::to_vec).collect();
    }

    /// Submits each portion and polls its tasks, one after another, to their
    /// end.
    fn write(&mut self) {
        let functions = self.functions;
        for portion in &mut self.portions {
            let count = portion.len();
            // SAFETY: the engine is alive.
            let batch = unsafe { (functions.allocate_batch_id)(self.engine, count) };
            assert_ne!(batch, INVALID_BATCH);
            let entries = portion.as_mut_ptr();
            // SAFETY: the batch has room for them; memory stays registered.
            let code = unsafe { (functions.submit_transfer)(self.engine, batch, entries, count) };
            assert_eq!(code, 0);
            for task in 0..count {
                let mut status = TransferStatus {
                    status: STATUS_WAITING,
                    ..TransferStatus::default()
                };
                while [STATUS_WAITING, STATUS_PENDING].contains(&status.status) {
                    let out = &raw mut status;
                    let ask = functions.get_transfer_status;
                    // SAFETY: the batch is alive and has that task.
                    let code = unsafe { ask(self.engine, batch, task, out) };
                    assert_eq!(code, 0);
                }
                assert_eq!(status.status, STATUS_COMPLETED);
            }
            // SAFETY: the batch is freed once, after its tasks.
            let code = unsafe { (functions.free_batch_id)(self.engine, batch) };
            assert_eq!(code, 0);
        }
    }
}

/// The packaged library's blocking write. It is never taken down.
pub(crate) struct Packaged {
    functions: tokenspeed::Functions,
    engine: *mut c_void,
    target: CString,
    portions: Vec<[Vec<u64>; 3]>,
}

impl Packaged {
    pub(crate) fn start(functions: tokenspeed::Functions, target: &str) -> Self {
        let (host, server) = (c"127.0.0.1".as_ptr(), c"P2PHANDSHAKE".as_ptr());
        // SAFETY: strings with an end.
        let engine = unsafe { (functions.create)(host, server, c"rdma".as_ptr(), c"".as_ptr()) };
        assert!(!engine.is_null());
        Self {
            functions,
            engine,
            target: CString::new(target).unwrap(),
            portions: Vec::new(),
        }
    }
}

impl Bare for Packaged {
    fn prepare(&mut self, case: Case, memory: &NativeMemory, there: u64) {
        let (here, len) = (memory.base().get(), memory.len().get());
        let len = usize::try_from(len).unwrap();
        // SAFETY: the engine is alive, the caller keeps the memory.
        let code = unsafe { (self.functions.register)(self.engine, pointer(here), len) };
        assert_eq!(code, 0);
        self.portions = places(case, here, there)
            .chunks(PORTION)
            .map(|part| {
                [
                    part.iter().map(|(from, _)| *from).collect(),
                    part.iter().map(|(_, to)| *to).collect(),
                    vec![case.len; part.len()],
                ]
            })
            .collect();
    }

    /// Writes one portion after the other.
    fn write(&mut self) {
        let (write, engine, target) = (self.functions.write, self.engine, self.target.as_ptr());
        for [sources, places, lengths] in &self.portions {
            let count = lengths.len();
            let (sources, places) = (sources.as_ptr(), places.as_ptr());
            // SAFETY: three lists of that length; memory stays registered.
            let code = unsafe { write(engine, target, sources, places, lengths.as_ptr(), count) };
            assert_eq!(code, 0);
        }
    }
}
