//! Which copies follow each other as one, and how the list of them grows.

use mooncake_pd_layout::{AllocationId, CacheLayout, GroupId, GroupSpec};
use mooncake_pd_plan::{CheckError, Contract, Draft, Options, Pairing, PieceProblem, Request};

use crate::ask::{Moved, bridge, bytes, copies, draft, group, plan, request, side, under};

/// Groups from 0, each with whole rows of 8 bytes that follow those of the other
/// groups' blocks: one pool and one allocation, in which every id has one owner.
fn rows(groups: u32) -> CacheLayout {
    side(
        20,
        (0..groups).map(|id| group(id, 0).layer("a", [bytes(0, 0, 8, 8)])),
    )
}

fn one_by_one(pairing: &Pairing<'_>, requests: &[Request]) -> Draft {
    let requests: Vec<&Request> = requests.iter().collect();
    pairing.draft(&requests, Contract::PayloadOnly)
}

#[test]
fn a_copy_runs_on_through_groups_and_past_those_that_ask_for_nothing() {
    let side = rows(3);
    let pairing = Pairing::new(&side, &side).unwrap();
    for (groups, expected) in [
        ([&[1][..], &[2], &[3]], draft(&[(0, &[(8, 8, 24)])])),
        // A group without blocks does not come in between.
        ([&[1], &[], &[2]], draft(&[(0, &[(8, 8, 16)])])),
        ([&[], &[1], &[2]], draft(&[(1, &[(8, 8, 16)])])),
        // The last group's second block is a copy of its own.
        (
            [&[1], &[2], &[3, 5]],
            draft(&[(0, &[(8, 8, 24)]), (2, &[(40, 40, 8)])]),
        ),
        (
            [&[1], &[3], &[2]],
            draft(&[(0, &[(8, 8, 8)]), (1, &[(24, 24, 8)]), (2, &[(16, 16, 8)])]),
        ),
    ] {
        let tables = groups.map(|ids| (ids, ids));
        let asked = request(&pairing, 32, &tables);
        let found = one_by_one(&pairing, std::slice::from_ref(&asked));
        assert_eq!(found, expected, "{groups:?}");
        let checked = pairing.check(found, &[&asked], &Options::default());
        assert!(checked.is_ok(), "{groups:?}: {checked:?}");
    }
}

#[test]
fn no_copy_runs_on_into_the_next_request() {
    let side = rows(2);
    let pairing = Pairing::new(&side, &side).unwrap();
    let asked = [
        request(&pairing, 16, &[(&[1], &[1]), (&[2], &[2])]),
        request(&pairing, 16, &[(&[3], &[3]), (&[9], &[9])]),
        request(&pairing, 16, &[(&[10], &[10]), (&[7], &[7])]),
    ];
    let plan = pairing.plan(&asked, &Options::default()).unwrap().plan;
    let expected = [(8, 16), (24, 8), (72, 8), (80, 8), (56, 8)];
    assert_eq!(copies(&plan), expected.map(|(at, len)| (at, at, len)));
    let sections = plan.sections().iter();
    let counted: Vec<_> = sections
        .map(|section| {
            let group = section.group().get();
            (section.request(), group, section.copies(), section.bytes())
        })
        .collect();
    assert_eq!(
        counted,
        [
            (0, 0, 1, 16),
            (0, 1, 0, 0),
            (1, 0, 1, 8),
            (1, 1, 1, 8),
            (2, 0, 1, 8),
            (2, 1, 1, 8),
        ]
    );
}

#[test]
fn copies_of_one_group_between_the_same_allocations_are_one_stretch() {
    let layers = |to: u32| {
        let spec = group(0, 0)
            .layer("a", [bytes(0, 0, 10, 8)])
            .layer("b", [bytes(0, 300, 10, 8)])
            .layer("c", [bytes(to, 600, 10, 8)]);
        side(20, [spec])
    };
    let from = layers(0);
    let pieces = [(10, 10, 8), (310, 310, 8), (610, 610, 8)];
    for (to, expected) in [(0, vec![3]), (1, vec![2, 1])] {
        let to = layers(to);
        let pairing = Pairing::new(&from, &to).unwrap();
        let asked = request(&pairing, 16, &[(&[1], &[1])]);
        let found = one_by_one(&pairing, &[asked]);
        let counts: Vec<usize> = found.stretches.iter().map(|s| s.pieces).collect();
        assert_eq!(counts, expected);
        assert_eq!(found.pieces, draft(&[(0, &pieces)]).pieces);
    }
}

/// One group of two fields.
fn two(k: (u32, u64, u64), v: (u32, u64, u64)) -> GroupSpec {
    let field = |(allocation, offset, stride)| bytes(allocation, offset, stride, 4);
    group(0, 0).layer("k", [field(k)]).layer("v", [field(v)])
}

#[test]
fn only_fields_that_are_neighbours_on_both_sides_are_one_copy() {
    let next = two((0, 0, 8), (0, 4, 8));
    let apart = [
        two((0, 0, 8), (1, 4, 8)),
        two((1, 0, 8), (0, 4, 8)),
        two((0, 0, 8), (0, 4, 16)),
        two((0, 0, 16), (0, 4, 8)),
        two((0, 0, 16), (0, 5, 16)),
    ];
    let blocks = |first: GroupSpec| side(2, [first]);
    for contract in [Contract::PayloadOnly, bridge(100)] {
        let count = |from: &GroupSpec, to: &GroupSpec| {
            let (from, to) = (blocks(from.clone()), blocks(to.clone()));
            let plan = plan(&from, &to, contract, 16, &[(&[1], &[1])]);
            assert_eq!(plan.payload_bytes(), 8);
            plan.descriptors()
        };
        assert_eq!(count(&next, &next), 1);
        for other in &apart {
            assert_eq!(count(other, &next), 2, "from {other:?}");
            assert_eq!(count(&next, other), 2, "to {other:?}");
        }
    }
}

#[test]
fn groups_in_other_allocations_of_one_side_are_not_one_copy() {
    let groups = |second: u32| {
        let spec = |id, allocation| group(id, 0).layer("a", [bytes(allocation, 0, 8, 8)]);
        side(20, [spec(0, 0), spec(1, second)])
    };
    let (one, two) = (groups(0), groups(1));
    let tables: [(&[u64], &[u64]); 2] = [(&[1], &[1]), (&[2], &[2])];
    for contract in [Contract::PayloadOnly, bridge(100)] {
        let count = |from, to| plan(from, to, contract, 16, &tables).descriptors();
        assert_eq!(count(&one, &one), 1);
        assert_eq!(count(&one, &two), 2);
        assert_eq!(count(&two, &one), 2);
        assert_eq!(count(&two, &two), 2);
    }
}

#[test]
fn every_byte_comes_from_the_allocation_it_is_due_from() {
    // At the source the second layer is where the first is, an allocation on.
    let fields = |k: u32, v: u32| {
        let spec = group(0, 0)
            .layer("k", [bytes(k, 0, 8, 4)])
            .layer("v", [bytes(v, 4, 8, 4)]);
        side(20, [spec])
    };
    let whole: &[Moved] = &[(8, 8, 8), (24, 24, 8)];
    let single = [(8, 8, 4), (24, 24, 4), (12, 12, 4), (28, 28, 4)];
    let refused = |source: (u32, u32), named: u32, pieces: &[Moved]| {
        let (from, to) = (fields(source.0, source.1), fields(0, 0));
        let pairing = Pairing::new(&from, &to).unwrap();
        let asked = request(&pairing, 32, &[(&[1, 3], &[1, 3])]);
        let mut draft = draft(&[(0, pieces)]);
        draft.stretches[0].source = AllocationId::new(named);
        match pairing.check(draft, &[&asked], &Options::default()) {
            Ok(_) => None,
            Err(CheckError::Piece { piece, problem, .. }) => Some((piece, problem)),
            Err(error) => panic!("{error}"),
        }
    };
    let place = |piece| Some((piece, PieceProblem::Place));
    for pieces in [whole, &single[..]] {
        assert_eq!(refused((0, 0), 0, pieces), None);
        assert_eq!(refused((1, 1), 1, pieces), None);
        assert_eq!(refused((0, 0), 1, pieces), place(0));
        assert_eq!(refused((1, 1), 0, pieces), place(0));
        assert_eq!(refused((1, 0), 0, pieces), place(0));
    }
    assert_eq!(refused((0, 1), 0, whole), place(0));
    assert_eq!(refused((0, 1), 0, &single), place(2));
}

#[test]
fn the_list_of_copies_grows_by_half_and_only_when_it_is_full() {
    let side = side(
        20,
        (0..3).map(|id| group(id, 0).layer("a", [bytes(0, u64::from(id) * 300, 10, 8)])),
    );
    let pairing = Pairing::new(&side, &side).unwrap();
    let room = |blocks: [&[u64]; 3]| {
        let asked = request(&pairing, 64, &blocks.map(|ids| (ids, ids)));
        let pieces = one_by_one(&pairing, &[asked]).pieces;
        (pieces.len(), pieces.capacity())
    };
    assert_eq!(room([&[1, 2, 3, 4], &[], &[]]), (4, 4));
    assert_eq!(room([&[1, 2, 3, 4], &[5], &[]]), (5, 6));
    assert_eq!(room([&[1, 2, 3, 4], &[5], &[6]]), (6, 6));
    assert_eq!(room([&[1, 2, 3, 4], &[5, 6, 7], &[]]), (7, 7));
    assert_eq!(room([&[1, 2, 3, 4], &[5], &[6, 7]]), (7, 7));
}

#[test]
fn the_only_block_of_a_pool_is_one_copy_whatever_its_strides() {
    // Of two blocks, the first field's second would lie between.
    for (blocks, expected) in [(1, 1), (2, 2)] {
        let spec = group(0, 0)
            .layer("a", [bytes(0, 0, 10, 8)])
            .layer("b", [bytes(0, 20, 10, 8)]);
        let side = side(blocks, [spec]);
        let pairing = Pairing::new(&side, &side).unwrap();
        let asked = request(&pairing, 16, &[(&[0], &[0])]);
        let plan = pairing.plan(&[asked], &under(bridge(12))).unwrap().plan;
        assert_eq!(plan.descriptors(), expected);
    }
    let spec = group(0, 0)
        .layer("a", [bytes(0, 0, 10, 10)])
        .layer("b", [bytes(0, 10, 10, 10)]);
    let side = side(1, [spec]);
    let found = plan(&side, &side, Contract::PayloadOnly, 16, &[(&[0], &[0])]);
    assert_eq!(copies(&found), [(0, 0, 20)]);
}

#[test]
fn a_gap_behind_several_fields_is_bridged_to_the_next_block_and_group() {
    let spec = |id, len| {
        let first = group(id, 0).layer("a", [bytes(0, 0, 20, 4)]);
        first.layer("b", [bytes(0, 4, 20, len)])
    };
    let side = side(20, [spec(0, 4), spec(1, 8)]);
    let found = |max_gap, tables: &[(&[u64], &[u64])]| {
        copies(&plan(&side, &side, bridge(max_gap), 32, tables))
    };
    assert_eq!(found(12, &[(&[1, 2], &[1, 2]), (&[], &[])]), [(20, 20, 28)]);
    assert_eq!(found(12, &[(&[1], &[1]), (&[2], &[2])]), [(20, 20, 32)]);
    assert_eq!(found(8, &[(&[], &[]), (&[1, 2], &[1, 2])]), [(20, 20, 32)]);
    for (max_gap, blocks) in [(11, [&[1][..], &[2]]), (12, [&[1], &[3]])] {
        let [first, second] = blocks;
        let row = second[0] * 20;
        let expected = [(20, 20, 8), (row, row, 12)];
        assert_eq!(
            found(max_gap, &[(first, first), (second, second)]),
            expected
        );
    }
}

#[test]
fn a_block_that_no_copy_writes_is_named() {
    // The second layer is in the first's allocation, or at its offset in another.
    for (allocation, offset) in [(0, 300), (1, 0)] {
        let spec = group(0, 0)
            .layer("a", [bytes(0, 0, 10, 8)])
            .layer("b", [bytes(allocation, offset, 10, 8)]);
        let side = side(20, [spec]);
        let pairing = Pairing::new(&side, &side).unwrap();
        let asked = request(&pairing, 48, &[(&[1, 3, 5], &[1, 3, 5])]);
        let whole = one_by_one(&pairing, std::slice::from_ref(&asked));
        assert_eq!(whole.pieces.len(), 6);
        // Without the last copies of a layer.
        for (layer, kept) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
            let mut draft = whole.clone();
            let dropped = 3 - kept;
            draft.pieces.drain(layer * 3 + kept..layer * 3 + 3);
            let stretch = if draft.stretches.len() == 1 { 0 } else { layer };
            draft.stretches[stretch].pieces -= dropped;
            let error = pairing.check(draft, &[&asked], &Options::default());
            let expected = CheckError::Missing {
                request: 0,
                group: GroupId::new(0),
                position: u64::try_from(kept).unwrap(),
            };
            assert_eq!(error.err(), Some(expected), "{allocation}, {layer}, {kept}");
        }
    }
}
