//! Calls of the library.
#![allow(unsafe_code, reason = "calls a C library through function pointers")]

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod tests;

use std::ffi::{CStr, CString, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::ptr::NonNull;
use std::sync::Arc;

use mooncake_pd_layout::ByteSpan;
use mooncake_transfer_engine_sys::tokenspeed::Functions;

use super::CALL;
use super::config::TokenspeedConfig;
use crate::address::Address;
use crate::batch::Descriptor;
use crate::engine::Memory;
use crate::error::EngineCode;
use crate::native::{Guard, NativeMemory, pointer};

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A text of the configuration that C can't take: the caller's fault.
    #[error("{what} `{text}` has a zero byte in it")]
    ZeroByte {
        /// Which.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The library made none; it has written the reason to standard error.
    #[error(
        "the library made no engine at {host} with protocol `{protocol}`; its log on standard error says why. Without an RDMA card, set MC_FORCE_TCP=1 and protocol `rdma`"
    )]
    NoEngine {
        /// Where it should be reached.
        host: IpAddr,
        /// How it should move bytes.
        protocol: String,
    },
    /// The library says that the engine listens at no port.
    #[error(
        "the library's engine at {host} listens at port {port}, outside 1..65536; its log on standard error says why"
    )]
    Port {
        /// Where it should be reached.
        host: IpAddr,
        /// What it said.
        port: i64,
    },
    /// The system gives no thread.
    #[error("no thread to wait for writes: {kind}")]
    Threads {
        /// What the system said.
        kind: std::io::ErrorKind,
    },
    /// What a thread had to do first failed.
    #[error(
        "a thread that waits for writes failed at its start ({code}); it was told what to do first by `on_thread`"
    )]
    OnThread {
        /// What it said.
        code: EngineCode,
    },
}

/// An engine of the library, destroyed when nothing holds it any more.
pub(crate) struct Handle {
    functions: Functions,
    engine: NonNull<c_void>,
    name: String,
}

/// Where bytes come from and go to: three lists of one length.
#[derive(Debug)]
pub(super) struct Spans {
    sources: Vec<u64>,
    destinations: Vec<u64>,
    lengths: Vec<u64>,
}

impl Spans {
    pub(super) fn of(descriptors: &[Descriptor]) -> Self {
        let list = |number: fn(&Descriptor) -> u64| descriptors.iter().map(number).collect();
        Self {
            sources: list(|descriptor| descriptor.local().get()),
            destinations: list(|descriptor| descriptor.remote().get()),
            lengths: list(|descriptor| descriptor.len().get()),
        }
    }
}

// SAFETY: calls on an engine may come from any thread; the table has only
// function pointers, and `destroy` is called once, by the last owner.
unsafe impl Send for Handle {}
// SAFETY: calls on one engine may run at the same time.
unsafe impl Sync for Handle {}

impl Handle {
    pub(super) fn start(
        functions: Functions,
        config: &TokenspeedConfig,
    ) -> Result<Self, StartError> {
        let host = config.host();
        let address = text("host", &host.to_string())?;
        let metadata = text("metadata server", config.metadata_server())?;
        let protocol = text("protocol", config.protocol_name())?;
        let device = text("device", config.device_names())?;
        let create = functions.create;
        // SAFETY: all four are strings with an end, read during the call.
        let engine = unsafe {
            create(
                address.as_ptr(),
                metadata.as_ptr(),
                protocol.as_ptr(),
                device.as_ptr(),
            )
        };
        let engine = NonNull::new(engine).ok_or_else(|| StartError::NoEngine {
            host,
            protocol: config.protocol_name().to_owned(),
        })?;
        let mut handle = Self {
            functions,
            engine,
            name: String::new(),
        };
        let port = handle.port();
        let valid = u16::try_from(port).ok().filter(|port| *port != 0);
        let port = valid.ok_or(StartError::Port {
            host,
            port: port.into(),
        })?;
        handle.name = SocketAddr::new(host, port).to_string();
        Ok(handle)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn port(&self) -> c_int {
        let ask = self.functions.rpc_port;
        // SAFETY: the engine is alive.
        unsafe { ask(self.engine.as_ptr()) }
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
        let register = self.functions.register;
        // SAFETY: the engine is alive, and the memory is valid until the guard
        // that asked for this has unregistered it.
        done(unsafe { register(self.engine.as_ptr(), start, len) })
    }

    pub(super) fn unregister_memory(&self, start: Address) -> Result<(), EngineCode> {
        let start = pointer(start).ok_or(EngineCode::new(CALL, -1))?;
        let unregister = self.functions.unregister;
        // SAFETY: the engine is alive; the range's guard asks for this, when no
        // write holds it.
        done(unsafe { unregister(self.engine.as_ptr(), start) })
    }

    /// Writes and waits. After an error the spans may be read for ever, so
    /// `holds`, the ranges that they lie in, must stay.
    pub(super) fn write(
        &self,
        target: &CStr,
        spans: &Spans,
        _holds: &[Arc<Guard<Self>>],
    ) -> Result<(), EngineCode> {
        let write = self.functions.write;
        // SAFETY: the engine is alive, the name has an end, the three lists have
        // that many numbers, and every source lies in a range that the caller
        // holds registered until the write has succeeded, or else for ever.
        let code = unsafe {
            write(
                self.engine.as_ptr(),
                target.as_ptr(),
                spans.sources.as_ptr(),
                spans.destinations.as_ptr(),
                spans.lengths.as_ptr(),
                spans.lengths.len(),
            )
        };
        done(code)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let destroy = self.functions.destroy;
        // SAFETY: every guard and every thread that writes owns a share of this
        // handle, and a failed write leaves one for ever; so this is the last
        // call and nothing runs.
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

fn text(what: &'static str, text: &str) -> Result<CString, StartError> {
    CString::new(text).map_err(|_| StartError::ZeroByte {
        what,
        text: text.to_owned(),
    })
}

fn done(code: c_int) -> Result<(), EngineCode> {
    if code == 0 {
        return Ok(());
    }
    Err(EngineCode::new(CALL, code.into()))
}
