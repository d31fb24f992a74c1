//! Refusals name what is wrong and where.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use mooncake_pd_layout::raw::{RawAllocation, RawGroup, RawLayout, RawPool};
use mooncake_pd_layout::{
    Axis, BlockEntry, CacheLayout, EntryError, FieldSpec, GroupId, GroupSpec, LayoutBuilder,
    LayoutError, MAX_ALLOCATIONS, MAX_GROUPS, MAX_POOLS, MAX_RESERVED, PoolId,
};

type Change = fn(&mut RawLayout);

fn sound() -> RawLayout {
    let field = FieldSpec::new("kv", "uint8")
        .at(1, 0)
        .page_stride(8)
        .dim(Axis::Byte, 8, 1);
    LayoutBuilder::new()
        .allocation(1, 80)
        .pool(3, 10, Some(0))
        .group(GroupSpec::new(2, "full_attention", 16, 3).layer("l", [field]))
        .into_raw()
}

fn refusal(change: impl FnOnce(&mut RawLayout)) -> String {
    let mut raw = sound();
    CacheLayout::new(&raw).unwrap();
    change(&mut raw);
    CacheLayout::new(&raw).unwrap_err().to_string()
}

fn reserving(ranges: &[[u32; 2]]) -> Result<CacheLayout, LayoutError> {
    let mut raw = sound();
    for pool in &mut raw.pools {
        pool.reserved = ranges.to_vec();
    }
    CacheLayout::new(&raw)
}

#[test]
fn reserved_ranges_that_hold_no_id_or_leave_the_pool_are_refused() {
    for range in [
        [5, 3],
        [5, 5],
        [4_000_000_000, 0],
        [10, 11],
        [9, 11],
        [11, 12],
    ] {
        assert_eq!(
            reserving(&[[1, 2], range]),
            Err(LayoutError::Reserved {
                pool: PoolId::new(3),
                start: range[0],
                end: range[1],
                capacity: 10,
            })
        );
    }
    assert_eq!(
        reserving(&[[5, 3]]).unwrap_err().to_string(),
        "pool 3: reserved ids [5, 3] are no range of ids within 0..10"
    );
    assert!(reserving(&[[9, 10], [0, 10]]).is_ok());
}

#[test]
fn reserved_ids_are_those_of_every_range_in_whatever_order() {
    let layout = reserving(&[[7, 9], [2, 4], [3, 5], [5, 6]]).unwrap();
    let pool = layout.pool(PoolId::new(3)).unwrap();
    assert_eq!(pool.reserved(), [2..6, 7..9]);
    let live: Vec<u32> = (0..12).filter(|id| pool.is_live(*id)).collect();
    assert_eq!(live, [1, 6, 9]);
    let group = GroupId::new(2);
    for id in 0..12 {
        let expected = match id {
            0 => Ok(u32::MAX),
            1 | 6 | 9 => Ok(id),
            2..=8 => Err(EntryError::Reserved {
                id,
                pool: PoolId::new(3),
                group,
            }),
            _ => Err(EntryError::OutOfRange {
                id: u64::from(id),
                capacity: 10,
                group,
            }),
        };
        let entry = layout.entry(group, u64::from(id)).map(|entry| match entry {
            BlockEntry::Null => u32::MAX,
            BlockEntry::Block(block) => block.get(),
            BlockEntry::State(slot) => panic!("{slot:?} in a paged group"),
        });
        assert_eq!(entry, expected);
    }
    assert_eq!(CacheLayout::new(&layout.to_raw()), Ok(layout));
}

#[test]
fn a_pool_is_not_arbitrated_with_itself() {
    let own = refusal(|raw| raw.arbitrated = vec![[3, 3]]);
    assert_eq!(own, "pool 3 can't be arbitrated with itself");
    let unknown = refusal(|raw| raw.arbitrated = vec![[3, 4]]);
    assert_eq!(
        unknown,
        "arbitrated pair [3, 4] names pool 4, which does not exist"
    );
}

#[test]
fn arbitrated_pairs_are_one_however_often_and_in_whatever_order() {
    let mut raw = sound();
    raw.pools.extend([4, 5].map(|id| RawPool {
        id,
        ..raw.pools[0].clone()
    }));
    raw.arbitrated = vec![[5, 3], [4, 3], [3, 5]];
    let layout = CacheLayout::new(&raw).unwrap();
    let pair = |a, b| (PoolId::new(a), PoolId::new(b));
    assert_eq!(layout.arbitrated(), [pair(3, 4), pair(3, 5)]);
}

#[test]
fn what_is_empty_is_named() {
    let changes: &[(Change, &str)] = &[
        (
            |raw| raw.allocations.clear(),
            "the layout has no allocations",
        ),
        (|raw| raw.pools.clear(), "the layout has no pools"),
        (|raw| raw.groups.clear(), "the layout has no groups"),
        (|raw| raw.pools[0].capacity = 0, "pool 3 has no ids"),
        (|raw| raw.groups[0].layers.clear(), "group 2 has no layers"),
        (
            |raw| raw.groups[0].layers[0].fields.clear(),
            "layer `l` of group 2 has no fields",
        ),
    ];
    for (change, text) in changes {
        assert_eq!(refusal(change), *text);
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let changes: &[(Change, &str)] = &[
        (
            |raw| raw.format = "x/2".into(),
            "format is `x/2`, this reads `mooncake-pd-layout/1`",
        ),
        (
            |raw| raw.pools[0].null_id = Some(10),
            "pool 3: null id 10 is outside 0..10",
        ),
        (
            |raw| raw.pools.push(raw.pools[0].clone()),
            "pool 3 appears twice",
        ),
        (
            |raw| raw.groups.push(raw.groups[0].clone()),
            "group 2 appears twice",
        ),
        (
            |raw| raw.allocations.push(raw.allocations[0]),
            "allocation 1 appears twice",
        ),
        (
            |raw| {
                let layer = raw.groups[0].layers[0].clone();
                raw.groups[0].layers.push(layer);
            },
            "layer `l` appears twice in group 2",
        ),
        (
            |raw| {
                let fields = &mut raw.groups[0].layers[0].fields;
                fields.push(fields[0].clone());
            },
            "field `kv` appears twice in group 2",
        ),
        (
            |raw| raw.groups[0].pool = 9,
            "group 2 names pool 9, which does not exist",
        ),
        (
            |raw| raw.groups[0].layers[0].fields[0].allocation = 9,
            "field `kv` of layer `l` in group 2 names allocation 9, which does not exist",
        ),
        (
            |raw| raw.groups[0].kind = "sliding_window".into(),
            "group 2 of kind sliding_window has no window",
        ),
        (
            |raw| raw.groups[0].window = Some(7),
            "group 2 of kind full_attention can't have a window, it has 7 tokens",
        ),
        (
            |raw| raw.groups[0].kind = "magic".into(),
            "group 2 is of unknown kind `magic`",
        ),
        (
            |raw| {
                raw.groups[0].kind = "gdn_state".into();
                raw.groups[0].pages_per_block = 2;
            },
            "group 2 holds state, its slots can't be 2 pages each",
        ),
        (|raw| raw.shard.tp_rank = 1, "tp rank 1 is outside 0..1"),
        (|raw| raw.shard.pp_rank = 2, "pp rank 2 is outside 0..1"),
        (
            |raw| raw.allocations[0].len = 79,
            "field `kv` of layer `l` in group 2 ends at byte 80, allocation 1 has 79",
        ),
        (
            |raw| raw.groups[0].layers[0].fields[0].page_stride = 7,
            "field `kv` of layer `l` in group 2: payload of 8 bytes does not fit its stride of 7",
        ),
    ];
    for (change, text) in changes {
        assert_eq!(refusal(change), *text);
    }
}

#[test]
fn lists_are_accepted_up_to_their_limits() {
    let count = |limit: usize| u32::try_from(limit).unwrap();
    let check = |what: &str, limit: usize, make: &dyn Fn(&mut RawLayout, u32)| {
        let mut raw = sound();
        make(&mut raw, count(limit));
        assert_eq!(CacheLayout::new(&raw).err(), None, "{what}");
        let mut raw = sound();
        make(&mut raw, count(limit) + 1);
        let text = format!("has {} {what}, the limit is {limit}", limit + 1);
        let error = CacheLayout::new(&raw).unwrap_err().to_string();
        assert!(error.ends_with(&text), "{error}");
    };
    check("allocations", MAX_ALLOCATIONS, &|raw, count| {
        let one = raw.allocations[0];
        raw.allocations
            .extend((2..=count).map(|id| RawAllocation { id, ..one }));
    });
    check("pools", MAX_POOLS, &|raw, count| {
        let one = raw.pools[0].clone();
        raw.pools
            .extend((4..count + 3).map(|id| RawPool { id, ..one.clone() }));
    });
    check("groups", MAX_GROUPS, &|raw, count| {
        let one = raw.groups[0].clone();
        let more = (3..count + 2).map(|id| RawGroup { id, ..one.clone() });
        raw.groups.extend(more);
    });
    check("reserved ranges", MAX_RESERVED, &|raw, count| {
        raw.pools[0].reserved = (0..count).map(|_| [1, 2]).collect();
    });
    check("arbitrated pairs", 4, &|raw, count| {
        let other = RawPool {
            id: 4,
            ..raw.pools[0].clone()
        };
        raw.pools.push(other);
        raw.arbitrated = (0..count).map(|_| [3, 4]).collect();
    });
}
