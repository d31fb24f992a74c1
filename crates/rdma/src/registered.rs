//! Memory that an engine has registered.

use mooncake_pd_layout::AllocationId;

use crate::engine::{Engine, Memory};
use crate::error::{RegisterError, UnregisterError};
use crate::region::{Region, RegionMap, RegionMapError};
use crate::registration::RegistrationPlan;

/// Why a plan's ranges are not registered. Those that were are not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// There is no memory for an allocation.
    #[error("there is no memory for allocation {allocation}")]
    NoMemory {
        /// Which allocation.
        allocation: AllocationId,
    },
    /// The engine did not register a range.
    #[error("allocation {allocation} [{start}, {end}): {error}")]
    Register {
        /// Of which allocation.
        allocation: AllocationId,
        /// First byte of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// Why not.
        error: RegisterError,
    },
    /// The engine registered ranges that overlap.
    #[error(transparent)]
    Map(#[from] RegionMapError),
}

/// Some ranges could not be unregistered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ranges are still registered, the first because: {first}", others.len().saturating_add(1))]
pub struct ReleaseError {
    /// Why the first one is.
    pub first: UnregisterError,
    /// Why the others are.
    pub others: Vec<UnregisterError>,
}

/// All ranges of a plan, registered with one engine.
///
/// Must outlive every transfer over them. Dropping it unregisters nothing.
#[derive(Debug)]
pub struct Registered<E: Engine> {
    regions: RegionMap,
    registrations: Vec<E::Registration>,
}

impl<E: Engine> Registered<E> {
    /// Registers every range of a plan, or none.
    ///
    /// # Errors
    /// There is no memory for an allocation, or the engine does not register a
    /// range. Ranges registered before are unregistered again, one by one.
    pub fn new<'m>(
        engine: &E,
        plan: &RegistrationPlan,
        memory: impl Fn(AllocationId) -> Option<&'m E::Memory>,
    ) -> Result<Self, RegistrationError>
    where
        E::Memory: 'm,
    {
        let mut registrations = Vec::new();
        match Self::register_all(engine, plan, memory, &mut registrations) {
            Ok(regions) => Ok(Self {
                regions,
                registrations,
            }),
            Err(error) => {
                for registration in registrations.into_iter().rev() {
                    // What went wrong first is what the caller can act on.
                    let _ = engine.unregister(registration);
                }
                Err(error)
            }
        }
    }

    fn register_all<'m>(
        engine: &E,
        plan: &RegistrationPlan,
        memory: impl Fn(AllocationId) -> Option<&'m E::Memory>,
        registrations: &mut Vec<E::Registration>,
    ) -> Result<RegionMap, RegistrationError>
    where
        E::Memory: 'm,
    {
        let mut regions = Vec::new();
        for planned in plan.regions() {
            let (allocation, span) = (planned.allocation(), planned.span());
            let memory = memory(allocation).ok_or(RegistrationError::NoMemory { allocation })?;
            let (start, end) = (span.start().get(), span.end());
            let refused = |error| RegistrationError::Register {
                allocation,
                start,
                end,
                error,
            };
            let outside = refused(RegisterError::OutsideMemory {
                start,
                end,
                len: memory.len().get(),
            });
            let address = memory.base().offset(span.start()).map_err(|_| outside)?;
            let region = Region::new(allocation, span, address).map_err(|_| outside)?;
            registrations.push(engine.register(memory, span).map_err(refused)?);
            regions.push(region);
        }
        Ok(RegionMap::new(regions)?)
    }

    /// What was registered: what local copies are bound to and what a peer is
    /// told.
    #[must_use]
    pub const fn regions(&self) -> &RegionMap {
        &self.regions
    }

    /// Unregisters every range, one by one; one that fails does not stop the
    /// others.
    ///
    /// # Errors
    /// Which ranges are still registered.
    pub fn release(self, engine: &E) -> Result<(), ReleaseError> {
        let mut failed = self
            .registrations
            .into_iter()
            .rev()
            .filter_map(|registration| engine.unregister(registration).err());
        match failed.next() {
            None => Ok(()),
            Some(first) => Err(ReleaseError {
                first,
                others: failed.collect(),
            }),
        }
    }
}
