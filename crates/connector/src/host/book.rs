//! Live requests by both their names.

use alloc::vec::Vec;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::error::HostError;
use super::limits::HostLimits;
use crate::hash::{Hash, seeded};
use crate::id::{RequestId, TransferId};

/// Live requests, by both their names, and the orders about them.
#[derive(Debug)]
pub(super) struct Book<R, O> {
    limits: HostLimits,
    records: IndexMap<RequestId, (TransferId, R), Hash>,
    transfers: IndexMap<TransferId, RequestId, Hash>,
    orders: Vec<O>,
}

impl<R, O> Book<R, O> {
    pub(super) fn new(limits: HostLimits, hash_seed: u64) -> Self {
        let hash = seeded(hash_seed);
        Self {
            limits,
            records: IndexMap::with_hasher(hash.clone()),
            transfers: IndexMap::with_hasher(hash),
            orders: Vec::new(),
        }
    }

    /// The record of a live request that is offered again; none for a new one.
    pub(super) fn known(
        &self,
        request: &RequestId,
        transfer: &TransferId,
    ) -> Result<Option<&R>, HostError> {
        match self.records.get(request) {
            None => Ok(None),
            Some((known, record)) if known == transfer => Ok(Some(record)),
            Some((known, _)) => Err(HostError::RequestTaken {
                request: request.clone(),
                transfer: known.clone(),
                asked: transfer.clone(),
            }),
        }
    }

    /// Takes a request in that is not [`Self::known`].
    pub(super) fn admit(
        &mut self,
        request: RequestId,
        transfer: TransferId,
        record: R,
    ) -> Result<(), HostError> {
        let (live, limit) = (self.records.len(), self.limits.live);
        if live >= limit {
            return Err(HostError::Full { live, limit });
        }
        let (orders, limit) = (self.orders.len(), self.limits.orders);
        if orders >= limit {
            return Err(HostError::NoStep { orders, limit });
        }
        match self.transfers.entry(transfer.clone()) {
            Entry::Occupied(taken) => {
                return Err(HostError::TransferTaken {
                    transfer,
                    owner: taken.get().clone(),
                });
            }
            Entry::Vacant(free) => free.insert(request.clone()),
        };
        self.records.insert(request, (transfer, record));
        Ok(())
    }

    pub(super) fn get_mut(
        &mut self,
        request: &RequestId,
    ) -> Result<(&TransferId, &mut R), HostError> {
        match self.records.get_mut(request) {
            Some((transfer, record)) => Ok((transfer, record)),
            None => Err(HostError::Unknown {
                request: request.clone(),
            }),
        }
    }

    pub(super) fn get(&self, request: &RequestId) -> Option<&R> {
        self.records.get(request).map(|(_, record)| record)
    }

    /// A live request that both names stand for.
    pub(super) fn of_rank(&mut self, request: &RequestId, transfer: &TransferId) -> Option<&mut R> {
        let (known, record) = self.records.get_mut(request)?;
        (known == transfer).then_some(record)
    }

    pub(super) fn remove(&mut self, request: &RequestId) -> Option<(TransferId, R)> {
        let (transfer, record) = self.records.swap_remove(request)?;
        self.transfers.swap_remove(&transfer);
        Some((transfer, record))
    }

    pub(super) fn order(&mut self, order: O) {
        self.orders.push(order);
    }

    pub(super) fn step(&mut self) -> Vec<O> {
        core::mem::take(&mut self.orders)
    }

    pub(super) fn live(&self) -> usize {
        self.records.len()
    }
}
