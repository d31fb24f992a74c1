//! What one engine has registered, for itself and for its peers.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use mooncake_pd_layout::ByteSpan;

use super::TCP;
use crate::address::Address;
use crate::engine::Memory;
use crate::error::{EngineCode, Side, Violation};
use crate::memory::HostBuffer;
use crate::native::Port;

/// One registered range of addresses `start..end`.
#[derive(Debug)]
struct Range {
    start: u64,
    end: u64,
    buffer: HostBuffer,
    /// Where in the buffer its first byte is.
    offset: u64,
    /// Held while bytes are copied, so that unregistering waits for them. Taken
    /// after the buffer's lock, so that its wait is never longer than a copy.
    live: RwLock<bool>,
}

/// Bytes of one descriptor, inside a range that was registered when it was
/// looked up.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    range: Arc<Range>,
    side: Side,
    address: u64,
    len: u64,
}

/// Every registered range.
#[derive(Debug, Default)]
pub(super) struct Table {
    ranges: RwLock<BTreeMap<u64, Arc<Range>>>,
}

impl Table {
    /// The bytes of every descriptor `(address, len)`, or which one is refused.
    pub(super) fn locate(
        &self,
        side: Side,
        descriptors: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Vec<Piece>, (usize, Violation)> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        descriptors
            .enumerate()
            .map(|(index, (address, len))| {
                find(&ranges, side, address, len).map_err(|violation| (index, violation))
            })
            .collect()
    }
}

fn find(
    ranges: &BTreeMap<u64, Arc<Range>>,
    side: Side,
    address: u64,
    len: u64,
) -> Result<Piece, Violation> {
    if len == 0 {
        return Err(Violation::Empty { side, address });
    }
    let range = ranges
        .range(..=address)
        .next_back()
        .map(|(_, range)| range)
        .filter(|range| address < range.end)
        .ok_or(Violation::Unregistered { side, address })?;
    if address.checked_add(len).is_none_or(|end| end > range.end) {
        return Err(Violation::CrossesRegion {
            side,
            address,
            len,
            region_end: range.end,
        });
    }
    Ok(Piece {
        range: Arc::clone(range),
        side,
        address,
        len,
    })
}

impl Port for Table {
    type Memory = HostBuffer;

    const NAME: &'static str = TCP;
    const OVERLAP: EngineCode = EngineCode::new(TCP, -7);

    fn reaches_devices(&self) -> bool {
        false
    }

    fn register(&self, memory: &HostBuffer, span: ByteSpan) -> Result<(), EngineCode> {
        let outside = EngineCode::new(TCP, -1);
        let base = memory.base();
        let start = base.offset(span.start()).map_err(|_| outside)?;
        let end = start.end(span.len()).map_err(|_| outside)?;
        let range = Range {
            start: start.get(),
            end: end.get(),
            buffer: memory.clone(),
            offset: span.start().get(),
            live: RwLock::new(true),
        };
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(start.get(), Arc::new(range));
        Ok(())
    }

    fn unregister(&self, start: Address) -> Result<(), EngineCode> {
        let range = {
            let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
            ranges.remove(&start.get())
        };
        let range = range.ok_or(EngineCode::new(TCP, -3))?;
        // Whoever is copying holds it; whoever comes later sees it.
        *range.live.write().unwrap_or_else(PoisonError::into_inner) = false;
        Ok(())
    }
}

impl Piece {
    /// Its bytes, 1...
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Reads at most `most` of its bytes from `skip` on, while it is registered.
    pub(super) fn read<T>(
        &self,
        skip: u64,
        most: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Violation> {
        let place = self.place(skip, most);
        let bytes = self.range.buffer.read();
        let live = self.range.live.read();
        let live = live.unwrap_or_else(PoisonError::into_inner);
        if !*live {
            return Err(self.unregistered());
        }
        let bytes = place.and_then(|place| bytes.get(place));
        bytes.map(read).ok_or(self.unregistered())
    }

    /// Lets at most `most` of its bytes from `skip` on be written, while it is
    /// registered.
    pub(super) fn write<T>(
        &self,
        skip: u64,
        most: u64,
        write: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, Violation> {
        let place = self.place(skip, most);
        let mut bytes = self.range.buffer.write();
        let live = self.range.live.read();
        let live = live.unwrap_or_else(PoisonError::into_inner);
        if !*live {
            return Err(self.unregistered());
        }
        let bytes = place.and_then(|place| bytes.get_mut(place));
        bytes.map(write).ok_or(self.unregistered())
    }

    fn place(&self, skip: u64, most: u64) -> Option<std::ops::Range<usize>> {
        let len = self.len.checked_sub(skip)?.min(most);
        let inside = self.address.checked_sub(self.range.start)?;
        let start = self.range.offset.checked_add(inside)?.checked_add(skip)?;
        let end = usize::try_from(start.checked_add(len)?).ok()?;
        Some(usize::try_from(start).ok()?..end)
    }

    const fn unregistered(&self) -> Violation {
        Violation::Unregistered {
            side: self.side,
            address: self.address,
        }
    }
}
