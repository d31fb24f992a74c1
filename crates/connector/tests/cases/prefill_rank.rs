//! A prefill rank and whoever speaks to it.

use std::sync::Arc;

use mooncake_pd_connector::{
    Answer, AttemptId, BlockTables, Cancel, Consumer, Generation, Prefill, PrefillCommand,
    PrefillError, PrefillEvent, PrefillLimits, PrefillOutcome, Pull, PullNumber, Quiescence, Span,
    Time, TokenCount, TransferFault, Verdict, Want,
};

use crate::common::{hand_off, layout, peer, request, tables, transfer};

/// What prefill computes of every prompt, in tokens.
pub(crate) const COMPUTED: u32 = 32;

/// Prefill `p`, generation 1, 64 blocks; every request `x` has transfer `x`.
pub(crate) struct P {
    pub(crate) machine: Prefill,
    pub(crate) now: Time,
    /// Every attempt so far.
    pub(crate) attempts: Vec<AttemptId>,
    /// Answers that were not taken yet.
    pub(crate) answers: Vec<Answer>,
}

impl P {
    pub(crate) fn new() -> Self {
        Self::with(PrefillLimits::default())
    }

    pub(crate) fn with(limits: PrefillLimits) -> Self {
        Self {
            machine: Prefill::new(peer("p", 1), layout(64), limits, 7),
            now: Time::from_micros(1_000),
            attempts: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, event: PrefillEvent) -> Result<(), PrefillError> {
        self.machine.handle(self.now, event)
    }

    pub(crate) fn start(&mut self, name: &str) -> Result<(), PrefillError> {
        self.take(PrefillEvent::Started {
            request: request(name),
            transfer: transfer(name),
        })
    }

    pub(crate) fn finish_with(
        &mut self,
        name: &str,
        tables: Arc<BlockTables>,
    ) -> Result<(), PrefillError> {
        self.take(PrefillEvent::Finished {
            request: request(name),
            transfer: transfer(name),
            hand_off: hand_off(COMPUTED),
            tables,
        })
    }

    /// Computed, with blocks that all requests share.
    pub(crate) fn finish(&mut self, name: &str) -> Result<(), PrefillError> {
        self.finish_with(name, tables(&[&[1, 2], &[0, 3]]))
    }

    pub(crate) fn abort(&mut self, name: &str) -> Result<(), PrefillError> {
        self.take(PrefillEvent::Aborted {
            request: request(name),
            transfer: transfer(name),
        })
    }

    pub(crate) fn pull(&mut self, pull: Pull) {
        self.take(PrefillEvent::Pulled(pull)).unwrap();
    }

    pub(crate) fn cancel(&mut self, cancel: Cancel) {
        self.take(PrefillEvent::Cancelled(cancel)).unwrap();
    }

    /// The transfer of this index is over.
    pub(crate) fn settle(&mut self, index: usize, result: Result<(), i32>) {
        let event = PrefillEvent::Settled {
            attempt: self.attempts[index],
            result: result.map_err(|code| TransferFault { code }),
            proof: Quiescence::witnessed(),
        };
        self.take(event).unwrap();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now.after(span);
        self.take(PrefillEvent::Tick).unwrap();
    }

    /// What it asks for, since the last time.
    pub(crate) fn out(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(command) = self.machine.poll() {
            match &command {
                PrefillCommand::Transfer { attempt, .. } => self.attempts.push(*attempt),
                PrefillCommand::Answer(answer) => self.answers.push(answer.clone()),
                _ => {}
            }
            texts.push(text(&command));
        }
        texts
    }

    /// Nothing is left but what is remembered for a while, and that not for ever.
    pub(crate) fn assert_idle(&mut self) {
        assert_eq!((self.machine.live(), self.machine.leases()), (0, 0));
        self.pass(Span::from_secs(100_000));
        assert_eq!(self.machine.records(), 0);
        assert_eq!(self.machine.next_deadline(), None);
    }
}

fn text(command: &PrefillCommand) -> String {
    match command {
        PrefillCommand::Transfer {
            attempt,
            to,
            number,
            transfer,
            ..
        } => {
            let (attempt, number) = (attempt.get(), number.get());
            format!("transfer {attempt} of {transfer} to {to} for pull {number}")
        }
        PrefillCommand::Drain { attempt } => format!("drain {}", attempt.get()),
        PrefillCommand::Answer(answer) => {
            let number = answer.number.get();
            let verdict = match answer.verdict {
                Verdict::Delivered { .. } => "delivered".to_owned(),
                Verdict::Released => "released".to_owned(),
                Verdict::Refused(refusal) => refusal.to_string(),
            };
            let quiet = if answer.quiescent { "" } else { " (not quiet)" };
            format!("answer {} pull {number}: {verdict}{quiet}", answer.to)
        }
        PrefillCommand::Ended {
            request,
            outcome,
            tables,
            ..
        } => {
            let outcome = match outcome {
                PrefillOutcome::Delivered => "delivered".to_owned(),
                PrefillOutcome::Released => "released".to_owned(),
                PrefillOutcome::Failed(failure) => failure.to_string(),
            };
            let blocks = if tables.is_some() { "" } else { " (no blocks)" };
            format!("{request} ended: {outcome}{blocks}")
        }
    }
}

/// A pull of the only consumer, `d` of generation 1.
pub(crate) fn pull(number: u64, name: &str) -> Pull {
    Pull {
        from: peer("d", 1),
        to: Generation::new(1),
        number: PullNumber::new(number),
        floor: PullNumber::new(0),
        transfer: transfer(name),
        consumer: Consumer::ALONE,
        want: Want::Cache {
            tables: tables(&[&[6, 7], &[0, 8]]),
            expects: Some(TokenCount::new(COMPUTED)),
        },
    }
}

/// The cancel of a pull.
pub(crate) fn cancel(pull: &Pull) -> Cancel {
    Cancel {
        from: pull.from.clone(),
        to: pull.to,
        number: pull.number,
        floor: pull.floor,
        transfer: pull.transfer.clone(),
        consumer: pull.consumer,
    }
}
