//! What the ranks of a decode engine say.

use super::decode::{DecodeHost, Record, Stage};
use super::limits::count;
use super::load::Loading;
use super::order::DecodeOrder;
use super::outcome::DecodeFailure;
use crate::decode::{DecodeError, DecodeOutcome};
use crate::holdback::PromptInput;
use crate::id::{RequestId, TransferId};

impl DecodeHost {
    /// A rank, 0..ranks, has ended a load:
    /// [`DecodeCommand::Ended`](crate::DecodeCommand::Ended). What nobody waits for
    /// is counted. After the first failure the other ranks are told to give up.
    pub fn ended(
        &mut self,
        rank: u16,
        request: &RequestId,
        transfer: &TransferId,
        outcome: DecodeOutcome,
    ) {
        let point = self.accounting.point;
        let Some((prompt, load)) = self.loading_on(request, transfer, rank) else {
            count(&mut self.metrics.unknown_ends);
            return;
        };
        let failure = match outcome {
            DecodeOutcome::Loaded { computed, hand_off } => {
                load.judge(rank, point, prompt, computed, hand_off).err()
            }
            DecodeOutcome::Failed(failure) => Some(DecodeFailure::Rank { rank, failure }),
        };
        self.rank_done(request, transfer, failure);
    }

    /// A rank refused an order. A load then fails on every rank; an order that came
    /// too late, or a release, is counted. The answer is one more order for this
    /// rank alone, so that prefill does not wait for it.
    #[must_use = "prefill waits until this rank is told to let go"]
    pub fn rejected(
        &mut self,
        rank: u16,
        order: &DecodeOrder,
        error: DecodeError,
    ) -> Option<DecodeOrder> {
        let DecodeOrder::Load(load) = order else {
            count(&mut self.metrics.late_orders);
            return None;
        };
        let (request, transfer) = (&load.request, &load.transfer);
        if let DecodeError::TransferTaken { owner, .. } = &error
            && owner.as_ref() == Some(request)
        {
            // The rank loads it: the order came a second time.
            count(&mut self.metrics.late_orders);
            return None;
        }
        if self.loading_on(request, transfer, rank).is_none() {
            count(&mut self.metrics.late_orders);
            return None;
        }
        count(&mut self.metrics.rejected);
        // Where these are the reason, it would be refused as well.
        let takes_release = !matches!(
            error,
            DecodeError::TransferTaken { .. }
                | DecodeError::Full { .. }
                | DecodeError::TooManySources { .. }
        );
        let failure = DecodeFailure::Rejected { rank, error };
        self.rank_done(request, transfer, Some(failure));
        takes_release.then(|| DecodeOrder::Release {
            request: request.clone(),
            transfer: transfer.clone(),
            source: load.source.clone(),
        })
    }

    /// The load of a live request that this rank has not ended, and ends now.
    fn loading_on(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
        rank: u16,
    ) -> Option<(PromptInput, &mut Loading)> {
        let record = self.book.of_rank(request, transfer)?;
        let Stage::Loading(load) = &mut record.stage else {
            return None;
        };
        load.ends.end(rank).then_some((record.prompt, load))
    }

    fn rank_done(
        &mut self,
        request: &RequestId,
        transfer: &TransferId,
        failure: Option<DecodeFailure>,
    ) {
        let Some(Record {
            stage: Stage::Loading(load),
            ..
        }) = self.book.of_rank(request, transfer)
        else {
            return;
        };
        let mut order = None;
        if let Some(failure) = failure {
            load.failure.get_or_insert(failure);
            order = load.give_up(request, transfer);
        }
        if load.ends.all() {
            self.done.push_back(request.clone());
        }
        if let Some(order) = order {
            self.book.order(order);
        }
    }
}
