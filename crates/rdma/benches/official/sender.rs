//! A process that sends over a native library: by its bare calls, and by ours.

use std::io::{BufRead, stdin};
use std::sync::Arc;
use std::time::Instant;

use mooncake_pd_layout::{ByteLen, ByteSpan, Offset};
use mooncake_pd_plan::Plan;
use mooncake_pd_rdma::mooncake::{Mooncake, MooncakeConfig, Transport};
use mooncake_pd_rdma::tokenspeed::{Tokenspeed, TokenspeedConfig};
use mooncake_pd_rdma::{
    Address, Bytes, Engine, InFlight, NativeMemory, Operation, Outcome, Patience, Region,
    RegionMap, Registered, RegistrationPlan, Standing, bind,
};
use mooncake_transfer_engine_sys::{official, tokenspeed};

use crate::case::{CASES, Case, ID};
use crate::child::answer;
use crate::ffi::{Bare, Official, Packaged};

/// Runs in a process of its own until its standard input ends.
pub(crate) fn run(library: &str, target: &str, there: u64) {
    if library == "mooncake" {
        let library = official::Library::find().unwrap();
        let bare = Official::start(*library.functions(), target);
        let config = MooncakeConfig::default().transport(Transport::Tcp);
        let engine = Mooncake::start(&library, &config).unwrap();
        serve(bare, &Arc::new(engine), target, there);
    } else {
        let library = tokenspeed::Library::find().unwrap();
        let bare = Packaged::start(*library.functions(), target);
        let engine = Tokenspeed::start(&library, &TokenspeedConfig::default()).unwrap();
        serve(bare, &Arc::new(engine), target, there);
    }
}

/// What our path needs for a case.
struct Ours<E: Engine> {
    plan: Plan,
    local: Arc<Registered<E>>,
    remote: RegionMap,
}

impl<E: Engine<Memory = NativeMemory> + 'static> Ours<E> {
    fn new(case: Case, engine: &E, memory: &NativeMemory, there: u64) -> Self {
        let limits = engine.capabilities().registration();
        let regions = RegistrationPlan::of_layout(&case.layout(), limits).unwrap();
        let local = Registered::new(engine, &regions, |_| Some(memory)).unwrap();
        let whole = ByteLen::new(case.memory()).unwrap();
        let whole = ByteSpan::new(Offset::ZERO, whole).unwrap();
        let region = Region::new(ID, whole, Address::new(there).unwrap()).unwrap();
        Self {
            plan: case.plan(),
            local: Arc::new(local),
            remote: RegionMap::new([region]).unwrap(),
        }
    }

    /// From a plan to the memory's return.
    fn write(&self, engine: &Arc<E>, peer: &E::Peer)
    where
        Registered<E>: Send + Sync,
    {
        let limits = engine.capabilities().submission();
        let copies = self.plan.copies();
        let (local, remote) = (self.local.regions(), &self.remote);
        let batch = bind(copies, Operation::Write, local, remote, limits).unwrap();
        let kept = Arc::clone(&self.local);
        let mut flight = InFlight::new(Arc::clone(engine), peer.clone(), batch, kept);
        let standing = flight.drain(Patience::default());
        assert!(
            matches!(standing, Standing::Ended(Outcome::Completed(_))),
            "{standing:?}"
        );
        let (_, kept) = flight.end().unwrap();
        drop(kept);
    }
}

fn serve<E>(mut bare: impl Bare, engine: &Arc<E>, target: &str, there: u64)
where
    E: Engine<Memory = NativeMemory> + 'static,
    Registered<E>: Send + Sync,
{
    let peer = engine.open(target).unwrap();
    // Bare calls may use their memory for as long as the process lives.
    let mut kept = Vec::new();
    let mut ours = None;
    answer("ok");
    for line in stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words {
            ["prepare", index, seed] => {
                let case = CASES[index.parse::<usize>().unwrap()];
                let seed = seed.parse().unwrap();
                let memory = NativeMemory::zeroed(ByteLen::new(case.memory()).unwrap()).unwrap();
                for (slot, _) in case.slots() {
                    let bytes = case.bytes(slot, seed);
                    memory.copy_in(slot * case.len, &bytes).unwrap();
                }
                bare.prepare(case, &memory, there);
                ours = Some(Ours::new(case, &**engine, &memory, there));
                kept.push(memory);
                answer("ok");
            }
            ["run", which] => {
                let start = Instant::now();
                if which == "bare" {
                    bare.write();
                } else if let Some(ours) = &ours {
                    ours.write(engine, &peer);
                }
                answer(&start.elapsed().as_nanos().to_string());
            }
            _ => panic!("{line}"),
        }
    }
}
