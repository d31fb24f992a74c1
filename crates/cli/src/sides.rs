//! Both sides of a transfer in memory: filled, registered, copied over,
//! checked.

use std::time::{Duration, Instant};

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_plan::Copy;
use mooncake_pd_rdma::{
    Engine, Fabric, HostMemory, Operation, Patience, Registered, RegistrationPlan, bind, transfer,
};

use crate::engine_failure::EngineFailure;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::room;
use crate::verify::{Demand, Outcome, Side, check, fill};

/// What an engine moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Descriptors that it completed.
    pub descriptors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time from the first submission to the last completion.
    pub took: Duration,
}

/// The memory of both sides.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    layouts: [&'a CacheLayout; 2],
    memory: [HostMemory; 2],
}

impl<'a> Sides<'a> {
    /// Allocates both sides and fills them with patterns that tell every byte
    /// from every other.
    ///
    /// # Errors
    /// There is no room.
    pub fn filled(
        source: &'a CacheLayout,
        destination: &'a CacheLayout,
        meter: &Meter,
    ) -> Result<Self, Failure> {
        room::check(source, destination)?;
        let from = HostMemory::of_layout(source)?;
        let to = HostMemory::of_layout(destination)?;
        meter.stage("fill");
        fill_side(Side::Prefill, &from, meter);
        fill_side(Side::Decode, &to, meter);
        Ok(Self {
            layouts: [source, destination],
            memory: [from, to],
        })
    }

    /// The source's memory.
    #[must_use]
    pub const fn source(&self) -> &HostMemory {
        let [source, _] = &self.memory;
        source
    }

    /// The destination's memory.
    #[must_use]
    pub const fn destination(&self) -> &HostMemory {
        let [_, destination] = &self.memory;
        destination
    }

    /// Registers both sides with a loopback engine and moves the copies.
    ///
    /// # Errors
    /// The engine refuses or fails.
    pub fn transfer(
        &self,
        copies: impl IntoIterator<Item = Copy>,
        meter: &Meter,
    ) -> Result<Moved, EngineFailure> {
        const DECODE: &str = "decode";
        meter.stage("move");
        let [source, destination] = self.layouts;
        let fabric = Fabric::new();
        let prefill = fabric.attach("prefill")?;
        let decode = fabric.attach(DECODE)?;
        let limits = prefill.capabilities().registration();
        let plan = |layout| RegistrationPlan::of_layout(layout, limits);
        let local = Registered::new(&prefill, &plan(source)?, |id| self.source().buffer(id))?;
        let remote = Registered::new(&decode, &plan(destination)?, |id| {
            self.destination().buffer(id)
        })?;
        let batch = bind(
            copies,
            Operation::Write,
            local.regions(),
            remote.regions(),
            prefill.capabilities().submission(),
        )?;
        let peer = prefill.open(DECODE)?;
        let mut counted = 0_u64;
        let start = Instant::now();
        let moved = transfer(&prefill, &peer, &batch, Patience::default(), |moved| {
            meter.add(moved.bytes().saturating_sub(counted));
            counted = moved.bytes();
        })
        .map_err(Box::new)?;
        let took = start.elapsed();
        local.release(&prefill)?;
        remote.release(&decode)?;
        Ok(Moved {
            descriptors: moved.descriptors(),
            bytes: moved.bytes(),
            took,
        })
    }

    /// Checks every byte of both sides against the demand.
    ///
    /// # Errors
    /// The demand lies outside the layouts' memory. Wrong bytes are a result,
    /// not an error.
    pub fn check(&self, demand: &Demand, meter: &Meter) -> Result<Outcome, Failure> {
        meter.stage("verify");
        let [from, to] = [self.source(), self.destination()].map(|memory| {
            memory
                .iter()
                .map(|(id, buffer)| (id.get(), buffer.read()))
                .collect::<Vec<_>>()
        });
        check(
            demand,
            &from.iter().map(|(id, bytes)| (*id, &***bytes)).collect(),
            &to.iter().map(|(id, bytes)| (*id, &***bytes)).collect(),
            &|bytes| meter.add(bytes),
        )
        .map_err(Failure::Demand)
    }
}

/// How much work both sides and a transfer are to a meter, in bytes.
#[must_use]
pub fn work(source: &CacheLayout, destination: &CacheLayout, moved: u64) -> u64 {
    room::bytes(source)
        .saturating_add(room::bytes(destination))
        .saturating_mul(2)
        .saturating_add(moved)
}

fn fill_side(side: Side, memory: &HostMemory, meter: &Meter) {
    let mut guards: Vec<_> = memory
        .iter()
        .map(|(id, buffer)| (id.get(), buffer.write()))
        .collect();
    let mut bytes: Vec<(u32, &mut [u8])> = guards
        .iter_mut()
        .map(|(id, guard)| (*id, &mut ***guard))
        .collect();
    fill(side, &mut bytes, &|bytes| meter.add(bytes));
}
