//! Both hosts over the session machines of two ranks each.

use mooncake_pd_connector::{
    Blocks, Consumer, Decode, DecodeCommand, DecodeEnd, DecodeEvent, DecodeFailure, DecodeFinish,
    DecodeHost, DecodeLimits, DecodeOrder, Dialect, EngineId, Failure, Generation, Peer, Prefill,
    PrefillCommand, PrefillEnd, PrefillEvent, PrefillFailure, PrefillFinish, PrefillHost,
    PrefillLimits, Quiescence, Refusal, Resolved, Time, TokenCount,
};

use super::{
    Computed, blocks, computed, decode_host, ids, layout, prefill_host, request, source, tables,
    tokens, transfer,
};

const NOW: Time = Time::ZERO;

/// Two engines with two ranks each, in which rank i of one serves rank i of the other.
struct Engines {
    prefill: PrefillHost,
    decode: DecodeHost,
    senders: Vec<Prefill>,
    receivers: Vec<Decode>,
}

fn peer(side: &str, rank: u16) -> Peer {
    Peer {
        engine: EngineId::new(&format!("{side}{rank}")).unwrap(),
        generation: Generation::new(1),
    }
}

impl Engines {
    fn new(limits: PrefillLimits) -> Self {
        let sender = |rank| Prefill::new(peer("p", rank), layout(), limits, 1);
        let receiver = |rank| {
            let limits = DecodeLimits::default();
            Decode::new(peer("d", rank), Consumer::ALONE, layout(), limits, 1)
        };
        Self {
            prefill: prefill_host(2),
            decode: decode_host(2),
            senders: (0..2).map(sender).collect(),
            receivers: (0..2).map(receiver).collect(),
        }
    }

    fn offer(&mut self, skips: bool) {
        let (request, transfer) = (request("r"), transfer("r"));
        let share = self
            .prefill
            .new_request(&request, &transfer, ids(10), skips);
        assert_eq!(share.unwrap().kept().held(), tokens(u32::from(!skips)));
        let taken = self
            .decode
            .new_request(&request, &transfer, source(), ids(10), skips);
        taken.unwrap();
    }

    fn load(&mut self) -> TokenCount {
        let matched = self
            .decode
            .matched_tokens(&request("r"), tokens(0))
            .unwrap();
        let tables = tables(&[20, 21, 22], &[23]);
        self.decode
            .blocks_allocated(&request("r"), tables, matched.load())
            .unwrap();
        matched.load()
    }

    fn finish(&mut self, finish: PrefillFinish) -> Blocks {
        self.prefill.finished(&request("r"), finish).unwrap()
    }

    fn sent(&mut self, count: u32) -> Blocks {
        self.finish(PrefillFinish::Length(computed(count)))
    }

    /// Steps both engines, and carries everything out until nothing is left to do.
    fn run(&mut self) {
        for order in self.prefill.step() {
            for (rank, machine) in (0..).zip(&mut self.senders) {
                if let Err(error) = machine.handle(NOW, order.event()) {
                    self.prefill.rejected(rank, &order, error);
                }
            }
        }
        for order in self.decode.step() {
            for rank in 0..2 {
                self.obey(rank, &order);
            }
        }
        let mut busy = true;
        while busy {
            busy = false;
            for rank in 0..2 {
                while let Some(command) = self.receivers[usize::from(rank)].poll() {
                    busy = true;
                    self.received(rank, command);
                }
                while let Some(command) = self.senders[usize::from(rank)].poll() {
                    busy = true;
                    self.sending(rank, command);
                }
            }
        }
    }

    fn obey(&mut self, rank: u16, order: &DecodeOrder) {
        let machine = &mut self.receivers[usize::from(rank)];
        if let Err(error) = machine.handle(NOW, order.event())
            && let Some(next) = self.decode.rejected(rank, order, error)
        {
            self.obey(rank, &next);
        }
    }

    fn received(&mut self, rank: u16, command: DecodeCommand) {
        let (sender, receiver) = (
            &mut self.senders[usize::from(rank)],
            &mut self.receivers[usize::from(rank)],
        );
        match command {
            DecodeCommand::Resolve { source } => {
                let result = Ok(Resolved::new(Generation::new(1), 1, Dialect::Own).unwrap());
                let event = DecodeEvent::Resolved { source, result };
                receiver.handle(NOW, event).unwrap();
            }
            DecodeCommand::Pull { pull, .. } => {
                sender.handle(NOW, PrefillEvent::Pulled(pull)).unwrap();
            }
            DecodeCommand::Cancel { cancel, .. } => {
                sender.handle(NOW, PrefillEvent::Cancelled(cancel)).unwrap();
            }
            DecodeCommand::Fence { .. } => panic!("nobody is silent"),
            DecodeCommand::Ended {
                request,
                transfer,
                outcome,
                ..
            } => self.decode.ended(rank, &request, &transfer, outcome),
        }
    }

    fn sending(&mut self, rank: u16, command: PrefillCommand) {
        let (sender, receiver) = (
            &mut self.senders[usize::from(rank)],
            &mut self.receivers[usize::from(rank)],
        );
        match command {
            PrefillCommand::Transfer { attempt, .. } => {
                let event = PrefillEvent::Settled {
                    attempt,
                    result: Ok(()),
                    proof: Quiescence::witnessed(),
                };
                sender.handle(NOW, event).unwrap();
            }
            PrefillCommand::Drain { .. } => {}
            PrefillCommand::Answer(answer) => {
                let event = DecodeEvent::Answered {
                    source: source(),
                    sender: 0,
                    answer,
                };
                receiver.handle(NOW, event).unwrap();
            }
            PrefillCommand::Ended {
                request,
                transfer,
                outcome,
                ..
            } => self.prefill.ended(rank, &request, &transfer, outcome),
        }
    }

    /// How both ended; each once.
    fn ends(&mut self) -> (Option<PrefillEnd>, Option<DecodeEnd>) {
        let ends = (
            self.prefill.poll().map(|result| result.end),
            self.decode.poll().map(|result| result.end),
        );
        assert_eq!((self.prefill.poll(), self.decode.poll()), (None, None));
        ends
    }

    /// The decode engine finishes too, and nothing is remembered.
    fn close(mut self, finish: DecodeFinish) {
        assert_eq!(
            self.decode.finished(&request("r"), finish),
            Ok(Blocks::Free)
        );
        self.run();
        assert_eq!((self.prefill.live(), self.decode.live()), (0, 0));
        let leases = self.senders.iter().map(Prefill::leases).sum::<usize>();
        assert_eq!(
            leases + self.receivers.iter().map(Decode::leases).sum::<usize>(),
            0
        );
    }
}

fn all_but_one() -> DecodeEnd {
    DecodeEnd::Loaded {
        computed: tokens(9),
        run_as_prompt: tokens(1),
        run_again: tokens(0),
        first_token: None,
    }
}

#[test]
fn c30_nine_of_ten_elements_go_over_and_one_is_left() {
    for pull_first in [false, true] {
        let mut engines = Engines::new(PrefillLimits::default());
        engines.offer(false);
        for turn in [pull_first, !pull_first] {
            if turn {
                assert_eq!(engines.load(), tokens(9));
            } else {
                assert_eq!(engines.sent(9), Blocks::Hold);
            }
            engines.run();
        }
        assert_eq!(
            engines.ends(),
            (Some(PrefillEnd::Delivered), Some(all_but_one()))
        );
        engines.close(DecodeFinish::Length);
    }
}

#[test]
fn c37_a_request_that_skips_the_prefix_cache_releases_prefill() {
    let mut engines = Engines::new(PrefillLimits::default());
    engines.offer(true);
    assert_eq!(engines.load(), tokens(0));
    assert_eq!(engines.sent(10), Blocks::Hold);
    engines.run();
    assert_eq!(engines.ends(), (Some(PrefillEnd::Released), None));
    engines.close(DecodeFinish::Stop);
}

#[test]
fn c43_prefills_abort_ends_decodes_load() {
    let mut engines = Engines::new(PrefillLimits::default());
    engines.offer(false);
    engines.load();
    engines.run();
    assert_eq!(engines.finish(PrefillFinish::Abort), Blocks::Free);
    engines.run();
    let (prefill, decode) = engines.ends();
    assert_eq!(prefill, Some(PrefillEnd::Failed(PrefillFailure::Aborted)));
    let failure = Failure::Refused(Refusal::Aborted);
    let failure = DecodeFailure::Rank { rank: 0, failure };
    assert_eq!(decode, Some(DecodeEnd::Failed(failure)));
    engines.close(DecodeFinish::Error);
}

#[test]
fn c40_decodes_abort_ends_prefills_request() {
    let mut engines = Engines::new(PrefillLimits::default());
    engines.offer(false);
    engines.load();
    engines.run();
    let held = engines.decode.finished(&request("r"), DecodeFinish::Abort);
    assert_eq!(held, Ok(Blocks::Hold));
    engines.run();
    let result = engines.decode.poll().unwrap();
    assert!(result.returns_blocks && engines.decode.live() == 0);
    assert_eq!(result.end, DecodeEnd::Failed(DecodeFailure::Aborted));
    // Nobody wants it any more.
    engines.sent(9);
    engines.run();
    let failure = Failure::Cancelled;
    let failure = PrefillFailure::Rank { rank: 0, failure };
    assert_eq!(engines.ends(), (Some(PrefillEnd::Failed(failure)), None));
    assert_eq!(engines.prefill.live(), 0);
}

#[test]
fn blocks_that_a_rank_refuses_end_both_sides() {
    let mut engines = Engines::new(PrefillLimits::default());
    engines.offer(false);
    engines.load();
    // No such block.
    let wrong = Computed {
        tables: tables(&[64], &[14]),
        ..computed(9)
    };
    assert_eq!(engines.finish(PrefillFinish::Length(wrong)), Blocks::Hold);
    engines.run();
    assert_eq!(engines.ends(), (None, None));
    engines.run();
    let (prefill, decode) = engines.ends();
    assert!(
        matches!(
            prefill,
            Some(PrefillEnd::Failed(PrefillFailure::Rejected { rank: 0, .. }))
        ),
        "{prefill:?}"
    );
    assert!(matches!(decode, Some(DecodeEnd::Failed(_))), "{decode:?}");
    engines.close(DecodeFinish::Error);
}

#[test]
fn a_load_that_a_rank_refuses_ends_both_sides() {
    let mut engines = Engines::new(PrefillLimits::default());
    engines.offer(false);
    engines
        .decode
        .matched_tokens(&request("r"), tokens(0))
        .unwrap();
    let wrong = tables(&[20, 20], &[23]);
    engines
        .decode
        .blocks_allocated(&request("r"), wrong, tokens(9))
        .unwrap();
    engines.sent(9);
    engines.run();
    let (prefill, decode) = engines.ends();
    assert!(
        matches!(
            decode,
            Some(DecodeEnd::Failed(DecodeFailure::Rejected { .. }))
        ),
        "{decode:?}"
    );
    // It does not wait for a pull that never comes.
    assert_eq!(prefill, Some(PrefillEnd::Released));
    engines.close(DecodeFinish::Error);
}

#[test]
fn a_rank_that_is_full_fails_the_request_on_both_sides() {
    let mut engines = Engines::new(PrefillLimits {
        live: 0,
        ..PrefillLimits::default()
    });
    engines.offer(false);
    engines.run();
    assert!(engines.prefill.is_over(&request("r")));
    assert_eq!(
        engines.prefill.finished(
            &request("r"),
            PrefillFinish::Length(Computed {
                tables: blocks(),
                ..computed(9)
            })
        ),
        Ok(Blocks::Free)
    );
    let (prefill, _) = engines.ends();
    assert!(matches!(
        prefill,
        Some(PrefillEnd::Failed(PrefillFailure::Rejected { rank: 0, .. }))
    ));
}
