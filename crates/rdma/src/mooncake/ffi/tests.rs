//! The engine over a library that does as it is told.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, Ipv4Addr};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, Offset};
use mooncake_transfer_engine_sys::official::{
    BatchId, EngineHandle, Functions, STATUS_COMPLETED, STATUS_FAILED, STATUS_PENDING,
    STATUS_TIMEOUT, TransferRequest, TransferStatus,
};

use super::Handle;
use crate::access::AccessError;
use crate::address::Address;
use crate::batch::{BoundBatch, Operation};
use crate::bind::{Part, bind_parts};
use crate::engine::{Drained, Engine, Memory, Patience, TaskStatus};
use crate::error::{
    EngineCode, OpenError, RegisterError, SubmitError, TaskFailure, UnregisterError,
};
use crate::flight::{InFlight, Outcome, Standing};
use crate::location::Location;
use crate::mooncake::{Mooncake, MooncakeConfig, MooncakePeer, MooncakeRegistration};
use crate::native::{Backing, NativeMemory};
use crate::region::{Region, RegionMap};

/// What the library has and what it shall answer.
#[derive(Default)]
struct World {
    batches: HashMap<BatchId, Vec<c_int>>,
    next: BatchId,
    /// What submit returns, and how many tasks it starts.
    submit: Option<(c_int, usize)>,
    unregister: c_int,
    registered: Vec<usize>,
    destroyed: usize,
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);
static ALONE: Mutex<()> = Mutex::new(());

fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn create(
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: u64,
    _: c_int,
) -> EngineHandle {
    ptr::without_provenance_mut(8)
}
unsafe extern "C" fn destroy(_: EngineHandle) {
    world().destroyed += 1;
}
unsafe extern "C" fn install(
    _: EngineHandle,
    _: *const c_char,
    _: *mut *mut c_void,
) -> *mut c_void {
    ptr::null_mut()
}
unsafe extern "C" fn name(_: EngineHandle, out: *mut c_char, _: usize) -> c_int {
    let text = c"127.0.0.1:9";
    // SAFETY: the engine gives a buffer that is longer than this.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), out, text.count_bytes() + 1) };
    0
}
unsafe extern "C" fn register(
    _: EngineHandle,
    at: *mut c_void,
    _: usize,
    _: *const c_char,
    _: c_int,
) -> c_int {
    world().registered.push(at.addr());
    0
}
unsafe extern "C" fn unregister(_: EngineHandle, at: *mut c_void) -> c_int {
    let mut world = world();
    world.registered.retain(|start| *start != at.addr());
    world.unregister
}
unsafe extern "C" fn open(_: EngineHandle, _: *const c_char) -> c_int {
    1
}
unsafe extern "C" fn close(_: EngineHandle, _: c_int) -> c_int {
    0
}
unsafe extern "C" fn allocate(_: EngineHandle, _: usize) -> BatchId {
    let mut world = world();
    world.next += 1;
    let id = world.next;
    world.batches.insert(id, Vec::new());
    id
}
unsafe extern "C" fn submit(
    _: EngineHandle,
    id: BatchId,
    _: *mut TransferRequest,
    count: usize,
) -> c_int {
    let mut world = world();
    let (code, started) = world.submit.unwrap_or((0, count));
    world
        .batches
        .insert(id, vec![STATUS_PENDING; started.min(count)]);
    code
}
unsafe extern "C" fn status(
    _: EngineHandle,
    id: BatchId,
    task: usize,
    out: *mut TransferStatus,
) -> c_int {
    let state = world().batches[&id].get(task).copied();
    let Some(status) = state else { return 1 };
    let status = TransferStatus {
        status,
        transferred_bytes: 0,
    };
    // SAFETY: the engine gives a place of its own.
    unsafe { out.write(status) };
    0
}
unsafe extern "C" fn free(_: EngineHandle, id: BatchId) -> c_int {
    let mut world = world();
    let ended = |state: &c_int| [STATUS_COMPLETED, STATUS_FAILED].contains(state);
    if !world.batches[&id].iter().all(ended) {
        return 4;
    }
    world.batches.remove(&id);
    0
}

const FUNCTIONS: Functions = Functions {
    create_transfer_engine: create,
    destroy_transfer_engine: destroy,
    install_transport: install,
    get_local_ip_and_port: name,
    register_local_memory: register,
    unregister_local_memory: unregister,
    open_segment: open,
    open_segment_no_cache: open,
    close_segment: close,
    allocate_batch_id: allocate,
    submit_transfer: submit,
    get_transfer_status: status,
    free_batch_id: free,
    discover_topology: None,
    uninstall_transport: None,
    warmup_efa_segment: None,
    remove_local_segment: None,
    register_local_memory_batch: None,
    unregister_local_memory_batch: None,
    submit_transfer_with_notify: None,
    get_notifs_from_engine: None,
    free_notifs_msg_buf: None,
    gen_notify_in_engine: None,
    sync_segment_cache: None,
    get_nic_load_stats: None,
    show_links: None,
    enable_graceful_shutdown: None,
};

/// An engine with one registered page, alone in its world.
struct Bench {
    engine: Arc<Mooncake>,
    memory: NativeMemory,
    registration: MooncakeRegistration,
    peer: MooncakePeer,
    _alone: MutexGuard<'static, ()>,
}

fn bench() -> Bench {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    *world() = World::default();
    let config = MooncakeConfig::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let handle = Handle::start(FUNCTIONS, &config).unwrap();
    let engine = Arc::new(Mooncake::with_handle(handle, &config));
    let memory = NativeMemory::zeroed(ByteLen::new(4_096).unwrap()).unwrap();
    let registration = engine.register(&memory, span(0, 4_096)).unwrap();
    let peer = engine.open("127.0.0.1:9").unwrap();
    Bench {
        engine,
        memory,
        registration,
        peer,
        _alone: alone,
    }
}

fn span(start: u64, len: u64) -> ByteSpan {
    ByteSpan::new(Offset::new(start).unwrap(), ByteLen::new(len).unwrap()).unwrap()
}

impl Bench {
    fn batch(&self, count: u64) -> BoundBatch {
        let id = AllocationId::new(0);
        let map = Region::new(id, span(0, 4_096), self.memory.base()).unwrap();
        let map = RegionMap::new([map]).unwrap();
        let part = |n| Part {
            source: (id, n * 16),
            destination: (id, n * 16),
            len: 8,
        };
        let limits = self.engine.capabilities().submission();
        bind_parts((0..count).map(part), Operation::Write, &map, &map, limits).unwrap()
    }

    fn flight(&self, count: u64, kept: Kept) -> InFlight<Mooncake, Kept> {
        let engine = Arc::clone(&self.engine);
        InFlight::new(engine, self.peer.clone(), self.batch(count), kept)
    }
}

/// What the tasks of every batch shall be.
fn set(states: &[c_int]) {
    for batch in world().batches.values_mut() {
        batch.copy_from_slice(states);
    }
}

/// Counts its drops.
#[derive(Clone, Debug)]
struct Kept(Arc<AtomicUsize>);

impl Kept {
    fn new() -> Self {
        Self(Arc::default())
    }
    fn drops(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a transfer keeps.
#[derive(Debug)]
struct Lease(Kept);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn failed(status: c_int) -> TaskStatus {
    TaskStatus::Failed(TaskFailure::Engine {
        code: EngineCode::new("mooncake task state", status.into()),
    })
}

#[test]
fn a_failed_task_is_reported_only_when_the_others_have_ended() {
    let bench = bench();
    let batch = bench.batch(3);
    let submission = batch.submission(0).unwrap();
    let mut ticket = bench.engine.submit(&bench.peer, submission).unwrap();
    set(&[STATUS_PENDING, STATUS_FAILED, STATUS_COMPLETED]);
    let patience = Patience::new(Duration::from_millis(2));
    let Drained::Unknown(progress) = bench.engine.drain(&mut ticket, patience) else {
        panic!("a task is pending");
    };
    assert_eq!(progress.unfinished(), 3);
    let ticket = bench.engine.release(ticket).unwrap_err().ticket;
    set(&[STATUS_COMPLETED, STATUS_FAILED, STATUS_COMPLETED]);
    let mut ticket = ticket;
    let progress = bench.engine.poll(&mut ticket);
    let done = TaskStatus::Completed;
    assert_eq!(progress.tasks(), [done, failed(STATUS_FAILED), done]);
    bench.engine.release(ticket).unwrap();
    assert!(world().batches.is_empty());
    let refused = bench.engine.submit(&bench.peer, submission).unwrap_err();
    assert!(matches!(refused, SubmitError::PeerFailed { .. }));
    let again = bench.engine.open("127.0.0.1:9").unwrap();
    assert!(bench.engine.submit(&again, submission).is_ok());
}

#[test]
fn a_timeout_is_unknown_until_the_library_frees_the_batch() {
    let bench = bench();
    let lease = Kept::new();
    let mut flight = InFlight::new(
        Arc::clone(&bench.engine),
        bench.peer.clone(),
        bench.batch(2),
        Lease(lease.clone()),
    );
    assert!(matches!(flight.poll(), Standing::Running(_)));
    set(&[STATUS_TIMEOUT, STATUS_COMPLETED]);
    let patience = Patience::new(Duration::from_millis(2));
    assert!(matches!(flight.drain(patience), Standing::Unknown(_)));
    let flight = flight.end().unwrap_err();
    drop(flight);
    assert_eq!((lease.drops(), bench.engine.abandoned()), (0, 1));
    let error = bench.engine.unregister(bench.registration).unwrap_err();
    assert!(matches!(error, UnregisterError::InFlight { .. }));
    assert_eq!(world().registered.len(), 1);
    set(&[STATUS_COMPLETED, STATUS_COMPLETED]);
    bench.engine.orphans.sweep();
    assert_eq!((lease.drops(), bench.engine.abandoned()), (1, 0));
    assert!(world().registered.is_empty());
}

#[test]
fn an_engine_that_is_dropped_in_mid_transfer_keeps_everything() {
    let bench = bench();
    let lease = Kept::new();
    let mut flight = InFlight::new(
        Arc::clone(&bench.engine),
        bench.peer.clone(),
        bench.batch(1),
        Lease(lease.clone()),
    );
    assert!(matches!(flight.poll(), Standing::Running(_)));
    drop((flight, bench.engine, bench.registration));
    let world = world();
    assert_eq!((lease.drops(), world.destroyed), (0, 0));
    assert_eq!(world.registered.len(), 1);
}

#[test]
fn an_idle_engine_is_destroyed_once_after_its_last_registration() {
    let bench = bench();
    drop(bench.engine);
    assert_eq!(world().destroyed, 0);
    drop(bench.registration);
    let world = world();
    assert_eq!((world.destroyed, world.registered.len()), (1, 0));
}

#[test]
fn a_submission_that_started_nothing_is_refused_and_frees_its_batch() {
    let bench = bench();
    world().submit = Some((-22, 0));
    let batch = bench.batch(2);
    let submission = batch.submission(0).unwrap();
    let code = EngineCode::new("mooncake", -22);
    let refused = bench.engine.submit(&bench.peer, submission).unwrap_err();
    assert_eq!(refused, SubmitError::Refused { code });
    assert!(world().batches.is_empty());
}

#[test]
fn a_submission_that_started_in_part_is_drained() {
    let bench = bench();
    world().submit = Some((-22, 1));
    let kept = Kept::new();
    let mut flight = bench.flight(2, kept);
    assert!(matches!(flight.poll(), Standing::Unknown(_)));
    set(&[STATUS_COMPLETED]);
    let Standing::Ended(Outcome::Failed { descriptor, .. }) = flight.poll() else {
        panic!("{:?}", flight.poll());
    };
    assert_eq!(descriptor, 1);
}

#[test]
fn a_range_that_is_not_unregistered_keeps_its_addresses_and_its_memory() {
    let bench = bench();
    world().unregister = -3;
    let error = bench.engine.unregister(bench.registration).unwrap_err();
    assert!(matches!(error, UnregisterError::Refused { .. }));
    let error = bench
        .engine
        .register(&bench.memory, span(8, 8))
        .unwrap_err();
    assert!(matches!(error, RegisterError::Overlap { .. }));
}

#[test]
fn overlaps_bad_names_and_memory_that_is_not_registered_are_refused_here() {
    let bench = bench();
    let error = bench
        .engine
        .register(&bench.memory, span(100, 1))
        .unwrap_err();
    assert!(matches!(error, RegisterError::Overlap { .. }));
    let error = bench.engine.register(&bench.memory, span(4_096, 1));
    assert!(matches!(error, Err(RegisterError::OutsideMemory { .. })));
    let error = bench.engine.open("1.2.3.4").unwrap_err();
    assert!(matches!(error, OpenError::Name(_)));
    let batch = bench.batch(1);
    bench.engine.unregister(bench.registration).unwrap();
    let error = (bench.engine)
        .submit(&bench.peer, batch.submission(0).unwrap())
        .unwrap_err();
    assert!(matches!(error, SubmitError::Descriptor { index: 0, .. }));
    assert!(bench.engine.register(&bench.memory, span(100, 1)).is_ok());
}

#[test]
fn a_full_queue_waits_for_room_and_no_more_than_the_limit_is_outstanding() {
    let bench = bench();
    let batch = bench.batch(200);
    let limit = bench.engine.capabilities().submission().descriptors();
    let mut tickets = Vec::new();
    let error = loop {
        match bench
            .engine
            .submit(&bench.peer, batch.submission(0).unwrap())
        {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
    };
    assert_eq!(tickets.len(), 5);
    assert!(
        matches!(error, SubmitError::QueueFull { outstanding: 1_000, limit: l, .. } if l == limit)
    );
    let mut flight = bench.flight(200, Kept::new());
    assert!(matches!(flight.poll(), Standing::NoRoom(_)));
    set(&[STATUS_COMPLETED; 200]);
    for mut ticket in tickets {
        assert!(bench.engine.poll(&mut ticket).is_quiescent());
        bench.engine.release(ticket).unwrap();
    }
    assert!(matches!(flight.poll(), Standing::Running(_)));
}

/// Bytes of a device that nobody has.
#[derive(Debug)]
struct NoDevice;

impl Backing for NoDevice {
    fn copy_in(&self, _: u64, _: &[u8]) -> Result<(), AccessError> {
        Ok(())
    }
    fn copy_out(&self, _: u64, _: &mut [u8]) -> Result<(), AccessError> {
        Ok(())
    }
}

#[test]
fn memory_of_a_device_is_refused_unless_the_library_is_said_to_reach_it() {
    let bench = bench();
    let base = Address::new(1 << 40).unwrap();
    let len = ByteLen::new(64).unwrap();
    let location = Location::Cuda(1);
    // SAFETY: the library behind this engine touches no memory, and nothing else does.
    let memory = unsafe { NativeMemory::from_backing(base, len, location, Box::new(NoDevice)) };
    let memory = memory.unwrap();
    let error = bench.engine.register(&memory, span(0, 64)).unwrap_err();
    let engine = "mooncake";
    assert_eq!(error, RegisterError::Unreachable { location, engine });
    let config = MooncakeConfig::default().with_devices();
    let handle = Handle::start(FUNCTIONS, &config).unwrap();
    let engine = Mooncake::with_handle(handle, &config);
    assert!(engine.register(&memory, span(0, 64)).is_ok());
}
