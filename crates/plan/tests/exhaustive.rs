//! Every request there is, within bounds: each is the copy of every demanded
//! byte, or refused for the right reason.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a layout that can't be made fails the test"
)]

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::testing::{Demand, Memory, Ownership, Plain};
use mooncake_pd_plan::{
    Options, Pairing, RawRequest, RawSlots, RawTables, Request, RequestError, Side,
};

/// Tokens of a block, one byte each in each of two layers.
const TOKENS: u64 = 6;
/// Where a window ends before the last block's first token.
const WINDOW: u32 = 3;

/// How one side stores its groups.
#[derive(Clone, Copy, Debug)]
struct Storage {
    /// Blocks besides the null one, in every pool.
    live: u32,
    /// Kernel pages of a block, but for states.
    ratio: u32,
    /// Bytes after every page.
    padding: u64,
    /// Both layers in one row, or one plane after the other.
    packed: bool,
    /// Groups over each other, or apart.
    shared: bool,
    /// Groups draw their ids from pools of their own.
    own_pools: bool,
}

impl Storage {
    fn layout(self, kinds: &[&str]) -> CacheLayout {
        let blocks = u64::from(self.live) + 1;
        let ratio = u64::from(self.ratio);
        let layers = if self.packed { 2 } else { 1 };
        let row = layers * TOKENS / ratio + self.padding;
        let plane = blocks * ratio * row;
        let all = if self.packed { plane } else { 2 * plane };
        let mut builder = LayoutBuilder::new().pool(0, self.live + 1, Some(0));
        let mut end = 0;
        for (id, kind) in (0_u32..).zip(kinds) {
            let start = if self.shared { 0 } else { end };
            end = start + all;
            let state = *kind == "gdn_state";
            let pages = if state { 1 } else { ratio };
            let field = |layer: u64| {
                let apart = if self.packed { TOKENS / pages } else { plane };
                let axis = if state { Axis::Byte } else { Axis::Token };
                FieldSpec::new("f", "uint8")
                    .at(0, start + layer * apart)
                    .page_stride(row * ratio / pages)
                    .dim(axis, TOKENS / pages, 1)
            };
            let pool = if self.own_pools { id } else { 0 };
            if pool > 0 {
                builder = builder.pool(pool, self.live + 1, Some(0));
            }
            let tokens = u32::try_from(TOKENS).unwrap();
            let mut group = GroupSpec::new(id, kind, tokens, pool)
                .pages_per_block(u32::try_from(pages).unwrap())
                .layer("a", [field(0)])
                .layer("b", [field(1)]);
            if kind.starts_with("sliding") {
                group = group.window(WINDOW);
            }
            builder = builder.group(group);
        }
        builder.allocation(0, end).build().unwrap()
    }
}

/// Every list of at most `len` entries over null and the ids `1..=live`.
fn lists(live: u64, len: usize) -> Vec<Vec<Option<u64>>> {
    let mut all = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..len {
        longest = longest
            .iter()
            .flat_map(|list| {
                let entries = std::iter::once(None).chain((1..=live).map(Some));
                entries.map(|entry| [list.as_slice(), &[entry]].concat())
            })
            .collect();
        all.extend(longest.iter().cloned());
    }
    all
}

/// What both sides list in one group.
type Listed<'a> = (&'a [Option<u64>], &'a [Option<u64>]);

fn request(blocks: u64, first_block: Option<u64>, groups: &[Listed<'_>]) -> RawRequest {
    let slots = |entries: &[Option<u64>]| RawSlots {
        first_block,
        entries: entries.to_vec(),
    };
    let tables = |(group, (source, destination)): (u32, &Listed<'_>)| RawTables {
        group,
        source: slots(source),
        destination: slots(destination),
    };
    RawRequest {
        id: String::new(),
        computed_tokens: Some(blocks * TOKENS),
        tail_aligned: false,
        groups: (0..).zip(groups).map(tables).collect(),
    }
}

/// A pair of layouts and what their memory holds before a transfer.
struct Bench<'a> {
    pairing: Pairing<'a>,
    from: Plain,
    to: Plain,
    source: Memory,
    destination: Memory,
}

impl<'a> Bench<'a> {
    fn new(source: &'a CacheLayout, destination: &'a CacheLayout) -> Self {
        let from = Plain::new(&source.to_raw());
        let to = Plain::new(&destination.to_raw());
        Self {
            pairing: Pairing::new(source, destination).unwrap(),
            source: Memory::new(Side::Source, &from),
            destination: Memory::new(Side::Destination, &to),
            from,
            to,
        }
    }

    /// Whether a request was admitted. The memory after its plan is that of
    /// copying every demanded byte, or it is refused for a reason there is.
    fn admits(&self, raw: &RawRequest) -> bool {
        let request = Request::new(raw, &self.pairing).unwrap();
        let batch = self.pairing.plan(&[request], &Options::default()).unwrap();
        let reasons = Ownership::new(&self.from, &self.to).admit(raw);
        let after = self.destination.clone();
        let after = after.after(&self.source, batch.plan.copies());
        match batch.refused.as_slice() {
            [] => {
                assert_eq!(reasons, [], "{raw:?} was admitted");
                let demand = Demand::new(&self.from, &self.to, &[raw]);
                let expected = self.destination.clone();
                let expected = expected.after_bytes(&self.source, &demand);
                assert!(after == expected, "{raw:?}: {:?}", batch.plan);
                true
            }
            [refused] => {
                let error = &refused.error;
                assert!(reasons.contains(error), "{error:?} for {raw:?}");
                let taken = matches!(
                    error,
                    RequestError::DestinationTaken { .. } | RequestError::SourceTaken { .. }
                );
                assert!(taken && after == self.destination, "{raw:?}");
                false
            }
            more => panic!("{more:?}"),
        }
    }
}

#[test]
fn exhaustive_every_table_of_one_group_over_three_blocks() {
    let all = lists(3, 3);
    assert_eq!(all.len(), 1 + 4 + 16 + 64);
    let kinds = [
        "full_attention",
        "mla",
        "sliding_window",
        "sliding_window_mla",
        "gdn_state",
    ];
    for (kind, ratios) in kinds.iter().zip([(1, 1), (2, 3), (3, 1), (1, 2), (1, 1)]) {
        let side = |ratio, padding| Storage {
            live: 3,
            ratio,
            padding,
            packed: true,
            shared: true,
            own_pools: false,
        };
        let source = side(ratios.0, 0).layout(&[kind]);
        let destination = side(ratios.1, u64::from(ratios.1 % 2)).layout(&[kind]);
        let bench = Bench::new(&source, &destination);
        for (blocks, first_block) in [(2, None), (3, None), (3, Some(0)), (2, Some(1))] {
            let mut admitted = 0;
            for from in &all {
                for to in &all {
                    let raw = request(blocks, first_block, &[(from, to)]);
                    admitted += u32::from(bench.admits(&raw));
                }
            }
            // Lists without an id twice: 1 + 4 + 13 + 34.
            assert_eq!(admitted, 52 * 52, "{kind}");
        }
    }
}

/// Pairs of group kinds.
const KINDS: [[&str; 2]; 3] = [
    ["full_attention", "gdn_state"],
    ["mla", "sliding_window_mla"],
    ["full_attention", "full_attention"],
];

/// Both sides' storages: ratios 1 to 3, alike and not; padding or none; rows or
/// planes; groups over each other, apart, and of pools of their own.
fn family() -> Vec<(Storage, Storage)> {
    let mut all = Vec::new();
    for ratios in [(1, 1), (2, 2), (3, 3), (1, 3), (2, 1), (3, 2)] {
        for padding in [0, 1] {
            for packed in [true, false] {
                for (shared, own_pools) in [(true, false), (false, false), (false, true)] {
                    let destination = Storage {
                        live: 2,
                        ratio: ratios.1,
                        padding,
                        packed,
                        shared,
                        own_pools,
                    };
                    let source = Storage {
                        ratio: ratios.0,
                        padding: u64::from(all.len() % 2 == 0),
                        packed: all.len() % 3 == 0,
                        shared: shared && all.len() % 4 == 0,
                        ..destination
                    };
                    all.push((source, destination));
                }
            }
        }
    }
    all
}

/// What one side lists in two groups.
type Both = (Vec<Option<u64>>, Vec<Option<u64>>);

/// Pairs of lists of one side: of two entries at most over two ids and null.
fn listed() -> Vec<Both> {
    let all = lists(2, 2);
    let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| (a.clone(), b.clone())).collect()
}

fn is_twice((a, b): &Both, own_pools: bool) -> bool {
    let count = |lists: &[&Vec<Option<u64>>], id| {
        lists
            .iter()
            .flat_map(|list| list.iter())
            .filter(|entry| **entry == Some(id))
            .count()
    };
    [1, 2].into_iter().any(|id| {
        if own_pools {
            count(&[a], id) > 1 || count(&[b], id) > 1
        } else {
            count(&[a, b], id) > 1
        }
    })
}

#[test]
fn exhaustive_every_table_of_two_groups_over_a_family_of_layouts() {
    let all = listed();
    assert_eq!(all.len(), 13 * 13);
    let family = family();
    let mut layouts = 0;
    for (number, (source, destination)) in family.iter().enumerate() {
        // Two kinds are enough where groups share neither bytes nor ids.
        let kinds = KINDS.iter().take(if destination.own_pools { 2 } else { 3 });
        for (row, kinds) in kinds.enumerate() {
            layouts += 1;
            // Whether an id is there twice is up to pools alone: refusals are
            // tried over two storages, all other requests over every one.
            let own_pools = destination.own_pools;
            let refusals = row == 0 && number < 3;
            let (from, to) = (source.layout(kinds), destination.layout(kinds));
            let bench = Bench::new(&from, &to);
            let first_block = if (number + row) % 2 == 0 {
                None
            } else {
                Some(0)
            };
            let (mut admitted, mut refused) = (0, 0);
            for source in &all {
                if !refusals && is_twice(source, own_pools) {
                    continue;
                }
                for destination in &all {
                    if !refusals && is_twice(destination, own_pools) {
                        continue;
                    }
                    let groups: [Listed<'_>; 2] =
                        [(&source.0, &destination.0), (&source.1, &destination.1)];
                    if bench.admits(&request(2, first_block, &groups)) {
                        admitted += 1;
                    } else {
                        refused += 1;
                    }
                }
            }
            let valid: u32 = if own_pools { 11 * 11 } else { 75 };
            assert_eq!(admitted, valid * valid, "{from:?} {to:?}");
            let others = if refusals {
                169 * 169 - valid * valid
            } else {
                0
            };
            assert_eq!(refused, others);
        }
    }
    assert_eq!(layouts, 192);
}
