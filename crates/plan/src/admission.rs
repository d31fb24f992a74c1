//! Which requests of a batch may own the blocks they list.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mooncake_pd_layout::{CacheLayout, GroupId, PoolId};

use crate::id_set::IdSet;
use crate::leases::Leases;
use crate::pairing::{Pairing, Shape};
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
    /// Over all admitted requests.
    pools: BTreeMap<PoolId, IdSet>,
    /// The same by group, at the source only.
    groups: BTreeMap<GroupId, IdSet>,
    bytes: SharedBytes<'a>,
}

/// Admits the requests of a batch one after another. A request is admitted as a
/// whole or leaves no trace.
pub(crate) struct Admission<'a> {
    shape: &'a Arc<Shape>,
    source: Ledger<'a>,
    destination: Ledger<'a>,
    leases: Option<&'a Leases>,
}

impl<'a> Admission<'a> {
    pub(crate) fn new(pairing: &'a Pairing<'a>, leases: Option<&'a Leases>) -> Self {
        let destination = pairing.destination();
        let mut admission = Self {
            shape: pairing.shape(),
            source: Ledger::new(Side::Source, pairing.source()),
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
        if !request.fits(self.shape) {
            return Err(RequestError::Foreign);
        }
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
        let mut added: Vec<Claim> = Vec::new();
        let mut failure = None;
        'tables: for tables in request.tables() {
            let Some(group) = self.layout.group(tables.group()) else {
                continue;
            };
            let own = own.entry(group.pool()).or_default();
            let taken = self.pools.get(&group.pool());
            let read = self.groups.get(&group.id());
            let is_shared = self.bytes.concerns(group);
            for id in slots(tables).entries().iter().copied().filter_map(live) {
                let owner = if !own.insert(id) {
                    Some(Owner::SameRequest)
                } else if leases.is_some_and(|leases| leases.holds(group.pool(), id)) {
                    Some(Owner::Lease)
                } else if taken.is_some_and(|ids| ids.contains(id)) {
                    // Requests may read the same block, as long as it is of one
                    // group.
                    if read.is_some_and(|ids| ids.contains(id)) {
                        continue;
                    }
                    Some(Owner::EarlierRequest)
                } else {
                    None
                };
                if let Some(owner) = owner {
                    failure = Some(self.taken(id, group.id(), owner));
                    break 'tables;
                }
                if is_shared && let Err((other_group, other)) = self.bytes.claim(group, id) {
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
                added.push(Claim {
                    group: group.id(),
                    pool: group.pool(),
                    id,
                });
            }
        }
        if let Some(error) = failure {
            for claim in added {
                self.bytes.release(claim.group, claim.id);
            }
            return Err(error);
        }
        claims.append(&mut added);
        for (pool, ids) in &own {
            self.pools.entry(*pool).or_default().insert_all(ids);
        }
        if self.side == Side::Source {
            let new = claims.get(before..).unwrap_or_default();
            for of_group in new.chunk_by(|a, b| a.group == b.group) {
                let Some(claim) = of_group.first() else {
                    continue;
                };
                let group = self.groups.entry(claim.group).or_default();
                let mut others = self
                    .layout
                    .groups()
                    .iter()
                    .filter(|g| g.id() != claim.group);
                if let Some(ids) = own.get(&claim.pool)
                    && others.all(|other| other.pool() != claim.pool)
                {
                    group.insert_all(ids);
                } else {
                    for claim in of_group {
                        group.insert(claim.id);
                    }
                }
            }
        }
        Ok(())
    }

    fn taken(&self, id: u32, group: GroupId, owner: Owner) -> RequestError {
        match self.side {
            Side::Destination => RequestError::DestinationTaken { id, group, owner },
            Side::Source => RequestError::SourceTaken { id, group, owner },
        }
    }

    fn release(&mut self, claims: &[Claim]) {
        for claim in claims {
            self.bytes.release(claim.group, claim.id);
            if let Some(ids) = self.pools.get_mut(&claim.pool) {
                ids.remove(claim.id);
            }
        }
    }
}
