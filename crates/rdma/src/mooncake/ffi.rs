//! Calls of the library.
#![allow(unsafe_code, reason = "calls a C library through function pointers")]

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod tests;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use mooncake_pd_layout::ByteSpan;
use mooncake_transfer_engine_sys::official::{
    BatchId, Functions, INVALID_BATCH, OPCODE_READ, OPCODE_WRITE, SegmentHandle, TransferRequest,
    TransferStatus,
};

use super::CALL;
use super::config::{MooncakeConfig, Transport};
use crate::address::Address;
use crate::batch::{Operation, Submission};
use crate::engine::Memory;
use crate::error::EngineCode;
use crate::name::{PeerName, PeerNameError};
use crate::native::{NativeMemory, pointer};

/// Bytes for `host:port` with its end, more than any address takes.
const NAME_BYTES: usize = 512;

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The library made none; it has written the reason to standard error.
    #[error("the library made no engine at {host}; its log on standard error says why")]
    NoEngine {
        /// Where it should be reached.
        host: std::net::IpAddr,
    },
    /// The library has no such transport, or can't start it.
    #[error("the library can't start transport `{transport}`; is it built with it?")]
    Transport {
        /// The transport's name.
        transport: String,
    },
    /// The library does not say where the engine listens.
    #[error("the library does not say where its engine listens ({code})")]
    NoName {
        /// What it said.
        code: EngineCode,
    },
    /// The library says that the engine listens at no address.
    #[error("the library's engine has a bad name: {0}")]
    BadName(#[from] PeerNameError),
}

/// An engine of the library, destroyed when nothing holds it any more.
pub(crate) struct Handle {
    functions: Functions,
    engine: NonNull<c_void>,
    name: String,
    devices: bool,
}

/// A peer's memory, valid with the engine that opened it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment(SegmentHandle);

/// A batch that the library has, freed once.
#[derive(Debug)]
pub(super) struct Batch {
    handle: Arc<Handle>,
    id: BatchId,
    tasks: usize,
    freed: bool,
}

// SAFETY: calls on an engine may come from any thread; the table has only
// function pointers, and `destroy` is called once, by the last owner.
unsafe impl Send for Handle {}
// SAFETY: calls on one engine may run at the same time.
unsafe impl Sync for Handle {}

impl Handle {
    pub(super) fn start(functions: Functions, config: &MooncakeConfig) -> Result<Self, StartError> {
        let host = config.host();
        let text = host.to_string();
        let text = CString::new(text).map_err(|_| StartError::NoEngine { host })?;
        let auto = c_int::from(*config.transport_kind() == Transport::Auto);
        let create = functions.create_transfer_engine;
        // SAFETY: all three are strings with an end, read during the call.
        let engine = unsafe {
            create(
                c"P2PHANDSHAKE".as_ptr(),
                text.as_ptr(),
                text.as_ptr(),
                0,
                auto,
            )
        };
        let engine = NonNull::new(engine).ok_or(StartError::NoEngine { host })?;
        let mut handle = Self {
            functions,
            engine,
            name: String::new(),
            devices: config.reaches_devices(),
        };
        match config.transport_kind() {
            Transport::Auto => {}
            Transport::Tcp => handle.install("tcp")?,
            Transport::Named(transport) => handle.install(transport)?,
        }
        handle.name = handle.ask_name()?.parse::<PeerName>()?.to_string();
        Ok(handle)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn devices(&self) -> bool {
        self.devices
    }

    fn install(&self, transport: &str) -> Result<(), StartError> {
        let missing = || StartError::Transport {
            transport: transport.to_owned(),
        };
        let name = CString::new(transport).map_err(|_| missing())?;
        let install = self.functions.install_transport;
        // SAFETY: the engine is alive, the name has an end, and null means no
        // arguments.
        let installed = unsafe { install(self.engine.as_ptr(), name.as_ptr(), ptr::null_mut()) };
        NonNull::new(installed).map(drop).ok_or_else(missing)
    }

    fn ask_name(&self) -> Result<String, StartError> {
        let mut bytes = [0_u8; NAME_BYTES];
        let ask = self.functions.get_local_ip_and_port;
        let out = bytes.as_mut_ptr().cast::<c_char>();
        // SAFETY: the engine is alive and the buffer has that many bytes.
        let code = unsafe { ask(self.engine.as_ptr(), out, NAME_BYTES) };
        let code = EngineCode::new(CALL, code.into());
        let name = CStr::from_bytes_until_nul(&bytes).ok();
        name.and_then(|name| name.to_str().ok())
            .filter(|_| code.value() == 0)
            .map(str::to_owned)
            .ok_or(StartError::NoName { code })
    }

    pub(super) fn open(&self, name: &str) -> Result<Segment, EngineCode> {
        let refused = |code: c_int| EngineCode::new(CALL, code.into());
        let name = CString::new(name).map_err(|_| refused(-1))?;
        let open = self.functions.open_segment_no_cache;
        // SAFETY: the engine is alive and the name has an end.
        let segment = unsafe { open(self.engine.as_ptr(), name.as_ptr()) };
        if segment < 0 {
            return Err(refused(segment));
        }
        Ok(Segment(segment))
    }

    pub(super) fn register_memory(
        &self,
        memory: &NativeMemory,
        span: ByteSpan,
    ) -> Result<(), EngineCode> {
        let invalid = EngineCode::new(CALL, -1);
        let start = memory.base().offset(span.start()).map_err(|_| invalid)?;
        let start = pointer(start).ok_or(invalid)?;
        let len = usize::try_from(span.len().get()).map_err(|_| invalid)?;
        let location = CString::new(memory.location().to_string()).map_err(|_| invalid)?;
        let register = self.functions.register_local_memory;
        // SAFETY: the engine is alive, the location has an end, and the memory
        // is valid until the guard that asked for this has unregistered it.
        let code = unsafe { register(self.engine.as_ptr(), start, len, location.as_ptr(), 1) };
        done(code)
    }

    pub(super) fn unregister_memory(&self, start: Address) -> Result<(), EngineCode> {
        let start = pointer(start).ok_or(EngineCode::new(CALL, -1))?;
        let unregister = self.functions.unregister_local_memory;
        // SAFETY: the engine is alive; the address is only looked up.
        done(unsafe { unregister(self.engine.as_ptr(), start) })
    }

    /// Gives a batch to the library. Where it has taken only a part, or
    /// nobody knows how much, the batch is there all the same and its tasks
    /// tell.
    pub(super) fn submit(
        self: &Arc<Self>,
        peer: &Segment,
        submission: Submission<'_>,
    ) -> Result<Batch, EngineCode> {
        let opcode = match submission.operation() {
            Operation::Write => OPCODE_WRITE,
            Operation::Read => OPCODE_READ,
        };
        let mut requests = Vec::with_capacity(submission.descriptors().len());
        for descriptor in submission.descriptors() {
            requests.push(TransferRequest {
                opcode,
                source: pointer(descriptor.local()).ok_or(EngineCode::new(CALL, -1))?,
                target_id: peer.0,
                target_offset: descriptor.remote().get(),
                length: descriptor.len().get(),
            });
        }
        let tasks = requests.len();
        let allocate = self.functions.allocate_batch_id;
        // SAFETY: the engine is alive.
        let id = unsafe { allocate(self.engine.as_ptr(), tasks) };
        if id == INVALID_BATCH {
            return Err(EngineCode::new(CALL, -1));
        }
        let mut batch = Batch {
            handle: Arc::clone(self),
            id,
            tasks,
            freed: false,
        };
        let submit = self.functions.submit_transfer;
        // SAFETY: the engine is alive, the batch is its own, has room for as many
        // tasks and was not freed; every source lies in a range that the caller
        // holds registered until the batch is freed.
        let code = unsafe { submit(self.engine.as_ptr(), id, requests.as_mut_ptr(), tasks) };
        // A batch without tasks is freed at once: then nothing was started.
        if code != 0 && batch.status(0).is_err() && batch.free() {
            return Err(EngineCode::new(CALL, code.into()));
        }
        Ok(batch)
    }
}

impl Batch {
    /// Its tasks.
    pub(super) const fn tasks(&self) -> usize {
        self.tasks
    }

    /// The state of a task, or the number of the call that did not tell.
    pub(super) fn status(&self, task: usize) -> Result<c_int, c_int> {
        if self.freed {
            return Err(-1);
        }
        let mut status = TransferStatus::default();
        let ask = self.handle.functions.get_transfer_status;
        // SAFETY: the engine is alive, the batch is its own and was not freed;
        // the library checks the task's number; the status is ours.
        let code = unsafe { ask(self.handle.engine.as_ptr(), self.id, task, &raw mut status) };
        if code == 0 {
            Ok(status.status)
        } else {
            Err(code)
        }
    }

    /// Whether the library has freed the batch, which it does only when no task
    /// of it runs.
    pub(super) fn free(&mut self) -> bool {
        if !self.freed {
            let free = self.handle.functions.free_batch_id;
            // SAFETY: the engine is alive, the batch is its own and was not
            // freed; `freed` sees to it that it is freed once.
            let code = unsafe { free(self.handle.engine.as_ptr(), self.id) };
            self.freed = code == 0;
        }
        self.freed
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let destroy = self.functions.destroy_transfer_engine;
        // SAFETY: every guard and batch owns a share of this handle, and a batch
        // that has not ended is never dropped; so this is the last call.
        unsafe { destroy(self.engine.as_ptr()) };
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn done(code: c_int) -> Result<(), EngineCode> {
    if code == 0 {
        return Ok(());
    }
    Err(EngineCode::new(CALL, code.into()))
}
