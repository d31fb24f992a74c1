//! Our path beside the official wheel's own blocking call, and beside the bare
//! blocking calls of the same native library, over TCP on 127.0.0.1.
//!
//! ```sh
//! eval "$(cargo xtask engines)"
//! MOONCAKE_TRANSFER_ENGINE_LIB=/path/to/libtransfer_engine.so \
//!     cargo bench -p mooncake-pd-rdma --bench official -- [SESSIONS [ROUNDS]]
//! ```
//!
//! There are two targets, a process with the official wheel and one with the
//! official C library: the ways of two versions differ, and only with a target of
//! its own version is a sender at its best. A sender is a process too: the wheel
//! with Python, the official C library, the packaged one; a library whose variable
//! is not set is left out. Native processes keep their TCP connections
//! (`MC_TCP_ENABLE_CONNECTION_POOL=1`), unless that is set otherwise. All write
//! the same descriptors to the same places, in calls of 1,024 at most:
//! - `wheel`: `batch_transfer_sync_write`, its lists made before;
//! - `bare`: the library's C calls, submit and poll each task to its end, or its
//!   blocking write;
//! - `ours`: from a checked plan to the memory's return: bind, [`InFlight`],
//!   drain, end.
//!
//! In each session all processes are started anew: how a library's threads and
//! connections happen to lie changes its speed by a tenth, for as long as it
//! runs. After a pass of each sender whose bytes the target checks, rounds of one
//! pass of each follow, each round beginning with another sender. The table has
//! medians and minima over all rounds, and medians of the ratios within a round.
//!
//! [`InFlight`]: mooncake_pd_rdma::InFlight

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a benchmark may fail by panic"
)]

mod case;
mod child;
mod ffi;
mod sender;
mod target;

use std::env;
use std::process::Command;

use case::{CASES, Case, PORTION};
use child::Peer;

const SESSIONS: usize = 5;
const ROUNDS: usize = 7;

/// Keeps connections. Without it the official C library makes one for every
/// descriptor, which takes it twice as long as the wheel; the wheel keeps them.
const POOL: &str = "MC_TCP_ENABLE_CONNECTION_POOL";

fn main() {
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["sender", library, target, there] => {
            return sender::run(library, target, there.parse().unwrap());
        }
        ["target", len] => return target::run(len.parse().unwrap()),
        _ => {}
    }
    // `cargo test` runs benchmarks too, without this.
    if !env::args().any(|word| word == "--bench") {
        return;
    }
    let number = |at: usize, default| words.get(at).map_or(default, |n| n.parse().unwrap());
    let (sessions, rounds) = (number(0, SESSIONS), number(1, ROUNDS));
    if env::var_os("MOONCAKE_PD_PEER_PYTHON").is_none() {
        println!("skipped: MOONCAKE_PD_PEER_PYTHON names no Python with the official wheel");
        return;
    }
    println!("{sessions} sessions of {rounds} rounds; times in ms; ratios within a round");
    for (target, library, variable) in [
        ("wheel", "tokenspeed", "TOKENSPEED_TRANSFER_ENGINE_LIB"),
        ("library", "mooncake", "MOONCAKE_TRANSFER_ENGINE_LIB"),
    ] {
        if env::var_os(variable).is_some() {
            let bare = Sender::new(&format!("{library}, bare"), 1, "bare");
            let ours = Sender::new(&format!("{library}, ours"), 1, "ours");
            let mut senders = [Sender::new("wheel", 0, ""), bare, ours];
            for _ in 0..sessions {
                session(rounds, target, library, &mut senders);
            }
            report(target, &senders);
        } else {
            println!("skipped: {variable} names no library");
        }
    }
}

/// A process with the official wheel.
fn wheel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("MOONCAKE_PD_PEER_PYTHON").unwrap());
    command
        .args(["-c", include_str!("peer.py")])
        .args(arguments)
        .env(
            "PYTHONPATH",
            env::var_os("MOONCAKE_PD_PEER_PATH").unwrap_or_default(),
        );
    command
}

/// A process with a native library.
fn native(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(arguments).env("MC_FORCE_TCP", "1");
    if env::var_os(POOL).is_none() {
        command.env(POOL, "1");
    }
    command
}

/// The wheel and a library, all to the same target.
fn session(rounds: usize, target: &str, library: &str, senders: &mut [Sender; 3]) {
    let most = CASES.iter().map(|case| case.memory()).max().unwrap();
    let most = most.to_string();
    let command = if target == "wheel" { wheel } else { native };
    let (mut target, name) = Peer::start(&mut command(&["target", &most]));
    let (name, there) = name.split_once(' ').unwrap();
    let mut processes = [
        wheel(&["sender", name, there]),
        native(&["sender", library, name, there]),
    ]
    .map(|mut command| Peer::start(&mut command).0);
    for (index, case) in CASES.into_iter().enumerate() {
        prepare(&mut processes, index, case);
        for sender in &*senders {
            sender.check(&mut target, &mut processes, case);
        }
        for round in 0..rounds {
            for turn in 0..senders.len() {
                let sender = &mut senders[(round + turn) % 3];
                let took = sender.run(&mut processes);
                sender.times[index].push(took);
            }
        }
    }
}

/// One way to send, in one of the processes.
struct Sender {
    name: String,
    process: usize,
    which: String,
    /// In ms, by case.
    times: [Vec<f64>; CASES.len()],
}

impl Sender {
    fn new(name: &str, process: usize, which: &str) -> Self {
        Self {
            name: name.to_owned(),
            process,
            which: which.to_owned(),
            times: Default::default(),
        }
    }

    /// One pass, in ms.
    fn run(&self, processes: &mut [Peer]) -> f64 {
        let took = processes[self.process].ask(&format!("run {}", self.which));
        took.parse::<f64>().unwrap() / 1e6
    }

    /// One pass, and whether every byte of it is where it belongs.
    fn check(&self, target: &mut Peer, processes: &mut [Peer], case: Case) {
        target.ask("clear");
        self.run(processes);
        let seed = self.process;
        let wrong = target.ask(&format!("check {} {} {seed}", case.count, case.len));
        assert_eq!(wrong, "0", "descriptors of {} that are wrong", self.name);
    }
}

/// Fills every sender's memory for a case.
fn prepare(processes: &mut [Peer], index: usize, case: Case) {
    for (seed, process) in processes.iter_mut().enumerate() {
        let (count, len) = (case.count, case.len);
        let command = if seed == 0 {
            format!("prepare {count} {len} {PORTION} {seed}")
        } else {
            format!("prepare {index} {seed}")
        };
        process.ask(&command);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

fn report(target: &str, senders: &[Sender; 3]) {
    println!(
        "\n{:>15} {:>17} {:>9} {:>9} {:>9} {:>9}",
        format!("to the {target}"),
        "sender",
        "median",
        "minimum",
        "to wheel",
        "to bare"
    );
    for (index, case) in CASES.into_iter().enumerate() {
        let ratio = |one: &Sender, to: &Sender| {
            let pairs = one.times[index].iter().zip(&to.times[index]);
            format!("{:.3}", median(pairs.map(|(one, to)| one / to).collect()))
        };
        let [wheel, bare, _] = senders;
        for sender in senders {
            let times = &sender.times[index];
            let name = format!("{} x {} KiB", case.count, case.len >> 10);
            let (middle, least) = (
                median(times.clone()),
                times.iter().copied().fold(f64::INFINITY, f64::min),
            );
            let (to_wheel, to_bare) = (ratio(sender, wheel), ratio(sender, bare));
            println!(
                "{name:>15} {:>17} {middle:>9.1} {least:>9.1} {to_wheel:>9} {to_bare:>9}",
                sender.name
            );
        }
    }
}
