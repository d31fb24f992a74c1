//! Destination blocks of transfers that are still under way.

use alloc::collections::{BTreeMap, BTreeSet};
use mooncake_pd_layout::{GroupId, PoolId};

use crate::id_set::IdSet;
use crate::plan::Plan;

/// Destination blocks that a transfer may still write to. No later plan may
/// claim them.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    pools: BTreeMap<PoolId, IdSet>,
    blocks: BTreeSet<(GroupId, u32)>,
}

impl Leases {
    /// Leases every destination block that a plan's requests listed.
    pub fn add(&mut self, plan: &Plan) {
        for claim in plan.claims() {
            self.pools.entry(claim.pool).or_default().insert(claim.id);
            self.blocks.insert((claim.group, claim.id));
        }
    }

    /// Gives a plan's blocks back. To be called only when the engine is known
    /// to be quiescent.
    pub fn remove(&mut self, plan: &Plan) {
        for claim in plan.claims() {
            if let Some(ids) = self.pools.get_mut(&claim.pool) {
                ids.remove(claim.id);
            }
            self.blocks.remove(&(claim.group, claim.id));
        }
    }

    /// Whether nothing is leased.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn holds(&self, pool: PoolId, id: u32) -> bool {
        self.pools.get(&pool).is_some_and(|ids| ids.contains(id))
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (GroupId, u32)> + '_ {
        self.blocks.iter().copied()
    }
}
