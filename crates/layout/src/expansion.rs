//! Logical blocks to physical pages.

use crate::ids::{LogicalBlock, PhysicalBlock};
use crate::units::PagesPerBlock;

/// How one side of one group expands its logical blocks into kernel pages.
///
/// Block `b` is pages `b * pages .. (b + 1) * pages`. Each side of a transfer
/// has its own; state groups have none.
///
/// ```
/// # use mooncake_pd_layout::{Expansion, PagesPerBlock};
/// let side = Expansion::new(PagesPerBlock::new(17)?);
/// assert_eq!(side.pages_per_block().get(), 17);
/// # Ok::<(), mooncake_pd_layout::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expansion(PagesPerBlock);

impl Expansion {
    /// An expansion into that many pages.
    #[must_use]
    pub const fn new(pages: PagesPerBlock) -> Self {
        Self(pages)
    }

    /// Pages per logical block.
    #[must_use]
    pub const fn pages_per_block(self) -> PagesPerBlock {
        self.0
    }

    /// The pages of a block, in token order.
    pub fn pages(self, block: LogicalBlock) -> impl Iterator<Item = PhysicalBlock> {
        let pages = u64::from(self.0.get());
        // Two 32-bit factors: the product fits 64 bits.
        let first = u64::from(block.get()).saturating_mul(pages);
        (0..pages).map(move |page| PhysicalBlock::new(first.saturating_add(page)))
    }
}
