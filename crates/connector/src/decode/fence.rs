//! Fencing off incarnations of prefill engines.

use alloc::vec::Vec;

use super::event::{DecodeCommand, FenceId, Source};
use super::source::Stage;
use super::{Decode, Timer};
use crate::failure::Failure;
use crate::id::TransferId;
use crate::lease::Quiescence;
use crate::peer::Generation;
use crate::timer::TimerId;

/// A fence that is not up yet.
#[derive(Debug)]
pub(super) struct Fence {
    source: Source,
    generation: Generation,
    timer: TimerId,
    /// Pulls that are not over otherwise.
    open: usize,
}

impl Decode {
    /// Has an incarnation fenced off. What it was asked for is over once it is.
    pub(super) fn fence(&mut self, source: &Source, generation: Generation) {
        self.mistrust(source, generation);
        let Some(known) = self.sources.get(source) else {
            return;
        };
        if known.fencing.contains(&generation) {
            return;
        }
        // What writes nothing needs no fence.
        for transfer in self.open_pulls(source, generation) {
            self.end_release(&transfer);
        }
        let asked = self.open_pulls(source, generation);
        let records = asked
            .iter()
            .filter_map(|transfer| self.records.get(transfer));
        let open = records.flat_map(|record| &record.open);
        let open = open.filter(|pull| pull.generation == generation).count();
        if open == 0 {
            return;
        }
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        known.fencing.push(generation);
        let fence = FenceId::new(self.next_fence);
        self.next_fence = self.next_fence.wrapping_add(1);
        let at = self.timers.now().after(self.limits.fence_retry);
        let timer = self.timers.set(at, Timer::Fence(fence));
        let source = source.clone();
        self.fences.insert(
            fence,
            Fence {
                source,
                generation,
                timer,
                open,
            },
        );
        self.send_fence(fence);
    }

    /// One pull less to wait for; the last one takes its fence away.
    pub(super) fn ease_fence(&mut self, source: &Source, generation: Generation) {
        let found = self
            .fences
            .iter_mut()
            .find(|(_, fence)| fence.generation == generation && fence.source == *source);
        let Some((id, fence)) = found else {
            return;
        };
        fence.open = fence.open.saturating_sub(1);
        if fence.open > 0 {
            return;
        }
        let (id, timer) = (*id, fence.timer);
        self.fences.swap_remove(&id);
        self.timers.cancel(timer);
        if let Some(known) = self.sources.get_mut(source) {
            known.fencing.retain(|other| *other != generation);
        }
        self.look_again(source);
    }

    pub(super) fn fence_due(&mut self, fence: FenceId) {
        let at = self.timers.now().after(self.limits.fence_retry);
        if let Some(waits) = self.fences.get_mut(&fence) {
            waits.timer = self.timers.set(at, Timer::Fence(fence));
            self.send_fence(fence);
        }
    }

    fn send_fence(&mut self, fence: FenceId) {
        let Some(waits) = self.fences.get(&fence) else {
            return;
        };
        self.metrics.fences = self.metrics.fences.saturating_add(1);
        self.commands.push_back(DecodeCommand::Fence {
            fence,
            source: waits.source.clone(),
            generation: waits.generation,
        });
    }

    /// A fence is up. One that nobody waits for says nothing of what is open now.
    pub(super) fn fenced(&mut self, fence: FenceId, proof: &Quiescence) {
        let Some(waits) = self.fences.swap_remove(&fence) else {
            return;
        };
        self.timers.cancel(waits.timer);
        let Fence {
            source, generation, ..
        } = waits;
        if let Some(known) = self.sources.get_mut(&source) {
            known.fencing.retain(|other| *other != generation);
        }
        self.mistrust(&source, generation);
        for transfer in self.open_pulls(&source, generation) {
            let open = self.records.get_mut(&transfer).map(|record| {
                // Whether it was taken or not: only who was told otherwise asks again.
                if !record.follow {
                    let lost = Failure::PeerLost { generation };
                    record.failure.get_or_insert(lost);
                }
                let theirs = record.open.iter();
                let theirs = theirs.filter(|pull| pull.generation == generation);
                theirs.map(|pull| pull.number).collect::<Vec<_>>()
            });
            for number in open.unwrap_or_default() {
                self.close(number, proof.of_each());
            }
            self.go_on(&transfer);
        }
        self.look_again(&source);
    }

    /// Looks up at once what waited for a fence; what nobody waits for is forgotten
    /// in time.
    fn look_again(&mut self, source: &Source) {
        let Some(known) = self.sources.get_mut(source) else {
            return;
        };
        let waited_for = !known.waiting.is_empty();
        match known.stage {
            // Its own timer is set.
            Stage::Asked { .. } => return,
            Stage::Pausing { attempts } if attempts > 0 => return,
            Stage::Pausing { .. } => known.stage = Stage::Unknown,
            Stage::Unknown | Stage::Known(_) => {}
        }
        if waited_for {
            self.look_up(source, 0);
        } else {
            let at = self.timers.now().after(self.limits.source_idle);
            self.set_source_timer(source, at);
        }
    }

    /// Records with a pull that this incarnation may still serve.
    fn open_pulls(&self, source: &Source, generation: Generation) -> Vec<TransferId> {
        let numbers = self.sources.get(source).map(|known| known.open.iter());
        let mut transfers: Vec<TransferId> = Vec::new();
        for number in numbers.into_iter().flatten() {
            let Some(transfer) = self.pulls.get(number) else {
                continue;
            };
            let record = self.records.get(transfer);
            let asked = record.is_some_and(|record| {
                let mut open = record.open.iter();
                open.any(|pull| pull.number == *number && pull.generation == generation)
            });
            if asked && transfers.last() != Some(transfer) {
                transfers.push(transfer.clone());
            }
        }
        transfers
    }
}
