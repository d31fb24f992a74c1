//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use mooncake_pd_layout::{BYTE_LIMIT, ByteLen, import};
use mooncake_pd_plan::Contract;
use thiserror::Error;

use crate::remote::{EngineKind, MemoryKind};
use crate::request::RequestName;

/// Plans, runs and verifies KV cache transfers between prefill and decode
/// layouts.
///
/// Layouts are manifests of this project, reports of vLLM 0.33, captures of
/// vLLM 0.26 or reports of `SGLang` 0.5.23; of a file with both sides, SRC is
/// the prefill one and DST the decode one. `-` reads the standard input.
///
/// Exit codes:
///
/// 0  ok; some requests of a batch may be refused, they are listed
///
/// 1  verification failed: bytes are not what they must be
///
/// 2  usage: a wrong command line, a file that can't be read, a result that
///    can't be written, too little memory, an engine that is not there
///
/// 3  invalid layout or request, or every request of a batch refused
///
/// 4  incompatible layouts
///
/// 5  internal error: the planner or the engine failed
#[derive(Clone, Debug, Parser)]
#[command(name = "mooncake-pd", version, verbatim_doc_comment)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Prints JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Moves a request's blocks and verifies every byte of both sides.
    Transfer(TransferArgs),
    /// Describes a layout.
    Inspect(InspectArgs),
    /// Plans a batch of requests and explains the plan.
    Plan(PlanArgs),
    /// Lists the differences of two layouts.
    Diff(DiffArgs),
    /// The other side of a transfer; `transfer` starts it.
    #[command(hide = true)]
    Target,
}

/// How a pair of layouts is used.
#[derive(Clone, Debug, Default, Args)]
pub struct PairArgs {
    /// Gives the layouts P and D blocks.
    #[arg(long, value_name = "P,D")]
    pub blocks: Option<Blocks>,
    /// Which bytes may be written besides payload: `payload-only`,
    /// `bridge-dead` or `bridge-dead=MAXGAP`.
    #[arg(long, default_value = "payload-only")]
    pub contract: ContractArg,
}

/// Arguments of `transfer`.
#[derive(Clone, Debug, Args)]
pub struct TransferArgs {
    /// Layout of the prefill side; without it, two bundled examples are run.
    #[arg(requires = "destination", requires = "request")]
    pub source: Option<String>,
    /// Layout of the decode side.
    pub destination: Option<String>,
    /// What to move: FILE of requests, or FILE#CASE of an oracle, a planning
    /// bench (FILE#MODEL/CASE) or an `SGLang` report.
    #[arg(long, value_name = "FILE[#CASE]", requires = "source")]
    pub request: Option<RequestName>,
    /// Sizes and contract.
    #[command(flatten)]
    pub pair: PairArgs,
    /// What moves the bytes.
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// What moves the bytes of a `transfer`.
#[derive(Clone, Debug, Default, Args)]
pub struct EngineArgs {
    /// What moves the bytes: in this process, or between two processes with
    /// our own engine over TCP, with Mooncake's C API or with the package
    /// `tokenspeed_mooncake`.
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineArg,
    /// Where both sides' memory is: `host`, `cuda` or `cuda:N`.
    #[arg(long, value_name = "MEMORY", default_value = "host")]
    pub memory: MemoryKind,
    /// Moves everything N times; the shortest time is reported.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Program that is the target of an engine between processes, instead of
    /// this command; given again, an argument of it. It speaks the protocol of
    /// docs/channel.md.
    #[arg(long, value_name = "PROGRAM|ARG", allow_hyphen_values = true)]
    pub target: Vec<OsString>,
}

/// What moves the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// Our own, within this process.
    #[default]
    InProcess,
    /// Our own, between two processes over TCP.
    Loopback,
    /// Mooncake's, through its official C API.
    Mooncake,
    /// That of the package `tokenspeed_mooncake`.
    Tokenspeed,
}

impl EngineArg {
    /// The engine between two processes, if it is one.
    #[must_use]
    pub const fn between_processes(self) -> Option<EngineKind> {
        match self {
            Self::InProcess => None,
            Self::Loopback => Some(EngineKind::Loopback),
            Self::Mooncake => Some(EngineKind::Mooncake),
            Self::Tokenspeed => Some(EngineKind::Tokenspeed),
        }
    }
}

/// Arguments of `plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// Layout of the prefill side.
    pub source: String,
    /// Layout of the decode side.
    pub destination: String,
    /// What to move: FILE of requests, or FILE#CASE of an oracle, a planning
    /// bench (FILE#MODEL/CASE) or an `SGLang` report.
    #[arg(long, value_name = "FILE[#CASE]")]
    pub request: RequestName,
    /// Plans N times and prints the shortest time, in ns per descriptor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub time: Option<u32>,
    /// Sizes and contract.
    #[command(flatten)]
    pub pair: PairArgs,
}

/// Arguments of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// The layout.
    pub layout: String,
    /// Side of a file with both.
    #[arg(long, value_enum, default_value_t)]
    pub side: SideArg,
    /// Prints the layout as a manifest of this project.
    #[arg(long)]
    pub manifest: bool,
}

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The source's layout.
    pub source: String,
    /// The destination's layout.
    pub destination: String,
}

/// A side of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SideArg {
    /// The sender.
    #[default]
    Prefill,
    /// The receiver.
    Decode,
}

impl From<SideArg> for import::Side {
    fn from(side: SideArg) -> Self {
        match side {
            SideArg::Prefill => Self::Prefill,
            SideArg::Decode => Self::Decode,
        }
    }
}

/// Block counts of both sides, each 1..2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Of the prefill side.
    pub prefill: u32,
    /// Of the decode side.
    pub decode: u32,
}

/// Not two block counts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not P,D, two block counts of 1 to 4294967295")]
pub struct BlocksError {
    text: String,
}

impl Blocks {
    /// Two counts as they are written elsewhere.
    #[must_use]
    pub fn new(prefill: u64, decode: u64) -> Option<Self> {
        let block = |count| u32::try_from(count).ok().filter(|&count| count > 0);
        Some(Self {
            prefill: block(prefill)?,
            decode: block(decode)?,
        })
    }
}

impl FromStr for Blocks {
    type Err = BlocksError;

    fn from_str(text: &str) -> Result<Self, BlocksError> {
        text.split_once(',')
            .and_then(|(prefill, decode)| {
                Self::new(prefill.trim().parse().ok()?, decode.trim().parse().ok()?)
            })
            .ok_or_else(|| BlocksError {
                text: text.to_owned(),
            })
    }
}

/// A contract as it is written on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContractArg(pub Contract);

impl fmt::Display for ContractArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Contract::PayloadOnly => f.write_str("payload-only"),
            Contract::BridgeDead { max_gap } => write!(f, "bridge-dead={max_gap}"),
        }
    }
}

/// Not a contract.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContractError {
    /// None of the names.
    #[error("{text:?} is not `payload-only`, `bridge-dead` or `bridge-dead=MAXGAP`")]
    Name {
        /// What was written.
        text: String,
    },
    /// A longest gap that no gap can have.
    #[error("MAXGAP is {gap:?}, not a number of bytes from 1 to {longest}")]
    Gap {
        /// What was written.
        gap: String,
        /// Most bytes.
        longest: u64,
    },
}

impl FromStr for ContractArg {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Self, ContractError> {
        let longest = BYTE_LIMIT.saturating_sub(1);
        let gap = match text.split_once('=') {
            None if text == "payload-only" => return Ok(Self(Contract::PayloadOnly)),
            None if text == "bridge-dead" => &longest.to_string(),
            Some(("bridge-dead", gap)) => gap,
            _ => {
                return Err(ContractError::Name {
                    text: text.to_owned(),
                });
            }
        };
        gap.parse()
            .ok()
            .and_then(|gap| ByteLen::new(gap).ok())
            .map(|max_gap| Self(Contract::BridgeDead { max_gap }))
            .ok_or_else(|| ContractError::Gap {
                gap: gap.to_owned(),
                longest,
            })
    }
}
