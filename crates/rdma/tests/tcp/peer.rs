//! The process that is written to.

use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mooncake_pd_layout::{ByteLen, ByteSpan, Offset};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback};
use mooncake_pd_rdma::{Address, Engine, HostBuffer};

const CHILD_PORT: &str = "MOONCAKE_PD_TEST_TCP_PORT";

/// What its memory holds at first.
pub(crate) const CANARY: u8 = 0xC5;

/// Where its memory is.
pub(crate) const THERE: u64 = 1 << 40;

pub(crate) const PAGE: u64 = 1 << 20;

/// Page 0 is never moved.
pub(crate) const PAGES: u32 = 65;

pub(crate) const LEN: u64 = PAGE * 65;

pub(crate) fn buffer(base: u64) -> HostBuffer {
    HostBuffer::zeroed_at(Address::new(base).unwrap(), ByteLen::new(LEN).unwrap()).unwrap()
}

pub(crate) fn whole() -> ByteSpan {
    ByteSpan::new(Offset::ZERO, ByteLen::new(LEN).unwrap()).unwrap()
}

/// Tells contents apart; FNV-1a over words.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xCBF2_9CE4_8422_2325, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The peer: serves one buffer and answers questions about it, until nobody can
/// ask any more. Does nothing where it is not asked to be the peer.
#[test]
fn serves() {
    let Ok(port) = std::env::var(CHILD_PORT) else {
        return;
    };
    let config = TcpConfig::default().port(port.parse().unwrap());
    let engine = TcpLoopback::start(&config).unwrap();
    let memory = buffer(THERE);
    memory.write().fill(CANARY);
    let _registration = engine.register(&memory, whole()).unwrap();
    println!("peer: {}", engine.name());
    let mut lines = std::io::stdin().lines().map(Result::unwrap);
    while let Some(line) = lines.next() {
        match line.as_str() {
            "fill" => {
                memory.write().fill(CANARY);
                println!("peer: filled");
            }
            "digest" => println!("peer: {}", digest(&memory.read())),
            "halt" => {
                let (bytes, all) = halted(&memory);
                println!("peer: {}", if all { "late" } else { "halted" });
                assert_eq!(lines.next().as_deref(), Some("go on"));
                drop(bytes);
            }
            other => panic!("`{other}`"),
        }
    }
}

/// Waits until some pages are there, and lets no more land while what it
/// returns lives; also whether all of them are there.
fn halted(memory: &HostBuffer) -> (impl Deref<Target = Box<[u8]>>, bool) {
    loop {
        let bytes = memory.read();
        let there = |page: &&[u8]| page[..64] != [CANARY; 64];
        let pages = bytes.chunks(usize::try_from(PAGE).unwrap());
        match pages.skip(1).filter(there).count() {
            0 => drop(bytes),
            count => return (bytes, count == usize::try_from(PAGES - 1).unwrap()),
        }
        std::thread::yield_now();
    }
}

/// The other process. It is killed when dropped, and ends by itself when its
/// input does.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(crate) name: String,
}

impl Peer {
    pub(crate) fn start(port: u16) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["peer::serves", "--exact", "--nocapture"])
            .env(CHILD_PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut peer = Self {
            child,
            input,
            output,
            name: String::new(),
        };
        peer.name = peer.hear();
        peer
    }

    pub(crate) fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            // The test harness writes to the same line.
            if let Some((_, said)) = line.split_once("peer: ") {
                return said.trim().to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, question: &str) -> String {
        self.say(question);
        self.hear()
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.name.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(status.success());
    }

    /// Kills it, and waits until the system has taken it apart.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
