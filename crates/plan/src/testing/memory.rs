//! Simulated memory in which every byte knows where it came from.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::demand::Demand;
use super::plain::{Place, Plain, index};
use crate::{Copy, Side};

/// What a byte holds: the side and place it was written at first. Two bytes are
/// never equal by chance.
pub type Content = (Side, Place);

/// A copy of bytes, checked or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Where it reads.
    pub source: Place,
    /// Where it writes.
    pub destination: Place,
    /// Bytes.
    pub len: u64,
}

impl From<Copy> for Descriptor {
    fn from(copy: Copy) -> Self {
        Self {
            source: (copy.source().get(), copy.source_offset().get()),
            destination: (copy.destination().get(), copy.destination_offset().get()),
            len: copy.len().get(),
        }
    }
}

/// All allocations of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    allocations: BTreeMap<u32, Vec<Content>>,
}

impl Memory {
    /// Memory of which nothing was written yet: every byte holds its own place.
    #[must_use]
    pub fn new(side: Side, layout: &Plain) -> Self {
        let fill = |(id, len): (&u32, &u64)| {
            let bytes = (0..*len).map(|offset| (side, (*id, offset)));
            (*id, bytes.collect())
        };
        Self {
            allocations: layout.allocations.iter().map(fill).collect(),
        }
    }

    /// Runs copies from another memory.
    ///
    /// # Panics
    /// One of them leaves an allocation.
    #[must_use]
    pub fn after(
        mut self,
        from: &Self,
        copies: impl IntoIterator<Item = impl Into<Descriptor>>,
    ) -> Self {
        for copy in copies {
            let copy: Descriptor = copy.into();
            let range = |place: Place| index(place.1)..index(place.1 + copy.len);
            let bytes = &from.allocations[&copy.source.0][range(copy.source)];
            let to = self.allocations.get_mut(&copy.destination.0);
            to.expect("copies name allocations that exist")[range(copy.destination)]
                .copy_from_slice(bytes);
        }
        self
    }

    /// The same memory with every demanded byte copied by itself.
    #[must_use]
    pub fn after_bytes(self, from: &Self, demand: &Demand) -> Self {
        let byte = |want: &super::demand::Want| Descriptor {
            source: want.source,
            destination: want.destination,
            len: 1,
        };
        self.after(from, demand.wants.iter().map(byte))
    }

    /// What a byte holds.
    ///
    /// # Panics
    /// There is no such byte.
    #[must_use]
    pub fn at(&self, place: Place) -> Content {
        self.allocations[&place.0][index(place.1)]
    }

    /// Places at which this holds something else than `other`.
    pub fn differences(&self, other: &Self) -> impl Iterator<Item = Place> {
        let pairs = self.allocations.iter().zip(other.allocations.values());
        pairs.flat_map(|((id, ours), theirs)| {
            let differ = (0_u64..).zip(ours.iter().zip(theirs));
            let differ = differ.filter(|(_, (a, b))| a != b);
            differ.map(|(offset, _)| (*id, offset))
        })
    }
}
