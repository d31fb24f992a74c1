//! The registry of prefill workers, without its sockets.

use alloc::string::ToString;
use alloc::vec::Vec;

use mooncake_pd_layout::JsonError;

use super::directory::Directory;
use super::limits::Limits;
use super::rank::Rank;
use super::register::{Register, WorkerAddr};
use crate::id::EngineId;

/// What a registration changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The worker is new.
    New,
    /// It is the same worker at the same address again: it did not hear our first answer.
    Again,
}

/// Why a worker is not registered; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Too many workers, or a rank too high.
    #[error("{what} {found} is above {limit}")]
    TooMany {
        /// What is too much.
        what: &'static str,
        /// How much there would be.
        found: u32,
        /// Most there may be.
        limit: u32,
    },
    /// Another engine has this data-parallel rank, also an earlier life of the same one.
    #[error("data-parallel rank {dp_rank} is engine {registered}, not {offered}")]
    Engine {
        /// The rank.
        dp_rank: Rank,
        /// The engine that has it.
        registered: EngineId,
        /// The engine that asked.
        offered: EngineId,
    },
    /// The worker is known at another address.
    #[error("dp {dp_rank} tp {tp_rank} pp {pp_rank} is at {registered}, not at {offered}")]
    Address {
        /// Data-parallel rank.
        dp_rank: Rank,
        /// Tensor-parallel rank.
        tp_rank: Rank,
        /// Pipeline-parallel rank.
        pp_rank: Rank,
        /// Where it is.
        registered: WorkerAddr,
        /// Where it says it is.
        offered: WorkerAddr,
    },
}

/// What an HTTP server has to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status: 200, 400 or 422.
    pub status: u16,
    /// The body, JSON.
    pub body: Vec<u8>,
}

/// Where prefill's workers listen. Workers register, decode queries.
#[derive(Clone, Debug, Default)]
pub struct Bootstrap {
    directory: Directory,
    workers: u32,
    limits: Limits,
}

impl Bootstrap {
    /// An empty registry of at most [`Limits::ranks`] workers.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Takes a worker up. A worker that is known keeps its place.
    ///
    /// # Errors
    /// It contradicts what is known, or there are too many.
    pub fn register(&mut self, worker: &Register) -> Result<Registered, RegisterError> {
        let Register {
            dp_rank,
            tp_rank,
            pp_rank,
            ..
        } = *worker;
        let limit = self.limits.ranks;
        if let Some(entry) = self.directory.entry(dp_rank) {
            if *entry.engine() != worker.engine {
                return Err(RegisterError::Engine {
                    dp_rank,
                    registered: entry.engine().clone(),
                    offered: worker.engine.clone(),
                });
            }
            match entry.worker(tp_rank, pp_rank) {
                Some(addr) if *addr == worker.addr => return Ok(Registered::Again),
                Some(addr) => {
                    return Err(RegisterError::Address {
                        dp_rank,
                        tp_rank,
                        pp_rank,
                        registered: addr.clone(),
                        offered: worker.addr.clone(),
                    });
                }
                None => {}
            }
        }
        let workers = self.workers.saturating_add(1);
        // A rank is below the number of ranks.
        let ranks = [dp_rank, tp_rank, pp_rank].map(|rank| rank.get().saturating_add(1));
        let ranks = ranks.map(|count| ("number of ranks", count));
        let counts = ranks.into_iter().chain([("number of workers", workers)]);
        for (what, found) in counts {
            if found > limit {
                return Err(RegisterError::TooMany { what, found, limit });
            }
        }
        let entry = self.directory.add(dp_rank, worker.engine.clone());
        entry.add(tp_rank, pp_rank, worker.addr.clone());
        self.workers = workers;
        Ok(Registered::New)
    }

    /// Answers `POST /register`: 200 when the worker is registered, 400 when it is refused and
    /// 422 when the body is none.
    ///
    /// # Errors
    /// None that is known.
    pub fn post(&mut self, body: &[u8]) -> Result<Reply, JsonError> {
        let refused = |status, why: &dyn ToString| {
            let mut body = br#"{"detail":"#.to_vec();
            body.append(&mut serde_json::to_vec(&why.to_string())?);
            body.push(b'}');
            Ok(Reply { status, body })
        };
        match Register::decode(body, &self.limits) {
            Ok(worker) => match self.register(&worker) {
                Ok(_) => Ok(Reply {
                    status: 200,
                    body: br#"{"status":"ok"}"#.to_vec(),
                }),
                Err(error) => refused(400, &error),
            },
            Err(error) => refused(422, &error),
        }
    }

    /// What is known; [`Directory::encode`] is the answer of `GET /query`.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::{Bootstrap, Limits, Rank, Register, RegisterError, Registered, WorkerAddr};
    use crate::id::EngineId;
    use alloc::string::ToString;

    fn worker(engine: &str, ranks: [u32; 3], addr: &str) -> Register {
        let [dp_rank, tp_rank, pp_rank] = ranks.map(Rank::new);
        Register {
            engine: EngineId::new(engine).unwrap(),
            dp_rank,
            tp_rank,
            pp_rank,
            addr: WorkerAddr::new(addr).unwrap(),
        }
    }

    #[test]
    fn a_worker_registers_once_and_again_but_not_as_another() {
        let mut bootstrap = Bootstrap::default();
        let first = worker("e", [0, 1, 2], "tcp://a:1");
        assert_eq!(bootstrap.register(&first), Ok(Registered::New));
        assert_eq!(bootstrap.register(&first), Ok(Registered::Again));
        let before = bootstrap.directory().clone();
        let moved = bootstrap
            .register(&worker("e", [0, 1, 2], "tcp://a:2"))
            .unwrap_err();
        assert_eq!(
            moved.to_string(),
            "dp 0 tp 1 pp 2 is at tcp://a:1, not at tcp://a:2"
        );
        let other = bootstrap
            .register(&worker("f", [0, 3, 0], "tcp://a:3"))
            .unwrap_err();
        assert_eq!(other.to_string(), "data-parallel rank 0 is engine e, not f");
        assert_eq!(*bootstrap.directory(), before);
    }

    #[test]
    fn a_registry_is_bounded_and_known_workers_still_register() {
        let limits = Limits {
            ranks: 2,
            ..Limits::default()
        };
        let mut bootstrap = Bootstrap::new(limits);
        let what = "number of ranks";
        for ranks in [[2, 0, 0], [0, 2, 0], [0, 0, 2]] {
            let refused = bootstrap.register(&worker("e", ranks, "a"));
            assert_eq!(
                refused,
                Err(RegisterError::TooMany {
                    what,
                    found: 3,
                    limit: 2
                })
            );
        }
        assert_eq!(bootstrap.directory().encode().unwrap(), b"{}");
        bootstrap.register(&worker("e", [0, 0, 0], "a")).unwrap();
        bootstrap.register(&worker("e", [0, 0, 1], "b")).unwrap();
        let third = bootstrap
            .register(&worker("e", [0, 1, 0], "c"))
            .unwrap_err();
        assert_eq!(third.to_string(), "number of workers 3 is above 2");
        bootstrap.register(&worker("e", [0, 0, 1], "b")).unwrap();
        assert_eq!(bootstrap.post(b"{}").unwrap().status, 422);
    }

    #[test]
    fn ranks_are_listed_in_the_order_they_came() {
        let mut bootstrap = Bootstrap::default();
        for tp_rank in [2, 0, 1] {
            bootstrap
                .register(&worker("e", [0, tp_rank, 0], "x"))
                .unwrap();
        }
        let text =
            br#"{"0":{"engine_id":"e","worker_addr":{"2":{"0":"x"},"0":{"0":"x"},"1":{"0":"x"}}}}"#;
        assert_eq!(bootstrap.directory().encode().unwrap(), text);
    }
}
