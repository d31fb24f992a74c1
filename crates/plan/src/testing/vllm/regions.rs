use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{PrepareError, Region};

/// P's and D's regions, paired: what a transfer loops over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regions {
    pairs: Vec<(Region, Region)>,
}

impl Regions {
    /// Regions that vLLM has prepared already: parallel lists.
    pub fn prepared(local: Vec<Region>, remote: Vec<Region>) -> Result<Self, PrepareError> {
        if local.len() != remote.len() {
            return Err(PrepareError::Count {
                local: local.len(),
                remote: remote.len(),
            });
        }
        Self::checked(local.into_iter().zip(remote).collect())
    }

    /// Prepares the regions that both sides registered.
    ///
    /// Pairs by layer name and occurrence; layers only D has are left out. Neighbouring regions of
    /// the same groups in packed rows become one region, the whole row, when the first of them
    /// starts its row on both sides.
    pub fn registered(local: &[Region], remote: &[Region]) -> Result<Self, PrepareError> {
        let mut named: BTreeMap<&str, Vec<&Region>> = BTreeMap::new();
        for region in remote {
            named.entry(region.layer_name()).or_default().push(region);
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pairs = Vec::with_capacity(local.len());
        for region in local {
            let next = seen.entry(region.layer_name()).or_insert(0);
            let occurrence = *next;
            *next = next.saturating_add(1);
            let peer = named
                .get(region.layer_name())
                .and_then(|peers| peers.get(occurrence))
                .ok_or_else(|| PrepareError::Missing {
                    layer: region.layer_name().into(),
                    occurrence,
                })?;
            pairs.push((region.clone(), (*peer).clone()));
        }
        Self::checked(promoted(pairs))
    }

    /// P's region and D's, in vLLM's order.
    pub fn pairs(&self) -> &[(Region, Region)] {
        &self.pairs
    }

    fn checked(pairs: Vec<(Region, Region)>) -> Result<Self, PrepareError> {
        for (local, remote) in &pairs {
            let same_layer = local.layer_name() == remote.layer_name()
                && local.layer_index() == remote.layer_index();
            if !same_layer || !local.same_owner(remote) {
                return Err(PrepareError::Identity {
                    local: local.layer_name().into(),
                    local_index: local.layer_index(),
                    remote: remote.layer_name().into(),
                    remote_index: remote.layer_index(),
                });
            }
            if local.page() != remote.page() {
                return Err(PrepareError::Page {
                    layer: local.layer_name().into(),
                    local: local.page(),
                    remote: remote.page(),
                });
            }
        }
        Ok(Self { pairs })
    }
}

/// Replaces each run of packed regions that starts its row on both sides by the whole row.
fn promoted(pairs: Vec<(Region, Region)>) -> Vec<(Region, Region)> {
    let mut kept: Vec<(Region, Region)> = Vec::with_capacity(pairs.len());
    let mut row: Option<Region> = None;
    for (local, remote) in pairs {
        let packed = local.row_offset().zip(remote.row_offset());
        if packed.is_some() && row.as_ref().is_some_and(|row| row.same_owner(&local)) {
            continue;
        }
        if packed == Some((0, 0)) {
            kept.push((local.whole_row(), remote.whole_row()));
            row = Some(local);
        } else {
            kept.push((local, remote));
            row = None;
        }
    }
    kept
}
