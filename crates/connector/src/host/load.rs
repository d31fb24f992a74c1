//! A load under way.

use super::order::DecodeOrder;
use super::outcome::DecodeFailure;
use super::ranks::{Ends, Ranks};
use crate::accounting::Matched;
use crate::failure::Failure;
use crate::handoff::{HandOff, HandOffPoint};
use crate::holdback::PromptInput;
use crate::id::{RequestId, TransferId};
use crate::tokens::TokenCount;

/// A load whose result is not polled.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) matched: Matched,
    pub(super) ends: Ends,
    pub(super) first_token: Option<u32>,
    pub(super) failure: Option<DecodeFailure>,
    /// The engine is done with the request.
    pub(super) finished: bool,
    /// The ranks were told to give it up.
    aborted: bool,
}

impl Loading {
    pub(super) fn new(matched: Matched, ranks: Ranks) -> Self {
        Self {
            matched,
            ends: Ends::new(ranks),
            first_token: None,
            failure: None,
            finished: false,
            aborted: false,
        }
    }

    /// Tells the ranks to give up, once, where some have not ended.
    pub(super) fn give_up(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
    ) -> Option<DecodeOrder> {
        if self.aborted || self.ends.all() {
            return None;
        }
        self.aborted = true;
        Some(DecodeOrder::Aborted {
            request: request.clone(),
            transfer: transfer.clone(),
        })
    }

    /// Whether what a rank loaded is what was asked for.
    pub(super) fn judge(
        &mut self,
        rank: u16,
        point: HandOffPoint,
        prompt: PromptInput,
        computed: TokenCount,
        hand_off: Option<HandOff>,
    ) -> Result<(), DecodeFailure> {
        let expects = self.matched.covered();
        if computed != expects {
            let failure = Failure::HandOff {
                prefill: computed,
                decode: expects,
            };
            return Err(DecodeFailure::Rank { rank, failure });
        }
        // A stock peer says nothing, and hands over for recomputing.
        let left = hand_off.map(|hand_off| hand_off.run_as_prompt());
        if let Some(left) = left
            && left != prompt.count().without(computed)
        {
            let total = computed.get().saturating_add(left.get());
            return Err(DecodeFailure::Prompt {
                rank,
                prefill: TokenCount::new(total),
                decode: prompt.count(),
            });
        }
        let token = hand_off.and_then(|hand_off| hand_off.first_token());
        match (point, token, self.first_token) {
            (HandOffPoint::Recompute, None, _) => Ok(()),
            (HandOffPoint::FirstToken, Some(token), Some(other)) if token != other => {
                Err(DecodeFailure::FirstTokens { rank, token, other })
            }
            (HandOffPoint::FirstToken, Some(token), _) => {
                self.first_token = Some(token);
                Ok(())
            }
            (HandOffPoint::Recompute, Some(_), _) => Err(DecodeFailure::FirstToken {
                rank,
                given: "given",
                expected: "not expected",
            }),
            (HandOffPoint::FirstToken, None, _) => Err(DecodeFailure::FirstToken {
                rank,
                given: "not given",
                expected: "expected",
            }),
        }
    }
}
