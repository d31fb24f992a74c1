//! Transfers that are over, for a while.

use alloc::collections::VecDeque;

use indexmap::IndexMap;

use crate::hash::Hash;
use crate::id::TransferId;
use crate::time::Time;

/// A bounded memory of ends: a late pull need not wait for what will never come.
#[derive(Debug)]
pub(super) struct Ended {
    until: IndexMap<TransferId, Time, Hash>,
    order: VecDeque<(Time, TransferId)>,
}

impl Ended {
    pub(super) fn new(hash: Hash) -> Self {
        Self {
            until: IndexMap::with_hasher(hash),
            order: VecDeque::new(),
        }
    }

    /// Remembers an end until a time; the oldest makes room.
    pub(super) fn remember(&mut self, transfer: TransferId, until: Time, most: usize) {
        if most == 0 {
            return;
        }
        while self.order.len() >= most {
            self.pop();
        }
        self.until.insert(transfer.clone(), until);
        self.order.push_back((until, transfer));
    }

    pub(super) fn contains(&self, transfer: &TransferId) -> bool {
        self.until.contains_key(transfer)
    }

    /// The name is used again.
    pub(super) fn forget(&mut self, transfer: &TransferId) {
        self.until.swap_remove(transfer);
    }

    /// Forgets what is old enough; when the next one is.
    pub(super) fn expire(&mut self, now: Time) -> Option<Time> {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.pop();
        }
        self.order.front().map(|(until, _)| *until)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    fn pop(&mut self) {
        if let Some((until, transfer)) = self.order.pop_front()
            && self.until.get(&transfer) == Some(&until)
        {
            self.until.swap_remove(&transfer);
        }
    }
}
