//! Which workers there are.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use indexmap::IndexMap;
use mooncake_pd_layout::JsonError;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::json::{Object, from_json};
use super::limits::Limits;
use super::rank::Rank;
use super::register::{BootstrapError, WorkerAddr};
use crate::id::EngineId;

/// In the order of registration.
type Ranks<T> = IndexMap<Rank, T, foldhash::quality::RandomState>;

/// Answer of `GET /query`:
/// `{"<dp rank>":{"engine_id":"...","worker_addr":{"<tp rank>":{"<pp rank>":"tcp://..."}}}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    engines: Ranks<EngineWorkers>,
}

/// The workers of one engine, which is one data-parallel rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineWorkers {
    engine: EngineId,
    workers: Ranks<Ranks<WorkerAddr>>,
}

impl Directory {
    /// Reads an answer. Unknown keys are skipped; of a repeated rank the last counts.
    pub fn decode(text: &[u8], limits: &Limits) -> Result<Self, BootstrapError> {
        let raw: Map<Object<RawEngine<'_>>> = from_json(text, limits)?;
        let count = raw.0.values().map(|entry| entry.0.workers());
        let count = count.fold(0, usize::saturating_add);
        let limit = limits.ranks;
        if u32::try_from(count).map_or(true, |count| count > limit) {
            return Err(BootstrapError::TooMany { count, limit });
        }
        let mut engines = Ranks::default();
        for (dp_rank, Object(raw)) in raw.0 {
            let mut entry = EngineWorkers::new(EngineId::new(&raw.engine_id)?);
            for (tp_rank, raw) in raw.worker_addr.0 {
                let mut stages = Ranks::default();
                for (pp_rank, addr) in raw.0 {
                    let key = "worker_addr";
                    let addr = WorkerAddr::new(&addr.0);
                    let addr = addr.map_err(|error| BootstrapError::Address { key, error })?;
                    stages.insert(pp_rank, addr);
                }
                entry.workers.insert(tp_rank, stages);
            }
            engines.insert(dp_rank, entry);
        }
        Ok(Self { engines })
    }

    /// Writes the answer of a stock server: ranks in the order in which they came.
    ///
    /// # Errors
    /// None that is known.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        Ok(serde_json::to_vec(&Shown(&self.engines))?)
    }

    /// The engines by data-parallel rank.
    pub fn engines(&self) -> impl ExactSizeIterator<Item = (Rank, &EngineWorkers)> {
        self.engines.iter().map(|(rank, engine)| (*rank, engine))
    }

    /// An engine by its name; the last one if a server knows several of that name.
    #[must_use]
    pub fn engine(&self, id: &EngineId) -> Option<&EngineWorkers> {
        self.engines
            .values()
            .rev()
            .find(|entry| entry.engine == *id)
    }

    pub(super) fn entry(&mut self, dp_rank: Rank) -> Option<&mut EngineWorkers> {
        self.engines.get_mut(&dp_rank)
    }

    pub(super) fn add(&mut self, dp_rank: Rank, engine: EngineId) -> &mut EngineWorkers {
        let entry = self.engines.entry(dp_rank);
        entry.or_insert_with(|| EngineWorkers::new(engine))
    }
}

impl EngineWorkers {
    fn new(engine: EngineId) -> Self {
        let workers = Ranks::default();
        Self { engine, workers }
    }

    /// The engine's name.
    #[must_use]
    pub const fn engine(&self) -> &EngineId {
        &self.engine
    }

    /// How many tensor-parallel ranks registered.
    #[must_use]
    pub fn tp_size(&self) -> usize {
        self.workers.len()
    }

    /// The workers of a tensor-parallel rank by pipeline-parallel rank.
    pub fn stages(&self, tp_rank: Rank) -> impl Iterator<Item = (Rank, &WorkerAddr)> {
        let stages = self.workers.get(&tp_rank).into_iter().flatten();
        stages.map(|(pp_rank, addr)| (*pp_rank, addr))
    }

    /// One worker.
    #[must_use]
    pub fn worker(&self, tp_rank: Rank, pp_rank: Rank) -> Option<&WorkerAddr> {
        self.workers.get(&tp_rank)?.get(&pp_rank)
    }

    pub(super) fn add(&mut self, tp_rank: Rank, pp_rank: Rank, addr: WorkerAddr) {
        self.workers
            .entry(tp_rank)
            .or_default()
            .insert(pp_rank, addr);
    }
}

/// Ranks as a JSON map.
struct Shown<'a, T>(&'a Ranks<T>);

impl Serialize for Shown<'_, EngineWorkers> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0)
    }
}

impl Serialize for Shown<'_, Ranks<WorkerAddr>> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(rank, stages)| (rank, Shown(stages))))
    }
}

impl Serialize for Shown<'_, WorkerAddr> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(rank, addr)| (rank, addr.as_str())))
    }
}

impl Serialize for EngineWorkers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("engine", 2)?;
        map.serialize_field("engine_id", self.engine.as_str())?;
        map.serialize_field("worker_addr", &Shown(&self.workers))?;
        map.end()
    }
}

/// An engine as serde sees it.
#[derive(serde::Deserialize)]
struct RawEngine<'a> {
    #[serde(borrow)]
    engine_id: Cow<'a, str>,
    #[serde(borrow)]
    worker_addr: Map<Map<Text<'a>>>,
}

impl RawEngine<'_> {
    fn workers(&self) -> usize {
        let ranks = self.worker_addr.0.values().map(|stages| stages.0.len());
        ranks.fold(0, usize::saturating_add)
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A JSON map by rank.
struct Map<T>(Ranks<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MapReader(PhantomData))
    }
}

struct MapReader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapReader<T> {
    type Value = Map<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map by rank")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Map<T>, A::Error> {
        let mut ranks = Ranks::default();
        while let Some((rank, value)) = from.next_entry()? {
            ranks.insert(rank, value);
        }
        Ok(Map(ranks))
    }
}
