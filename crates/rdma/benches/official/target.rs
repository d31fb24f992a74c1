//! A process that is written to, over the official C library.

use std::io::{BufRead, stdin};

use mooncake_pd_layout::{AllocationId, ByteLen};
use mooncake_pd_rdma::mooncake::{Mooncake, MooncakeConfig, Transport};
use mooncake_pd_rdma::{Bytes, Engine, Memory, NativeMemory, Registered, RegistrationPlan};
use mooncake_transfer_engine_sys::official;

use crate::case::Case;
use crate::child::answer;

/// Runs in a process of its own until its standard input ends.
pub(crate) fn run(len: u64) {
    let library = official::Library::find().unwrap();
    let config = MooncakeConfig::default().transport(Transport::Tcp);
    let engine = Mooncake::start(&library, &config).unwrap();
    let memory = NativeMemory::zeroed(ByteLen::new(len).unwrap()).unwrap();
    let limits = engine.capabilities().registration();
    let regions = RegistrationPlan::of([(AllocationId::new(0), len)], limits).unwrap();
    let _registered = Registered::new(&engine, &regions, |_| Some(&memory)).unwrap();
    answer(&format!("{} {}", engine.name(), memory.base().get()));
    for line in stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words {
            ["clear"] => {
                let zeros = vec![0; usize::try_from(len).unwrap()];
                memory.copy_in(0, &zeros).unwrap();
                answer("ok");
            }
            ["check", count, len, seed] => {
                let [count, len, seed] = [count, len, seed].map(|n| n.parse().unwrap());
                let case = Case { count, len };
                let mut landed = vec![0; usize::try_from(len).unwrap()];
                let mut wrong = 0;
                for (from, to) in case.slots() {
                    memory.copy_out(to * len, &mut landed).unwrap();
                    wrong += u64::from(landed != case.bytes(from, seed));
                }
                answer(&wrong.to_string());
            }
            _ => panic!("{line}"),
        }
    }
}
