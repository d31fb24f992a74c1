//! Destination blocks of transfers that are still under way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use mooncake_pd_layout::{GroupId, PoolId};

use crate::admission::Claim;
use crate::plan::Plan;

/// Destination blocks that transfers may still write to. No later plan may claim
/// them, and they come back only with the [`Lease`] that was given out for them.
#[derive(Debug, Default)]
pub struct Leases {
    /// Every leased block with the group and the lease it is leased for.
    blocks: BTreeMap<(PoolId, u32), (GroupId, u64)>,
    given: u64,
}

/// The blocks of one plan, from [`Leases::add`] to [`Leases::release`]. It can be
/// neither copied nor made up, so that nothing is released twice, or by an end
/// that belongs to another transfer. Dropped, it leaves its blocks leased.
#[derive(Debug)]
#[must_use = "without it the blocks stay leased"]
pub struct Lease {
    number: u64,
    blocks: Vec<(PoolId, u32)>,
}

/// A plan whose blocks can't be leased: it was planned without regard to the
/// leases it is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("destination block {id} of group {group} is already leased for group {owner}")]
pub struct LeaseConflict {
    /// The block.
    pub id: u32,
    /// The plan's group.
    pub group: GroupId,
    /// The group it is leased for.
    pub owner: GroupId,
}

impl Leases {
    /// Leases every destination block that a plan's requests listed.
    ///
    /// # Errors
    /// One of them is leased already; then none is added.
    pub fn add(&mut self, plan: &Plan) -> Result<Lease, LeaseConflict> {
        for Claim { group, pool, id } in plan.claims() {
            if let Some((owner, _)) = self.blocks.get(&(pool, id)) {
                return Err(LeaseConflict {
                    id,
                    group,
                    owner: *owner,
                });
            }
        }
        let number = self.given;
        self.given = self.given.wrapping_add(1);
        let blocks = plan.claims().map(|claim| (claim.pool, claim.id)).collect();
        for Claim { group, pool, id } in plan.claims() {
            self.blocks.insert((pool, id), (group, number));
        }
        Ok(Lease { number, blocks })
    }

    /// Takes a plan's blocks back. To be called only when the engine is known to
    /// be quiescent.
    #[expect(clippy::needless_pass_by_value, reason = "a lease ends once")]
    pub fn release(&mut self, lease: Lease) {
        for block in &lease.blocks {
            // A lease of other books has another number or other blocks.
            if self
                .blocks
                .get(block)
                .is_some_and(|(_, number)| *number == lease.number)
            {
                self.blocks.remove(block);
            }
        }
    }

    /// Whether nothing is leased.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn holds(&self, pool: PoolId, id: u32) -> bool {
        self.blocks.contains_key(&(pool, id))
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (GroupId, u32)> + '_ {
        self.blocks
            .iter()
            .map(|((_, id), (group, _))| (*group, *id))
    }
}
