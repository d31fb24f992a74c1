//! Our counts beside those that vLLM's own classes made (`fixtures/vllm-0.33/accounting.json`).
//!
//! Each difference is named and counted; one that has no name, or another count, fails.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "numbers of a fixture are small"
)]

mod grid;

use grid::{Grid, Tally};
use mooncake_pd_connector::{Accounting, Flavour, Matched, PromptInput, TokenCount};

fn tokens(count: u32) -> TokenCount {
    TokenCount::new(count)
}

/// Names of differences, each with what it is true of.
type Names = &'static [grid::Name<Case>];

/// What numbers were recorded of.
#[derive(Debug)]
struct Case {
    terms: Accounting,
    prompt: PromptInput,
    stock: Stock,
}

/// What stock made of it.
#[derive(Debug, PartialEq)]
enum Stock {
    Count(u32),
    /// Speculative tokens were added to what is left of a prompt.
    Speculates,
    /// It waits for ever.
    Hangs,
}

impl Case {
    fn new(terms: Accounting, prompt: PromptInput, count: u32) -> Self {
        let stock = Stock::Count(count);
        Self {
            terms,
            prompt,
            stock,
        }
    }

    /// Stock holds back nothing of a prompt within its window, states or not.
    fn short(&self) -> bool {
        let holdback = self.terms.holdback;
        self.terms.flavour == Flavour::Own
            && holdback.window(Flavour::Mooncake) == TokenCount::ONE
            && (2..=holdback.window(Flavour::Own).get()).contains(&self.prompt.count().get())
    }

    fn embeddings(&self) -> bool {
        matches!(self.prompt, PromptInput::Embeddings(_))
            && !matches!(self.terms.flavour, Flavour::Nixl { .. })
            && self.stock == Stock::Count(0)
    }

    /// As many tokens as were asked for.
    fn generates(&self) -> bool {
        !matches!(self.terms.flavour, Flavour::Nixl { .. }) && self.stock == Stock::Count(7)
    }

    fn not_sent(&self) -> bool {
        self.terms.flavour == Flavour::Mooncake && self.stock == Stock::Count(0)
    }
}

const EMBEDDINGS: grid::Name<Case> = ("embeddings are loaded", Case::embeddings);
const SHORT: grid::Name<Case> = ("one is held back of a short prompt", Case::short);
const ONE_TOKEN: grid::Name<Case> = ("one token is generated", Case::generates);

/// Stock's connector whose rows are compared, and our flavour.
fn flavours() -> [(&'static str, Flavour); 3] {
    [
        ("nixl", Flavour::nixl()),
        ("mooncake", Flavour::Mooncake),
        ("nixl", Flavour::Own),
    ]
}

#[test]
fn prefill_keeps_what_stock_keeps() {
    let grid = Grid::load();
    let tallies = flavours().map(|(connector, flavour)| {
        let (mut tally, mut generated) = (Tally::default(), Tally::default());
        for row in grid
            .rows("p_hook")
            .filter(|row| row.connector() == connector)
        {
            assert!(row.is_null("error"), "{row:?}");
            assert!(row.number("second_call_same") == 1 && row.number("third_call_same") == 1);
            let n = row.number("n");
            for kind in row.list("prompt_kind[]") {
                for skip in row.list("skip_prefix_cache[]") {
                    let (terms, prompt) = (row.terms(flavour), grid::prompt(kind, n));
                    let share = terms.prefill(prompt, skip == 1);
                    let keep = share.kept().keep().get();
                    let lengths = [
                        // A mixed prompt's rows and mask stay as long as they were.
                        if kind == 1 { "embed_rows" } else { "ids_len" },
                        "num_prompt_tokens",
                        "all_token_ids_len",
                    ];
                    let same = lengths.iter().all(|name| row.number(name) == keep);
                    let stock = row.number("num_prompt_tokens");
                    tally.add(same, &[SHORT], &Case::new(terms, prompt, stock));
                    // Seven tokens were asked for.
                    let stock = row.number("max_tokens");
                    let same = stock == share.max_tokens().unwrap_or(7);
                    generated.add(same, &[ONE_TOKEN], &Case::new(terms, prompt, stock));
                }
            }
        }
        [tally.counts(), generated.counts()].concat()
    });
    assert_eq!(
        tallies,
        [
            vec![("equal", 2166), ("equal", 2166)],
            vec![
                ("equal", 684),
                ("equal", 216),
                ("one token is generated", 468)
            ],
            vec![
                ("equal", 2130),
                ("one is held back of a short prompt", 36),
                ("equal", 795),
                ("one token is generated", 1371)
            ],
        ]
    );
}

#[test]
fn decode_loads_what_stock_loads() {
    const NAMES: Names = &[EMBEDDINGS, SHORT];
    let grid = Grid::load();
    let tallies = flavours().map(|(connector, flavour)| {
        let mut tally = Tally::default();
        for row in grid
            .rows("d_matched")
            .filter(|row| row.connector() == connector)
        {
            assert!(row.is_null("error"), "{row:?}");
            let n = row.number("n");
            for kind in row.list("prompt_kind[]") {
                for skip in row.list("skip_prefix_cache[]") {
                    for (local, count, flag) in grid.matched(&row) {
                        let (terms, prompt) = (row.terms(flavour), grid::prompt(kind, n));
                        // Stock's connector does not look at it; its scheduler does.
                        if skip == 1 {
                            let all = terms.decode(prompt, true, tokens(local)).unwrap();
                            assert!(
                                !all.is_asynchronous() && all.run_as_prompt() == tokens(n - local)
                            );
                        }
                        let matched = terms.decode(prompt, false, tokens(local)).unwrap();
                        let same =
                            (matched.load().get(), matched.is_asynchronous()) == (count, flag);
                        tally.add(same, NAMES, &Case::new(terms, prompt, count));
                    }
                }
            }
        }
        tally.counts()
    });
    assert_eq!(
        tallies,
        [
            vec![("equal", 18_468)],
            vec![("embeddings are loaded", 1572), ("equal", 4260)],
            vec![
                ("embeddings are loaded", 4374),
                ("equal", 13_930),
                ("one is held back of a short prompt", 164)
            ],
        ]
    );
}

#[test]
fn prefill_reads_back_what_stock_reads_back() {
    let grid = Grid::load();
    let mut tally = Tally::default();
    for row in grid.rows("p_readback") {
        for config in row.list("config[]") {
            let row = row.with_config(config);
            let (n, offered) = (row.number("n"), row.number("held"));
            let terms = row.terms(Flavour::Nixl {
                recompute_threshold: tokens(row.threshold()),
            });
            let keep = terms.prefill(grid::prompt(0, n), false).kept().keep();
            let locals = row.list("computed");
            let answers = row
                .list("counts")
                .into_iter()
                .zip(row.text("async").chars().collect::<Vec<_>>());
            for (local, (count, flag)) in locals.into_iter().zip(answers) {
                let matched = match terms.read_back(keep, tokens(local), Some(tokens(offered))) {
                    Ok(matched) => (matched.load().get(), matched.is_asynchronous()),
                    // The recorder asked also for more than is kept.
                    Err(_) => (0, false),
                };
                let case = Case::new(terms, grid::prompt(0, n), count);
                tally.add(matched == (count, flag == '1'), &[], &case);
                for ours in [Flavour::Mooncake, Flavour::Own] {
                    let matched =
                        row.terms(ours)
                            .read_back(keep, TokenCount::ZERO, Some(tokens(offered)));
                    assert!(!matched.unwrap().is_asynchronous());
                }
            }
        }
    }
    assert_eq!(tally.counts(), [("equal", 12_390)]);
}

#[test]
fn stocks_decode_scheduler_runs_what_we_say_is_left() {
    const NAMES: Names = &[
        SHORT,
        EMBEDDINGS,
        ("what is left is no decode step", |case| {
            case.stock == Stock::Speculates
        }),
        ("stock never runs what is left", |case| {
            case.stock == Stock::Hangs
        }),
    ];
    let grid = Grid::load();
    let tallies = flavours().map(|(connector, flavour)| {
        let mut tally = Tally::default();
        for row in grid
            .rows("engine_d")
            .filter(|row| row.connector() == connector)
        {
            assert!(row.is_null("error"), "{row:?}");
            let (n, skip) = (row.number("n"), row.number("skip_prefix_cache") == 1);
            let (terms, prompt) = (
                row.terms(flavour),
                grid::prompt(row.number("prompt_kind"), n),
            );
            let local = tokens(row.number("asked_computed"));
            let matched = terms.decode(prompt, skip, local).unwrap();
            let released = row.list("pull_blocks").is_empty();
            let mut case = Case::new(terms, prompt, row.number("count"));
            if row.is_null("first_scheduled") {
                case.stock = Stock::Hangs;
            } else if row.number("spec_tokens") > 0 {
                case.stock = Stock::Speculates;
            }
            let same = released != matched.is_asynchronous()
                && matches!(case.stock, Stock::Count(_))
                && runs(
                    &matched,
                    row.number("first_computed"),
                    row.number("first_scheduled"),
                );
            if case.stock == Stock::Speculates && !case.short() {
                // What it runs of the prompt is the same.
                let ran = row.number("first_scheduled") - row.number("spec_tokens");
                assert!(runs(&matched, row.number("first_computed"), ran), "{row:?}");
            }
            for _ in row.list("warm[]") {
                tally.add(same, NAMES, &case);
            }
        }
        tally.counts()
    });
    assert_eq!(
        tallies,
        [
            vec![
                ("equal", 336),
                ("stock never runs what is left", 24),
                ("what is left is no decode step", 4)
            ],
            vec![
                ("embeddings are loaded", 56),
                ("equal", 244),
                ("what is left is no decode step", 64)
            ],
            vec![
                ("embeddings are loaded", 54),
                ("equal", 280),
                ("one is held back of a short prompt", 2),
                ("stock never runs what is left", 24),
                ("what is left is no decode step", 4)
            ],
        ]
    );
}

/// Whether a first step that began at `start` and ran `ran` elements is the one we
/// say. A prompt of which nothing was loaded may take several steps.
fn runs(matched: &Matched, start: u32, ran: u32) -> bool {
    let ours = matched.run_as_prompt().get() + matched.run_again().get();
    let all = if matched.is_asynchronous() {
        ran == ours
    } else {
        ran <= ours
    };
    matched.start().get() == start && all && ran > 0
}

#[test]
fn stocks_prefill_scheduler_reads_back_only_what_was_switched_on() {
    const NAMES: Names = &[("nobody carries it out", |case| case.stock == Stock::Hangs)];
    let grid = Grid::load();
    let mut tally = Tally::default();
    for row in grid.rows("engine_readback") {
        assert!(row.is_null("error"), "{row:?}");
        let n = row.number("n");
        let terms = row.terms(Flavour::Nixl {
            recompute_threshold: tokens(row.threshold()),
        });
        let keep = terms.prefill(grid::prompt(0, n), false).kept().keep();
        let offered = row.bidirectional().then(|| tokens(row.number("held")));
        let local = tokens(row.number("asked_computed"));
        let matched = terms.read_back(keep, local, offered).unwrap();
        let mut case = Case::new(terms, grid::prompt(0, n), row.number("count"));
        if row.is_null("first_scheduled") {
            assert!(!row.bidirectional());
            case.stock = Stock::Hangs;
        }
        let same = matched.load().get() == row.number("count")
            && !row.is_null("first_scheduled")
            && matched.start().get() == row.number("first_computed");
        tally.add(same, NAMES, &case);
    }
    assert_eq!(
        tally.counts(),
        [("equal", 96), ("nobody carries it out", 32)]
    );
}

#[test]
fn stocks_prefill_scheduler_computes_what_we_say() {
    const SENT: grid::Name<Case> = ("a prompt whose first token ends it is sent", Case::not_sent);
    let grid = Grid::load();
    let tallies = flavours().map(|(connector, flavour)| {
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        let rows = grid.rows("engine_p");
        for row in rows.filter(|row| row.connector() == connector) {
            assert!(row.is_null("error"), "{row:?}");
            let n = row.number("n");
            for kind in row.list("prompt_kind[]") {
                let (terms, prompt) = (row.terms(flavour), grid::prompt(kind, n));
                let share = terms.prefill(prompt, false);
                let steps = row.list("steps");
                let tokens = row.number("output_tokens");
                // The first token comes with the prompt's last element.
                let computed = steps.iter().sum::<u32>() - (tokens - 1);
                let ends = row.text("first_token") == "eos";
                let same = [
                    computed == share.kept().keep().get()
                        && steps[0] <= share.kept().most_cached().get(),
                    tokens == share.max_tokens().unwrap_or(if ends { 1 } else { 7 }),
                    row.number("sent") == 1,
                ];
                let counts = [computed, tokens, row.number("sent")];
                let names = [SHORT, ONE_TOKEN, SENT];
                for (at, tally) in tallies.iter_mut().enumerate() {
                    let case = Case::new(terms, prompt, counts[at]);
                    tally.add(same[at], &[names[at]], &case);
                }
            }
        }
        tallies.map(|tally| tally.counts()).concat()
    });
    assert_eq!(
        tallies,
        [
            vec![("equal", 352), ("equal", 352), ("equal", 352)],
            vec![
                ("equal", 352),
                ("equal", 256),
                ("one token is generated", 96),
                ("a prompt whose first token ends it is sent", 176),
                ("equal", 176)
            ],
            vec![
                ("equal", 336),
                ("one is held back of a short prompt", 16),
                ("equal", 280),
                ("one token is generated", 72),
                ("equal", 352)
            ],
        ]
    );
}
