//! What the router and fate have in store.

use std::format;

use super::action::Action;
use super::choices::Choices;
use super::prompt::Prompt;
use super::world::{Spec, World};
use crate::{DecodeLimits, PrefillLimits, Span, TransferId};

/// Longest time in which everything settles once faults have stopped.
#[must_use]
pub fn settle_bound(prefill: &PrefillLimits, decode: &DecodeLimits) -> Span {
    let follows = u64::from(decode.follow) + 1;
    let micros = |span: Span| span.as_micros();
    let one = 3 * micros(decode.answer)
        + 2 * micros(decode.fence_after)
        + 2 * micros(decode.stock_fence_after)
        + 4 * micros(decode.fence_retry);
    let held = micros(prefill.compute) + micros(prefill.hold) + micros(prefill.transfer);
    Span::from_micros(follows * one + held + 100_000)
}

pub(super) fn limits(choices: &mut Choices<'_>) -> (PrefillLimits, DecodeLimits) {
    let tight = choices.chance(10);
    let bound = |choices: &mut Choices<'_>, wide: usize| {
        if tight {
            choices.between(1, 6) as usize
        } else {
            wide
        }
    };
    let ms = Span::from_millis;
    let prefill = PrefillLimits {
        live: bound(choices, 64),
        unknown: bound(choices, 64),
        unknown_wait: ms(40),
        ready_wait: ms(60),
        compute: ms(100),
        hold: ms(80),
        transfer: ms(20),
        waiting_entries: 16 * bound(choices, 64),
        ended: bound(choices, 16),
        ended_memory: ms(50),
        peers: bound(choices, 64),
        peer_idle: ms(600),
        pulls_per_peer: bound(choices, 64),
    };
    let decode = DecodeLimits {
        live: bound(choices, 64),
        answer: ms(100),
        cancel_retry: ms(5),
        fence_after: ms(30),
        stock_fence_after: ms(40),
        fence_retry: ms(20),
        resolve_attempts: 4,
        resolve_timeout: ms(10),
        resolve_pause: ms(2),
        sources: bound(choices, 8),
        source_idle: ms(200),
        follow: 2,
    };
    (prefill, decode)
}

impl World<'_> {
    /// Decides what the router and fate have in store.
    pub(super) fn plan(&mut self) {
        let requests = 1 + self.choices.below(6);
        let span = 20_000 * requests;
        for index in 0..requests {
            let len = 1 + self.choices.below(9);
            let common = self.choices.below(len + 1);
            let prefill = self.choices.below(self.prefills.len() as u32) as usize;
            let decode = self.choices.below(self.decodes.len() as u32) as usize;
            // Whole attention blocks before the held-back element.
            let most = len.saturating_sub(1) / 2;
            let local = 2 * self.choices.below(most + 1);
            let mut spec = Spec {
                transfer: TransferId::new(&format!("t{index}")).expect("a name"),
                prompt: Prompt::new(7, u64::from(index) + 100, common, len),
                prefill,
                decode,
                embedded: self.choices.chance(20),
                skips_prefix_cache: self.choices.chance(5),
                local,
            };
            if self.fault(3)
                && let Some(before) = self.specs.last()
            {
                // The router sends a request a second time, perhaps elsewhere.
                spec = Spec {
                    decode,
                    ..before.clone()
                };
            }
            self.specs.push(spec);
            let spec = self.specs.len() - 1;
            let at = self.choices.between(0, span);
            if !self.fault(3) {
                let wait = self.choices.between(0, 10_000);
                let request = format!("p{spec}");
                self.after(u64::from(at + wait), Action::PrefillArrival(spec, request));
            }
            if self.fault(2) {
                let wait = self.choices.between(0, 40_000);
                let request = format!("p{spec}-again");
                self.after(u64::from(at + wait), Action::PrefillArrival(spec, request));
            }
            if !self.fault(4) {
                let wait = self.choices.between(0, 10_000);
                self.after(u64::from(at + wait), Action::DecodeArrival(spec));
            }
        }
        for engine in 0..self.prefills.len() {
            if self.fault(12) {
                let at = self.choices.between(0, span + 100_000);
                self.after(u64::from(at), Action::PrefillDown(engine));
            }
        }
        for engine in 0..self.decodes.len() {
            if self.fault(8) {
                let at = self.choices.between(0, span + 100_000);
                self.after(u64::from(at), Action::DecodeRestart(engine));
            }
        }
        self.report.requests = u64::from(requests);
        self.after(u64::from(span) + 150_000, Action::FaultsEnd);
    }
}
