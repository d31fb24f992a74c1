//! Transfers on their way.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use mooncake_pd_plan::{Options, Plan, RawRequest, RawSlots, RawTables, Request, RequestError};

use super::action::{Action, Path, Rank};
use super::defect::Defect;
use super::memory::{DECODE_BLOCKS, Memory};
use super::world::{Run, World};
use crate::{AttemptId, Generation, Peer, PrefillEvent, PullNumber, Quiescence, TransferFault};

/// A transfer that the engine runs.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) attempt: AttemptId,
    pub(super) prefill: Rank,
    pub(super) path: Path,
    pub(super) epoch: u64,
    pub(super) source: Memory,
    pub(super) destination: Memory,
    /// (source, destination, length) of what is still to be moved, last first.
    pub(super) copies: Vec<(usize, usize, usize)>,
    pub(super) source_blocks: Vec<u32>,
    pub(super) destination_blocks: Vec<u32>,
    /// Microseconds between two copies.
    pub(super) pace: u64,
    /// It will report an error, after some of its copies.
    pub(super) fails: bool,
    pub(super) draining: bool,
    /// Its end was reported, or there is nobody to report it to.
    pub(super) reported: bool,
}

fn plan(raw: &RawRequest) -> Result<Plan, Arc<RequestError>> {
    let pairing = &World::model().pairing;
    let request = Request::new(raw, pairing).map_err(Arc::new)?;
    let batch = pairing
        .plan(&[request], &Options::default())
        .expect("a plan that its own check accepts");
    match batch.refused.into_iter().next() {
        Some(refused) => Err(Arc::new(refused.error)),
        None => Ok(batch.plan),
    }
}

impl World<'_> {
    #[allow(clippy::too_many_arguments, reason = "what a transfer is made of")]
    pub(super) fn begin_flight(
        &mut self,
        rank: Rank,
        decode: Rank,
        decode_generation: Generation,
        to: &Peer,
        number: PullNumber,
        attempt: AttemptId,
        raw: &RawRequest,
    ) -> Run {
        self.report.transfers += 1;
        let plan = match plan(raw) {
            Ok(plan) => plan,
            Err(error) => {
                if self.calm {
                    return self.violation(format!("refused without a fault: {error}"));
                }
                let event = PrefillEvent::Refused { attempt, error };
                return self.prefill_event(rank, event).map(drop);
            }
        };
        let at = |offset: u64| usize::try_from(offset).expect("a small offset");
        let mut copies: Vec<(usize, usize, usize)> = plan
            .copies()
            .map(|copy| {
                (
                    at(copy.source_offset().get()),
                    at(copy.destination_offset().get()),
                    at(copy.len().get()),
                )
            })
            .collect();
        if self.defect == Some(Defect::LastCopyLost) {
            copies.pop();
        }
        if self.choices.chance(50) {
            copies.reverse();
        }
        let engine = &self.prefills[rank.engine];
        let path = Path {
            decode,
            decode_generation: decode_generation.get(),
            prefill: rank.engine,
            prefill_generation: engine.generation,
        };
        let sender = if self.ranks.1 == 1 { rank.rank } else { 0 };
        let there = self.decodes[decode.engine].generation == decode_generation.get();
        let destination = if there {
            self.decodes[decode.engine].ranks[decode.rank].planes[sender].clone()
        } else {
            // Its memory went with it.
            Memory::new(DECODE_BLOCKS, 0)
        };
        let ids = |side: fn(&RawTables) -> &RawSlots| {
            let entries = raw
                .groups
                .iter()
                .flat_map(move |tables| side(tables).entries.clone());
            let ids = entries.flatten().filter(|id| *id > 0);
            ids.map(|id| u32::try_from(id).expect("a small id"))
                .collect()
        };
        let source = engine.ranks[rank.rank].memory.clone();
        let slow = self.fault(8);
        let pace = if slow {
            self.choices.between(5_000, 30_000)
        } else {
            self.choices.between(10, 400)
        };
        let fails = self.fault(8);
        if fails {
            let keep = self
                .choices
                .below(u32::try_from(copies.len()).unwrap_or(0) + 1);
            copies.truncate(keep as usize);
        }
        let flight = Flight {
            attempt,
            prefill: rank,
            path,
            epoch: self
                .keys
                .get(&(rank, to.clone(), number))
                .copied()
                .unwrap_or(0),
            source,
            destination,
            copies,
            source_blocks: ids(|tables| &tables.source),
            destination_blocks: ids(|tables| &tables.destination),
            pace: u64::from(pace),
            fails,
            draining: false,
            reported: false,
        };
        let number = self.next_flight;
        self.next_flight += 1;
        self.flights.insert(number, flight);
        self.after(u64::from(pace), Action::Flight(number));
        Ok(())
    }

    /// Refuses the use of a block that a transfer may still touch.
    pub(super) fn check_untouched(
        &self,
        blocks: &[u32],
        prefill: Option<(usize, u64)>,
        decode: Option<(usize, u64)>,
    ) -> Run {
        for flight in self.flights.values() {
            if flight.epoch < self.epoch(flight.path) {
                continue;
            }
            let reads = prefill == Some((flight.path.prefill, flight.path.prefill_generation));
            let writes = decode == Some((flight.path.decode.engine, flight.path.decode_generation));
            let touched = |blocks: &[u32], of: &[u32]| {
                blocks.iter().find(|block| of.contains(block)).copied()
            };
            let read = touched(blocks, &flight.source_blocks).filter(|_| reads);
            let written = touched(blocks, &flight.destination_blocks).filter(|_| writes);
            if let Some(block) = read.or(written) {
                return self.violation(format!("block {block} is used again under {flight:?}"));
            }
        }
        Ok(())
    }

    /// One step of a transfer.
    pub(super) fn fly(&mut self, number: u64) -> Run {
        let cut = {
            let Some(flight) = self.flights.get(&number) else {
                return Ok(());
            };
            flight.epoch < self.epoch(flight.path)
        };
        let Some(flight) = self.flights.get_mut(&number) else {
            return Ok(());
        };
        let stops = cut || flight.draining;
        if !stops && let Some((source, destination, len)) = flight.copies.pop() {
            flight
                .source
                .copy(source, &flight.destination, destination, len);
        }
        if !stops && !flight.copies.is_empty() {
            let pace = flight.pace;
            self.after(pace, Action::Flight(number));
            return Ok(());
        }
        let Some(flight) = self.flights.remove(&number) else {
            return Ok(());
        };
        if flight.reported {
            return Ok(());
        }
        let all = flight.copies.is_empty() && !flight.fails && !cut;
        self.report_settled(
            flight.prefill,
            flight.path.prefill_generation,
            flight.attempt,
            all,
        )
    }

    pub(super) fn report_settled(
        &mut self,
        rank: Rank,
        generation: u64,
        attempt: AttemptId,
        all: bool,
    ) -> Run {
        let engine = &self.prefills[rank.engine];
        if !engine.up || engine.generation != generation {
            return Ok(());
        }
        let repeat = self.fault(2);
        for _ in 0..if repeat { 2 } else { 1 } {
            let result = if all {
                Ok(())
            } else {
                Err(TransferFault { code: -1 })
            };
            let proof = Quiescence::witnessed();
            self.prefill_event(
                rank,
                PrefillEvent::Settled {
                    attempt,
                    result,
                    proof,
                },
            )?;
        }
        Ok(())
    }
}
