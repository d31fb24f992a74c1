//! Engines and memory by name.

use std::fmt;
use std::str::FromStr;

use mooncake_pd_rdma::mooncake::{self, Mooncake, MooncakeConfig};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback};
use mooncake_pd_rdma::tokenspeed::{self, Tokenspeed, TokenspeedConfig};
use mooncake_pd_rdma::{HostBuffer, NativeMemory, OnThread};
use thiserror::Error;

use super::error::{AbsentError, RemoteError};
use super::local::{Allocate, Held, Local};

/// Tells Mooncake's libraries to use TCP.
const FORCE_TCP: &str = "MC_FORCE_TCP";

/// An engine that moves bytes between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Ours, over TCP.
    Loopback,
    /// Mooncake's, through its official C API.
    Mooncake,
    /// That of the package `tokenspeed_mooncake`.
    Tokenspeed,
}

impl EngineKind {
    /// Every engine.
    pub const ALL: [Self; 3] = [Self::Loopback, Self::Mooncake, Self::Tokenspeed];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Mooncake => "mooncake",
            Self::Tokenspeed => "tokenspeed",
        }
    }

    /// The engine of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Starts it with nothing registered.
    pub(crate) fn start(self, memory: MemoryKind) -> Result<Box<dyn Local>, AbsentError> {
        match self {
            Self::Loopback => {
                let MemoryKind::Host = memory else {
                    return Err(AbsentError::Memory {
                        engine: self.name(),
                        memory: memory.to_string(),
                        instead: "host memory, or another engine",
                    });
                };
                let engine = TcpLoopback::start(&TcpConfig::default())?;
                let allocate = |len| Ok(HostBuffer::zeroed(len)?);
                Ok(Box::new(Held::new(engine, Box::new(allocate))))
            }
            Self::Mooncake => {
                let library = mooncake::Library::find()?;
                let place = Place::of(memory)?;
                let config = MooncakeConfig::default();
                let config = match memory {
                    MemoryKind::Host => config,
                    MemoryKind::Cuda(_) => config.with_devices(),
                };
                let engine = Mooncake::start(&library, &config)?;
                Ok(Box::new(Held::new(engine, place.allocate)))
            }
            Self::Tokenspeed => {
                let library = tokenspeed::Library::find()?;
                if memory == MemoryKind::Host && !reaches_host() {
                    return Err(AbsentError::NoCard);
                }
                let place = Place::of(memory)?;
                let config = TokenspeedConfig::default();
                let config = match place.on_thread {
                    None => config,
                    Some(first) => config.on_thread(first),
                };
                let engine = Tokenspeed::start(&library, &config)?;
                Ok(Box::new(Held::new(engine, place.allocate)))
            }
        }
    }
}

/// Whether tokenspeed's library moves memory of the host here: over a card, or
/// over TCP if it is told to. Otherwise it takes memory of devices only.
fn reaches_host() -> bool {
    let cards = std::fs::read_dir("/sys/class/infiniband");
    cards.is_ok_and(|mut cards| cards.next().is_some()) || std::env::var_os(FORCE_TCP).is_some()
}

/// Where memory at its real address comes from.
struct Place {
    allocate: Allocate<NativeMemory>,
    /// What threads of an engine do first.
    on_thread: Option<OnThread>,
}

impl Place {
    fn of(memory: MemoryKind) -> Result<Self, AbsentError> {
        match memory {
            MemoryKind::Host => Ok(Self {
                allocate: Box::new(|len| Ok(NativeMemory::zeroed(len)?)),
                on_thread: None,
            }),
            MemoryKind::Cuda(ordinal) => Self::of_device(ordinal),
        }
    }

    #[cfg(feature = "cuda")]
    fn of_device(ordinal: u16) -> Result<Self, AbsentError> {
        let device = mooncake_pd_rdma::cuda::Driver::find()?.device(ordinal)?;
        device.bind()?;
        let on_thread = Some(device.on_thread());
        let allocate = move |len| Ok(device.allocate(len).map_err(AbsentError::from)?);
        Ok(Self {
            allocate: Box::new(allocate),
            on_thread,
        })
    }

    #[cfg(not(feature = "cuda"))]
    fn of_device(ordinal: u16) -> Result<Self, AbsentError> {
        Err(AbsentError::Memory {
            engine: "of a build without the feature `cuda`",
            memory: MemoryKind::Cuda(ordinal).to_string(),
            instead: "a build with it",
        })
    }
}

/// Where both sides' memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// On the host.
    #[default]
    Host,
    /// On that CUDA device.
    Cuda(u16),
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// Not a kind of memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not `host`, `cuda` or `cuda:N` with N from 0 to 65535")]
pub struct MemoryKindError {
    text: String,
}

impl FromStr for MemoryKind {
    type Err = MemoryKindError;

    fn from_str(text: &str) -> Result<Self, MemoryKindError> {
        let digits = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| plain)
        };
        match text.split_once(':') {
            None if text == "host" => Some(Self::Host),
            None if text == "cuda" => Some(Self::Cuda(0)),
            Some(("cuda", ordinal)) => digits(ordinal).map(Self::Cuda),
            _ => None,
        }
        .ok_or_else(|| MemoryKindError {
            text: text.to_owned(),
        })
    }
}

impl TryFrom<(&str, &str)> for Kinds {
    type Error = RemoteError;

    fn try_from((engine, memory): (&str, &str)) -> Result<Self, RemoteError> {
        let unknown = |what, name: &str| RemoteError::Unknown {
            what,
            name: name.to_owned(),
        };
        Ok(Self {
            engine: EngineKind::named(engine).ok_or_else(|| unknown("engine", engine))?,
            memory: memory.parse().map_err(|_| unknown("memory", memory))?,
        })
    }
}

/// What moves bytes, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// The engine of both sides.
    pub engine: EngineKind,
    /// The memory of both sides.
    pub memory: MemoryKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_printed_and_nothing_else_is() {
        for engine in EngineKind::ALL {
            for memory in [MemoryKind::Host, MemoryKind::Cuda(7)] {
                let kinds = Kinds::try_from((engine.name(), memory.to_string().as_str())).unwrap();
                assert_eq!(kinds, Kinds { engine, memory });
            }
        }
        assert_eq!("cuda".parse(), Ok(MemoryKind::Cuda(0)));
        for text in [
            "",
            "gpu",
            "cuda:",
            "cuda:+1",
            "cuda:65536",
            "host:0",
            "CUDA",
        ] {
            assert!(text.parse::<MemoryKind>().is_err(), "{text}");
        }
        assert!(Kinds::try_from(("nixl", "host")).is_err());
    }
}
