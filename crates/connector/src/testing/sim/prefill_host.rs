//! A prefill engine's scheduler and its host.

use std::format;
use std::string::ToString;

use super::action::Rank;
use super::prefill::Stage;
use super::world::{Run, World};
use crate::{Blocks, PrefillFinish, PrefillOrder, RequestId};

impl World<'_> {
    /// Offers a request to the host; whether it takes it.
    pub(super) fn offer(&mut self, index: usize, spec: usize, request: &str) -> bool {
        let engine = &mut self.prefills[index];
        let name = RequestId::new(request).expect("a name");
        let spec = &self.specs[spec];
        let host = &mut engine.host;
        host.new_request(&name, &spec.transfer, spec.input(), spec.skips_prefix_cache)
            .is_ok()
    }

    /// Gives every rank its orders, then takes the results.
    pub(super) fn prefill_orders(&mut self, index: usize) -> Run {
        loop {
            let orders = self.prefills[index].host.step();
            if orders.is_empty() {
                break;
            }
            for order in orders {
                for rank in 0..self.prefills[index].ranks.len() {
                    let at = Rank {
                        engine: index,
                        rank,
                    };
                    let key = (rank, order.request().to_string());
                    let starts = matches!(order, PrefillOrder::Started { .. });
                    if starts {
                        self.prefills[index].open.insert(key.clone());
                    }
                    if let Some(error) = self.prefill_event(at, order.event())? {
                        let engine = &mut self.prefills[index];
                        if starts {
                            engine.open.remove(&key);
                        }
                        let rank = u16::try_from(rank).expect("few ranks");
                        engine.host.rejected(rank, &order, error);
                    }
                }
            }
        }
        self.prefill_results(index)
    }

    fn prefill_results(&mut self, index: usize) -> Run {
        while let Some(result) = self.prefills[index].host.poll() {
            let engine = &mut self.prefills[index];
            let request = result.request.as_str();
            if !engine.results.remove(request) {
                return self.violation(format!("{request} has two results on prefill"));
            }
            if result.returns_blocks {
                match engine.jobs.remove(request) {
                    Some(job) if job.stage == Stage::Finished => engine.release(&job),
                    job => return self.violation(format!("{request} returns blocks of {job:?}")),
                }
            }
        }
        Ok(())
    }

    /// The engine is done with a request.
    pub(super) fn prefill_done(
        &mut self,
        index: usize,
        request: &str,
        finish: PrefillFinish,
    ) -> Run {
        let name = RequestId::new(request).expect("a name");
        let engine = &mut self.prefills[index];
        let blocks = match engine.host.finished(&name, finish) {
            Ok(blocks) => blocks,
            Err(error) => return self.violation(format!("{request} was refused: {error}")),
        };
        let finished = engine.jobs.get(request).map(|job| job.stage) == Some(Stage::Finished);
        match blocks {
            Blocks::Free => {
                if let Some(job) = engine.jobs.remove(request) {
                    engine.release(&job);
                }
            }
            Blocks::Hold if finished => {}
            Blocks::Hold => return self.violation(format!("{request} holds what was not given")),
        }
        self.prefill_orders(index)
    }
}
