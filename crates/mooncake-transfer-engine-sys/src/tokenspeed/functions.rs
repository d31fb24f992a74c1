use std::ffi::{c_char, c_int, c_void};

use crate::table::function_table;

/// The version of the interface that this table was written for.
pub const ABI_VERSION: c_int = 1;

/// An engine, as `create` returns it: null on failure, else owned by the caller until `destroy`.
pub type EngineHandle = *mut c_void;

function_table! {
    /// The functions of the library. Their C names begin with `ts_mooncake_`.
    ///
    /// # Safety of every call
    /// The engine is one that `create` of the same library returned and that is not destroyed.
    /// Strings end with a zero byte, are not null, and are read during the call only. Other
    /// pointers are valid for the lengths that stand beside them.
    ///
    /// # Threads
    /// Calls may come from any thread, and calls on one engine may run at the same time, but for
    /// `destroy`.
    ///
    /// # Return values
    /// Zero on success, negative on failure unless a field says otherwise.
    pub struct Functions {
        required {
            /// The version of the interface, [`ABI_VERSION`]. Needs no engine.
            "ts_mooncake_abi_version" abi_version: unsafe extern "C" fn() -> c_int;
            /// Makes an engine and starts its threads; null on failure, with the cause in the log
            /// (standard error) alone. Free it with `destroy`.
            ///
            /// Arguments: host or `host:port` by which peers reach this engine; the metadata
            /// server, or `P2PHANDSHAKE` for none; the protocol; names of devices with commas
            /// between, empty for all. `rdma` with `MC_FORCE_TCP=1` in the environment runs over
            /// TCP; `tcp` is refused.
            "ts_mooncake_create" create: unsafe extern "C" fn(
                local_hostname: *const c_char,
                metadata_server: *const c_char,
                protocol: *const c_char,
                device_name: *const c_char,
            ) -> EngineHandle;
            /// Ends the engine. Once, by its owner, when no other call on it runs and nothing that
            /// a failed write may have left behind can still run.
            "ts_mooncake_destroy" destroy: unsafe extern "C" fn(engine: EngineHandle);
            /// The port of the engine's handshakes. `host:port` is what peers call it: its session.
            "ts_mooncake_rpc_port" rpc_port: unsafe extern "C" fn(engine: EngineHandle) -> c_int;
            /// Registers memory, wherever it lies, for transfers from and to it. Fails when any
            /// byte is registered already. It must stay mapped until it is unregistered.
            "ts_mooncake_register" register: unsafe extern "C" fn(
                engine: EngineHandle,
                addr: *mut c_void,
                length: usize,
            ) -> c_int;
            /// Undoes `register` of the region that begins at `addr`. No transfer may be using it.
            "ts_mooncake_unregister" unregister: unsafe extern "C" fn(
                engine: EngineHandle,
                addr: *mut c_void,
            ) -> c_int;
            /// Writes `count` spans to a peer and waits: `lengths[i]` bytes from address
            /// `sources[i]` here to address `destinations[i]` there.
            ///
            /// It fails at the first span that fails, or when its time is over, while others may
            /// still run: sources are read and destinations written afterwards, and no call tells
            /// when that ends. A peer that was restarted under the same name fails for ever; a new
            /// engine reaches it.
            "ts_mooncake_write" write: unsafe extern "C" fn(
                engine: EngineHandle,
                target: *const c_char,
                sources: *const u64,
                destinations: *const u64,
                lengths: *const u64,
                count: usize,
            ) -> c_int;
            /// Writes fields of pages to a peer and waits. A field is five numbers: base and stride
            /// of the source, base and stride of the destination, length. Of every field, for each
            /// `i`, `length` bytes move from source base + `src_pages[i]` x stride to destination
            /// base + `dst_pages[i]` x stride, one field after the other, in batches of at most
            /// `max_batch_size` spans (0: in one).
            ///
            /// Returns what the first batch that failed returned; what `write` says of failures
            /// holds here too.
            "ts_mooncake_write_pages" write_pages: unsafe extern "C" fn(
                engine: EngineHandle,
                target: *const c_char,
                src_pages: *const i64,
                dst_pages: *const i64,
                num_pages: usize,
                fields: *const i64,
                num_fields: usize,
                max_batch_size: usize,
            ) -> c_int;
        }
        optional {}
    }
}
