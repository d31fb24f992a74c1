//! Which messages count, and which transfer they are about.

use super::record::Reply;
use super::serve::refusal;
use super::{KnownPeer, Prefill, Timer};
use crate::failure::{Failure, Refusal};
use crate::id::TransferId;
use crate::peer::{Generation, Peer, PullNumber};
use crate::window::{Admission, Window};

impl Prefill {
    /// Looks a message's sender up. `None`: it was dealt with.
    pub(super) fn admit(
        &mut self,
        reply: &Reply,
        to: Generation,
        floor: PullNumber,
    ) -> Option<Admission> {
        if to != self.me.generation {
            // Whether an earlier incarnation of ours still writes is not ours to say.
            let actual = self.me.generation;
            self.reply_unquiet(reply, Refusal::Generation { asked: to, actual });
            return None;
        }
        let Peer { engine, generation } = &reply.from;
        let now = self.timers.now();
        let known = self.peers.get(engine).map(|peer| peer.window.generation);
        match known {
            Some(known) if *generation < known => return Some(Admission::Superseded),
            Some(known) if *generation > known => self.supersede(&reply.from),
            Some(_) => {}
            None if self.peers.len() >= self.limits.peers => return Some(Admission::Full),
            None => {
                let window = Window::new(*generation, self.hash.clone());
                self.peers
                    .insert(engine.clone(), KnownPeer { window, last: now });
                let at = now.after(self.limits.peer_idle);
                self.timers.set(at, Timer::Peer(engine.clone()));
            }
        }
        let peer = self.peers.get_mut(engine)?;
        peer.last = now;
        Some(peer.window.admit(reply.number, floor))
    }

    /// Whether its sender has as many pulls under way as it may.
    pub(super) fn is_busy(&self, reply: &Reply) -> bool {
        let peer = self.peers.get(&reply.from.engine);
        peer.is_some_and(|peer| peer.window.len() >= self.limits.pulls_per_peer)
    }

    /// A peer was started again: nobody waits for what its predecessor asked for.
    fn supersede(&mut self, new: &Peer) {
        let Some(peer) = self.peers.get_mut(&new.engine) else {
            return;
        };
        let window = Window::new(new.generation, self.hash.clone());
        let old = core::mem::replace(&mut peer.window, window);
        let from = Peer {
            engine: new.engine.clone(),
            generation: old.generation,
        };
        let failure = Failure::PeerLost {
            generation: old.generation,
        };
        for (number, transfer) in old.live() {
            let matches = |reply: &Reply| reply.number == number && reply.from == from;
            let Some(record) = self.records.get(transfer) else {
                continue;
            };
            let waiting = record
                .waiting
                .iter()
                .find(|waiting| matches(&waiting.reply));
            if let Some(reply) = waiting.map(|waiting| waiting.reply.clone()) {
                self.drop_waiting(transfer, &reply, failure.clone());
                self.end_if_done(transfer);
                continue;
            }
            let flights = record.flights.clone();
            for attempt in flights {
                let flight = self.flights.get(&attempt);
                if flight.is_some_and(|flight| matches(&flight.reply)) {
                    self.drain(attempt, Some(failure.clone()));
                }
            }
        }
    }

    /// Finds or makes the record that a consumer asks for, and notes it there.
    pub(super) fn place(&mut self, transfer: &TransferId, reply: &Reply) -> Result<(), Refusal> {
        if !self.records.contains_key(transfer) {
            if self.ended.contains(transfer) {
                return Err(Refusal::Ended);
            }
            if self.unknown >= self.limits.unknown {
                return Err(Refusal::Busy);
            }
            let at = self.timers.now().after(self.limits.unknown_wait);
            let timer = self.timers.set(at, Timer::Record(transfer.clone()));
            let record = self.records.entry(transfer.clone()).or_default();
            record.timer = Some(timer);
        }
        let Some(record) = self.records.get_mut(transfer) else {
            return Err(Refusal::Unknown);
        };
        if let Some(cause) = &record.settling {
            return Err(refusal(cause));
        }
        if record.owner.is_none() && self.unknown >= self.limits.unknown {
            return Err(Refusal::Busy);
        }
        let asked = reply.consumer;
        record
            .claim(asked)
            .map_err(|reason| Refusal::Consumer { asked, reason })?;
        if record.owner.is_none() {
            record.unnamed = record.unnamed.saturating_add(1);
            self.unknown = self.unknown.saturating_add(1);
        }
        Ok(())
    }
}
