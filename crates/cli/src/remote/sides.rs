//! Both sides of a transfer, each in a process of its own.

use std::ffi::OsString;

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_plan::Copy;

use super::error::{AbsentError, RemoteError};
use super::kind::{Kinds, MemoryKind};
use super::local::Local;
use super::peer::Target;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::number::{count, index};
use crate::room;
use crate::sides::Moved;
use crate::verify::{Audit, Demand, Outcome, Pattern, Side, Sizes};

/// Bytes that are filled, sent and compared at a time.
const PIECE: u64 = 4 << 20;

/// An engine here and one in a target process; both last for several layouts,
/// one after the other.
#[derive(Debug)]
pub struct RemoteSides {
    kinds: Kinds,
    local: Box<dyn Local>,
    target: Target,
}

impl RemoteSides {
    /// Starts both engines; the target is the program with its arguments, or
    /// this command again.
    ///
    /// # Errors
    /// One of them can't be had.
    pub fn start(kinds: Kinds, program: &[OsString]) -> Result<Self, RemoteError> {
        let local = kinds.engine.start(kinds.memory)?;
        let target = Target::start(program, kinds)?;
        Ok(Self {
            kinds,
            local,
            target,
        })
    }

    /// What moves the bytes, and where they are.
    #[must_use]
    pub const fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Allocates, fills and registers both sides, moves the copies `repeats`
    /// times, and compares every byte of both sides with the demand.
    ///
    /// # Errors
    /// There is no room, an engine fails, or the demand lies outside the
    /// layouts' memory. Wrong bytes are a result, not an error.
    pub fn transfer(
        &mut self,
        [source, destination]: [&CacheLayout; 2],
        copies: &mut dyn Iterator<Item = Copy>,
        demand: &Demand,
        repeats: u32,
        meter: &Meter,
    ) -> Result<(Moved, Outcome), Failure> {
        if self.kinds.memory == MemoryKind::Host {
            room::check(source, destination)?;
        }
        meter.stage("fill");
        self.local.serve(source)?;
        let ranges = self.target.serve(destination)?;
        self.fill(Side::Prefill, source, meter)?;
        self.fill(Side::Decode, destination, meter)?;
        meter.stage("move");
        let (moved, took) = self
            .local
            .send(copies, self.target.name(), &ranges, repeats)?;
        meter.add(moved.bytes());
        meter.stage("verify");
        let (from, to) = (sizes(source), sizes(destination));
        let mut audit = Audit::new(demand, &from, &to).map_err(Failure::Demand)?;
        self.look(&mut audit, Side::Decode, &to, meter)?;
        self.look(&mut audit, Side::Prefill, &from, meter)?;
        self.target.release()?;
        self.local.release()?;
        let moved = Moved {
            descriptors: moved.descriptors(),
            bytes: moved.bytes(),
            took,
        };
        Ok((moved, audit.outcome()))
    }

    fn fill(&mut self, side: Side, layout: &CacheLayout, meter: &Meter) -> Result<(), RemoteError> {
        let mut buffer = Vec::new();
        for (allocation, len) in sizes(layout) {
            let pattern = Pattern::new(side, allocation);
            for (offset, len) in pieces(len) {
                buffer.resize(index(len), 0);
                pattern.write(offset, &mut buffer);
                match side {
                    Side::Prefill => self.local.write(allocation, offset, &buffer),
                    Side::Decode => self.target.write(allocation, offset, &buffer),
                }?;
                meter.add(len);
            }
        }
        Ok(())
    }

    fn look(
        &mut self,
        audit: &mut Audit<'_>,
        side: Side,
        sizes: &Sizes,
        meter: &Meter,
    ) -> Result<(), RemoteError> {
        let mut buffer = Vec::new();
        for &(allocation, len) in sizes {
            for (offset, len) in pieces(len) {
                buffer.resize(index(len), 0);
                match side {
                    Side::Prefill => self.local.read(allocation, offset, &mut buffer),
                    Side::Decode => self.target.read(allocation, offset, &mut buffer),
                }?;
                audit.look(side, allocation, offset, &buffer);
                meter.add(count(buffer.len()));
            }
        }
        Ok(())
    }
}

fn sizes(layout: &CacheLayout) -> Sizes {
    layout
        .allocations()
        .iter()
        .map(|allocation| (allocation.id().get(), allocation.len().get()))
        .collect()
}

/// Pieces of an allocation of `len` bytes: first byte and bytes.
fn pieces(len: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = (0..).map(|piece: u64| piece.saturating_mul(PIECE));
    starts
        .take_while(move |start| *start < len)
        .map(move |start| (start, len.saturating_sub(start).min(PIECE)))
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        Self::Remote(Box::new(error))
    }
}

impl From<AbsentError> for Failure {
    fn from(error: AbsentError) -> Self {
        RemoteError::from(error).into()
    }
}
