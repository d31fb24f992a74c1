//! One side's engine and the memory that it has registered.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use mooncake_pd_layout::{AllocationId, ByteLen, CacheLayout};
use mooncake_pd_plan::Copy;
use mooncake_pd_rdma::{
    BoundBatch, Bytes, Engine, InFlight, Moved, Operation, Outcome, Patience, RegionMap,
    Registered, RegistrationPlan, Standing, bind,
};

use super::error::RemoteError;

/// How long nothing may move before a transfer is given up.
const STALLED: Duration = Duration::from_secs(30);
/// How long one look at a transfer lasts.
const LOOK: Duration = Duration::from_millis(500);

/// An engine of this process with one layout's memory at a time.
pub(crate) trait Local: Debug {
    /// What peers open.
    fn name(&self) -> &str;

    /// Allocates and registers a layout's memory.
    fn serve(&mut self, layout: &CacheLayout) -> Result<RegionMap, RemoteError>;

    /// Copies bytes into the memory.
    fn write(&self, allocation: u32, offset: u64, bytes: &[u8]) -> Result<(), RemoteError>;

    /// Copies bytes out of the memory.
    fn read(&self, allocation: u32, offset: u64, bytes: &mut [u8]) -> Result<(), RemoteError>;

    /// Moves copies to a peer's ranges `repeats` times; the shortest time.
    fn send(
        &self,
        copies: &mut dyn Iterator<Item = Copy>,
        peer: &str,
        ranges: &RegionMap,
        repeats: u32,
    ) -> Result<(Moved, Duration), RemoteError>;

    /// Unregisters the memory and frees it.
    fn release(&mut self) -> Result<(), RemoteError>;
}

/// Where memory comes from.
pub(super) type Allocate<M> = Box<dyn Fn(ByteLen) -> Result<M, RemoteError>>;

/// An engine, where its memory comes from, and what it holds.
pub(super) struct Held<E: Engine> {
    engine: Arc<E>,
    allocate: Allocate<E::Memory>,
    memory: IndexMap<AllocationId, E::Memory>,
    registered: Option<Registered<E>>,
}

impl<E: Engine> Held<E> {
    pub(super) fn new(engine: E, allocate: Allocate<E::Memory>) -> Self {
        Self {
            engine: Arc::new(engine),
            allocate,
            memory: IndexMap::new(),
            registered: None,
        }
    }

    fn memory(&self, allocation: u32) -> Result<&E::Memory, RemoteError> {
        self.memory
            .get(&AllocationId::new(allocation))
            .ok_or(RemoteError::Allocation { allocation })
    }
}

impl<E> Local for Held<E>
where
    E: Engine + 'static,
    E::Memory: Bytes,
{
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn serve(&mut self, layout: &CacheLayout) -> Result<RegionMap, RemoteError> {
        self.release()?;
        let limits = self.engine.capabilities().registration();
        let plan = RegistrationPlan::of_layout(layout, limits)?;
        self.memory = layout
            .allocations()
            .iter()
            .map(|allocation| Ok((allocation.id(), (self.allocate)(allocation.len())?)))
            .collect::<Result<_, RemoteError>>()?;
        let registered = Registered::new(&*self.engine, &plan, |id| self.memory.get(&id))?;
        let regions = registered.regions().clone();
        self.registered = Some(registered);
        Ok(regions)
    }

    fn write(&self, allocation: u32, offset: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        Ok(self.memory(allocation)?.copy_in(offset, bytes)?)
    }

    fn read(&self, allocation: u32, offset: u64, bytes: &mut [u8]) -> Result<(), RemoteError> {
        Ok(self.memory(allocation)?.copy_out(offset, bytes)?)
    }

    fn send(
        &self,
        copies: &mut dyn Iterator<Item = Copy>,
        peer: &str,
        ranges: &RegionMap,
        repeats: u32,
    ) -> Result<(Moved, Duration), RemoteError> {
        let none = RegionMap::default();
        let local = self.registered.as_ref().map_or(&none, Registered::regions);
        let limits = self.engine.capabilities().submission();
        let batch = bind(copies, Operation::Write, local, ranges, limits)?;
        let peer = self.engine.open(peer)?;
        let mut best = None;
        for _ in 0..repeats.max(1) {
            let run = self.run(&peer, batch.clone())?;
            best = Some(best.map_or(
                run,
                |best: (Moved, Duration)| {
                    if run.1 < best.1 { run } else { best }
                },
            ));
        }
        Ok(best.unwrap_or_default())
    }

    fn release(&mut self) -> Result<(), RemoteError> {
        if let Some(registered) = self.registered.take() {
            registered.release(&*self.engine)?;
        }
        self.memory.clear();
        Ok(())
    }
}

impl<E: Engine> Held<E> {
    fn run(&self, peer: &E::Peer, batch: BoundBatch) -> Result<(Moved, Duration), RemoteError> {
        let start = Instant::now();
        let mut flight = InFlight::new(Arc::clone(&self.engine), peer.clone(), batch, ());
        let (mut seen, mut since) = (Moved::default(), start);
        loop {
            let (moved, lost) = match flight.drain(Patience::new(LOOK)) {
                Standing::Ended(outcome) => {
                    return outcome_of(outcome).map(|moved| (moved, start.elapsed()));
                }
                Standing::Fenced => (seen, false),
                Standing::Running(moved) | Standing::NoRoom(moved) => (moved, false),
                // An engine that can't drain will not know later either.
                Standing::Unknown(moved) => (moved, !self.engine.capabilities().drains()),
            };
            if moved != seen {
                (seen, since) = (moved, Instant::now());
            }
            if lost || since.elapsed() > STALLED {
                let seconds = since.elapsed().as_secs();
                return Err(RemoteError::Lost { moved, seconds });
            }
        }
    }
}

impl<E: Engine> Debug for Held<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held")
            .field("engine", &self.engine.name())
            .finish_non_exhaustive()
    }
}

fn outcome_of(outcome: Outcome) -> Result<Moved, RemoteError> {
    match outcome {
        // Nobody cancels it.
        Outcome::Completed(moved) | Outcome::Cancelled(moved) => Ok(moved),
        Outcome::NotTaken {
            first,
            error,
            moved,
        } => Err(RemoteError::NotTaken {
            first,
            error,
            moved,
        }),
        Outcome::Failed {
            descriptor,
            failure,
            moved,
        } => Err(RemoteError::Task {
            descriptor,
            failure,
            moved,
        }),
        Outcome::Device { error, .. } => Err(error.into()),
    }
}
