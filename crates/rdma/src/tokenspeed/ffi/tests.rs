//! The engine over a library that does as it is told.

use std::any::Any;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, Offset};
use mooncake_transfer_engine_sys::tokenspeed::{EngineHandle, Functions};

use crate::batch::{BoundBatch, Operation};
use crate::bind::{Part, bind_parts};
use crate::engine::{Drained, Engine, Memory, Patience, TaskStatus};
use crate::error::{EngineCode, SubmitError, TaskFailure, UnregisterError};
use crate::native::NativeMemory;
use crate::on_thread::OnThread;
use crate::region::{Region, RegionMap};
use crate::tokenspeed::{
    StartError, Tokenspeed, TokenspeedConfig, TokenspeedPeer, TokenspeedRegistration,
};

/// What the library has done and what it shall answer.
struct World {
    port: c_int,
    /// What a write returns; none yet: it waits.
    write: Option<c_int>,
    writing: usize,
    registered: Vec<usize>,
    destroyed: usize,
}

const NEW: World = World {
    port: 9,
    write: None,
    writing: 0,
    registered: Vec::new(),
    destroyed: 0,
};

static WORLD: Mutex<World> = Mutex::new(NEW);
static CHANGED: Condvar = Condvar::new();
static ALONE: Mutex<()> = Mutex::new(());

fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(until: impl Fn(&World) -> bool) -> MutexGuard<'static, World> {
    let limit = Duration::from_secs(20);
    let (world, late) = CHANGED
        .wait_timeout_while(world(), limit, |world| !until(world))
        .unwrap_or_else(PoisonError::into_inner);
    assert!(!late.timed_out());
    world
}

fn answer(code: c_int) {
    world().write = Some(code);
    CHANGED.notify_all();
}

unsafe extern "C" fn version() -> c_int {
    1
}
unsafe extern "C" fn create(
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> EngineHandle {
    ptr::without_provenance_mut(if world().port == -2 { 0 } else { 8 })
}
unsafe extern "C" fn destroy(_: EngineHandle) {
    world().destroyed += 1;
    CHANGED.notify_all();
}
unsafe extern "C" fn port(_: EngineHandle) -> c_int {
    world().port
}
unsafe extern "C" fn register(_: EngineHandle, at: *mut c_void, _: usize) -> c_int {
    world().registered.push(at.addr());
    0
}
unsafe extern "C" fn unregister(_: EngineHandle, at: *mut c_void) -> c_int {
    world().registered.retain(|start| *start != at.addr());
    CHANGED.notify_all();
    0
}
unsafe extern "C" fn write(
    _: EngineHandle,
    _: *const c_char,
    _: *const u64,
    _: *const u64,
    _: *const u64,
    _: usize,
) -> c_int {
    world().writing += 1;
    CHANGED.notify_all();
    let mut world = wait(|world| world.write.is_some());
    world.writing -= 1;
    world.write.unwrap_or(-1)
}
unsafe extern "C" fn write_pages(
    _: EngineHandle,
    _: *const c_char,
    _: *const i64,
    _: *const i64,
    _: usize,
    _: *const i64,
    _: usize,
    _: usize,
) -> c_int {
    -1
}

const FUNCTIONS: Functions = Functions {
    abi_version: version,
    create,
    destroy,
    rpc_port: port,
    register,
    unregister,
    write,
    write_pages,
};

fn span(start: u64, len: u64) -> ByteSpan {
    ByteSpan::new(Offset::new(start).unwrap(), ByteLen::new(len).unwrap()).unwrap()
}

/// An engine with one thread and one registered page, alone in its world.
struct Bench {
    engine: Tokenspeed,
    memory: NativeMemory,
    registration: TokenspeedRegistration,
    peer: TokenspeedPeer,
    _alone: MutexGuard<'static, ()>,
}

fn bench() -> Bench {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    *world() = NEW;
    let config = TokenspeedConfig::default().workers(std::num::NonZeroU8::MIN);
    let engine = Tokenspeed::with_functions(FUNCTIONS, &config).unwrap();
    let memory = NativeMemory::zeroed(ByteLen::new(4_096).unwrap()).unwrap();
    let registration = engine.register(&memory, span(0, 4_096)).unwrap();
    let peer = engine.open("127.0.0.1:10").unwrap();
    Bench {
        engine,
        memory,
        registration,
        peer,
        _alone: alone,
    }
}

impl Bench {
    fn batch(&self, operation: Operation) -> BoundBatch {
        let id = AllocationId::new(0);
        let map = Region::new(id, span(0, 4_096), self.memory.base()).unwrap();
        let map = RegionMap::new([map]).unwrap();
        let part = |n: u64| Part {
            source: (id, n * 16),
            destination: (id, n * 16),
            len: 8,
        };
        let limits = self.engine.capabilities().submission();
        bind_parts((0..2_u64).map(part), operation, &map, &map, limits).unwrap()
    }
}

#[test]
fn a_write_runs_until_the_library_returns_and_holds_its_registration() {
    let bench = bench();
    let batch = bench.batch(Operation::Write);
    let submission = batch.submission(0).unwrap();
    let mut ticket = bench.engine.submit(&bench.peer, submission).unwrap();
    drop(wait(|world| world.writing == 1));
    let running = bench.engine.poll(&mut ticket);
    assert_eq!(running.tasks(), [TaskStatus::Running; 2]);
    let error = bench.engine.unregister(bench.registration).unwrap_err();
    assert!(matches!(error, UnregisterError::InFlight { .. }));
    assert_eq!(world().registered.len(), 1);
    answer(0);
    let drained = bench.engine.drain(&mut ticket, Patience::default());
    assert!(matches!(drained, Drained::Quiescent(_)));
    assert_eq!(world().registered.len(), 0);
    bench.engine.release(ticket).unwrap();
    drop(bench.engine);
    assert_eq!(wait(|world| world.destroyed > 0).destroyed, 1);
}

#[test]
fn a_drain_ends_with_the_write_that_fails_meanwhile() {
    let bench = bench();
    let batch = bench.batch(Operation::Write);
    let submission = batch.submission(0).unwrap();
    let mut ticket = bench.engine.submit(&bench.peer, submission).unwrap();
    let start = Instant::now();
    let drained = std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(wait(|world| world.writing == 1));
            answer(-3);
        });
        bench
            .engine
            .drain(&mut ticket, Patience::new(Duration::from_hours(1)))
    });
    assert!(matches!(drained, Drained::Unknown(_)));
    assert!(start.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_failed_write_is_unknown_for_ever_and_gives_nothing_back() {
    let bench = bench();
    let batch = bench.batch(Operation::Write);
    let submission = batch.submission(0).unwrap();
    let mut first = bench.engine.submit(&bench.peer, submission).unwrap();
    let mut second = bench.engine.submit(&bench.peer, submission).unwrap();
    answer(-3);
    let drained = bench.engine.drain(&mut second, Patience::default());
    let Drained::Quiescent(progress) = drained else {
        panic!("the second was never begun: {drained:?}");
    };
    let gone = TaskStatus::Failed(TaskFailure::PeerGone);
    assert_eq!(progress.tasks(), [gone; 2]);
    bench.engine.release(second).unwrap();

    let drained = bench.engine.drain(&mut first, Patience::default());
    let Drained::Unknown(progress) = drained else {
        panic!("{drained:?}");
    };
    assert_eq!(progress.tasks(), [TaskStatus::Unknown; 2]);
    let code = first.refusal().unwrap();
    assert_eq!((code.namespace(), code.value()), ("tokenspeed", -3));
    let refused = bench.engine.submit(&bench.peer, submission).unwrap_err();
    assert!(matches!(refused, SubmitError::PeerFailed { .. }));
    let first = bench.engine.release(first).unwrap_err().ticket;

    let kept = Arc::new(());
    let lease: Box<dyn Any + Send> = Box::new(Arc::clone(&kept));
    bench.engine.abandon(first, lease);
    let error = bench.engine.unregister(bench.registration).unwrap_err();
    assert!(matches!(error, UnregisterError::InFlight { .. }));
    drop(bench.engine);
    assert_eq!(Arc::strong_count(&kept), 2);
    let world = world();
    assert_eq!((world.registered.len(), world.destroyed), (1, 0));
}

#[test]
fn a_read_is_refused_and_so_is_a_name_that_is_none() {
    let bench = bench();
    let batch = bench.batch(Operation::Read);
    let submission = batch.submission(0).unwrap();
    let error = bench.engine.submit(&bench.peer, submission).unwrap_err();
    let engine = "tokenspeed";
    assert_eq!(error, SubmitError::CannotRead { engine });
    assert!(bench.engine.open("127.0.0.1").is_err());
    assert_eq!(bench.engine.name(), "127.0.0.1:9");
}

#[test]
fn an_engine_without_a_port_is_destroyed_and_one_that_is_null_is_not() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (port, destroyed) in [(0, 1), (65_536, 1), (-2, 0)] {
        *world() = World { port, ..NEW };
        let config = TokenspeedConfig::default();
        let error = Tokenspeed::with_functions(FUNCTIONS, &config).unwrap_err();
        assert_eq!(
            matches!(error, StartError::NoEngine { .. }),
            destroyed == 0,
            "{error}"
        );
        assert_eq!(world().destroyed, destroyed);
    }
}

#[test]
fn every_thread_does_first_what_it_was_told() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    *world() = NEW;
    let threads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&threads);
    let config = TokenspeedConfig::default().on_thread(OnThread::new(move || {
        seen.lock().unwrap().push(std::thread::current().id());
        Ok(())
    }));
    let engine = Tokenspeed::with_functions(FUNCTIONS, &config).unwrap();
    let mut threads = threads.lock().unwrap().clone();
    threads.sort_unstable_by_key(|id| format!("{id:?}"));
    threads.dedup();
    assert_eq!(threads.len(), 4);
    assert!(!threads.contains(&std::thread::current().id()));
    drop(engine);
    assert_eq!(wait(|world| world.destroyed > 0).destroyed, 1);
}

#[test]
fn an_engine_whose_threads_can_not_begin_is_an_error_and_destroyed() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = EngineCode::new("cuda", 100);
    let fails = OnThread::new(move || Err(refused));
    let panics = OnThread::new(|| panic!("on purpose"));
    for (first, code) in [(fails, refused), (panics, EngineCode::new("panic", 1))] {
        *world() = NEW;
        let config = TokenspeedConfig::default().on_thread(first);
        let error = Tokenspeed::with_functions(FUNCTIONS, &config).unwrap_err();
        assert_eq!(error, StartError::OnThread { code });
        assert_eq!(wait(|world| world.destroyed > 0).destroyed, 1);
    }
}
