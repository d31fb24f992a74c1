//! The walker against layouts worked out by hand.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use mooncake_pd::verify::{
    Demand, GroupLists, Layout, List, Lists, Pattern, Row, Side, Span, View, WalkError, check,
    demand, fill, owners,
};
use quickcheck::{QuickCheck, TestResult};

fn view(offset: u64, element: u64, shape: &[u64], strides: &[u64], pages_per_block: u64) -> View {
    View {
        group: 0,
        layer: "l".to_owned(),
        name: "kv".to_owned(),
        allocation: 0,
        offset,
        element,
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        pages_per_block,
    }
}

fn spans(view: &View, block: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    view.block(block, &mut out).unwrap();
    out.iter().map(|s: &Span| (s.offset, s.len)).collect()
}

#[test]
fn c20_a_padded_page_is_walked_without_its_padding() {
    let padded = view(60, 1, &[10, 40], &[100, 1], 1);
    assert_eq!(spans(&padded, 0), [(60, 40)]);
    assert_eq!(spans(&padded, 7), [(760, 40)]);
}

#[test]
fn heads_apart_give_a_row_each_in_index_order() {
    // [page, head, token, content] with 2-byte elements, token outside head.
    let scattered = view(0, 2, &[3, 2, 2, 4], &[32, 8, 16, 2], 1);
    assert_eq!(spans(&scattered, 1), [(32, 8), (48, 8), (40, 8), (56, 8)]);
}

#[test]
fn c06_pages_of_a_block_follow_each_other() {
    let split = view(8, 1, &[12, 5], &[16, 1], 3);
    assert_eq!(spans(&split, 2), [(104, 5), (120, 5), (136, 5)]);
    let dense = view(0, 1, &[12, 16], &[16, 1], 3);
    assert_eq!(spans(&dense, 2), [(96, 48)]);
}

#[test]
fn a_block_past_the_view_is_named() {
    let split = view(8, 1, &[11, 5], &[16, 1], 3);
    let error = split.block(3, &mut Vec::new()).unwrap_err();
    assert!(matches!(
        error,
        WalkError::Block {
            block: 3,
            page: 11,
            pages: 11,
            ..
        }
    ));
    let far = view(8, 1, &[u64::MAX, 5], &[u64::MAX / 2, 1], 1);
    assert!(far.block(u64::MAX - 1, &mut Vec::new()).is_err());
}

/// Every element's bytes by nested counting, no merging.
fn naive(view: &View, block: u64) -> Vec<u64> {
    let mut out = Vec::new();
    for page in block * view.pages_per_block..(block + 1) * view.pages_per_block {
        let elements: u64 = view.shape[1..].iter().product();
        for element in 0..elements {
            let mut rest = element;
            let mut offset = view.offset + page * view.strides[0];
            for axis in (1..view.shape.len()).rev() {
                offset += rest % view.shape[axis] * view.strides[axis];
                rest /= view.shape[axis];
            }
            out.extend(offset..offset + view.element);
        }
    }
    out
}

#[test]
fn the_walk_equals_counting_every_element() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck gives values")]
    fn holds(extents: Vec<u8>, strides: Vec<u8>, element: u8, pages: u8, offset: u8) -> TestResult {
        let axes = extents.len().min(strides.len()).min(4);
        let mut shape = vec![8];
        shape.extend(extents[..axes].iter().map(|e| u64::from(e % 4)));
        let mut steps = vec![1000];
        steps.extend(strides[..axes].iter().map(|&s| u64::from(s % 16)));
        let pages = u64::from(pages % 3) + 1;
        let view = view(
            u64::from(offset),
            u64::from(element % 5),
            &shape,
            &steps,
            pages,
        );
        let walked: Vec<u64> = spans(&view, 1)
            .iter()
            .flat_map(|&(offset, len)| offset..offset + len)
            .collect();
        TestResult::from_bool(walked == naive(&view, 1))
    }
    QuickCheck::new()
        .tests(2000)
        .quickcheck(holds as fn(Vec<u8>, Vec<u8>, u8, u8, u8) -> TestResult);
}

const MANIFEST: &str = r#"{"format":"mooncake-pd-layout/1",
 "allocations":[{"id":5,"len":800}],
 "pools":[{"id":0,"capacity":8,"null_id":0}],
 "groups":[
  {"id":0,"kind":"full_attention","tokens_per_block":4,"pool":0,"layers":[{"name":"a","fields":[
   {"name":"kv","dtype":"float16","allocation":5,"offset":0,"page_stride":100,
    "dims":[{"axis":"token","extent":4,"stride":20},{"axis":"content","extent":8,"stride":2}]}]}]},
  {"id":1,"kind":"gdn_state","tokens_per_block":4,"pool":0,"layers":[{"name":"s","fields":[
   {"name":"conv","dtype":"int8","allocation":5,"offset":0,"page_stride":100,
    "dims":[{"axis":"byte","extent":30,"stride":1}]},
   {"name":"state","dtype":"float32","allocation":5,"offset":40,"page_stride":100,
    "dims":[{"axis":"byte","extent":10,"stride":4}]}]}]}]}"#;

fn list(ids: &[u64]) -> List {
    List {
        first: None,
        entries: ids.iter().map(|&id| Some(id)).collect(),
    }
}

fn request(tokens: Option<u64>, groups: &[(u32, &[u64], &[u64])]) -> Lists {
    Lists {
        id: "r".to_owned(),
        tokens,
        groups: groups
            .iter()
            .map(|&(group, source, destination)| GroupLists {
                group,
                source: list(source),
                destination: list(destination),
            })
            .collect(),
    }
}

fn walk(lists: Lists) -> Vec<(u64, u64, u64)> {
    let layout = Layout::read(MANIFEST, Side::Prefill).unwrap();
    let found = demand(&layout, &layout, &[lists]).unwrap();
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.source == 5 && row.destination == 5)
    );
    found
        .rows
        .iter()
        .map(|row| (row.source_offset, row.destination_offset, row.len))
        .collect()
}

#[test]
fn a_manifest_is_walked_field_by_field() {
    assert_eq!(
        walk(request(Some(4), &[(0, &[2], &[3])])),
        [
            (200, 300, 16),
            (220, 320, 16),
            (240, 340, 16),
            (260, 360, 16)
        ]
    );
    assert_eq!(
        walk(request(Some(4), &[(1, &[2], &[3])])),
        [(200, 300, 30), (240, 340, 40)]
    );
}

#[test]
fn c01_null_is_a_position_not_an_id() {
    // 15 tokens are 4 blocks; the receiver's three end with the prompt.
    let rows = walk(request(Some(15), &[(0, &[2, 3, 4, 0], &[5, 6, 7])]));
    let blocks: Vec<_> = rows
        .iter()
        .map(|&(s, d, _)| (s / 100, d / 100))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    assert_eq!(blocks, [(3, 5), (4, 6)]);
}

#[test]
fn c02_only_the_latest_state_is_demanded() {
    let latest = [(400, 600, 30), (440, 640, 40)];
    assert_eq!(walk(request(Some(12), &[(1, &[0, 0, 4], &[6])])), latest);
    assert_eq!(walk(request(None, &[(1, &[3, 4], &[5, 6])])), latest);
    // The sender's state is elsewhere than at the end: there is nothing to send.
    assert_eq!(walk(request(Some(12), &[(1, &[0, 4, 0], &[6])])), []);
}

#[test]
fn c11_look_ahead_is_not_demanded() {
    let lists = Lists {
        groups: vec![GroupLists {
            group: 0,
            source: List {
                first: Some(0),
                ..list(&[1, 2, 7])
            },
            destination: List {
                first: Some(0),
                ..list(&[3, 4, 5])
            },
        }],
        ..request(Some(8), &[])
    };
    let rows = walk(lists);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|&(s, d, _)| s < 300 && d < 500));
    // Longer than its positions allow: it began at position 0.
    assert_eq!(walk(request(Some(8), &[(0, &[1, 2, 7], &[3, 4])])), rows);
}

#[test]
fn a_window_demands_no_older_block() {
    let windowed = MANIFEST.replace(
        r#""kind":"full_attention","#,
        r#""kind":"sliding_window","window":5,"#,
    );
    let layout = Layout::read(&windowed, Side::Prefill).unwrap();
    let lists = request(Some(14), &[(0, &[1, 2, 3, 4], &[4, 5, 6, 7])]);
    let found = demand(&layout, &layout, &[lists]).unwrap();
    // Tokens 9 to 13 lie in the blocks at positions 2 and 3.
    assert_eq!(found.rows.len(), 8);
    assert!(found.rows.iter().all(|row| row.source_offset >= 300));
    // Without a token count the lists are taken as they are.
    let lists = request(None, &[(0, &[1, 2, 3, 4], &[4, 5, 6, 7])]);
    assert_eq!(demand(&layout, &layout, &[lists]).unwrap().rows.len(), 16);
}

#[test]
fn one_destination_byte_can_not_be_demanded_twice() {
    let layout = Layout::read(MANIFEST, Side::Prefill).unwrap();
    let lists = request(Some(4), &[(0, &[2], &[3]), (1, &[4], &[3])]);
    assert_eq!(
        demand(&layout, &layout, &[lists]).unwrap_err(),
        WalkError::Twice {
            allocation: 5,
            offset: 300
        }
    );
}

#[test]
fn a_byte_names_its_owners() {
    let layout = Layout::read(MANIFEST, Side::Prefill).unwrap();
    assert_eq!(
        owners(&layout, 5, 310),
        ["group 0 layer a kv block 3", "group 1 layer s conv block 3"]
    );
    assert_eq!(owners(&layout, 5, 338), Vec::<String>::new());
    assert_eq!(owners(&layout, 6, 310), Vec::<String>::new());
}

#[test]
fn a_pattern_is_the_same_bytewise_and_at_once() {
    fn holds(offset: u16, len: u8) -> bool {
        let pattern = Pattern::new(Side::Prefill, 3);
        let mut at_once = vec![0; usize::from(len)];
        pattern.write(u64::from(offset), &mut at_once);
        (u64::from(offset)..)
            .zip(&at_once)
            .all(|(at, &byte)| byte == pattern.byte(at) && byte < 128)
    }
    quickcheck::quickcheck(holds as fn(u16, u8) -> bool);
    assert!(Pattern::new(Side::Decode, 3).byte(9) >= 128);
}

const SIZE: usize = 9 << 20;

fn sides() -> (Vec<u8>, Vec<u8>) {
    let (mut source, mut destination) = (vec![0; SIZE], vec![0; SIZE]);
    fill(Side::Prefill, &mut [(1, &mut source)], &|_| ());
    fill(Side::Decode, &mut [(2, &mut destination)], &|_| ());
    (source, destination)
}

fn row(source_offset: usize, destination_offset: usize, len: usize) -> Row {
    Row {
        destination: 2,
        destination_offset: destination_offset as u64,
        source: 1,
        source_offset: source_offset as u64,
        len: len as u64,
        request: 0,
        group: 0,
        block: 0,
    }
}

#[test]
fn the_check_sees_every_single_changed_byte() {
    let (source, mut destination) = sides();
    // Over piece and word boundaries, odd on both sides.
    let rows = [(3, 5, 11), (77, 4_194_300, 4_200_000), (1, 9_000_001, 65)];
    for (s, d, len) in rows {
        destination[d..d + len].copy_from_slice(&source[s..s + len]);
    }
    let demand = Demand {
        rows: rows.iter().map(|&(s, d, len)| row(s, d, len)).collect(),
        ..Demand::default()
    };
    let run = |source: &[u8], destination: &[u8]| {
        check(
            &demand,
            &vec![(1, source)],
            &vec![(2, destination)],
            &|_| (),
        )
        .unwrap()
    };
    let right = run(&source, &destination);
    assert!(right.passed());
    assert_eq!(right.bytes, 2 * SIZE as u64);
    for at in [
        0,
        4,
        5,
        15,
        16,
        4_194_299,
        4_194_304,
        8_394_299,
        8_394_300,
        SIZE - 1,
    ] {
        destination[at] ^= 1;
        let wrong = run(&source, &destination);
        assert_eq!((wrong.wrong, wrong.first[0].offset), (1, at as u64));
        assert_eq!(wrong.first[0].side, Side::Decode);
        destination[at] ^= 1;
    }
    let mut touched = source.clone();
    touched[SIZE - 1] ^= 255;
    let wrong = run(&touched, &destination);
    assert_eq!((wrong.wrong, wrong.first[0].side), (1, Side::Prefill));
}

#[test]
fn a_row_outside_its_memory_is_an_error() {
    let (source, destination) = sides();
    for bad in [row(SIZE - 3, 0, 4), row(0, SIZE, 1)] {
        let demand = Demand {
            rows: vec![bad],
            ..Demand::default()
        };
        let error = check(
            &demand,
            &vec![(1, &source)],
            &vec![(2, &destination)],
            &|_| (),
        );
        assert!(matches!(error, Err(WalkError::Outside { .. })));
    }
}
