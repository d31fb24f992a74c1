//! Which gaps are dead: a third field is moved byte by byte through a gap's
//! surroundings, and the verdict compared with one over every block and byte.

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{CheckError, Contract, Draft, Pairing, PieceProblem};

use crate::ask::{Moved, bridge, bytes, draft, group, request, under};

const BLOCKS: u32 = 3;
const STRIDE: u64 = 12;
/// First byte of block 0: room for other fields before it.
const START: u64 = 14;

/// `parts` pieces of `len` bytes, 5 bytes from one to the next, in allocation 0.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    group: u32,
    pool: u32,
    blocks: u32,
    stride: u64,
    offset: u64,
    len: u64,
    parts: u64,
}

impl Bytes {
    const fn new(group: u32, offset: u64, len: u64) -> Self {
        Self {
            group,
            pool: 0,
            blocks: BLOCKS,
            stride: STRIDE,
            offset,
            len,
            parts: 1,
        }
    }

    fn field(self) -> FieldSpec {
        FieldSpec::new("kv", "uint8")
            .at(0, self.offset)
            .page_stride(self.stride)
            .dim(Axis::Token, self.parts, 5)
            .dim(Axis::Byte, self.len, 1)
    }

    /// First byte and one past the last of each piece of block 0.
    fn pieces(self) -> impl Iterator<Item = (i64, i64)> {
        (0..self.parts).map(move |part| {
            let start = signed(self.offset + part * 5);
            (start, start + signed(self.len))
        })
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}

/// A gap and the request whose copies it separates.
struct Gap {
    /// Payload: every field belongs to its group's layer of the same name.
    payload: Vec<Bytes>,
    /// Of block 0.
    start: u64,
    len: u64,
    /// The group that owns the next block, if the gap ends there.
    next: Option<u32>,
    /// Blocks of groups 0 and 1, the same on both sides.
    blocks: [&'static [u64]; 2],
    parts: Draft,
    bridged: Draft,
}

fn same(pieces: &[(u64, u64)]) -> Vec<Moved> {
    pieces.iter().map(|(at, len)| (*at, *at, *len)).collect()
}

/// One of each kind: in a block, between blocks, between groups.
fn gaps() -> [Gap; 3] {
    let (one, two) = (START + STRIDE, START + 2 * STRIDE);
    [
        Gap {
            payload: vec![Bytes::new(0, START, 2), Bytes::new(0, START + 6, 2)],
            start: START + 2,
            len: 4,
            next: None,
            blocks: [&[1], &[]],
            parts: draft(&[(0, &same(&[(one, 2), (one + 6, 2)]))]),
            bridged: draft(&[(0, &same(&[(one, 8)]))]),
        },
        Gap {
            payload: vec![Bytes::new(0, START, 8)],
            start: START + 8,
            len: 4,
            next: Some(0),
            blocks: [&[1, 2], &[]],
            parts: draft(&[(0, &same(&[(one, 8), (two, 8)]))]),
            bridged: draft(&[(0, &same(&[(one, 20)]))]),
        },
        Gap {
            payload: vec![Bytes::new(0, START, 2), Bytes::new(1, START + 5, 2)],
            start: START + 2,
            len: 15,
            next: Some(1),
            blocks: [&[1], &[2]],
            parts: draft(&[(0, &same(&[(one, 2)])), (1, &same(&[(two + 5, 2)]))]),
            bridged: draft(&[(0, &same(&[(one, 19)]))]),
        },
    ]
}

/// Whether no block that is not the request's, no field of the group that owns a
/// block and no other pool's bytes meet the gap, whichever block it is after.
fn is_dead(gap: &Gap, all: &[Bytes]) -> bool {
    let (start, end) = (signed(gap.start), signed(gap.start + gap.len));
    let reach = i64::from(BLOCKS) - 1;
    all.iter().all(|other| {
        let stride = signed(other.stride);
        other.pieces().all(|(from, to)| {
            if (other.pool, other.stride) == (0, STRIDE) {
                (-reach..=reach).all(|behind| {
                    let (from, to) = (from + behind * stride, to + behind * stride);
                    let owner = match behind {
                        0 => Some(0),
                        1 => gap.next,
                        _ => None,
                    };
                    to <= start || end <= from || owner.is_some_and(|owner| owner != other.group)
                })
            } else {
                let last = to + (i64::from(other.blocks) - 1) * stride;
                last <= start || end + reach * signed(STRIDE) <= from
            }
        })
    })
}

/// Who else may lie about: layers of the gap's groups that the source does not
/// have, and a group of the same or of another pool.
fn others() -> Vec<Bytes> {
    let mut all = Vec::new();
    for offset in 0..64 {
        for (len, parts) in [(3, 1), (1, 2)] {
            let at = |group| Bytes {
                parts,
                ..Bytes::new(group, offset, len)
            };
            for group in 0..3 {
                all.push(at(group));
            }
            let stride = 2 * STRIDE;
            all.push(Bytes { stride, ..at(2) });
            for (blocks, stride) in [(1, STRIDE), (2, STRIDE), (2, STRIDE / 2)] {
                all.push(Bytes {
                    pool: 1,
                    blocks,
                    stride,
                    ..at(2)
                });
            }
        }
    }
    all
}

fn layout(payload: &[Bytes], other: Option<Bytes>, pools: (u32, u32)) -> Option<CacheLayout> {
    // A group without payload has a layer elsewhere.
    let own = |id: u32, spec: GroupSpec| {
        if payload.iter().any(|field| field.group == id) {
            spec
        } else {
            spec.layer("own", [bytes(1, u64::from(id) * 100, 4, 4)])
        }
    };
    let pool = |id| if id == 2 { pools.0 } else { 0 };
    let mut groups: Vec<GroupSpec> = (0..3).map(|id| own(id, group(id, pool(id)))).collect();
    let named = payload.iter().enumerate();
    let named = named.map(|(at, payload)| (format!("payload.{at}"), *payload));
    for (name, field) in named.chain(other.map(|other| ("other".to_owned(), other))) {
        let at = usize::try_from(field.group).unwrap();
        groups[at] = groups[at].clone().layer(&name, [field.field()]);
    }
    let builder = LayoutBuilder::new()
        .allocation(0, 400)
        .allocation(1, 1_000)
        .pool(0, BLOCKS, None)
        .pool(1, pools.1, None)
        .arbitrated(0, 1);
    let layout = groups.into_iter().fold(builder, LayoutBuilder::group);
    layout.build().ok()
}

fn problem(error: &CheckError) -> Option<PieceProblem> {
    match error {
        CheckError::Piece { problem, .. } => Some(*problem),
        _ => None,
    }
}

#[test]
fn a_gap_is_bridged_exactly_where_it_is_dead() {
    for (kind, gap) in gaps().iter().enumerate() {
        let (mut dead, mut live) = (0, 0);
        for other in others() {
            let pools = (other.pool, other.blocks);
            let Some(destination) = layout(&gap.payload, Some(other), pools) else {
                continue;
            };
            let source = layout(&gap.payload, None, pools).unwrap();
            let pairing = Pairing::new(&source, &destination).unwrap();
            let [first, second] = gap.blocks;
            let asked = request(
                &pairing,
                32,
                &[(first, first), (second, second), (&[], &[])],
            );
            let check = |draft: &Draft, contract: Contract| {
                let checked = pairing.check(draft.clone(), &[&asked], &under(contract));
                checked.err().map(|error| problem(&error))
            };
            let mut all = gap.payload.clone();
            all.push(other);
            let case = format!("gap {kind}, {other:?}");
            let is_dead = is_dead(gap, &all);
            (dead, live) = (dead + u32::from(is_dead), live + u32::from(!is_dead));
            let (wanted, refused) = if is_dead {
                (&gap.bridged, None)
            } else {
                (&gap.parts, Some(Some(PieceProblem::LiveGap)))
            };
            let contract = bridge(gap.len);
            assert_eq!(pairing.draft(&[&asked], contract), *wanted, "{case}");
            assert_eq!(check(&gap.bridged, contract), refused, "{case}");
            assert_eq!(check(&gap.parts, contract), None, "{case}");
            // Never one that is too long, or under a contract without bridges.
            let others = [bridge(gap.len - 1), Contract::PayloadOnly];
            for contract in others.into_iter().filter(|_| is_dead) {
                assert_eq!(pairing.draft(&[&asked], contract), gap.parts, "{case}");
                let refused = Some(Some(PieceProblem::LiveGap));
                assert_eq!(check(&gap.bridged, contract), refused, "{case}");
            }
        }
        assert!(
            dead > 50 && live > 50,
            "gap {kind}: {dead} dead, {live} live"
        );
    }
}
