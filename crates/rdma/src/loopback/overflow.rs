//! A queue that is given more than it takes.

use std::sync::Arc;

use crate::loopback::fabric::Endpoint;
use crate::loopback::faults::DescriptorFault;
use crate::loopback::flight::Flight;

/// A queue's room, and what becomes of the peer when it overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow {
    /// Descriptors in flight to one peer.
    pub(super) capacity: u64,
    /// The poll on which what was submitted afterwards completes after all.
    pub(super) completes_at: Option<u64>,
}

/// What an overflow does to one submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spill {
    /// Descriptors of it that find room.
    room: u64,
    /// What happens to those.
    stall: Option<DescriptorFault>,
}

impl Spill {
    /// What happens to its `n`-th descriptor, 0...
    pub(super) fn fault(self, n: u64) -> Option<DescriptorFault> {
        if n < self.room {
            self.stall
        } else {
            Some(DescriptorFault::Fail { landed: 0 })
        }
    }
}

/// Peers whose queue has overflowed.
#[derive(Debug, Default)]
pub(super) struct Stalled {
    peers: Vec<Stall>,
}

#[derive(Debug)]
struct Stall {
    peer: Arc<Endpoint>,
    /// The first submission that it holds up; its end is the stall's.
    first: Option<Arc<Flight>>,
}

impl Stalled {
    /// What becomes of `adding` descriptors more to a peer that has
    /// `outstanding` in flight.
    pub(super) fn spill(
        &mut self,
        overflow: Overflow,
        peer: &Arc<Endpoint>,
        outstanding: u64,
        adding: u64,
    ) -> Spill {
        self.peers
            .retain(|stall| (stall.first.as_ref()).is_none_or(|first| first.unfinished() > 0));
        let stalls = self.of(peer).is_some();
        let room = overflow.capacity.saturating_sub(outstanding);
        if room < adding && !stalls {
            let peer = Arc::clone(peer);
            self.peers.push(Stall { peer, first: None });
        }
        let completes_at = overflow.completes_at;
        Spill {
            room,
            stall: stalls.then_some(DescriptorFault::TimesOut { completes_at }),
        }
    }

    /// Remembers the first submission after an overflow.
    pub(super) fn holds_up(&mut self, peer: &Arc<Endpoint>, spill: Spill, flight: &Arc<Flight>) {
        if let Some(stall) = self.of(peer).filter(|_| spill.stall.is_some()) {
            stall.first.get_or_insert_with(|| Arc::clone(flight));
        }
    }

    fn of(&mut self, peer: &Arc<Endpoint>) -> Option<&mut Stall> {
        let mut peers = self.peers.iter_mut();
        peers.find(|stall| Arc::ptr_eq(&stall.peer, peer))
    }
}
