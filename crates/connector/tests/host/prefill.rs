//! A prefill engine's scheduler and its ranks.

use mooncake_pd_connector::{
    Accounting, Blocks, Computed, Failure, Fault, Flavour, HandOffPoint, HostError, PrefillEnd,
    PrefillError, PrefillFailure, PrefillFinish, PrefillHost, PrefillOrder, PrefillOutcome,
    PrefillResult, PromptInput, Ranks, TablesError,
};

use super::{computed, gdn, ids, layout, limits, prefill_host, request, tables, tokens, transfer};

fn offer(host: &mut PrefillHost, name: &str, count: u32) {
    let share = host.new_request(&request(name), &transfer(name), ids(count), false);
    assert_eq!(share.unwrap().kept().keep(), tokens((count - 1).max(1)));
}

fn length(count: u32) -> PrefillFinish {
    PrefillFinish::Length(computed(count))
}

fn ended(host: &mut PrefillHost, rank: u16, name: &str, outcome: PrefillOutcome) {
    host.ended(rank, &request(name), &transfer(name), outcome);
}

fn result(name: &str, end: PrefillEnd, returns_blocks: bool) -> PrefillResult {
    PrefillResult {
        request: request(name),
        transfer: transfer(name),
        end,
        returns_blocks,
    }
}

/// Kinds of orders.
fn orders(host: &mut PrefillHost) -> Vec<&'static str> {
    let orders = host.step().into_iter().map(|order| match order {
        PrefillOrder::Started { .. } => "started",
        PrefillOrder::Finished { .. } => "finished",
        PrefillOrder::Aborted { .. } => "aborted",
    });
    orders.collect()
}

#[test]
fn c33_a_prompt_that_is_offered_again_is_held_back_once() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    // As it was, and as the engine has cut it.
    offer(&mut host, "r", 10);
    let cut = host.new_request(&request("r"), &transfer("r"), ids(9), false);
    assert_eq!(cut.unwrap().kept().keep(), tokens(9));
    assert_eq!(orders(&mut host), ["started"]);
    for other in [ids(8), ids(11), PromptInput::Embeddings(tokens(10))] {
        let error = host.new_request(&request("r"), &transfer("r"), other, false);
        assert!(
            matches!(error, Err(HostError::PromptChanged { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn c31_a_cached_prompt_is_handed_over_at_the_point_that_was_kept() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let matched = host.matched_tokens(&request("r"), tokens(8)).unwrap();
    assert_eq!(
        (matched.load(), matched.run_as_prompt()),
        (tokens(0), tokens(1))
    );
    assert_eq!(host.finished(&request("r"), length(9)), Ok(Blocks::Hold));
    let Some(PrefillOrder::Finished { hand_off, .. }) = host.step().pop() else {
        panic!("not handed over");
    };
    assert_eq!(
        (hand_off.computed(), hand_off.run_as_prompt()),
        (tokens(9), tokens(1))
    );
}

#[test]
fn c38_a_prompt_whose_first_token_ends_it_is_handed_over() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let stop = PrefillFinish::Stop(computed(9));
    assert_eq!(host.finished(&request("r"), stop), Ok(Blocks::Hold));
    assert_eq!(orders(&mut host), ["started", "finished"]);
    assert_eq!(host.poll(), None);
    ended(&mut host, 0, "r", PrefillOutcome::Delivered);
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Delivered, true)));
    assert_eq!((host.poll(), host.live()), (None, 0));
}

#[test]
fn c4_blocks_that_are_all_null_are_free_at_once() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let nothing = Computed {
        tables: tables(&[0, 0], &[0]),
        ..computed(9)
    };
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Length(nothing)),
        Ok(Blocks::Free)
    );
    // Decode's pull has to be answered all the same.
    assert_eq!(orders(&mut host), ["started", "finished"]);
    ended(&mut host, 0, "r", PrefillOutcome::Released);
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Released, false)));
}

#[test]
fn c43_decode_is_told_of_a_request_that_prefill_gives_up() {
    for finish in [PrefillFinish::Abort, PrefillFinish::Error] {
        let mut host = prefill_host(1);
        offer(&mut host, "r", 10);
        assert_eq!(host.finished(&request("r"), finish), Ok(Blocks::Free));
        assert_eq!(orders(&mut host), ["started", "aborted"]);
        ended(&mut host, 0, "r", PrefillOutcome::Failed(Failure::Aborted));
        let failed = PrefillEnd::Failed(PrefillFailure::Aborted);
        assert_eq!(host.poll(), Some(result("r", failed, false)));
    }
}

#[test]
fn held_blocks_of_a_request_that_is_given_up_come_back_with_its_result() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    host.finished(&request("r"), length(9)).unwrap();
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Abort),
        Ok(Blocks::Hold)
    );
    let again = host
        .finished(&request("r"), PrefillFinish::Abort)
        .unwrap_err();
    assert_eq!(
        again.to_string(),
        "finished of request r, which is finished: expected poll"
    );
    assert_eq!(orders(&mut host), ["started", "finished", "aborted"]);
    ended(&mut host, 0, "r", PrefillOutcome::Failed(Failure::Aborted));
    let failed = PrefillEnd::Failed(PrefillFailure::Aborted);
    assert_eq!(host.poll(), Some(result("r", failed, true)));
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Abort)
            .unwrap_err()
            .to_string(),
        "request r is not live"
    );
}

#[test]
fn c45_a_live_transfer_is_not_taken_again() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let taken = host.new_request(&request("s"), &transfer("r"), ids(5), false);
    assert_eq!(
        taken.unwrap_err().to_string(),
        "transfer r belongs to live request r"
    );
    let taken = host.new_request(&request("r"), &transfer("t"), ids(10), false);
    assert_eq!(
        taken.unwrap_err().to_string(),
        "request r is live with transfer r, not t"
    );
    host.finished(&request("r"), length(9)).unwrap();
    ended(&mut host, 0, "r", PrefillOutcome::Delivered);
    // Until its result was polled.
    assert!(
        host.new_request(&request("s"), &transfer("r"), ids(5), false)
            .is_err()
    );
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Delivered, true)));
    assert!(
        host.new_request(&request("s"), &transfer("r"), ids(5), false)
            .is_ok()
    );
}

#[test]
fn the_first_failure_of_all_ranks_is_the_result_after_the_last_has_ended() {
    let expired = Failure::Undelivered;
    let failed = || PrefillOutcome::Failed(Failure::Undelivered);
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut host = prefill_host(3);
        offer(&mut host, "r", 10);
        host.finished(&request("r"), length(9)).unwrap();
        for rank in order {
            assert_eq!(host.poll(), None);
            let outcome = match rank {
                0 => PrefillOutcome::Delivered,
                1 => failed(),
                _ => PrefillOutcome::Released,
            };
            ended(&mut host, rank, "r", outcome);
            // Said twice.
            ended(&mut host, rank, "r", failed());
        }
        let failure = PrefillFailure::Rank {
            rank: 1,
            failure: expired.clone(),
        };
        assert_eq!(
            (failure.fault(), failure.to_string()),
            (
                Fault::Transport,
                "rank 1: the pull could not be sent".into()
            )
        );
        assert_eq!(
            host.poll(),
            Some(result("r", PrefillEnd::Failed(failure), true))
        );
        assert_eq!(host.metrics().unknown_ends, 3);
        assert_eq!((host.metrics().failed, host.metrics().done), (1, 0));
    }
}

#[test]
fn one_rank_that_delivered_among_releases_makes_a_delivery() {
    let mut host = prefill_host(2);
    offer(&mut host, "r", 10);
    host.finished(&request("r"), length(9)).unwrap();
    ended(&mut host, 0, "r", PrefillOutcome::Delivered);
    ended(&mut host, 1, "r", PrefillOutcome::Released);
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Delivered, true)));
    assert_eq!(host.metrics().done, 1);
}

#[test]
fn a_request_that_its_ranks_end_first_waits_for_the_engine() {
    let mut host = prefill_host(2);
    offer(&mut host, "r", 10);
    ended(
        &mut host,
        0,
        "r",
        PrefillOutcome::Failed(Failure::Cancelled),
    );
    assert!(!host.is_over(&request("r")));
    ended(&mut host, 1, "r", PrefillOutcome::Released);
    assert!(host.is_over(&request("r")) && !host.is_over(&request("s")));
    assert_eq!(host.poll(), None);
    assert_eq!(orders(&mut host), ["started"]);
    assert_eq!(host.finished(&request("r"), length(9)), Ok(Blocks::Free));
    assert_eq!(orders(&mut host), [""; 0]);
    let failure = PrefillFailure::Rank {
        rank: 0,
        failure: Failure::Cancelled,
    };
    assert_eq!(
        host.poll(),
        Some(result("r", PrefillEnd::Failed(failure), false))
    );
}

#[test]
fn a_result_that_waits_is_not_changed_by_giving_up() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    host.finished(&request("r"), length(9)).unwrap();
    ended(&mut host, 0, "r", PrefillOutcome::Delivered);
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Abort),
        Ok(Blocks::Hold)
    );
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Delivered, true)));
    assert_eq!(host.poll(), None);
}

#[test]
fn a_rank_that_does_not_take_a_request_fails_it() {
    let mut host = prefill_host(2);
    offer(&mut host, "r", 10);
    let started = host.step().remove(0);
    let full = PrefillError::Full { live: 5, limit: 5 };
    host.rejected(1, &started, full.clone());
    assert_eq!(orders(&mut host), ["aborted"]);
    // The rank knows nothing of it.
    let aborted = PrefillOrder::Aborted {
        request: request("r"),
        transfer: transfer("r"),
    };
    let unknown = PrefillError::UnknownTransfer {
        request: request("r"),
        transfer: transfer("r"),
    };
    host.rejected(1, &aborted, unknown);
    assert_eq!(host.finished(&request("r"), length(9)), Ok(Blocks::Free));
    assert_eq!(orders(&mut host), [""; 0]);
    ended(&mut host, 0, "r", PrefillOutcome::Failed(Failure::Aborted));
    let failure = PrefillFailure::Rejected {
        rank: 1,
        error: full,
    };
    assert_eq!(failure.fault(), Fault::Limit);
    assert_eq!(
        host.poll(),
        Some(result("r", PrefillEnd::Failed(failure), false))
    );
    assert_eq!(
        (host.metrics().rejected, host.metrics().late_orders),
        (1, 1)
    );
}

#[test]
fn ranks_are_told_to_give_up_once_and_only_while_one_is_left() {
    let full = || PrefillError::Full { live: 5, limit: 5 };
    let mut host = prefill_host(3);
    offer(&mut host, "r", 10);
    let started = host.step().remove(0);
    host.rejected(0, &started, full());
    host.rejected(1, &started, full());
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Abort),
        Ok(Blocks::Free)
    );
    assert_eq!(orders(&mut host), ["aborted"]);

    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let started = host.step().remove(0);
    host.rejected(0, &started, full());
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Abort),
        Ok(Blocks::Free)
    );
    assert_eq!(orders(&mut host), [""; 0]);

    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    assert_eq!(host.step().len(), 1);
    ended(
        &mut host,
        0,
        "r",
        PrefillOutcome::Failed(Failure::Cancelled),
    );
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Error),
        Ok(Blocks::Free)
    );
    assert_eq!(orders(&mut host), [""; 0]);
}

#[test]
fn a_refusal_after_the_end_does_not_change_the_result() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    host.finished(&request("r"), length(9)).unwrap();
    let finished = host.step().remove(1);
    ended(&mut host, 0, "r", PrefillOutcome::Delivered);
    let error = PrefillError::Tables(TablesError::TooManyGroups { groups: 5000 });
    host.rejected(0, &finished, error);
    assert_eq!(host.metrics().late_orders, 1);
    assert_eq!(host.poll(), Some(result("r", PrefillEnd::Delivered, true)));
    assert_eq!(host.poll(), None);
}

#[test]
fn a_rank_that_refuses_blocks_still_ends_the_request() {
    let mut host = prefill_host(2);
    offer(&mut host, "r", 10);
    host.finished(&request("r"), length(9)).unwrap();
    let finished = host.step().remove(1);
    let error = PrefillError::Tables(TablesError::TooManyGroups { groups: 5000 });
    host.rejected(0, &finished, error.clone());
    assert_eq!(orders(&mut host), ["aborted"]);
    ended(&mut host, 1, "r", PrefillOutcome::Delivered);
    assert_eq!(host.poll(), None);
    ended(&mut host, 0, "r", PrefillOutcome::Failed(Failure::Aborted));
    let failure = PrefillFailure::Rejected { rank: 0, error };
    assert_eq!(failure.fault(), Fault::Caller);
    assert_eq!(
        host.poll(),
        Some(result("r", PrefillEnd::Failed(failure), true))
    );
    // Nobody is left to be refused.
    host.rejected(
        0,
        &finished,
        PrefillError::FinishedTwice {
            transfer: transfer("r"),
        },
    );
    assert_eq!(host.metrics().late_orders, 1);
}

#[test]
fn c42_ends_that_nobody_waits_for_are_counted() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    for (rank, one, other) in [(0, "s", "r"), (0, "r", "s"), (1, "r", "r"), (0, "s", "s")] {
        host.ended(
            rank,
            &request(one),
            &transfer(other),
            PrefillOutcome::Delivered,
        );
    }
    assert_eq!(host.metrics().unknown_ends, 4);
    assert!(!host.is_over(&request("r")));
}

#[test]
fn counts_that_make_no_hand_over_are_refused_and_change_nothing() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    // h(N) and the last element once more.
    let error = host.finished(&request("r"), length(10)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request r ended with 10 elements computed, 9 were to be kept"
    );
    let ahead = Computed {
        state: Some(tokens(10)),
        ..computed(9)
    };
    let error = host
        .finished(&request("r"), PrefillFinish::Length(ahead))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "request r: the state is that after 10 elements, the hand-off is at 9"
    );
    let token = Computed {
        first_token: Some(7),
        ..computed(9)
    };
    let error = host.finished(&request("r"), PrefillFinish::Length(token));
    assert!(matches!(error, Err(HostError::HandOff { .. })));
    let error = host.matched_tokens(&request("r"), tokens(10)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request r: 10 elements are cached of a prompt of 9"
    );
    assert_eq!(orders(&mut host), ["started"]);
    assert_eq!(host.finished(&request("r"), length(9)), Ok(Blocks::Hold));
    assert!(matches!(
        host.finished(&request("r"), length(9)),
        Err(HostError::OutOfTurn { .. })
    ));
    assert!(matches!(
        host.matched_tokens(&request("r"), tokens(0)),
        Err(HostError::OutOfTurn { .. })
    ));
}

#[test]
fn a_first_token_is_handed_over_with_the_whole_prompt() {
    let accounting = Accounting {
        flavour: Flavour::Mooncake,
        ..gdn(HandOffPoint::FirstToken)
    };
    let mut host = PrefillHost::new(accounting, layout(), Ranks::ONE, limits(), 1);
    let share = host.new_request(&request("r"), &transfer("r"), ids(10), false);
    assert_eq!(share.unwrap().kept().keep(), tokens(10));
    let without = host.finished(&request("r"), length(10));
    assert!(matches!(without, Err(HostError::HandOff { .. })));
    let with = Computed {
        first_token: Some(7),
        ..computed(10)
    };
    assert_eq!(
        host.finished(&request("r"), PrefillFinish::Stop(with)),
        Ok(Blocks::Hold)
    );
    let Some(PrefillOrder::Finished { hand_off, .. }) = host.step().pop() else {
        panic!("not handed over");
    };
    assert_eq!(hand_off.first_token(), Some(7));
}

#[test]
fn what_is_over_a_bound_is_refused() {
    let mut host = prefill_host(1);
    for name in ["a", "b", "c"] {
        offer(&mut host, name, 10);
    }
    let error = host.new_request(&request("d"), &transfer("d"), ids(10), false);
    assert_eq!(
        error.unwrap_err().to_string(),
        "3 requests are live, the limit is 3"
    );
    // Those that are live may still be offered.
    offer(&mut host, "c", 10);
    let error = host.new_request(&request("e"), &transfer("e"), ids(0), false);
    assert_eq!(
        error.unwrap_err().to_string(),
        "request e has an empty prompt"
    );

    let mut host = prefill_host(1);
    for _ in 0..50 {
        offer(&mut host, "r", 10);
        host.finished(&request("r"), PrefillFinish::Abort).unwrap();
        ended(&mut host, 0, "r", PrefillOutcome::Failed(Failure::Aborted));
        assert!(host.poll().is_some());
    }
    let error = host.new_request(&request("r"), &transfer("r"), ids(10), false);
    assert_eq!(
        error.unwrap_err().to_string(),
        "100 orders wait for a step, the limit is 100"
    );
    assert_eq!(host.step().len(), 100);
    offer(&mut host, "r", 10);
}

#[test]
fn a_request_that_is_ordered_twice_goes_on() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let started = host.step().remove(0);
    let again = PrefillError::TransferTaken {
        transfer: transfer("r"),
        owner: request("r"),
    };
    host.rejected(0, &started, again);
    assert_eq!(host.finished(&request("r"), length(9)), Ok(Blocks::Hold));
    let finished = host.step().remove(0);
    let again = PrefillError::FinishedTwice {
        transfer: transfer("r"),
    };
    host.rejected(0, &finished, again);
    assert_eq!((host.poll(), host.metrics().late_orders), (None, 2));
    // Another request's transfer is no repetition.
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let started = host.step().remove(0);
    let taken = PrefillError::TransferTaken {
        transfer: transfer("r"),
        owner: request("other"),
    };
    host.rejected(0, &started, taken);
    assert_eq!(host.metrics().rejected, 1);
}

#[test]
fn what_states_have_seen_has_to_be_said_and_one_element_left() {
    let mut host = prefill_host(1);
    offer(&mut host, "r", 10);
    let error = host.matched_tokens(&request("r"), tokens(9)).unwrap_err();
    let text = "request r has 9 elements cached, at most 8 leave one to compute";
    assert_eq!(error.to_string(), text);
    let computed = Computed {
        state: None,
        ..computed(9)
    };
    let error = host.finished(&request("r"), PrefillFinish::Length(computed));
    assert_eq!(
        error,
        Err(HostError::NoState {
            request: request("r")
        })
    );
}
