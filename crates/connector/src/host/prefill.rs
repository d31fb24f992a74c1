//! A prefill engine's scheduler.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mooncake_pd_layout::CacheLayout;

use super::Blocks;
use super::book::Book;
use super::error::HostError;
use super::finish::PrefillFinish;
use super::limits::{HostLimits, HostMetrics, count};
use super::order::PrefillOrder;
use super::outcome::{PrefillEnd, PrefillFailure, PrefillResult};
use super::ranks::{Ends, Ranks};
use crate::accounting::{Accounting, Matched, PrefillShare};
use crate::handoff::HandOff;
use crate::holdback::PromptInput;
use crate::id::{RequestId, TransferId};
use crate::prefill::{PrefillError, PrefillOutcome};
use crate::tokens::TokenCount;

/// The scheduler's half of a prefill engine.
///
/// It belongs to the scheduler of one engine with one or more ranks, each of which
/// has a session machine ([`Prefill`](crate::Prefill)). A request goes `new_request`
/// (once, or once each time it is scheduled anew), `matched_tokens`, `finished`; its
/// result is polled once every rank has ended it. The contract of both hosts:
///
/// - Each `new_request` is followed by one `finished`, whatever happens in between.
/// - The orders of a `step` go to every rank, in their order. A rank that refuses one
///   is reported with `rejected`, one that ends a request with `ended`.
/// - A result says whether blocks come back with it: if, and only if, `finished` has
///   answered [`Blocks::Hold`]. One that follows [`Blocks::Free`] can be dropped.
/// - After `finished` and the result nothing of a request is remembered.
/// - A call that can't be is an error and changes nothing.
#[derive(Debug)]
pub struct PrefillHost {
    accounting: Accounting,
    layout: Arc<CacheLayout>,
    ranks: Ranks,
    book: Book<Record, PrefillOrder>,
    done: VecDeque<RequestId>,
    metrics: HostMetrics,
}

#[derive(Debug)]
struct Record {
    prompt: PromptInput,
    share: PrefillShare,
    stage: Stage,
    ends: Ends,
    /// The ranks were told to give it up.
    aborted: bool,
    /// The engine has given it up.
    given_up: bool,
    delivered: bool,
    failure: Option<PrefillFailure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Computing,
    Finished(Blocks),
}

impl PrefillHost {
    /// A host of an engine with so many ranks, whose caches have this layout (only
    /// groups and pools matter, which all ranks share). `hash_seed` should be random.
    #[must_use]
    pub fn new(
        accounting: Accounting,
        layout: Arc<CacheLayout>,
        ranks: Ranks,
        limits: HostLimits,
        hash_seed: u64,
    ) -> Self {
        Self {
            accounting,
            layout,
            ranks,
            book: Book::new(limits, hash_seed),
            done: VecDeque::new(),
            metrics: HostMetrics::default(),
        }
    }

    /// A request whose cache will be asked for, before any prefix lookup. Offered
    /// again, with its whole prompt or with what was kept of it, it gets the same
    /// answer.
    ///
    /// # Errors
    /// An empty prompt, names that are taken, another prompt than before, a full host.
    pub fn new_request(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
        prompt: PromptInput,
        skips_prefix_cache: bool,
    ) -> Result<PrefillShare, HostError> {
        if let Some(record) = self.book.known(request, transfer)? {
            let share = record.share;
            let cut = record.prompt.with_count(share.kept().keep());
            if prompt != record.prompt && prompt != cut {
                return Err(HostError::PromptChanged {
                    request: request.clone(),
                    was: record.prompt,
                    now: prompt,
                });
            }
            return Ok(share);
        }
        if prompt.count().is_zero() {
            return Err(HostError::EmptyPrompt {
                request: request.clone(),
            });
        }
        let share = self.accounting.prefill(prompt, skips_prefix_cache);
        let record = Record {
            prompt,
            share,
            stage: Stage::Computing,
            ends: Ends::new(self.ranks),
            aborted: false,
            given_up: false,
            delivered: false,
            failure: None,
        };
        self.book.admit(request.clone(), transfer.clone(), record)?;
        count(&mut self.metrics.started);
        self.book.order(PrefillOrder::Started {
            request: request.clone(),
            transfer: transfer.clone(),
        });
        Ok(share)
    }

    /// What is left to compute of what was kept: nothing is ever loaded. `local`
    /// elements are in the engine's own cache.
    ///
    /// # Errors
    /// An unknown or finished request; more cached than kept, or all of it where the
    /// model has states.
    pub fn matched_tokens(
        &mut self,
        request: &RequestId,
        local: TokenCount,
    ) -> Result<Matched, HostError> {
        let accounting = self.accounting;
        let (_, record) = self.book.get_mut(request)?;
        if record.stage != Stage::Computing {
            return Err(out_of_turn(request, "matched_tokens"));
        }
        let kept = record.share.kept();
        let (keep, most) = (kept.keep(), kept.most_cached());
        if accounting.holdback.has_states() && local > most && local <= keep {
            return Err(HostError::NothingLeft {
                request: request.clone(),
                local,
                most,
            });
        }
        let matched = accounting.read_back(keep, local, None);
        matched.map_err(|error| HostError::Counts {
            request: request.clone(),
            error,
        })
    }

    /// Whether every rank has ended a request that the engine still computes: going
    /// on is for nothing.
    #[must_use]
    pub fn is_over(&self, request: &RequestId) -> bool {
        let record = self.book.get(request);
        record.is_some_and(|record| record.ends.all())
    }

    /// The engine is done with a request. One that it has finished may still be
    /// given up, once.
    ///
    /// Blocks are held until the result was polled; at once free are those of a
    /// request that was given up before, whose tables are all null, or that every
    /// rank has ended.
    ///
    /// # Errors
    /// An unknown request, one that has finished already, counts that make no
    /// hand-over. The engine then has to give the request up.
    pub fn finished(
        &mut self,
        request: &RequestId,
        finish: PrefillFinish,
    ) -> Result<Blocks, HostError> {
        let point = self.accounting.point;
        let (transfer, record) = self.book.get_mut(request)?;
        let transfer = transfer.clone();
        let computed = match finish {
            PrefillFinish::Abort | PrefillFinish::Error => return self.give_up(request, transfer),
            PrefillFinish::Length(computed) | PrefillFinish::Stop(computed) => computed,
        };
        if record.stage != Stage::Computing {
            return Err(out_of_turn(request, "finished"));
        }
        let keep = record.share.kept().keep();
        if computed.computed != keep {
            return Err(HostError::Computed {
                request: request.clone(),
                computed: computed.computed,
                keep,
            });
        }
        if computed.state.is_none() && self.accounting.holdback.has_states() {
            return Err(HostError::NoState {
                request: request.clone(),
            });
        }
        let hand_off = HandOff::new(
            point,
            record.prompt.count(),
            keep,
            computed.state,
            computed.first_token,
        )
        .map_err(|error| HostError::HandOff {
            request: request.clone(),
            error,
        })?;
        if record.aborted || record.ends.all() {
            // No rank will look at the blocks.
            record.stage = Stage::Finished(Blocks::Free);
        } else {
            let empty = computed.tables.live(&self.layout).next().is_none();
            let blocks = if empty { Blocks::Free } else { Blocks::Hold };
            record.stage = Stage::Finished(blocks);
            self.book.order(PrefillOrder::Finished {
                request: request.clone(),
                transfer,
                hand_off,
                tables: computed.tables,
            });
        }
        Ok(self.settle(request))
    }

    fn give_up(&mut self, request: &RequestId, transfer: TransferId) -> Result<Blocks, HostError> {
        let (_, record) = self.book.get_mut(request)?;
        if core::mem::replace(&mut record.given_up, true) {
            return Err(out_of_turn(request, "finished"));
        }
        let over = record.ends.all();
        if let Stage::Finished(blocks) = record.stage
            && over
        {
            // It ended well before it was given up.
            return Ok(blocks);
        }
        record.failure.get_or_insert(PrefillFailure::Aborted);
        let tell = !record.aborted && !over;
        record.aborted = true;
        if record.stage == Stage::Computing {
            record.stage = Stage::Finished(Blocks::Free);
        }
        if tell {
            let request = request.clone();
            self.book.order(PrefillOrder::Aborted { request, transfer });
        }
        Ok(self.settle(request))
    }

    /// Makes a result once the engine has finished and every rank has ended it: to be
    /// called when one of both has just come true.
    fn settle(&mut self, request: &RequestId) -> Blocks {
        let Some(Stage::Finished(blocks)) = self.book.get(request).map(|record| record.stage)
        else {
            return Blocks::Free;
        };
        if self.is_over(request) {
            self.done.push_back(request.clone());
        }
        blocks
    }

    /// What every rank has to be told, in this order.
    #[must_use = "ranks wait for their orders"]
    pub fn step(&mut self) -> Vec<PrefillOrder> {
        self.book.step()
    }

    /// A rank, 0..ranks, has ended a request:
    /// [`PrefillCommand::Ended`](crate::PrefillCommand::Ended). What nobody waits for
    /// is counted.
    pub fn ended(
        &mut self,
        rank: u16,
        request: &RequestId,
        transfer: &TransferId,
        outcome: PrefillOutcome,
    ) {
        let record = self.book.of_rank(request, transfer);
        let Some(record) = record.and_then(|record| record.ends.end(rank).then_some(record)) else {
            count(&mut self.metrics.unknown_ends);
            return;
        };
        match outcome {
            PrefillOutcome::Delivered => record.delivered = true,
            PrefillOutcome::Released => {}
            PrefillOutcome::Failed(failure) => {
                record
                    .failure
                    .get_or_insert(PrefillFailure::Rank { rank, failure });
            }
        }
        self.settle(request);
    }

    /// A rank refused an order. The request then fails on every rank; an order that
    /// came after the rank had ended the request is counted.
    pub fn rejected(&mut self, rank: u16, order: &PrefillOrder, error: PrefillError) {
        let (request, transfer) = (order.request(), order.transfer());
        let ends = match (order, &error) {
            // The rank has it: the order came a second time.
            (PrefillOrder::Started { .. }, PrefillError::TransferTaken { owner, .. })
                if owner == request =>
            {
                count(&mut self.metrics.late_orders);
                return;
            }
            (_, PrefillError::FinishedTwice { .. } | PrefillError::UnknownTransfer { .. })
            | (PrefillOrder::Aborted { .. }, _) => {
                count(&mut self.metrics.late_orders);
                return;
            }
            // The rank keeps nothing of a request that it did not take.
            (PrefillOrder::Started { .. }, _) => true,
            (PrefillOrder::Finished { .. }, _) => false,
        };
        let record = self.book.of_rank(request, transfer);
        let Some(record) = record.filter(|record| !record.ends.all()) else {
            count(&mut self.metrics.late_orders);
            return;
        };
        if ends && !record.ends.end(rank) {
            count(&mut self.metrics.late_orders);
            return;
        }
        count(&mut self.metrics.rejected);
        record
            .failure
            .get_or_insert(PrefillFailure::Rejected { rank, error });
        let tell = !record.aborted && !record.ends.all();
        record.aborted = true;
        if tell {
            self.book.order(PrefillOrder::Aborted {
                request: request.clone(),
                transfer: transfer.clone(),
            });
        }
        self.settle(request);
    }

    /// The next result: one for each request, after the engine and every rank have
    /// ended it. Nothing of the request is kept.
    pub fn poll(&mut self) -> Option<PrefillResult> {
        let request = self.done.pop_front()?;
        let (transfer, record) = self.book.remove(&request)?;
        let end = match record.failure {
            Some(failure) => PrefillEnd::Failed(failure),
            None if record.delivered => PrefillEnd::Delivered,
            None => PrefillEnd::Released,
        };
        count(match end {
            PrefillEnd::Failed(_) => &mut self.metrics.failed,
            PrefillEnd::Delivered | PrefillEnd::Released => &mut self.metrics.done,
        });
        Some(PrefillResult {
            request,
            transfer,
            end,
            returns_blocks: record.stage == Stage::Finished(Blocks::Hold),
        })
    }

    /// What was seen so far.
    #[must_use]
    pub const fn metrics(&self) -> &HostMetrics {
        &self.metrics
    }

    /// Requests that are remembered.
    #[must_use]
    pub fn live(&self) -> usize {
        self.book.live()
    }
}

fn out_of_turn(request: &RequestId, call: &'static str) -> HostError {
    HostError::OutOfTurn {
        request: request.clone(),
        call,
        stage: "finished",
        expected: "poll",
    }
}
