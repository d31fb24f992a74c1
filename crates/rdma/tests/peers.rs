//! Real engines in two processes, one of which is killed, stopped and started
//! again in mid-transfer. Needs the libraries that `mooncake.rs` and
//! `tokenspeed.rs` need, and says so without them.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

mod common;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{bytes, layout, pattern};
use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, CacheLayout, Offset};
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::mooncake::{self, Mooncake, MooncakeConfig, Transport};
use mooncake_pd_rdma::tokenspeed::{self, Tokenspeed, TokenspeedConfig};
use mooncake_pd_rdma::{
    Address, BoundBatch, Bytes, Engine, InFlight, NativeMemory, Operation, Outcome, Patience,
    Region, RegionMap, Registered, RegistrationPlan, Standing, SubmitError, bind,
};

const ID: AllocationId = AllocationId::new(0);
const CANARY: u8 = 0xC5;
/// Set for the process that is the peer.
const ROLE: &str = "MOONCAKE_PD_TEST_PEER";
const BLOCKS: u32 = 40_001;
const PAGE: u64 = 48;
const STRIDE: u64 = 64;
/// How long a library may take to notice that a peer is dead.
const NOTICE: Duration = Duration::from_mins(1);

fn the_layout() -> CacheLayout {
    layout(BLOCKS, PAGE, STRIDE)
}

fn memory() -> NativeMemory {
    let mut all = NativeMemory::of_layout(&the_layout()).unwrap();
    all.swap_remove(&ID).unwrap()
}

fn registered<E: Engine<Memory = NativeMemory>>(
    engine: &E,
    memory: &NativeMemory,
) -> Registered<E> {
    let limits = engine.capabilities().registration();
    let plan = RegistrationPlan::of_layout(&the_layout(), limits).unwrap();
    Registered::new(engine, &plan, |_| Some(memory)).unwrap()
}

fn mooncake_engine() -> Mooncake {
    let config = MooncakeConfig::default().transport(Transport::Tcp);
    Mooncake::start(&mooncake::Library::find().unwrap(), &config).unwrap()
}

fn tokenspeed_engine() -> Tokenspeed {
    let library = tokenspeed::Library::find().unwrap();
    Tokenspeed::start(&library, &TokenspeedConfig::default()).unwrap()
}

/// Not a test: the process on the other side, when a test starts it.
#[test]
fn peer_process() {
    match env::var(ROLE).as_deref() {
        Ok("mooncake") => serve(&mooncake_engine()),
        Ok("tokenspeed") => serve(&tokenspeed_engine()),
        _ => {}
    }
}

/// Memory that others write to, until the standard input ends.
fn serve<E: Engine<Memory = NativeMemory>>(engine: &E) {
    let memory = memory();
    let len = bytes(&memory).len();
    memory.copy_in(0, &vec![CANARY; len]).unwrap();
    let registered = registered(engine, &memory);
    let [region] = registered.regions().regions() else {
        panic!("one range was expected");
    };
    println!("\npeer {} {}", engine.name(), region.address().get());
    for line in std::io::stdin().lines() {
        fs::write(line.unwrap(), bytes(&memory)).unwrap();
        println!("\ndumped");
    }
}

/// A process that serves memory; it ends with its standard input.
struct Peer {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    name: String,
    regions: RegionMap,
}

impl Peer {
    fn start(role: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["peer_process", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let line = wait_for(&mut out, "peer ");
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        let address = Address::new(words.next().unwrap().parse().unwrap()).unwrap();
        let len = ByteLen::new(u64::from(BLOCKS) * STRIDE).unwrap();
        let span = ByteSpan::new(Offset::ZERO, len).unwrap();
        let region = Region::new(ID, span, address).unwrap();
        let regions = RegionMap::new([region]).unwrap();
        Self {
            child,
            out,
            name,
            regions,
        }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn bytes(&mut self) -> Vec<u8> {
        let file =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{}", self.child.id()));
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{}", file.to_str().unwrap()).unwrap();
        wait_for(&mut self.out, "dumped");
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        bytes
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rest of the line that begins so.
fn wait_for(out: &mut impl BufRead, start: &str) -> String {
    for line in out.lines() {
        if let Some(rest) = line.unwrap().strip_prefix(start) {
            return rest.to_owned();
        }
    }
    panic!("the peer ended before it said `{start}`");
}

/// The source's side.
struct Source<E: Engine> {
    engine: Arc<E>,
    memory: NativeMemory,
    local: Registered<E>,
}

impl<E: Engine<Memory = NativeMemory>> Source<E> {
    fn new(engine: E) -> Self {
        let memory = memory();
        let len = bytes(&memory).len();
        memory.copy_in(0, &pattern(len)).unwrap();
        let local = registered(&engine, &memory);
        Self {
            engine: Arc::new(engine),
            memory,
            local,
        }
    }

    /// Every block to the same blocks in reverse order.
    fn batch(&self, peer: &Peer) -> BoundBatch {
        let layout = the_layout();
        let slots = |ids: Vec<u32>| RawSlots {
            first_block: Some(0),
            entries: ids.into_iter().map(|id| Some(id.into())).collect(),
        };
        let request = RawRequest {
            id: "r".to_owned(),
            computed_tokens: Some(u64::from(BLOCKS - 1)),
            tail_aligned: false,
            groups: vec![RawTables {
                group: 0,
                source: slots((1..BLOCKS).collect()),
                destination: slots((1..BLOCKS).rev().collect()),
            }],
        };
        let pairing = Pairing::new(&layout, &layout).unwrap();
        let request = Request::new(&request, &pairing).unwrap();
        let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;
        let limits = self.engine.capabilities().submission();
        let local = self.local.regions();
        bind(
            plan.copies(),
            Operation::Write,
            local,
            &peer.regions,
            limits,
        )
        .unwrap()
    }

    /// A batch to the peer of which some portions have landed and more than
    /// half have not.
    fn in_mid_transfer(&self, peer: &Peer) -> InFlight<E, Arc<()>> {
        let opened = self.engine.open(&peer.name).unwrap();
        let kept = Arc::new(());
        let mut flight = InFlight::new(
            Arc::clone(&self.engine),
            opened,
            self.batch(peer),
            Arc::clone(&kept),
        );
        let enough = u64::from(BLOCKS) / 20;
        loop {
            match flight.poll() {
                Standing::Running(moved) | Standing::Unknown(moved)
                    if moved.descriptors() >= enough =>
                {
                    assert!(moved.descriptors() < u64::from(BLOCKS) / 2);
                    return flight;
                }
                Standing::Ended(outcome) => panic!("it has ended: {outcome:?}"),
                _ => std::thread::yield_now(),
            }
        }
    }

    fn completes(&self, peer: &mut Peer) {
        let opened = self.engine.open(&peer.name).unwrap();
        let batch = self.batch(peer);
        let flight = InFlight::new(Arc::clone(&self.engine), opened, batch, ());
        finish(flight);
        self.landed(peer);
    }

    fn landed(&self, peer: &mut Peer) {
        let (page, stride) = (
            usize::try_from(PAGE).unwrap(),
            usize::try_from(STRIDE).unwrap(),
        );
        let blocks = usize::try_from(BLOCKS).unwrap();
        let sent = bytes(&self.memory);
        let mut expected = vec![CANARY; sent.len()];
        for block in 1..blocks {
            let to = blocks - block;
            expected[to * stride..][..page].copy_from_slice(&sent[block * stride..][..page]);
        }
        assert!(peer.bytes() == expected);
    }
}

/// Drains a batch that must complete.
fn finish<E: Engine, K: Send + std::fmt::Debug>(mut flight: InFlight<E, K>) -> K {
    let start = Instant::now();
    loop {
        match flight.drain(Patience::new(Duration::from_secs(1))) {
            Standing::Ended(Outcome::Completed(moved)) => {
                assert_eq!(moved.bytes(), u64::from(BLOCKS - 1) * PAGE);
                break;
            }
            Standing::Ended(other) => panic!("{other:?}"),
            other => assert!(start.elapsed() < NOTICE, "{other:?}"),
        }
    }
    let (_, kept) = flight.end().map_err(drop).unwrap();
    kept
}

/// A stopped peer takes nothing and loses nothing.
fn stopping<E: Engine<Memory = NativeMemory>>(source: &Source<E>, role: &str) {
    let mut peer = Peer::start(role);
    let mut flight = source.in_mid_transfer(&peer);
    peer.signal("-STOP");
    // What was on its way to the peer's system may still be acknowledged.
    let mut last = None;
    loop {
        match flight.drain(Patience::new(Duration::from_secs(2))) {
            Standing::Running(moved) | Standing::Unknown(moved) => {
                if last == Some(moved) {
                    break;
                }
                last = Some(moved);
            }
            other => panic!("a stopped peer's transfer can't end: {other:?}"),
        }
    }
    let flight = flight.end().err().unwrap();
    peer.signal("-CONT");
    let kept = finish(flight);
    assert_eq!(Arc::strong_count(&kept), 1);
    source.landed(&mut peer);
}

fn available(variable: &str, required: bool) -> bool {
    if env::var_os(variable).is_some() {
        return true;
    }
    let strict = env::var("MOONCAKE_PD_REQUIRE_ENGINES").is_ok_and(|value| value == "1");
    assert!(!(required && strict), "{variable} names no library");
    eprintln!("skipped: {variable} names no library");
    false
}

#[test]
fn mooncake_peers_are_killed_stopped_and_started_again() {
    if !available("MOONCAKE_TRANSFER_ENGINE_LIB", false) {
        return;
    }
    let source = Source::new(mooncake_engine());
    stopping(&source, "mooncake");

    let peer = Peer::start("mooncake");
    let mut flight = source.in_mid_transfer(&peer);
    peer.signal("-KILL");
    let start = Instant::now();
    let outcome = loop {
        match flight.drain(Patience::new(Duration::from_secs(1))) {
            Standing::Ended(outcome) => break outcome,
            other => assert!(start.elapsed() < NOTICE, "{other:?}"),
        }
    };
    eprintln!(
        "a killed peer was noticed after {:?}: {outcome:?}",
        start.elapsed()
    );
    assert!(
        matches!(outcome, Outcome::Failed { .. } | Outcome::NotTaken { .. }),
        "{outcome:?}"
    );
    let (_, kept) = flight.end().map_err(drop).unwrap();
    assert_eq!(Arc::strong_count(&kept), 1);

    // The same engine and the same registrations.
    source.completes(&mut Peer::start("mooncake"));
}

#[test]
fn tokenspeed_peers_are_killed_stopped_and_started_again() {
    const NAME: &str = "tokenspeed_peers_are_killed_stopped_and_started_again";
    if !available("TOKENSPEED_TRANSFER_ENGINE_LIB", true) {
        return;
    }
    // The library reads this when it starts, so it has to be there before.
    if env::var_os("MC_FORCE_TCP").is_none() {
        let status = Command::new(env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env("MC_FORCE_TCP", "1")
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let source = Source::new(tokenspeed_engine());
    stopping(&source, "tokenspeed");

    let peer = Peer::start("tokenspeed");
    let mut flight = source.in_mid_transfer(&peer);
    peer.signal("-KILL");
    let start = Instant::now();
    // Nothing says what still runs, so nothing is given back.
    while !matches!(
        flight.drain(Patience::new(Duration::from_secs(1))),
        Standing::Unknown(_)
    ) {
        assert!(start.elapsed() < NOTICE);
    }
    let mut flight = flight.end().err().unwrap();
    assert!(matches!(
        flight.drain(Patience::new(Duration::from_secs(1))),
        Standing::Unknown(_)
    ));
    drop(flight);
    let opened = source.engine.open(&peer.name).unwrap();
    let batch = source.batch(&peer);
    let mut again = InFlight::new(Arc::clone(&source.engine), opened, batch, ());
    match again.drain(Patience::new(Duration::from_secs(5))) {
        Standing::Unknown(_) | Standing::NoRoom(_) => {}
        Standing::Ended(Outcome::NotTaken { error, .. }) => assert!(
            matches!(
                error,
                SubmitError::QueueFull { .. } | SubmitError::PeerFailed { .. }
            ),
            "{error:?}"
        ),
        other => panic!("{other:?}"),
    }

    // A new engine, with memory of its own.
    Source::new(tokenspeed_engine()).completes(&mut Peer::start("tokenspeed"));
}
