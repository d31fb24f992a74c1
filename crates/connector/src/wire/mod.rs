//! Messages between prefill, decode, bootstrap server and router: typed, validated, bounded.
//!
//! Decode pulls: it sends a [`Pull`] to each prefill rank that holds a part of its blocks, prefill
//! writes them into decode's memory and sends [`Answer`]s. Where prefill's ranks listen, a
//! [`Bootstrap`] server knows; that two engines work on one request, its [`Params`] say.
//!
//! These are the formats of the Mooncake connector in stock vLLM 0.32 and 0.33 (the structs in its
//! `mooncake_connector.py` and `mooncake_utils.py`), checked against recorded messages in
//! `fixtures/wire`. What we write is byte for byte what a stock peer writes. What we read is what a
//! stock peer takes, unless it has no use: such a message is refused with a typed error that
//! says where and why, and one bad request doesn't fail the others of its pull. [`Limits`] bound
//! what a message may hold, and with it the memory that decoding takes. None of these messages
//! is authenticated.

mod address;
mod answer;
mod blocks;
mod bootstrap;
mod directory;
mod error;
mod host;
mod json;
mod limits;
mod nixl;
mod params;
mod pull;
mod puller;
mod rank;
mod reader;
mod region;
mod register;
mod version;
mod writer;

pub use address::{Address, AddressError, Scheme};
pub use answer::{Answer, Progress};
pub use blocks::BlockLists;
pub use bootstrap::{Bootstrap, RegisterError, Registered, Reply};
pub use directory::{Directory, EngineWorkers};
pub use error::{DecodeError, EncodeError, Place};
pub use host::{Host, HostError};
pub use json::TextError;
pub use limits::Limits;
pub use nixl::{NixlError, NixlHandOver, NixlMode, NixlSide};
pub use params::{DecodeParams, Params, ParamsError, PrefillParams};
pub use pull::{
    LayoutId, Pull, PullRequest, ReceivedPull, RefusedRequest, RepeatedRequest, RequestFault,
};
pub use puller::{Puller, PullerError};
pub use rank::Rank;
pub use region::{
    PeerAddress, PeerLayout, Region, RegionError, RegionGroups, SpanError, TransferGroup,
};
pub use register::{BootstrapError, Register, WorkerAddr, WorkerAddrError};
pub use version::Version;
