//! What is held back of a prompt, and who computes what then.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "numbers of a test are small, and a panic is a failed test"
)]

use mooncake_pd_connector::{
    Accounting, AccountingError, Flavour, HandOff, HandOffPoint, Holdback, HoldbackError,
    MAX_LOOK_AHEAD, PromptInput, TokenCount,
};
use quickcheck::{Arbitrary, Gen, quickcheck};

const KINDS: [fn(TokenCount) -> PromptInput; 2] = [PromptInput::TokenIds, PromptInput::Embeddings];
const FLAVOURS: [Flavour; 3] = [
    Flavour::Own,
    Flavour::Mooncake,
    Flavour::Nixl {
        recompute_threshold: Flavour::STOCK_THRESHOLD,
    },
];

fn tokens(count: u32) -> TokenCount {
    TokenCount::new(count)
}

fn ids(count: u32) -> PromptInput {
    PromptInput::TokenIds(tokens(count))
}

fn gdn() -> Holdback {
    Holdback::plain().gdn()
}

/// A model whose window is `window`.
fn windowed(model: Holdback, window: u32) -> Holdback {
    model.look_ahead(tokens(window + 1)).unwrap()
}

fn terms(holdback: Holdback, flavour: Flavour) -> Accounting {
    Accounting {
        holdback,
        flavour,
        point: HandOffPoint::Recompute,
    }
}

fn keep(terms: Accounting, prompt: PromptInput) -> u32 {
    terms.prefill(prompt, false).kept().keep().get()
}

/// What decode loads, and what it runs as prompt, with `local` elements cached.
fn decode(terms: Accounting, prompt: PromptInput, local: u32) -> (u32, u32) {
    let matched = terms.decode(prompt, false, tokens(local)).unwrap();
    (matched.load().get(), matched.run_as_prompt().get())
}

/// A recurrent state: the elements that it has seen, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State(Vec<u32>);

impl State {
    fn of(elements: u32) -> Self {
        Self((0..elements).collect())
    }

    fn run(&mut self, elements: std::ops::Range<u32>) {
        self.0.extend(elements);
    }
}

#[test]
fn c30_a_cold_prompt_is_left_with_one_element() {
    let terms = Accounting::mooncake(gdn());
    let share = terms.prefill(ids(10), false);
    assert_eq!(
        (share.kept().keep(), share.kept().held()),
        (tokens(9), tokens(1))
    );
    assert_eq!(share.max_tokens(), Some(1));
    let matched = terms.decode(ids(10), false, TokenCount::ZERO).unwrap();
    assert!(matched.is_asynchronous());
    assert_eq!((matched.load(), matched.start()), (tokens(9), tokens(9)));
    // As prompt, and none of it twice.
    assert_eq!(
        (matched.run_as_prompt(), matched.run_again()),
        (tokens(1), tokens(0))
    );
}

#[test]
fn c31_a_prompt_that_prefill_has_cached_leaves_it_one_element_to_compute() {
    for holdback in [Holdback::plain(), gdn(), windowed(gdn(), 3)] {
        for n in 1..12 {
            let terms = terms(holdback, Flavour::Own);
            let kept = terms.prefill(ids(n), false).kept();
            let matched = terms
                .read_back(kept.keep(), kept.most_cached(), None)
                .unwrap();
            assert_eq!(
                (matched.run_as_prompt(), matched.run_again()),
                (tokens(1), tokens(0))
            );
            assert_eq!(matched.start(), kept.most_cached());
        }
    }
    assert_eq!(keep(Accounting::mooncake(gdn()), ids(10)), 9);
}

#[test]
fn c32_embeddings_are_held_back_like_token_ids() {
    let rows = PromptInput::Embeddings(tokens(7));
    for flavour in FLAVOURS {
        assert_eq!(keep(terms(gdn(), flavour), rows), 6, "{flavour:?}");
    }
    assert_eq!(decode(Accounting::mooncake(gdn()), rows, 0), (6, 1));
    assert_eq!(decode(terms(gdn(), Flavour::Own), rows, 0), (6, 1));
    // Stock loads nothing of them, and whoever counts as stock has to as well.
    assert_eq!(decode(terms(gdn(), Flavour::nixl()), rows, 0), (0, 7));
}

#[test]
fn c34_plain_attention_keeps_all() {
    let terms = Accounting::mooncake(Holdback::plain());
    assert_eq!(keep(terms, ids(10)), 10);
    let matched = terms.decode(ids(10), false, TokenCount::ZERO).unwrap();
    assert_eq!(
        (matched.load(), matched.run_as_prompt()),
        (tokens(10), tokens(0))
    );
    // The last one is run for its logits: as prompt, at its own position.
    assert_eq!(
        (matched.run_again(), matched.start()),
        (tokens(1), tokens(9))
    );
}

#[test]
fn c35_a_single_element_is_left_as_it_is() {
    for flavour in FLAVOURS {
        for holdback in [
            gdn(),
            Holdback::plain().bounded_replay(),
            windowed(gdn(), 3),
        ] {
            let terms = terms(holdback, flavour);
            assert_eq!(keep(terms, ids(1)), 1);
            // Run from an empty state, whatever was loaded.
            let matched = terms.decode(ids(1), false, TokenCount::ZERO).unwrap();
            assert_eq!(
                (matched.start(), matched.run_again()),
                (tokens(0), tokens(1))
            );
        }
    }
}

#[test]
fn c36_decode_loads_what_it_has_not_cached() {
    for flavour in FLAVOURS {
        let (gdn, plain) = (terms(gdn(), flavour), terms(Holdback::plain(), flavour));
        assert_eq!(decode(gdn, ids(10), 4), (5, 1));
        assert_eq!(decode(plain, ids(10), 4), (6, 0));
        // More than is handed over.
        assert_eq!(decode(gdn, ids(10), 9), (0, 1));
        assert_eq!(decode(gdn, ids(10), 10), (0, 0));
        let error = gdn.decode(ids(10), false, tokens(11)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "11 elements are cached of a prompt of 10"
        );
    }
}

#[test]
fn c37_a_request_that_skips_the_prefix_cache_is_exempt() {
    for flavour in FLAVOURS {
        let terms = terms(windowed(gdn(), 3), flavour);
        let share = terms.prefill(ids(10), true);
        assert!(share.kept().keep() == tokens(10) && share.kept().held().is_zero());
        let matched = terms.decode(ids(10), true, TokenCount::ZERO).unwrap();
        assert!(!matched.is_asynchronous());
        assert_eq!(
            (matched.run_as_prompt(), matched.start()),
            (tokens(10), tokens(0))
        );
    }
}

#[test]
fn c39_a_prompt_within_a_wide_window_is_left_with_one_element_for_states() {
    let wide = windowed(gdn(), 3);
    let own = terms(wide, Flavour::Own);
    let kept = own.prefill(ids(2), false).kept();
    assert_eq!((kept.keep(), kept.held()), (tokens(1), tokens(1)));
    assert!(!kept.look_ahead_state());
    assert_eq!(decode(own, ids(2), 0), (1, 1));
    assert_eq!(decode(terms(wide, Flavour::Mooncake), ids(2), 0), (1, 1));
    // As stock.
    let nixl = terms(wide, Flavour::nixl());
    assert_eq!(nixl.prefill(ids(2), false).kept().held(), tokens(0));
    assert_eq!(decode(nixl, ids(2), 0), (2, 0));
    // Once the window fits, look-ahead layers get their state.
    let kept = own.prefill(ids(4), false).kept();
    assert_eq!((kept.keep(), kept.held()), (tokens(1), tokens(3)));
    assert!(kept.look_ahead_state());
}

#[test]
fn c39_without_states_nothing_is_held_back_of_a_short_prompt() {
    let own = terms(windowed(Holdback::plain(), 3), Flavour::Own);
    let kept = own.prefill(ids(3), false).kept();
    assert_eq!((kept.keep(), kept.look_ahead_state()), (tokens(3), false));
    assert!(
        terms(Holdback::plain(), Flavour::Own)
            .prefill(ids(3), false)
            .kept()
            .look_ahead_state()
    );
}

/// Every prompt length around every window: prefill always has something to compute,
/// also with all cached that may be; decode's state has seen each element once.
#[test]
fn states_see_each_element_once_at_every_length_and_window() {
    for k in 0..=4 {
        for n in 1..=k + 3 {
            for kind in KINDS {
                for flavour in [Flavour::Own, Flavour::Mooncake] {
                    for cached in [false, true] {
                        let base = if k == 0 { Holdback::plain() } else { gdn() };
                        let terms = terms(windowed(base, k), flavour);
                        once_each(terms, kind(tokens(n)), cached);
                    }
                }
            }
        }
    }
}

fn once_each(terms: Accounting, prompt: PromptInput, cached: bool) {
    let n = prompt.count().get();
    let share = terms.prefill(prompt, false);
    let kept = share.kept();
    // Offered again, as it was or cut already.
    assert_eq!(terms.prefill(prompt, false), share);
    assert_eq!(kept.keep().get() + kept.held().get(), n);

    let local = if cached {
        kept.most_cached()
    } else {
        TokenCount::ZERO
    };
    let left = terms.read_back(kept.keep(), local, None).unwrap();
    assert!(
        !left.run_as_prompt().is_zero(),
        "nothing left of {prompt:?}"
    );
    let mut state = State::of(local.get());
    state.run(left.start().get()..kept.keep().get());
    assert_eq!(state, State::of(kept.keep().get()));

    for local in 0..=kept.keep().get() {
        let matched = terms.decode(prompt, false, tokens(local)).unwrap();
        // What decode expects is what prefill has.
        assert_eq!(matched.covered(), kept.keep());
        assert!(
            matched.start() < prompt.count(),
            "nothing to run: {prompt:?}"
        );
        if terms.holdback.has_states() {
            let mut state = if matched.start().is_zero() {
                State::of(0)
            } else {
                State::of(kept.keep().get())
            };
            state.run(matched.start().get()..n);
            assert_eq!(state, State::of(n), "{terms:?} {prompt:?} {local}");
        }
    }
}

#[test]
fn counting_as_stock_runs_an_element_twice_only_where_stock_does() {
    for k in 0..=4 {
        for n in 1..=k + 3 {
            let terms = terms(windowed(gdn(), k), Flavour::nixl());
            let matched = terms.decode(ids(n), false, TokenCount::ZERO).unwrap();
            let twice = !matched.run_again().is_zero() && !matched.start().is_zero();
            assert_eq!(twice, 1 < n && n <= k, "{k} {n}");
        }
    }
}

#[test]
fn a_hand_over_with_the_first_token_leaves_nothing() {
    for holdback in [Holdback::plain(), windowed(gdn(), 3)] {
        let terms = Accounting {
            holdback,
            flavour: Flavour::Own,
            point: HandOffPoint::FirstToken,
        };
        let share = terms.prefill(ids(10), false);
        assert_eq!(
            (share.kept().keep(), share.max_tokens()),
            (tokens(10), Some(1))
        );
        let matched = terms.decode(ids(10), false, tokens(4)).unwrap();
        assert_eq!((matched.load(), matched.start()), (tokens(6), tokens(10)));
        assert_eq!(
            (matched.run_as_prompt(), matched.run_again()),
            (tokens(0), tokens(0))
        );
        // Nothing comes of a prompt that decode has, and no token either.
        let matched = terms.decode(ids(10), false, tokens(10)).unwrap();
        assert_eq!(
            (matched.load(), matched.run_again()),
            (tokens(0), tokens(1))
        );
    }
}

#[test]
fn of_nothing_nothing_is_run() {
    for flavour in FLAVOURS {
        let terms = terms(gdn(), flavour);
        assert_eq!(keep(terms, ids(0)), 0);
        let matched = terms.decode(ids(0), false, TokenCount::ZERO).unwrap();
        assert!(!matched.is_asynchronous() && matched.run_again().is_zero());
    }
}

#[test]
fn a_window_has_a_limit() {
    assert!(gdn().look_ahead(MAX_LOOK_AHEAD).is_ok());
    let look_ahead = tokens(MAX_LOOK_AHEAD.get() + 1);
    let error = gdn().look_ahead(look_ahead).unwrap_err();
    assert_eq!(error, HoldbackError::LookAhead { look_ahead });
    assert_eq!(
        error.to_string(),
        "1025 look-ahead tokens, the limit is 1024"
    );
}

#[test]
fn read_back_stops_at_what_is_kept_and_at_the_threshold() {
    let terms = terms(
        gdn(),
        Flavour::Nixl {
            recompute_threshold: tokens(4),
        },
    );
    let load = |local, offered| {
        terms
            .read_back(tokens(9), tokens(local), offered)
            .unwrap()
            .load()
    };
    assert_eq!(load(0, Some(tokens(20))), tokens(9));
    assert_eq!(load(5, Some(tokens(9))), tokens(4));
    assert_eq!(load(6, Some(tokens(9))), tokens(0));
    assert_eq!(load(8, Some(tokens(7))), tokens(0));
    assert_eq!(load(0, None), tokens(0));
    let error = terms.read_back(tokens(9), tokens(10), None).unwrap_err();
    let (local, prompt) = (tokens(10), tokens(9));
    assert_eq!(error, AccountingError::BeyondPrompt { local, prompt });
}

#[derive(Clone, Debug)]
struct Any {
    terms: Accounting,
    prompt: PromptInput,
    skips: bool,
    local: TokenCount,
}

impl Arbitrary for Any {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut holdback = *g
            .choose(&[Holdback::plain(), gdn(), Holdback::plain().bounded_replay()])
            .unwrap();
        holdback = holdback
            .look_ahead(tokens(u32::from(u8::arbitrary(g)) % 9))
            .unwrap();
        let flavour = *g.choose(&FLAVOURS).unwrap();
        let point = *g
            .choose(&[HandOffPoint::Recompute, HandOffPoint::FirstToken])
            .unwrap();
        let n = if bool::arbitrary(g) {
            u32::from(u8::arbitrary(g)) % 12 + 1
        } else {
            u32::arbitrary(g).max(1)
        };
        Self {
            terms: Accounting {
                holdback,
                flavour,
                point,
            },
            prompt: KINDS[usize::from(bool::arbitrary(g))](tokens(n)),
            skips: u8::arbitrary(g) % 4 == 0,
            local: tokens(u32::arbitrary(g) % n),
        }
    }
}

quickcheck! {
    fn nothing_is_counted_twice_and_nothing_is_missing(any: Any) -> bool {
        let matched = any.terms.decode(any.prompt, any.skips, any.local).unwrap();
        let parts = [any.local, matched.load(), matched.run_as_prompt()];
        let sum: u64 = parts.into_iter().map(u64::from).sum();
        let run = matched.run_as_prompt().get() + matched.run_again().get();
        sum == u64::from(any.prompt.count())
            && matched.start().get() + run == any.prompt.count().get()
            && matched.run_again() <= TokenCount::ONE
    }

    fn prefill_and_decode_share_every_prompt(any: Any) -> bool {
        let kept = any.terms.prefill(any.prompt, any.skips).kept();
        let matched = any.terms.decode(any.prompt, any.skips, any.local).unwrap();
        let whole = kept.keep().get() + kept.held().get() == any.prompt.count().get();
        whole && (!matched.is_asynchronous()
            || matched.covered() == kept.keep()
                && kept.keep().get() + matched.run_as_prompt().get() == any.prompt.count().get())
    }

    fn what_decode_expects_is_a_hand_over_that_prefill_can_make(any: Any) -> bool {
        let matched = any.terms.decode(any.prompt, any.skips, any.local).unwrap();
        if !matched.is_asynchronous() {
            return true;
        }
        let kept = any.terms.prefill(any.prompt, any.skips).kept();
        let token = (any.terms.point == HandOffPoint::FirstToken).then_some(7);
        let made = HandOff::new(any.terms.point, any.prompt.count(), kept.keep(), Some(kept.keep()), token);
        made.is_ok_and(|hand_off| {
            hand_off.computed() == matched.covered() && hand_off.run_as_prompt() == matched.run_as_prompt()
        })
    }

    fn something_is_always_left_to_compute_on_prefill(any: Any) -> bool {
        let kept = any.terms.prefill(any.prompt, any.skips).kept();
        let left = any.terms.read_back(kept.keep(), kept.most_cached(), None).unwrap();
        !kept.keep().is_zero() && left.run_as_prompt() == TokenCount::ONE
    }

    fn asking_again_changes_nothing(any: Any) -> bool {
        let share = any.terms.prefill(any.prompt, any.skips);
        (0..3).all(|_| any.terms.prefill(any.prompt, any.skips) == share)
    }
}
