//! How much is outstanding to each peer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::SubmitError;

/// Counts descriptors in flight to each peer, over all threads.
#[derive(Debug)]
pub(crate) struct Window {
    limit: u32,
    outstanding: Mutex<HashMap<String, u64>>,
}

/// Room for the descriptors of one submission; gives it back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    window: Arc<Window>,
    peer: String,
    count: u64,
}

impl Window {
    /// At most `limit` descriptors in flight to a peer.
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self {
            limit,
            outstanding: Mutex::default(),
        })
    }

    /// Room for `count` descriptors more, or how little there is.
    pub(crate) fn take(self: &Arc<Self>, peer: &str, count: usize) -> Result<Permit, SubmitError> {
        let adding = u64::try_from(count).unwrap_or(u64::MAX);
        let mut all = self
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let outstanding = all.get(peer).copied().unwrap_or(0);
        let sum = outstanding.saturating_add(adding);
        if sum > u64::from(self.limit) {
            return Err(SubmitError::QueueFull {
                peer: peer.to_owned(),
                outstanding,
                adding,
                limit: self.limit,
            });
        }
        all.insert(peer.to_owned(), sum);
        Ok(Permit {
            window: Arc::clone(self),
            peer: peer.to_owned(),
            count: adding,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut all = self
            .window
            .outstanding
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = all
            .get(&self.peer)
            .map_or(0, |count| count.saturating_sub(self.count));
        if left == 0 {
            all.remove(&self.peer);
        } else if let Some(count) = all.get_mut(&self.peer) {
            *count = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_as_many_as_the_limit_over_all_and_another_has_its_own() {
        let window = Window::new(10);
        let first = window.take("a", 6).unwrap();
        let second = window.take("a", 4).unwrap();
        assert_eq!(
            window.take("a", 1).unwrap_err(),
            SubmitError::QueueFull {
                peer: "a".to_owned(),
                outstanding: 10,
                adding: 1,
                limit: 10
            }
        );
        let _other = window.take("b", 10).unwrap();
        drop(first);
        let third = window.take("a", 6).unwrap();
        assert!(window.take("a", 1).is_err());
        drop((second, third));
        assert!(window.take("a", 10).is_ok());
        assert!(window.take("a", 11).is_err());
    }
}
