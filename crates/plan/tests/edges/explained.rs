//! What an explained plan says, and where its lists are cut.

use mooncake_pd_layout::{CacheLayout, GroupSpec};
use mooncake_pd_plan::{BoundsGrade, Options, Pairing, RawRequest, Request};

use crate::ask::{bridge, bytes, group, raw, side};

fn explained(source: &CacheLayout, destination: &CacheLayout, raw: &RawRequest) -> String {
    under(source, destination, raw, Options::default())
}

fn under(
    source: &CacheLayout,
    destination: &CacheLayout,
    raw: &RawRequest,
    options: Options<'_>,
) -> String {
    let pairing = Pairing::new(source, destination).unwrap();
    let request = Request::new(raw, &pairing).unwrap();
    let batch = pairing.plan(&[request], &options).unwrap();
    assert_eq!(batch.refused, []);
    batch.plan.explain()
}

fn one_group() -> CacheLayout {
    side(90, [group(0, 0).layer("a", [bytes(0, 0, 10, 8)])])
}

/// The lines after those of the plan, its request and its group.
fn details(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with("    "));
    lines.collect()
}

#[test]
fn counts_of_one_and_of_none_are_told_from_others() {
    let plain = one_group();
    let block = raw(1, &[(&[1], &[2])]);
    assert_eq!(
        explained(&plain, &plain, &block),
        "1 copy, 8 bytes: all payload\n\
         contract: payload only; bounds: asserted by the peer\n\
         blocks are listed as position: source -> destination\n\
         request r: 1 token computed\n  \
         group 0, full_attention, 16 tokens a block: 1 block, 1 layer, 8 bytes in 1 copy\n    \
         0: 1 -> 2\n"
    );
    assert_eq!(
        explained(&plain, &plain, &raw(0, &[(&[], &[])])),
        "0 copies, 0 bytes: nothing to copy\n\
         contract: payload only; bounds: asserted by the peer\n\
         request r: 0 tokens computed\n  \
         group 0, full_attention, 16 tokens a block: nothing moves\n"
    );
    let windows = |window| {
        let spec = GroupSpec::new(0, "sliding_window", 1, 0).window(window);
        side(90, [spec.layer("a", [bytes(0, 0, 10, 8)])])
    };
    for (window, text) in [(1, "1 token"), (2, "2 tokens"), (1_000, "1,000 tokens")] {
        let side = windows(window);
        let text = format!("  group 0, sliding_window of {text}, 1 token a block: 1 block,");
        let found = explained(&side, &side, &block);
        assert!(found.contains(&text), "{found}");
    }
}

#[test]
fn numbers_have_commas_between_thousands() {
    let side = one_group();
    for (tokens, text) in [
        (0, "0 tokens"),
        (1, "1 token"),
        (2, "2 tokens"),
        (999, "999 tokens"),
        (1_000, "1,000 tokens"),
        (999_999, "999,999 tokens"),
        (1_000_000, "1,000,000 tokens"),
        (u64::MAX, "18,446,744,073,709,551,615 tokens"),
    ] {
        let found = explained(&side, &side, &raw(tokens, &[(&[], &[])]));
        let line = format!("request r: {text} computed\n");
        assert!(found.contains(&line), "{found}");
    }
}

#[test]
fn bridged_bytes_and_copies_that_began_before_are_told() {
    let spec = |id| {
        let layers = [("a", 0), ("b", 300)];
        layers.into_iter().fold(group(id, 0), |spec, (name, at)| {
            spec.layer(name, [bytes(id, at, 10, 8)])
        })
    };
    let pages = side(20, [spec(0)]);
    let options = Options {
        contract: bridge(2),
        bounds: BoundsGrade::Proved,
        ..Options::default()
    };
    let two = RawRequest {
        computed_tokens: None,
        tail_aligned: true,
        ..raw(0, &[(&[1, 2], &[3, 4])])
    };
    assert_eq!(
        under(&pages, &pages, &two, options),
        "2 copies, 36 bytes: 32 payload, 4 stale in bridged gaps\n\
         contract: bridges dead gaps of up to 2 bytes with stale bytes; bounds: proved\n\
         blocks are listed as position: source -> destination\n\
         request r: token count unknown, lists aligned at their ends\n  \
         group 0, full_attention, 16 tokens a block: 2 blocks, 2 layers, 32 bytes in 2 copies\n    \
         0-1: 1-2 -> 3-4\n"
    );
    let row = |id| group(id, 0).layer("a", [bytes(0, 0, 8, 8)]);
    let rows = side(20, [row(0), row(1)]);
    let found = explained(&rows, &rows, &raw(16, &[(&[1], &[1]), (&[2], &[2])]));
    let begun = "group 1, full_attention, 16 tokens a block: 1 block, 1 layer, 8 bytes in \
                 copies of the groups before\n    0: 2 -> 2\n";
    assert!(found.ends_with(begun), "{found}");
    assert!(
        found.starts_with("1 copy, 16 bytes: all payload\n"),
        "{found}"
    );
}

#[test]
fn sixteen_ranges_of_unfilled_blocks_are_listed_and_the_others_counted() {
    let side = one_group();
    for (ranges, hidden) in [
        (1, None),
        (15, None),
        (16, None),
        (17, Some("    and 1 more range not filled")),
        (18, Some("    and 2 more ranges not filled")),
    ] {
        // A placeholder at every other position of the source.
        let ids: Vec<u64> = (0..2 * ranges).collect();
        let mut raw = raw(32 * ranges, &[(&ids, &ids)]);
        for entry in raw.groups[0].source.entries.iter_mut().step_by(2) {
            *entry = None;
        }
        let found = explained(&side, &side, &raw);
        let found: Vec<&str> = details(&found)
            .into_iter()
            .filter(|line| line.ends_with("not filled") || line.contains("not filled:"))
            .collect();
        let range = |at: u64| {
            let at = 2 * at;
            format!("    not filled: position {at}, block {at}: the source has a placeholder there")
        };
        let mut expected: Vec<String> = (0..ranges.min(16)).map(range).collect();
        expected.extend(hidden.map(str::to_owned));
        assert_eq!(found, expected);
    }
}

#[test]
fn eight_ids_of_a_range_of_unfilled_blocks_are_listed() {
    let side = one_group();
    for (count, text) in [
        (1, "position 0, block 20"),
        (2, "positions 0-1, blocks 20 21"),
        (7, "positions 0-6, blocks 20 21 22 23 24 25 26"),
        (8, "positions 0-7, blocks 20 21 22 23 24 25 26 27"),
        (9, "positions 0-8, blocks 20 21 22 23 24 25 26 27 ..."),
        (10, "positions 0-9, blocks 20 21 22 23 24 25 26 27 ..."),
    ] {
        let ids: Vec<u64> = (20..20 + count).collect();
        let found = explained(&side, &side, &raw(16 * count, &[(&[], &ids)]));
        let line = format!("    not filled: {text}: the source has no block there");
        assert_eq!(details(&found), [line]);
    }
}

#[test]
fn thirty_two_ranges_of_blocks_are_listed_and_the_others_counted() {
    let side = one_group();
    for (ranges, hidden) in [
        (31, None),
        (32, None),
        (33, Some("and 1 more block up to position 32")),
        (34, Some("and 2 more blocks up to position 33")),
    ] {
        // No two follow each other.
        let ids: Vec<u64> = (0..ranges).map(|at| 2 * at).collect();
        let found = explained(&side, &side, &raw(16 * ranges, &[(&ids, &ids)]));
        let joined: Vec<&str> = details(&found).iter().map(|line| line.trim()).collect();
        let joined = joined.join(" ");
        let found: Vec<&str> = joined.split(", ").collect();
        let range = |at: u64| format!("{at}: {} -> {}", 2 * at, 2 * at);
        let mut expected: Vec<String> = (0..ranges.min(32)).map(range).collect();
        expected.extend(hidden.map(str::to_owned));
        assert_eq!(found, expected);
    }
}

#[test]
fn lines_of_blocks_are_filled_up_to_80_columns() {
    let side = one_group();
    let lines = |ids: &[u64]| {
        let tokens = u64::try_from(ids.len()).unwrap() * 16;
        let found = explained(&side, &side, &raw(tokens, &[(ids, ids)]));
        let lines = details(&found);
        let blocks = |line: &&str| line.matches("->").count();
        lines
            .iter()
            .map(|line| (line.len(), blocks(line)))
            .collect::<Vec<_>>()
    };
    // Seven times `0: 1 -> 1`, with separators and indentation.
    assert_eq!(lines(&[1, 3, 5, 7, 9, 2, 4, 6]), [(80, 7), (13, 1)]);
    assert_eq!(lines(&[1, 3, 5, 7, 9, 2, 40, 6]), [(69, 6), (26, 2)]);
    assert_eq!(lines(&[1, 3, 5, 7, 9, 2, 4]), [(79, 7)]);
}

#[test]
fn sixteen_layers_of_the_destination_s_own_are_listed_and_the_others_counted() {
    let with = |own: u64| {
        let spec = group(0, 0).layer("a", [bytes(0, 0, 10, 8)]);
        let spec = (0..own).fold(spec, |spec, at| {
            spec.layer(&format!("own.{at:02}"), [bytes(1, at * 20, 10, 8)])
        });
        side(2, [spec])
    };
    for (own, hidden) in [
        (0, None),
        (1, None),
        (16, None),
        (17, Some("    and 1 more layer of its own")),
        (18, Some("    and 2 more layers of its own")),
    ] {
        let found = explained(&with(0), &with(own), &raw(16, &[(&[], &[])]));
        let layer =
            |at: u64| format!("    layer own.{at:02} is the destination's own and stays as it is");
        let mut expected: Vec<String> = (0..own.min(16)).map(layer).collect();
        expected.extend(hidden.map(str::to_owned));
        assert_eq!(details(&found), expected);
    }
}

#[test]
fn unfilled_blocks_are_told_of_their_own_request_and_group_only() {
    let spec = |id: u32| group(id, 0).layer("a", [bytes(id, 0, 10, 8)]);
    let side = side(20, [spec(0), spec(1)]);
    let pairing = Pairing::new(&side, &side).unwrap();
    let ask = |blocks: [&[u64]; 2]| {
        let raw = raw(16, &[(&[], blocks[0]), (&[], blocks[1])]);
        Request::new(&raw, &pairing).unwrap()
    };
    let asked = [ask([&[1], &[2]]), ask([&[3], &[4]])];
    let batch = pairing.plan(&asked, &Options::default()).unwrap();
    let found = batch.plan.explain();
    let line =
        |id: u64| format!("    not filled: position 0, block {id}: the source has no block there");
    assert_eq!(details(&found), [1, 2, 3, 4].map(line));
}

#[test]
fn blocks_are_one_range_where_position_and_both_ids_advance() {
    let side = one_group();
    let line = |source: &[u64], destination: &[u64], gap: bool| {
        let mut raw = raw(48, &[(source, destination)]);
        if gap {
            raw.groups[0].destination.entries[1] = None;
        }
        details(&explained(&side, &side, &raw)).concat()
    };
    assert_eq!(line(&[1, 2, 3], &[7, 8, 9], false), "    0-2: 1-3 -> 7-9");
    let apart = line(&[1, 5, 6], &[7, 8, 9], false);
    assert_eq!(apart, "    0: 1 -> 7, 1-2: 5-6 -> 8-9");
    let apart = line(&[1, 2, 3], &[5, 8, 9], false);
    assert_eq!(apart, "    0: 1 -> 5, 1-2: 2-3 -> 8-9");
    let apart = line(&[1, 9, 2], &[7, 0, 8], true);
    assert_eq!(apart, "    0: 1 -> 7, 2: 2 -> 8");
}
