//! A decode engine's scheduler and its ranks.

use mooncake_pd_connector::{
    Blocks, DecodeEnd, DecodeError, DecodeFailure, DecodeFinish, DecodeHost, DecodeOrder,
    DecodeOutcome, DecodeResult, Failure, Fault, HandOff, HandOffPoint, HostError, PromptInput,
    Ranks, TokenCount,
};

use super::{blocks, decode_host, gdn, ids, limits, loaded, request, source, tokens, transfer};

fn offer(host: &mut DecodeHost, name: &str, skips: bool) {
    let taken = host.new_request(&request(name), &transfer(name), source(), ids(10), skips);
    taken.unwrap();
}

fn matched(host: &mut DecodeHost, name: &str, local: u32) -> TokenCount {
    host.matched_tokens(&request(name), tokens(local))
        .unwrap()
        .load()
}

fn allocate(host: &mut DecodeHost, name: &str, load: TokenCount) {
    host.blocks_allocated(&request(name), blocks(), load)
        .unwrap();
}

/// A host with a request that loads all but the last of ten elements.
fn loading(ranks: u16) -> DecodeHost {
    let mut host = decode_host(ranks);
    offer(&mut host, "r", false);
    let load = matched(&mut host, "r", 4);
    assert_eq!(load, tokens(5));
    allocate(&mut host, "r", load);
    assert_eq!(orders(&mut host), ["load 9"]);
    host
}

fn ended(host: &mut DecodeHost, rank: u16, outcome: DecodeOutcome) {
    host.ended(rank, &request("r"), &transfer("r"), outcome);
}

fn orders(host: &mut DecodeHost) -> Vec<String> {
    let orders = host.step().into_iter().map(|order| match order {
        DecodeOrder::Load(load) => format!("load {}", load.expects),
        DecodeOrder::Release { .. } => "release".into(),
        DecodeOrder::Aborted { .. } => "aborted".into(),
    });
    orders.collect()
}

fn failed(failure: DecodeFailure, returns_blocks: bool) -> DecodeResult {
    DecodeResult {
        request: request("r"),
        transfer: transfer("r"),
        end: DecodeEnd::Failed(failure),
        returns_blocks,
    }
}

fn of_rank(rank: u16, failure: Failure) -> DecodeFailure {
    DecodeFailure::Rank { rank, failure }
}

#[test]
fn c30_what_is_left_is_stated_as_prompt() {
    let mut host = loading(1);
    ended(&mut host, 0, loaded(10, 9));
    let result = host.poll().unwrap();
    let end = DecodeEnd::Loaded {
        computed: tokens(9),
        run_as_prompt: tokens(1),
        run_again: tokens(0),
        first_token: None,
    };
    assert_eq!((result.end, result.returns_blocks), (end, false));
    assert_eq!((host.poll(), host.live()), (None, 1));
    assert_eq!(
        host.finished(&request("r"), DecodeFinish::Stop),
        Ok(Blocks::Free)
    );
    assert_eq!((host.live(), orders(&mut host).len()), (0, 0));
    assert_eq!((host.metrics().started, host.metrics().done), (1, 1));
}

#[test]
fn c33_a_preempted_request_does_not_load_again() {
    let mut host = loading(1);
    ended(&mut host, 0, loaded(10, 9));
    host.poll().unwrap();
    offer(&mut host, "r", false);
    let matched = host.matched_tokens(&request("r"), tokens(0)).unwrap();
    assert_eq!(
        (matched.load(), matched.run_as_prompt()),
        (tokens(0), tokens(10))
    );
    allocate(&mut host, "r", tokens(0));
    assert!(orders(&mut host).is_empty());
    let error = host
        .blocks_allocated(&request("r"), blocks(), tokens(9))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "request r got blocks to load 9 elements, 0 were to be loaded"
    );
}

#[test]
fn a_request_that_is_looked_at_often_is_loaded_as_it_was_last_told() {
    let mut host = decode_host(1);
    offer(&mut host, "r", false);
    assert_eq!(matched(&mut host, "r", 0), tokens(9));
    assert_eq!(matched(&mut host, "r", 8), tokens(1));
    let error = host.blocks_allocated(&request("r"), blocks(), tokens(9));
    assert!(matches!(error, Err(HostError::Load { .. })));
    allocate(&mut host, "r", tokens(1));
    assert_eq!(orders(&mut host), ["load 9"]);
}

#[test]
fn c37_a_request_that_needs_nothing_releases_prefill_once() {
    // All cached, prompt logprobs, and a scheduler that computes all the same.
    for (skips, local, load) in [(false, 9, 0), (true, 0, 0), (false, 0, 9)] {
        let mut host = decode_host(2);
        offer(&mut host, "r", skips);
        assert_eq!(matched(&mut host, "r", local), tokens(load));
        allocate(&mut host, "r", tokens(0));
        assert_eq!(matched(&mut host, "r", 0), tokens(0));
        allocate(&mut host, "r", tokens(0));
        assert_eq!(orders(&mut host), ["release"]);
        assert_eq!(
            host.finished(&request("r"), DecodeFinish::Length),
            Ok(Blocks::Free)
        );
        assert_eq!((host.poll(), host.live()), (None, 0));
    }
}

#[test]
fn a_request_that_never_got_blocks_releases_prefill() {
    for ask in [false, true] {
        let mut host = decode_host(1);
        offer(&mut host, "r", false);
        if ask {
            matched(&mut host, "r", 0);
        }
        let early = host
            .finished(&request("r"), DecodeFinish::Length)
            .unwrap_err();
        assert_eq!(
            early.to_string(),
            "finished of request r, which is waiting for blocks: expected blocks_allocated"
        );
        assert_eq!(
            host.finished(&request("r"), DecodeFinish::Abort),
            Ok(Blocks::Free)
        );
        assert_eq!(orders(&mut host), ["release"]);
        assert_eq!((host.poll(), host.live()), (None, 0));
    }
}

#[test]
fn c40_blocks_of_a_load_that_is_given_up_are_held_until_it_has_ended() {
    let mut host = loading(2);
    assert_eq!(
        host.finished(&request("r"), DecodeFinish::Abort),
        Ok(Blocks::Hold)
    );
    assert_eq!(orders(&mut host), ["aborted"]);
    let again = host.finished(&request("r"), DecodeFinish::Abort);
    assert!(matches!(again, Err(HostError::OutOfTurn { .. })));
    // Also when it was in place already.
    ended(&mut host, 0, loaded(10, 9));
    assert_eq!((host.poll(), host.live()), (None, 1));
    ended(&mut host, 1, DecodeOutcome::Failed(Failure::Aborted));
    assert_eq!(host.poll(), Some(failed(DecodeFailure::Aborted, true)));
    assert_eq!((host.poll(), host.live()), (None, 0));
}

#[test]
fn blocks_are_held_also_while_only_the_result_waits() {
    let mut host = loading(1);
    ended(&mut host, 0, loaded(10, 9));
    assert_eq!(
        host.finished(&request("r"), DecodeFinish::Abort),
        Ok(Blocks::Hold)
    );
    assert!(orders(&mut host).is_empty());
    assert_eq!(host.poll(), Some(failed(DecodeFailure::Aborted, true)));
    assert_eq!((host.poll(), host.live()), (None, 0));
}

#[test]
fn c47_the_first_failure_of_all_ranks_is_the_result_after_the_last_has_ended() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut host = loading(3);
        for rank in order {
            assert_eq!(host.poll(), None);
            let outcome = if rank == 1 {
                DecodeOutcome::Failed(Failure::Undelivered)
            } else {
                loaded(10, 9)
            };
            ended(&mut host, rank, outcome.clone());
            ended(&mut host, rank, outcome);
        }
        assert_eq!(
            host.poll(),
            Some(failed(of_rank(1, Failure::Undelivered), false))
        );
        assert_eq!((host.poll(), host.metrics().unknown_ends), (None, 3));
        // Ranks that still load are told at once, and once.
        let told = usize::from(order[2] != 1);
        assert_eq!(orders(&mut host), vec!["aborted"; told]);
    }
}

#[test]
fn ranks_are_told_to_give_up_once() {
    let mut host = loading(3);
    ended(&mut host, 0, DecodeOutcome::Failed(Failure::Undelivered));
    ended(&mut host, 1, DecodeOutcome::Failed(Failure::Cancelled));
    assert_eq!(
        host.finished(&request("r"), DecodeFinish::Abort),
        Ok(Blocks::Hold)
    );
    assert_eq!(orders(&mut host), ["aborted"]);
    ended(&mut host, 2, DecodeOutcome::Failed(Failure::Aborted));
    assert_eq!(
        host.poll(),
        Some(failed(of_rank(0, Failure::Undelivered), true))
    );
}

#[test]
fn c49_a_failed_load_is_reported_once_and_covers_nothing() {
    let mut host = loading(1);
    ended(&mut host, 0, DecodeOutcome::Failed(Failure::Cancelled));
    assert_eq!(
        host.poll(),
        Some(failed(of_rank(0, Failure::Cancelled), false))
    );
    assert_eq!((host.poll(), host.metrics().failed), (None, 1));
    // The engine computes what it has not, or fails the request.
    let matched = host.matched_tokens(&request("r"), tokens(4)).unwrap();
    assert_eq!(
        (matched.load(), matched.run_as_prompt()),
        (tokens(0), tokens(6))
    );
    allocate(&mut host, "r", tokens(0));
    assert!(orders(&mut host).is_empty());
    assert_eq!(
        host.finished(&request("r"), DecodeFinish::Error),
        Ok(Blocks::Free)
    );
}

#[test]
fn a_rank_that_refuses_a_load_lets_prefill_go() {
    for (error, fault, releases) in [
        (
            DecodeError::RequestTaken {
                request: request("r"),
            },
            Fault::Caller,
            true,
        ),
        (DecodeError::Full { live: 1, limit: 1 }, Fault::Limit, false),
    ] {
        let mut host = decode_host(2);
        offer(&mut host, "r", false);
        let load = matched(&mut host, "r", 0);
        allocate(&mut host, "r", load);
        let order = host.step().remove(0);
        let follow_up = host.rejected(1, &order, error.clone());
        let release = DecodeOrder::Release {
            request: request("r"),
            transfer: transfer("r"),
            source: source(),
        };
        assert_eq!(follow_up, releases.then_some(release.clone()));
        assert_eq!(orders(&mut host), ["aborted"]);
        // Too late, twice, and not about a load.
        assert_eq!(host.rejected(1, &order, error.clone()), None);
        assert_eq!(host.rejected(1, &release, error.clone()), None);
        assert_eq!(host.poll(), None);
        ended(&mut host, 0, DecodeOutcome::Failed(Failure::Aborted));
        let failure = DecodeFailure::Rejected { rank: 1, error };
        assert_eq!(failure.fault(), fault);
        assert_eq!(host.poll(), Some(failed(failure, false)));
        assert_eq!(
            (host.metrics().rejected, host.metrics().late_orders),
            (1, 2)
        );
    }
}

#[test]
fn a_load_that_is_not_what_was_asked_for_fails() {
    let mut host = loading(1);
    ended(&mut host, 0, loaded(10, 10));
    let failure = of_rank(
        0,
        Failure::HandOff {
            prefill: tokens(10),
            decode: tokens(9),
        },
    );
    assert_eq!(failure.fault(), Fault::IncompatiblePeer);
    assert_eq!(host.poll(), Some(failed(failure, false)));

    // A prompt of another length may be kept to the same one.
    let mut host = loading(1);
    ended(&mut host, 0, loaded(11, 9));
    let failure = DecodeFailure::Prompt {
        rank: 0,
        prefill: tokens(11),
        decode: tokens(10),
    };
    assert_eq!(
        failure.to_string(),
        "rank 0: prefill's prompt has 11 elements, decode's 10"
    );
    assert_eq!(host.poll(), Some(failed(failure, false)));
}

#[test]
fn a_stock_peer_that_says_nothing_is_believed() {
    let mut host = loading(1);
    let computed = tokens(9);
    ended(
        &mut host,
        0,
        DecodeOutcome::Loaded {
            computed,
            hand_off: None,
        },
    );
    assert!(matches!(host.poll().unwrap().end, DecodeEnd::Loaded { .. }));
}

fn with_token(token: Option<u32>) -> DecodeOutcome {
    let ten = tokens(10);
    let hand_off = token.map(|token| {
        HandOff::new(HandOffPoint::FirstToken, ten, ten, Some(ten), Some(token)).unwrap()
    });
    DecodeOutcome::Loaded {
        computed: ten,
        hand_off,
    }
}

#[test]
fn a_first_token_comes_from_every_rank_and_is_the_same() {
    let cases = [
        ([Some(7), Some(7)], Ok(7)),
        (
            [Some(7), Some(8)],
            Err("rank 1: the first token is 8, another rank has 7"),
        ),
        (
            [Some(7), None],
            Err("rank 1: a first token is not given by prefill and expected by decode"),
        ),
    ];
    for (given, expected) in cases {
        let mut host = DecodeHost::new(
            gdn(HandOffPoint::FirstToken),
            Ranks::new(2).unwrap(),
            limits(),
            1,
        );
        offer(&mut host, "r", false);
        assert_eq!(matched(&mut host, "r", 0), tokens(10));
        allocate(&mut host, "r", tokens(10));
        for (rank, token) in (0..).zip(given) {
            ended(&mut host, rank, with_token(token));
        }
        let end = host.poll().unwrap().end;
        match (end, expected) {
            (
                DecodeEnd::Loaded {
                    first_token,
                    run_as_prompt,
                    run_again,
                    ..
                },
                Ok(token),
            ) => {
                assert_eq!(first_token, Some(token));
                assert!(run_as_prompt.is_zero() && run_again.is_zero());
                // It has its first token, and needs no element for another.
                let matched = host.matched_tokens(&request("r"), tokens(10)).unwrap();
                assert!(matched.run_again().is_zero());
            }
            (DecodeEnd::Failed(failure), Err(text)) => {
                assert_eq!(failure.to_string(), text);
                let matched = host.matched_tokens(&request("r"), tokens(10)).unwrap();
                assert_eq!(matched.run_again(), tokens(1));
            }
            (end, expected) => panic!("{end:?} {expected:?}"),
        }
    }
    // To who runs the last element itself, it is another point.
    let mut host = DecodeHost::new(gdn(HandOffPoint::Recompute), Ranks::ONE, limits(), 1);
    let embeddings = PromptInput::Embeddings(tokens(11));
    host.new_request(&request("r"), &transfer("r"), source(), embeddings, false)
        .unwrap();
    assert_eq!(matched(&mut host, "r", 0), tokens(10));
    allocate(&mut host, "r", tokens(10));
    ended(&mut host, 0, with_token(Some(7)));
    assert!(matches!(
        host.poll().unwrap().end,
        DecodeEnd::Failed(DecodeFailure::Prompt { .. })
    ));
}

#[test]
fn calls_out_of_turn_are_refused_and_change_nothing() {
    let mut host = decode_host(1);
    let unknown = host.matched_tokens(&request("r"), tokens(0)).unwrap_err();
    assert_eq!(unknown.to_string(), "request r is not live");
    offer(&mut host, "r", false);
    let early = host
        .blocks_allocated(&request("r"), blocks(), tokens(0))
        .unwrap_err();
    assert_eq!(
        early.to_string(),
        "blocks_allocated of request r, which is new: expected matched_tokens"
    );
    let beyond = host.matched_tokens(&request("r"), tokens(11));
    assert!(matches!(beyond, Err(HostError::Counts { .. })));

    let mut host = loading(1);
    let asked = host.matched_tokens(&request("r"), tokens(0)).unwrap_err();
    assert_eq!(
        asked.to_string(),
        "matched_tokens of request r, which is loading: expected poll"
    );
    let allocated = host.blocks_allocated(&request("r"), blocks(), tokens(0));
    assert!(matches!(allocated, Err(HostError::OutOfTurn { .. })));
    let stopped = host.finished(&request("r"), DecodeFinish::Stop);
    assert!(matches!(stopped, Err(HostError::OutOfTurn { .. })));
    let changed = host.new_request(&request("r"), &transfer("r"), source(), ids(9), false);
    assert!(matches!(changed, Err(HostError::PromptChanged { .. })));
    let taken = host.new_request(&request("s"), &transfer("r"), source(), ids(9), false);
    assert!(matches!(taken, Err(HostError::TransferTaken { .. })));
    let empty = host.new_request(&request("s"), &transfer("s"), source(), ids(0), false);
    assert!(matches!(empty, Err(HostError::EmptyPrompt { .. })));
    ended(&mut host, 0, loaded(10, 9));
    assert!(matches!(host.poll().unwrap().end, DecodeEnd::Loaded { .. }));
}

#[test]
fn c42_ends_that_nobody_waits_for_are_counted() {
    let mut host = loading(1);
    for (rank, one, other) in [(1, "r", "r"), (0, "s", "r"), (0, "r", "s")] {
        host.ended(rank, &request(one), &transfer(other), loaded(10, 9));
    }
    assert_eq!((host.metrics().unknown_ends, host.poll()), (3, None));
}

#[test]
fn a_load_that_is_ordered_twice_goes_on() {
    let mut host = decode_host(1);
    offer(&mut host, "r", false);
    let load = matched(&mut host, "r", 0);
    allocate(&mut host, "r", load);
    let order = host.step().remove(0);
    let again = DecodeError::TransferTaken {
        transfer: transfer("r"),
        owner: Some(request("r")),
    };
    assert_eq!(host.rejected(0, &order, again), None);
    assert_eq!((host.poll(), host.metrics().late_orders), (None, 1));
    ended(&mut host, 0, loaded(10, 9));
    assert!(host.poll().is_some());
}

#[test]
fn a_prompt_with_states_is_never_all_cached() {
    let mut host = decode_host(1);
    offer(&mut host, "r", false);
    let error = host.matched_tokens(&request("r"), tokens(10)).unwrap_err();
    let text = "request r has 10 elements cached, at most 9 leave one to compute";
    assert_eq!(error.to_string(), text);
    assert!(host.matched_tokens(&request("r"), tokens(9)).is_ok());
}
