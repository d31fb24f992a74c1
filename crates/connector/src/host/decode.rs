//! A decode engine's scheduler.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Blocks;
use super::book::Book;
use super::error::HostError;
use super::finish::DecodeFinish;
use super::limits::{HostLimits, HostMetrics, count};
use super::load::Loading;
use super::order::DecodeOrder;
use super::outcome::{DecodeEnd, DecodeFailure, DecodeResult};
use super::ranks::Ranks;
use crate::accounting::{Accounting, Matched};
use crate::decode::{Load, Source};
use crate::holdback::PromptInput;
use crate::id::{RequestId, TransferId};
use crate::tables::BlockTables;
use crate::tokens::TokenCount;

/// The scheduler's half of a decode engine, under the same contract as
/// [`PrefillHost`](crate::PrefillHost).
///
/// A request goes `new_request`, `matched_tokens` (as often as it is looked at),
/// `blocks_allocated`; if that was for a load, its result is polled once every rank
/// has ended it; at last `finished`.
#[derive(Debug)]
pub struct DecodeHost {
    pub(super) accounting: Accounting,
    ranks: Ranks,
    pub(super) book: Book<Record, DecodeOrder>,
    pub(super) done: VecDeque<RequestId>,
    pub(super) metrics: HostMetrics,
}

#[derive(Debug)]
pub(super) struct Record {
    source: Source,
    pub(super) prompt: PromptInput,
    skips_prefix_cache: bool,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing is ordered yet.
    Waiting(Option<Matched>),
    /// A load is ordered, and its result is not polled.
    Loading(Loading),
    /// The load is over, or there never was one.
    Over {
        /// It came with a first token.
        first_token: bool,
    },
}

impl DecodeHost {
    /// A host of an engine with so many ranks. `hash_seed` should be random.
    #[must_use]
    pub fn new(accounting: Accounting, ranks: Ranks, limits: HostLimits, hash_seed: u64) -> Self {
        Self {
            accounting,
            ranks,
            book: Book::new(limits, hash_seed),
            done: VecDeque::new(),
            metrics: HostMetrics::default(),
        }
    }

    /// A request whose cache `source` has. Offered again it stays as it is.
    ///
    /// # Errors
    /// An empty prompt, names that are taken, another prompt than before, a full host.
    pub fn new_request(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
        source: Source,
        prompt: PromptInput,
        skips_prefix_cache: bool,
    ) -> Result<(), HostError> {
        if let Some(record) = self.book.known(request, transfer)? {
            if prompt != record.prompt {
                return Err(HostError::PromptChanged {
                    request: request.clone(),
                    was: record.prompt,
                    now: prompt,
                });
            }
            return Ok(());
        }
        if prompt.count().is_zero() {
            return Err(HostError::EmptyPrompt {
                request: request.clone(),
            });
        }
        let record = Record {
            source,
            prompt,
            skips_prefix_cache,
            stage: Stage::Waiting(None),
        };
        self.book.admit(request.clone(), transfer.clone(), record)?;
        count(&mut self.metrics.started);
        Ok(())
    }

    /// What to load, and what to run after it. `local` elements are in the engine's
    /// own cache. Once a load has ended, or nothing was loaded, nothing ever is.
    ///
    /// # Errors
    /// An unknown request, one that is loading, more cached than there is.
    pub fn matched_tokens(
        &mut self,
        request: &RequestId,
        local: TokenCount,
    ) -> Result<Matched, HostError> {
        let accounting = self.accounting;
        let (_, record) = self.book.get_mut(request)?;
        let count = record.prompt.count();
        let most = count.without(TokenCount::ONE);
        let states = accounting.holdback.has_states() && !record.skips_prefix_cache;
        if states && matches!(record.stage, Stage::Waiting(_)) && local > most && local <= count {
            return Err(HostError::NothingLeft {
                request: request.clone(),
                local,
                most,
            });
        }
        let matched = match &record.stage {
            Stage::Waiting(_) => accounting.decode(record.prompt, record.skips_prefix_cache, local),
            Stage::Over { first_token } => accounting.alone(record.prompt, local, *first_token),
            Stage::Loading(_) => return Err(loading(request, "matched_tokens")),
        };
        let matched = matched.map_err(|error| HostError::Counts {
            request: request.clone(),
            error,
        })?;
        if let Stage::Waiting(told) = &mut record.stage {
            *told = Some(matched);
        }
        Ok(matched)
    }

    /// The engine has blocks for a request and will load so many elements: as many
    /// as it was told last, or none. The blocks of a load stay as they are until its
    /// result was polled. With none, prefill is told to let go, once.
    ///
    /// # Errors
    /// An unknown request, one that is loading or whose elements nobody asked for,
    /// another number of elements.
    pub fn blocks_allocated(
        &mut self,
        request: &RequestId,
        tables: Arc<BlockTables>,
        load: TokenCount,
    ) -> Result<(), HostError> {
        let ranks = self.ranks;
        let (transfer, record) = self.book.get_mut(request)?;
        let transfer = transfer.clone();
        let told = match &record.stage {
            Stage::Waiting(Some(matched)) => Some(*matched),
            Stage::Waiting(None) => {
                return Err(HostError::OutOfTurn {
                    request: request.clone(),
                    call: "blocks_allocated",
                    stage: "new",
                    expected: "matched_tokens",
                });
            }
            Stage::Over { .. } => None,
            Stage::Loading(_) => return Err(loading(request, "blocks_allocated")),
        };
        let matched = told.map_or(TokenCount::ZERO, Matched::load);
        if !load.is_zero() && load != matched {
            return Err(HostError::Load {
                request: request.clone(),
                load,
                matched,
            });
        }
        let Some(matched) = told else {
            return Ok(());
        };
        let (request, source) = (request.clone(), record.source.clone());
        if load.is_zero() {
            record.stage = Stage::Over { first_token: false };
            self.book.order(DecodeOrder::Release {
                request,
                transfer,
                source,
            });
            return Ok(());
        }
        record.stage = Stage::Loading(Loading::new(matched, ranks));
        self.book.order(DecodeOrder::Load(Load {
            request,
            transfer,
            source,
            expects: matched.covered(),
            tables,
        }));
        Ok(())
    }

    /// The engine is done with a request. Blocks are held where a load's result was
    /// not polled; the load is given up then. Prefill is told to let go where nothing
    /// was ordered of it yet.
    ///
    /// # Errors
    /// An unknown request, one that has finished already, or one that ends by itself
    /// before it could run.
    pub fn finished(
        &mut self,
        request: &RequestId,
        finish: DecodeFinish,
    ) -> Result<Blocks, HostError> {
        let (transfer, record) = self.book.get_mut(request)?;
        let given_up = matches!(finish, DecodeFinish::Abort | DecodeFinish::Error);
        let mut order = None;
        let blocks = match &mut record.stage {
            Stage::Over { .. } => Blocks::Free,
            Stage::Waiting(_) if given_up => {
                order = Some(DecodeOrder::Release {
                    request: request.clone(),
                    transfer: transfer.clone(),
                    source: record.source.clone(),
                });
                Blocks::Free
            }
            Stage::Waiting(_) => {
                return Err(HostError::OutOfTurn {
                    request: request.clone(),
                    call: "finished",
                    stage: "waiting for blocks",
                    expected: "blocks_allocated",
                });
            }
            Stage::Loading(load) if given_up && !load.finished => {
                load.finished = true;
                load.failure.get_or_insert(DecodeFailure::Aborted);
                order = load.give_up(request, transfer);
                Blocks::Hold
            }
            Stage::Loading(_) => return Err(loading(request, "finished")),
        };
        if let Some(order) = order {
            self.book.order(order);
        }
        if blocks == Blocks::Free {
            self.book.remove(request);
        }
        Ok(blocks)
    }

    /// What every rank has to be told, in this order.
    #[must_use = "ranks wait for their orders"]
    pub fn step(&mut self) -> Vec<DecodeOrder> {
        self.book.step()
    }

    /// The next result: one for each load, after every rank has ended it.
    pub fn poll(&mut self) -> Option<DecodeResult> {
        let request = self.done.pop_front()?;
        let (transfer, record) = self.book.get_mut(&request).ok()?;
        let transfer = transfer.clone();
        let Stage::Loading(load) = &mut record.stage else {
            return None;
        };
        let (matched, first_token) = (load.matched, load.first_token);
        let returns_blocks = load.finished;
        let end = match load.failure.take() {
            Some(failure) => DecodeEnd::Failed(failure),
            None => DecodeEnd::Loaded {
                computed: matched.covered(),
                run_as_prompt: matched.run_as_prompt(),
                run_again: matched.run_again(),
                first_token,
            },
        };
        let loaded = matches!(end, DecodeEnd::Loaded { .. });
        record.stage = Stage::Over {
            first_token: loaded && first_token.is_some(),
        };
        if returns_blocks {
            self.book.remove(&request);
        }
        count(if loaded {
            &mut self.metrics.done
        } else {
            &mut self.metrics.failed
        });
        Some(DecodeResult {
            request,
            transfer,
            end,
            returns_blocks,
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

fn loading(request: &RequestId, call: &'static str) -> HostError {
    HostError::OutOfTurn {
        request: request.clone(),
        call,
        stage: "loading",
        expected: "poll",
    }
}
