use std::ffi::{c_char, c_int, c_void};

use super::{
    BatchId, BufferEntry, EngineHandle, NicLoadStat, NotifyMsg, SegmentHandle, TransferRequest,
    TransferStatus, TransportHandle,
};
use crate::table::function_table;

function_table! {
    /// The functions of the library: thirteen that every version has and a transfer needs, and
    /// fourteen that an older one may lack.
    ///
    /// # Safety of every call
    /// The engine is one that `create_transfer_engine` of the same library returned and that is
    /// not destroyed. Strings end with a zero byte, are not null, and are read during the call
    /// only. Other pointers are valid for the lengths that stand beside them.
    ///
    /// # Threads
    /// Calls may come from any thread. Unless a field says otherwise, calls on one engine may run
    /// at the same time; calls on one batch may not.
    ///
    /// # Return values
    /// There are two kinds of `int`, both zero on success. *Negative codes*: -1 invalid argument,
    /// -2 too many requests, -3 address not registered, -4 batch busy, -6 no device, -7 address
    /// overlaps, -101 to -104 name, socket, JSON and handshake, -200 to -202 metadata, end point
    /// and context, -300 to -303 NUMA, clock, memory and not implemented. *Positive codes* number
    /// the same faults from the other side of zero (4 batch busy), besides 5 (-5 is not used), 8
    /// transport not supported and 999 not implemented.
    pub struct Functions {
        required {
            /// Makes an engine and starts its threads; null on failure, with the cause in the log
            /// (standard error) alone. Free it with `destroy_transfer_engine`.
            ///
            /// Arguments: the metadata server, or `P2PHANDSHAKE` for none; this engine's own name,
            /// by which peers open it; its address; its port; whether to find devices and install
            /// a transport by itself (not zero) or to wait for `install_transport`. With
            /// `P2PHANDSHAKE` the port is chosen by the engine: ask `get_local_ip_and_port`.
            "createTransferEngine" create_transfer_engine: unsafe extern "C" fn(
                metadata_conn_string: *const c_char,
                local_server_name: *const c_char,
                ip_or_host_name: *const c_char,
                rpc_port: u64,
                auto_discover: c_int,
            ) -> EngineHandle;
            /// Ends the engine. Once, by its owner, when no other call on it runs, no batch has a
            /// task that has not ended, and before registered memory is freed.
            "destroyTransferEngine" destroy_transfer_engine: unsafe extern "C" fn(engine: EngineHandle);
            /// Adds a transport such as `tcp` or `rdma`; null on failure. Regions registered before
            /// are registered with it too. An installed one is returned again. While the engine is
            /// set up, by one thread at a time.
            ///
            /// `args` is null, or an array whose first entry is null or a string: the matrix of
            /// NIC priorities as JSON.
            "installTransport" install_transport: unsafe extern "C" fn(
                engine: EngineHandle,
                proto: *const c_char,
                args: *mut *mut c_void,
            ) -> TransportHandle;
            /// Writes `host:port`, ended by a zero byte, where peers reach this engine's
            /// handshakes. Cut at `buf_len` without a word. Always returns 0.
            "getLocalIpAndPort" get_local_ip_and_port: unsafe extern "C" fn(
                engine: EngineHandle,
                buf_out: *mut c_char,
                buf_len: usize,
            ) -> c_int;
            /// Registers memory with every transport and tells peers of it when
            /// `remote_accessible` is not zero. Negative codes: -7 when any byte is registered
            /// already, -1 for no bytes. The memory must stay mapped until it is unregistered.
            ///
            /// `location` is `cpu:N`, `cuda:N`, or `*` to let the engine find out. The cost of a
            /// call grows with the number of regions; past some ten thousand the description is
            /// too long for peers' handshakes.
            "registerLocalMemory" register_local_memory: unsafe extern "C" fn(
                engine: EngineHandle,
                addr: *mut c_void,
                length: usize,
                location: *const c_char,
                remote_accessible: c_int,
            ) -> c_int;
            /// Undoes `register_local_memory` of the region that begins at `addr`. Negative codes.
            /// No transfer may be using it.
            "unregisterLocalMemory" unregister_local_memory: unsafe extern "C" fn(
                engine: EngineHandle,
                addr: *mut c_void,
            ) -> c_int;
            /// Opens a peer by its name; a negative code on failure. Success does not mean that
            /// the peer is alive: what is known of it may come from a cache, and a peer that was
            /// restarted under the same name then fails for ever.
            "openSegment" open_segment: unsafe extern "C" fn(
                engine: EngineHandle,
                segment_name: *const c_char,
            ) -> SegmentHandle;
            /// As `open_segment`, after asking the peer or the metadata server anew: what reaches a
            /// restarted peer. The handle is the one that the name had before, and if no answer
            /// comes it is returned all the same, with what was known.
            "openSegmentNoCache" open_segment_no_cache: unsafe extern "C" fn(
                engine: EngineHandle,
                segment_name: *const c_char,
            ) -> SegmentHandle;
            /// Does nothing and returns 0.
            "closeSegment" close_segment: unsafe extern "C" fn(
                engine: EngineHandle,
                segment_id: SegmentHandle,
            ) -> c_int;
            /// Makes a batch with room for `batch_size` tasks; [`super::INVALID_BATCH`] on failure.
            /// Belongs to the caller until `free_batch_id` returns 0.
            "allocateBatchID" allocate_batch_id: unsafe extern "C" fn(
                engine: EngineHandle,
                batch_size: usize,
            ) -> BatchId;
            /// Appends tasks to a batch, in order, and starts them. Positive codes. On an error
            /// some of them may have been started all the same, and only polling tells: the memory
            /// of every entry stays in use until its task has ended.
            ///
            /// `entries` is only read during the call. Nothing orders the tasks among each other.
            "submitTransfer" submit_transfer: unsafe extern "C" fn(
                engine: EngineHandle,
                batch_id: BatchId,
                entries: *mut TransferRequest,
                count: usize,
            ) -> c_int;
            /// Asks for the state of a batch's task, counted from 0 in the order of submission.
            /// Positive codes; `status` is written only when 0 is returned. Some transports make
            /// progress only when asked. Each answer "completed" costs a look at the other tasks
            /// of the batch, until all of them have.
            "getTransferStatus" get_transfer_status: unsafe extern "C" fn(
                engine: EngineHandle,
                batch_id: BatchId,
                task_id: usize,
                status: *mut TransferStatus,
            ) -> c_int;
            /// Frees a batch. Positive codes: 4, and the batch stays, unless every task was polled
            /// until it ended. Freeing one twice, or an id that is none, corrupts memory.
            "freeBatchID" free_batch_id: unsafe extern "C" fn(
                engine: EngineHandle,
                batch_id: BatchId,
            ) -> c_int;
        }
        optional {
            /// Looks for devices, as `auto_discover` does. Negative codes. While the engine is set
            /// up, by one thread.
            "discoverTopology" discover_topology: unsafe extern "C" fn(engine: EngineHandle) -> c_int;
            /// Does nothing and returns 0.
            "uninstallTransport" uninstall_transport: unsafe extern "C" fn(
                engine: EngineHandle,
                proto: *const c_char,
            ) -> c_int;
            /// Connects all EFA end points to a peer ahead of the first transfer; 0 at once for
            /// other transports. Idempotent.
            "warmupEfaSegment" warmup_efa_segment: unsafe extern "C" fn(
                engine: EngineHandle,
                segment_name: *const c_char,
            ) -> c_int;
            /// Forgets a segment of this engine's own side. Negative codes.
            "removeLocalSegment" remove_local_segment: unsafe extern "C" fn(
                engine: EngineHandle,
                segment_name: *const c_char,
            ) -> c_int;
            /// Registers many regions; with one bad entry, none. Negative codes. All are
            /// accessible to peers.
            "registerLocalMemoryBatch" register_local_memory_batch: unsafe extern "C" fn(
                engine: EngineHandle,
                buffer_list: *mut BufferEntry,
                buffer_len: usize,
                location: *const c_char,
            ) -> c_int;
            /// Unregisters many regions. Negative codes. One address that is not registered leaves
            /// the others neither usable nor registrable again for the life of the engine.
            "unregisterLocalMemoryBatch" unregister_local_memory_batch: unsafe extern "C" fn(
                engine: EngineHandle,
                addr_list: *mut *mut c_void,
                addr_len: usize,
            ) -> c_int;
            /// As `submit_transfer` of one entry and more. When `get_transfer_status` finds the
            /// whole batch completed it sends the message to the peer of the first entry; a batch
            /// keeps the last message alone, and a failure to send is in the log alone.
            "submitTransferWithNotify" submit_transfer_with_notify: unsafe extern "C" fn(
                engine: EngineHandle,
                batch_id: BatchId,
                entries: *mut TransferRequest,
                count: usize,
                notify_msg: NotifyMsg,
            ) -> c_int;
            /// Takes the messages that came and writes their number. An array for
            /// `free_notifs_msg_buf`, or null: there were none, or (the number is not zero) no
            /// memory, and they are lost.
            "getNotifsFromEngine" get_notifs_from_engine: unsafe extern "C" fn(
                engine: EngineHandle,
                size: *mut c_int,
            ) -> *mut NotifyMsg;
            /// Frees an array of `get_notifs_from_engine`, with the number that came with it.
            /// Returns 0.
            "freeNotifsMsgBuf" free_notifs_msg_buf: unsafe extern "C" fn(
                msg: *mut NotifyMsg,
                size: c_int,
            ) -> c_int;
            /// Sends a peer a message. Negative codes.
            "genNotifyInEngine" gen_notify_in_engine: unsafe extern "C" fn(
                engine: EngineHandle,
                target_id: u64,
                notify_msg: NotifyMsg,
            ) -> c_int;
            /// Asks anew about every peer that is known. Returns 0; of a peer that does not answer,
            /// what was known stays.
            "syncSegmentCache" sync_segment_cache: unsafe extern "C" fn(engine: EngineHandle) -> c_int;
            /// Writes up to `count` entries, and to `count` how many there are. -1 for a null
            /// pointer, else positive codes.
            "getNicLoadStats" get_nic_load_stats: unsafe extern "C" fn(
                engine: EngineHandle,
                stats: *mut NicLoadStat,
                count: *mut usize,
            ) -> c_int;
            /// Installs handlers that end the engine when the process is told to end.
            "enableGracefulShutdown" enable_graceful_shutdown: unsafe extern "C" fn(engine: EngineHandle);
            /// Writes a description of the links as text, or as JSON when `json` is not zero,
            /// ended by a zero byte and cut at `buf_len`. -1 for a null pointer or no room.
            "showLinks" show_links: unsafe extern "C" fn(
                engine: EngineHandle,
                buf_out: *mut c_char,
                buf_len: usize,
                json: c_int,
            ) -> c_int;
        }
    }
}
