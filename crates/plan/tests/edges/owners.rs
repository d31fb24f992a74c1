//! Who may have a block, and what is left behind by a request that may not.

use std::collections::BTreeSet;
use std::slice;

use mooncake_pd_layout::{CacheLayout, GroupId, LayoutBuilder};
use mooncake_pd_plan::{Leases, Options, Owner, Pairing, Request, RequestError, Side};

use crate::ask::{bytes, group, request, side};

/// Why each request of a batch is refused.
fn refusals(
    pairing: &Pairing<'_>,
    requests: &[Request],
    leases: Option<&Leases>,
) -> Vec<Option<RequestError>> {
    let options = Options {
        leases,
        ..Options::default()
    };
    let batch = pairing.plan(requests, &options).unwrap();
    let mut all = vec![None; requests.len()];
    for refused in batch.refused {
        all[refused.index] = Some(refused.error);
    }
    all
}

/// Allocation, offset, stride and length of a field.
type Field = (u32, u64, u64, u64);

const BLOCKS: u32 = 6;

/// Group 0 over pool 0 and group 1 over pool 1, which may lie over one another.
fn overlaid(groups: [&[Field]; 2]) -> CacheLayout {
    let mut builder = LayoutBuilder::new()
        .pool(0, BLOCKS, None)
        .pool(1, BLOCKS, None)
        .arbitrated(0, 1);
    for id in 0..8 {
        builder = builder.allocation(id, 1_000);
    }
    for (id, fields) in (0..).zip(groups) {
        let mut spec = group(id, id);
        for (at, (allocation, offset, stride, len)) in fields.iter().enumerate() {
            spec = spec.layer(
                &at.to_string(),
                [bytes(*allocation, *offset, *stride, *len)],
            );
        }
        builder = builder.group(spec);
    }
    builder.build().unwrap()
}

/// The same fields, each in an allocation of its own.
fn separate(groups: [&[Field]; 2]) -> CacheLayout {
    let apart = |group: u32| {
        let fields = (0..).zip(groups[usize::try_from(group).unwrap()]);
        let fields = fields.map(|(at, (_, _, stride, len))| (group * 4 + at, 0, *stride, *len));
        fields.collect::<Vec<Field>>()
    };
    overlaid([&apart(0), &apart(1)])
}

/// A block's bytes, with their allocations.
fn block(fields: &[Field], id: u64) -> BTreeSet<(u32, u64)> {
    let bytes = |(allocation, offset, stride, len): &Field| {
        let (allocation, start) = (*allocation, offset + stride * id);
        (start..start + len).map(move |byte| (allocation, byte))
    };
    fields.iter().flat_map(bytes).collect()
}

fn shared(side: Side, (group, id): (u32, u64), (other_group, other): (u32, u64)) -> RequestError {
    let number = |id: u64| u32::try_from(id).unwrap();
    RequestError::SharedBytes {
        side,
        id: number(id),
        group: GroupId::new(group),
        other: number(other),
        other_group: GroupId::new(other_group),
    }
}

/// Fields of groups 0 and 1.
const OVERLAID: [[&[Field]; 2]; 4] = [
    // Blocks of 10 bytes over two of 5.
    [&[(0, 0, 10, 10)], &[(0, 0, 5, 5)]],
    // Room for a block of the other group between two fields.
    [&[(0, 0, 20, 4), (0, 15, 20, 5)], &[(0, 5, 10, 10)]],
    // Bytes that would follow each other in one allocation.
    [&[(0, 0, 10, 10), (1, 10, 10, 10)], &[(1, 0, 10, 10)]],
    // Bytes that do.
    [&[(0, 0, 10, 5), (0, 5, 10, 5)], &[(0, 0, 10, 10)]],
];

/// Calls for every pair of blocks, with both layouts where they are on that side.
fn overlays(then: impl Fn(Side, &Pairing<'_>, u64, u64, bool)) {
    for groups in OVERLAID {
        let (over, apart) = (overlaid(groups), separate(groups));
        let source = Pairing::new(&over, &apart).unwrap();
        let destination = Pairing::new(&apart, &over).unwrap();
        let mut seen = BTreeSet::new();
        for first in 0..u64::from(BLOCKS) {
            for second in 0..u64::from(BLOCKS) {
                let (a, b) = (block(groups[0], first), block(groups[1], second));
                let share = !a.is_disjoint(&b);
                seen.insert(share);
                then(Side::Source, &source, first, second, share);
                then(Side::Destination, &destination, first, second, share);
            }
        }
        assert_eq!(seen.len(), 2, "{groups:?}");
    }
}

/// One block of each group, or none, on one side; block 1 on the other.
fn of(side: Side, pairing: &Pairing<'_>, blocks: [Option<u64>; 2]) -> Request {
    let tables = blocks.map(|block| {
        let (here, there) = (block, block.map(|_| 1));
        match side {
            Side::Source => (here, there),
            Side::Destination => (there, here),
        }
    });
    let tables = tables
        .each_ref()
        .map(|(from, to)| (from.as_slice(), to.as_slice()));
    request(pairing, 16, &tables)
}

#[test]
fn blocks_of_arbitrated_pools_are_used_together_exactly_where_they_share_no_byte() {
    overlays(|side, pairing, first, second, share| {
        let a = of(side, pairing, [Some(first), None]);
        let b = of(side, pairing, [None, Some(second)]);
        let both = of(side, pairing, [Some(first), Some(second)]);
        let later = share.then(|| shared(side, (1, second), (0, first)));
        let earlier = share.then(|| shared(side, (0, first), (1, second)));
        let refused = |requests: &[Request]| refusals(pairing, requests, None);
        assert_eq!(refused(&[a.clone(), b.clone()]), [None, later.clone()]);
        assert_eq!(refused(&[b.clone(), a.clone()]), [None, earlier]);
        assert_eq!(refused(slice::from_ref(&both)), *slice::from_ref(&later));
        if side == Side::Destination {
            let mut leases = Leases::default();
            let plan = pairing.plan(&[a], &Options::default()).unwrap().plan;
            let lease = leases.add(&plan).unwrap();
            let requests = [b];
            assert_eq!(refusals(pairing, &requests, Some(&leases)), [later]);
            leases.release(lease);
            assert_eq!(refusals(pairing, &requests, Some(&leases)), [None]);
        }
    });
}

#[test]
fn a_refused_request_leaves_nothing_in_use() {
    overlays(|side, pairing, first, second, _| {
        let (spare, group) = ((first + 1) % u64::from(BLOCKS), GroupId::new(0));
        let [twice, distinct] = [[first, first], [first, spare]];
        // Its blocks are in order on one side or on the other.
        let on_source = RequestError::SourceTaken {
            id: u32::try_from(first).unwrap(),
            group,
            owner: Owner::SameRequest,
        };
        let on_destination = RequestError::DestinationTaken {
            id: u32::try_from(first).unwrap(),
            group,
            owner: Owner::SameRequest,
        };
        let none: &[u64] = &[];
        for (from, to, error) in [
            (twice, distinct, on_source),
            (distinct, twice, on_destination),
        ] {
            let bad = request(pairing, 32, &[(&from, &to), (none, none)]);
            let same = request(pairing, 16, &[(&[first], &[first]), (none, none)]);
            let other = of(side, pairing, [None, Some(second)]);
            for next in [same, other] {
                let found = refusals(pairing, &[bad.clone(), next], None);
                assert_eq!(found, [Some(error.clone()), None]);
            }
        }
    });
}

#[test]
fn requests_read_the_same_block_only_for_the_same_group() {
    for groups in [2, 3] {
        // The third group has the second's blocks in another pool.
        let spec = |id: u32| group(id, 0).layer("a", [bytes(0, u64::from(id) * 300, 10, 10)]);
        let side = side(30, (0..groups).map(spec));
        let pairing = Pairing::new(&side, &side).unwrap();
        let ask = |read: [u64; 2], write: u64| {
            let (from, to) = (read.map(|id| [id]), [[write], [write + 1]]);
            let mut tables: Vec<(&[u64], &[u64])> = vec![(&from[0], &to[0]), (&from[1], &to[1])];
            tables.resize(usize::try_from(groups).unwrap(), (&[], &[]));
            request(&pairing, 16, &tables)
        };
        let taken = |id, group| {
            Some(RequestError::SourceTaken {
                id,
                group: GroupId::new(group),
                owner: Owner::EarlierRequest,
            })
        };
        let first = ask([1, 2], 10);
        for (read, expected) in [
            ([1, 2], None),
            ([1, 3], None),
            ([3, 2], None),
            ([3, 4], None),
            ([2, 3], taken(2, 0)),
            ([3, 1], taken(1, 1)),
        ] {
            let requests = [first.clone(), ask(read, 20)];
            assert_eq!(refusals(&pairing, &requests, None), [None, expected]);
        }
    }
}

#[test]
fn a_request_fits_every_pairing_of_equal_layouts() {
    let make = || side(8, [group(0, 0).layer("a", [bytes(0, 0, 10, 10)])]);
    let (one, other) = (make(), make());
    let (first, second) = (
        Pairing::new(&one, &one).unwrap(),
        Pairing::new(&other, &other).unwrap(),
    );
    let asked = request(&first, 16, &[(&[1], &[2])]);
    assert_eq!(refusals(&second, slice::from_ref(&asked), None), [None]);
    let larger = side(9, [group(0, 0).layer("a", [bytes(0, 0, 10, 10)])]);
    let third = Pairing::new(&larger, &larger).unwrap();
    assert_eq!(
        refusals(&third, &[asked], None),
        [Some(RequestError::Foreign)]
    );
}

#[test]
fn ids_are_told_apart_up_to_the_largest_pools() {
    // Rows of one byte, 1,024 times 4,096 of them and some more.
    const MANY: u32 = (1 << 22) + 4_096;
    let layout = LayoutBuilder::new()
        .allocation(0, u64::from(MANY))
        .pool(0, MANY, None)
        .group(group(0, 0).layer("a", [bytes(0, 0, 1, 1)]))
        .build()
        .unwrap();
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let ids: Vec<u64> = [0, 4_095, 4_096, (1 << 22) - 1, 1 << 22, u64::from(MANY) - 1].to_vec();
    for taken in &ids {
        for id in &ids {
            let ask = |from: u64, to: u64| request(&pairing, 16, &[(&[from], &[to])]);
            let found = refusals(&pairing, &[ask(1, *taken), ask(2, *id)], None);
            let error = RequestError::DestinationTaken {
                id: u32::try_from(*id).unwrap(),
                group: GroupId::new(0),
                owner: Owner::EarlierRequest,
            };
            let expected = (id == taken).then_some(error);
            assert_eq!(found, [None, expected]);
        }
    }
}
