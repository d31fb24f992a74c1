//! Block tables with their positions.

use alloc::vec::Vec;
use mooncake_pd_layout::BlockEntry;

/// Most entries a block table may have.
pub const MAX_ENTRIES: usize = 1 << 24;

/// Consecutive entries of one side's block table: entry `i` stands for tokens
/// `(first_block + i) * tokens_per_block ..` of the prompt. Nulls keep their
/// position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    first_block: u64,
    entries: Vec<BlockEntry>,
}

impl Slots {
    /// `None` if the last position does not fit 64 bits.
    pub(crate) fn new(first_block: u64, entries: Vec<BlockEntry>) -> Option<Self> {
        first_block.checked_add(u64::try_from(entries.len()).ok()?)?;
        Some(Self {
            first_block,
            entries,
        })
    }

    /// Position of the first entry, in blocks.
    #[must_use]
    pub const fn first_block(&self) -> u64 {
        self.first_block
    }

    /// The entries in order of position.
    #[must_use]
    pub fn entries(&self) -> &[BlockEntry] {
        &self.entries
    }

    /// The entries with their positions.
    pub fn positions(&self) -> impl Iterator<Item = (u64, BlockEntry)> + '_ {
        // `new` proved that the last position fits; the range is asked for no
        // other, for it would panic on the one after 2^64 - 1.
        let entries = self.entries.iter().copied();
        entries
            .zip(self.first_block..)
            .map(|(entry, at)| (at, entry))
    }

    /// The entry at a position, if the table reaches there.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<BlockEntry> {
        let index = position.checked_sub(self.first_block)?;
        self.entries.get(usize::try_from(index).ok()?).copied()
    }
}

/// The id behind a live entry.
pub(crate) const fn live(entry: BlockEntry) -> Option<u32> {
    match entry {
        BlockEntry::Null => None,
        BlockEntry::Block(block) => Some(block.get()),
        BlockEntry::State(slot) => Some(slot.get()),
    }
}
