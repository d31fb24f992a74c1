//! Which requests of a batch may own the blocks they list.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use mooncake_pd_layout::{CacheLayout, Group, GroupId, PoolId};

use crate::id_set::IdSet;
use crate::leases::Leases;
use crate::request::{Owner, Request, RequestError, Side, Tables};
use crate::shared::SharedBytes;
use crate::slots::{Slots, live};

/// A destination block that a request listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) group: GroupId,
    pub(crate) pool: PoolId,
    pub(crate) id: u32,
}

/// Ids in use on one side.
struct Ledger<'a> {
    side: Side,
    layout: &'a CacheLayout,
    /// By pool and by group, over all admitted requests.
    pools: BTreeMap<PoolId, IdSet>,
    groups: BTreeMap<GroupId, IdSet>,
    bytes: SharedBytes<'a>,
}

/// Admits the requests of a batch one after another. A request is admitted as a
/// whole or leaves no trace.
pub(crate) struct Admission<'a> {
    source: Ledger<'a>,
    destination: Ledger<'a>,
    leases: Option<&'a Leases>,
}

impl<'a> Admission<'a> {
    pub(crate) fn new(
        source: &'a CacheLayout,
        destination: &'a CacheLayout,
        leases: Option<&'a Leases>,
    ) -> Self {
        let mut admission = Self {
            source: Ledger::new(Side::Source, source),
            destination: Ledger::new(Side::Destination, destination),
            leases,
        };
        for (group, id) in leases.into_iter().flat_map(Leases::blocks) {
            if let Some(group) = destination.group(group) {
                // Leased blocks were proved disjoint when they were admitted.
                let _ = admission.destination.bytes.claim(group, id);
            }
        }
        admission
    }

    /// Admits a request; its destination blocks are appended to `claims`.
    pub(crate) fn admit(
        &mut self,
        request: &Request,
        claims: &mut Vec<Claim>,
    ) -> Result<(), RequestError> {
        let before = claims.len();
        let mut used = Vec::new();
        let mut result = self
            .destination
            .admit(request, Tables::destination, self.leases, claims);
        if result.is_ok() {
            result = self.source.admit(request, Tables::source, None, &mut used);
        }
        if result.is_err() {
            self.destination
                .release(claims.get(before..).unwrap_or_default());
            claims.truncate(before);
        }
        result
    }
}

impl<'a> Ledger<'a> {
    fn new(side: Side, layout: &'a CacheLayout) -> Self {
        Self {
            side,
            layout,
            pools: BTreeMap::new(),
            groups: BTreeMap::new(),
            bytes: SharedBytes::new(layout),
        }
    }

    fn admit(
        &mut self,
        request: &Request,
        slots: fn(&Tables) -> &Slots,
        leases: Option<&Leases>,
        claims: &mut Vec<Claim>,
    ) -> Result<(), RequestError> {
        let before = claims.len();
        let mut own: BTreeMap<PoolId, IdSet> = BTreeMap::new();
        let mut shared = Vec::new();
        let mut failure = None;
        'tables: for tables in request.tables() {
            let Some(group) = self.layout.group(tables.group()) else {
                continue;
            };
            let own = own.entry(group.pool()).or_default();
            for id in slots(tables).entries().iter().copied().filter_map(live) {
                let claim = Claim {
                    group: group.id(),
                    pool: group.pool(),
                    id,
                };
                if let Some(error) = self.conflict(group, id, own, leases) {
                    failure = Some(error);
                    break 'tables;
                }
                if self.side == Side::Source && self.holds(group.id(), id) {
                    // Already read by an earlier request: nothing to take back.
                    continue;
                }
                if let Err((other_group, other)) = self.bytes.claim(group, id) {
                    let (side, group) = (self.side, group.id());
                    failure = Some(RequestError::SharedBytes {
                        side,
                        id,
                        group,
                        other,
                        other_group,
                    });
                    break 'tables;
                }
                shared.push(claim);
            }
        }
        if let Some(error) = failure {
            for claim in shared {
                self.bytes.release(claim.group, claim.id);
            }
            return Err(error);
        }
        claims.append(&mut shared);
        for claim in claims.get(before..).unwrap_or_default() {
            self.pools.entry(claim.pool).or_default().insert(claim.id);
            self.groups.entry(claim.group).or_default().insert(claim.id);
        }
        Ok(())
    }

    fn holds(&self, group: GroupId, id: u32) -> bool {
        self.groups.get(&group).is_some_and(|ids| ids.contains(id))
    }

    /// Why the id can't be used by the group, and by whom it is.
    fn conflict(
        &self,
        group: &Group,
        id: u32,
        own: &mut IdSet,
        leases: Option<&Leases>,
    ) -> Option<RequestError> {
        let owner = if !own.insert(id) {
            Owner::SameRequest
        } else if leases.is_some_and(|leases| leases.holds(group.pool(), id)) {
            Owner::Lease
        } else if self
            .pools
            .get(&group.pool())
            .is_some_and(|ids| ids.contains(id))
        {
            Owner::EarlierRequest
        } else {
            return None;
        };
        let group_id = group.id();
        match self.side {
            Side::Destination => Some(RequestError::DestinationTaken {
                id,
                group: group_id,
                owner,
            }),
            // Requests may read the same block, as long as it is of one group.
            Side::Source if owner == Owner::EarlierRequest && self.holds(group_id, id) => None,
            Side::Source => Some(RequestError::SourceTaken {
                id,
                group: group_id,
                owner,
            }),
        }
    }

    fn release(&mut self, claims: &[Claim]) {
        for claim in claims {
            self.bytes.release(claim.group, claim.id);
            if let Some(ids) = self.pools.get_mut(&claim.pool) {
                ids.remove(claim.id);
            }
            if let Some(ids) = self.groups.get_mut(&claim.group) {
                ids.remove(claim.id);
            }
        }
    }
}
