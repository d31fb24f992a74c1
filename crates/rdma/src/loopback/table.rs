//! What one endpoint has registered, by address.

use crate::capabilities::RegistrationLimits;
use crate::error::RegisterError;
use crate::loopback::{EMPTY, OVERLAP};
use crate::memory::HostBuffer;

/// One registered range of addresses `start..end`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) buffer: HostBuffer,
    /// Where in the buffer its first byte is.
    pub(super) offset: u64,
}

/// Registered ranges, ascending and disjoint.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionTable {
    entries: Vec<Entry>,
}

impl RegionTable {
    /// Adds a range, or says why a network card would not.
    pub(super) fn insert(
        &mut self,
        entry: Entry,
        limits: RegistrationLimits,
    ) -> Result<(), RegisterError> {
        let len = entry.end.saturating_sub(entry.start);
        if len == 0 {
            return Err(RegisterError::Empty {
                address: entry.start,
                code: EMPTY,
            });
        }
        if let Some(limit) = limits.piece().filter(|limit| len > limit.get()) {
            return Err(RegisterError::TooLong {
                len,
                limit: limit.get(),
            });
        }
        let regions = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        if regions >= u64::from(limits.max_regions()) {
            return Err(RegisterError::TooMany {
                regions,
                limit: limits.max_regions(),
            });
        }
        // Entries are disjoint, so the first that ends behind the new start is
        // the only one that can meet it first.
        let at = self
            .entries
            .partition_point(|other| other.end <= entry.start);
        if let Some(other) = self.entries.get(at).filter(|other| other.start < entry.end) {
            return Err(RegisterError::Overlap {
                start: entry.start,
                end: entry.end,
                other_start: other.start,
                other_end: other.end,
                code: OVERLAP,
            });
        }
        self.entries.insert(at, entry);
        Ok(())
    }

    /// Takes out the range that starts at `address`; whether there was one.
    pub(super) fn remove(&mut self, address: u64) -> bool {
        let found = self
            .entries
            .binary_search_by_key(&address, |entry| entry.start);
        found.map(|at| self.entries.remove(at)).is_ok()
    }

    /// The range that holds `address`.
    pub(super) fn find(&self, address: u64) -> Option<&Entry> {
        let at = self.entries.partition_point(|entry| entry.end <= address);
        self.entries.get(at).filter(|entry| entry.start <= address)
    }

    /// Addresses of every range, ascending.
    #[cfg(test)]
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let range = |entry: &Entry| (entry.start, entry.end);
        self.entries.iter().map(range).collect()
    }
}
