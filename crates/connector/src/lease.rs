//! Blocks that a transfer may still touch.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use indexmap::IndexMap;
use mooncake_pd_layout::{CacheLayout, PoolId};

use crate::hash::Hash;
use crate::tables::{BlockTables, TablesError};

/// Proof that nothing reads or writes the blocks of one loan any more. It can't be
/// copied, and each settles one loan.
#[derive(Debug)]
pub struct Quiescence(Evidence);

#[derive(Clone, Copy, Debug)]
enum Evidence {
    /// Nothing was ever started.
    Untouched,
    /// The peer that ran it says so.
    Told,
    /// Whoever runs the engine has seen it.
    Witnessed,
}

impl Quiescence {
    /// For whoever runs the engine: every task of the transfer was seen in a
    /// terminal state, or its path is cut so that nothing can land any more. A
    /// timeout, an error or an answer that says neither is no such proof.
    #[must_use]
    pub const fn witnessed() -> Self {
        Self(Evidence::Witnessed)
    }

    /// Nothing was ever started.
    pub(crate) const fn untouched() -> Self {
        Self(Evidence::Untouched)
    }

    /// The peer that ran the transfer says so.
    pub(crate) const fn told() -> Self {
        Self(Evidence::Told)
    }

    /// A proof about a whole peer holds for each loan it has.
    pub(crate) const fn of_each(&self) -> Self {
        Self(self.0)
    }
}

/// A lease lent to one transfer or one peer.
#[derive(Debug)]
pub(crate) struct Loan(());

/// Blocks of one request. They come back through [`LeaseBook::end`] alone, and only
/// when every loan was repaid.
#[derive(Debug)]
pub(crate) struct Lease {
    tables: Arc<BlockTables>,
    loans: u32,
    exclusive: bool,
}

impl Lease {
    pub(crate) fn tables(&self) -> &Arc<BlockTables> {
        &self.tables
    }

    pub(crate) fn lend(&mut self) -> Loan {
        self.loans = self.loans.saturating_add(1);
        Loan(())
    }

    pub(crate) fn repay(&mut self, _loan: Loan, _proof: Quiescence) {
        self.loans = self.loans.saturating_sub(1);
    }
}

/// Which blocks of a side are leased: one bit each.
#[derive(Debug)]
pub(crate) struct LeaseBook {
    layout: Arc<CacheLayout>,
    taken: IndexMap<PoolId, Vec<u64>, Hash>,
    live: usize,
}

impl LeaseBook {
    pub(crate) fn new(layout: Arc<CacheLayout>, hash: Hash) -> Self {
        let mut taken = IndexMap::with_hasher(hash);
        for pool in layout.pools() {
            let words = usize::try_from(pool.capacity().div_ceil(u64::BITS)).unwrap_or(0);
            taken.insert(pool.id(), vec![0; words]);
        }
        Self {
            layout,
            taken,
            live: 0,
        }
    }

    /// Leases that are not ended.
    pub(crate) const fn live(&self) -> usize {
        self.live
    }

    /// Blocks that a peer writes: no two leases may hold one.
    pub(crate) fn take(&mut self, tables: Arc<BlockTables>) -> Result<Lease, TablesError> {
        self.mark(&tables)?;
        self.live = self.live.saturating_add(1);
        Ok(Lease {
            tables,
            loans: 0,
            exclusive: true,
        })
    }

    /// Blocks that are only read: requests with a common prefix share them.
    pub(crate) fn share(&mut self, tables: Arc<BlockTables>) -> Result<Lease, TablesError> {
        self.mark(&tables)?;
        self.clear(&tables, usize::MAX);
        self.live = self.live.saturating_add(1);
        Ok(Lease {
            tables,
            loans: 0,
            exclusive: false,
        })
    }

    /// Ends a lease, and gives its blocks back.
    ///
    /// # Errors
    /// The lease itself, while a loan is not repaid.
    pub(crate) fn end(&mut self, lease: Lease) -> Result<Arc<BlockTables>, Lease> {
        if lease.loans > 0 {
            return Err(lease);
        }
        if lease.exclusive {
            self.clear(&lease.tables, usize::MAX);
        }
        self.live = self.live.saturating_sub(1);
        Ok(lease.tables)
    }

    /// Marks every live block; none of them on an error.
    fn mark(&mut self, tables: &BlockTables) -> Result<(), TablesError> {
        let layout = Arc::clone(&self.layout);
        tables.check_groups(&layout)?;
        let mut marked = 0_usize;
        let mut failed = None;
        for block in tables.live(&layout) {
            match block {
                Ok((group, pool, id)) => {
                    if Self::set(&mut self.taken, pool, id, true) {
                        failed = Some((group, pool, id));
                        break;
                    }
                    marked = marked.saturating_add(1);
                }
                Err(error) => {
                    self.clear(tables, marked);
                    return Err(error);
                }
            }
        }
        let Some((group, pool, id)) = failed else {
            return Ok(());
        };
        self.clear(tables, marked);
        // Still there: then it belongs to another lease.
        let leased = Self::set(&mut self.taken, pool, id, true);
        Self::set(&mut self.taken, pool, id, leased);
        Err(if leased {
            TablesError::Leased { id, pool, group }
        } else {
            TablesError::BlockTwice { id, pool, group }
        })
    }

    /// Clears the first `count` live blocks.
    fn clear(&mut self, tables: &BlockTables, count: usize) {
        for (_, pool, id) in tables.live(&self.layout).flatten().take(count) {
            Self::set(&mut self.taken, pool, id, false);
        }
    }

    /// Sets a block's bit and returns what it was.
    fn set(taken: &mut IndexMap<PoolId, Vec<u64>, Hash>, pool: PoolId, id: u32, bit: bool) -> bool {
        let word = usize::try_from(id / u64::BITS).unwrap_or(usize::MAX);
        let Some(word) = taken.get_mut(&pool).and_then(|words| words.get_mut(word)) else {
            return false;
        };
        let mask = 1_u64 << (id % u64::BITS);
        let was = *word & mask != 0;
        *word = if bit { *word | mask } else { *word & !mask };
        was
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "overflow panics in tests")]
mod tests;
