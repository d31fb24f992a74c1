//! A decode engine's scheduler and its host.

use std::format;
use std::string::ToString;

use super::action::Rank;
use super::decode::Stage;
use super::defect::Defect;
use super::world::{Run, World};
use crate::{Blocks, DecodeEnd, DecodeFinish, DecodeOrder, RequestId, TokenCount};

impl World<'_> {
    /// The engine is done with a request.
    pub(super) fn decode_over(&mut self, index: usize, request: &str, finish: DecodeFinish) -> Run {
        let name = RequestId::new(request).expect("a name");
        let engine = &mut self.decodes[index];
        let loading = engine.jobs.get(request).map(|job| job.stage) == Some(Stage::Loading);
        match engine.host.finished(&name, finish) {
            Ok(Blocks::Free) => self.decode_free(index, request),
            Ok(Blocks::Hold) if loading => {}
            answer => {
                return self.violation(format!("{request} is over, and the host says {answer:?}"));
            }
        }
        self.decode_orders(index)
    }

    /// Gives every rank its orders, then takes the results.
    pub(super) fn decode_orders(&mut self, index: usize) -> Run {
        loop {
            let orders = self.decodes[index].host.step();
            if orders.is_empty() {
                break;
            }
            for order in orders {
                for rank in 0..self.decodes[index].ranks.len() {
                    self.decode_order(
                        Rank {
                            engine: index,
                            rank,
                        },
                        &order,
                    )?;
                }
            }
        }
        self.decode_results(index)
    }

    fn decode_order(&mut self, at: Rank, order: &DecodeOrder) -> Run {
        if let DecodeOrder::Load(load) = order {
            // Noted first: it may end at once.
            let engine = &mut self.decodes[at.engine];
            engine.open.insert((at.rank, load.request.to_string()));
        }
        let Some(error) = self.decode_event(at, order.event())? else {
            return Ok(());
        };
        let engine = &mut self.decodes[at.engine];
        if let DecodeOrder::Load(load) = order {
            engine.open.remove(&(at.rank, load.request.to_string()));
        }
        let rank = u16::try_from(at.rank).expect("few ranks");
        match engine.host.rejected(rank, order, error) {
            Some(more) => self.decode_event(at, more.event()).map(drop),
            None => Ok(()),
        }
    }

    fn decode_results(&mut self, index: usize) -> Run {
        while let Some(result) = self.decodes[index].host.poll() {
            let engine = &mut self.decodes[index];
            let request = result.request.as_str();
            if !engine.results.remove(request) {
                return self.violation(format!("{request} has two results on decode"));
            }
            if result.returns_blocks {
                self.decode_free(index, request);
                continue;
            }
            match result.end {
                DecodeEnd::Loaded {
                    computed,
                    run_as_prompt,
                    run_again,
                    ..
                } => {
                    self.run_rest(index, request, computed, run_as_prompt, run_again)?;
                    self.hold(index, request);
                }
                DecodeEnd::Failed(failure) if self.calm => {
                    return self.violation(format!("{request} failed without a fault: {failure}"));
                }
                DecodeEnd::Failed(_) if self.defect == Some(Defect::FailureIgnored) => {
                    let prompt = self.specs[self.decodes[index].jobs[request].spec].input();
                    let kept = self.accounting.prefill(prompt, false).kept();
                    self.run_rest(index, request, kept.keep(), kept.held(), TokenCount::ZERO)?;
                    self.hold(index, request);
                }
                // Its blocks were let go too early.
                DecodeEnd::Failed(_) if self.decodes[index].jobs[request].attention.is_empty() => {
                    self.decode_over(index, request, DecodeFinish::Error)?;
                }
                DecodeEnd::Failed(_) if self.choices.chance(50) => {
                    self.compute_locally(index, request);
                }
                DecodeEnd::Failed(_) => self.decode_over(index, request, DecodeFinish::Error)?,
            }
        }
        Ok(())
    }
}
