use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::BTreeSet;

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::{Lease, LeaseBook, Quiescence};
use crate::hash::seeded;
use crate::tables::{BlockTables, GroupTable, TablesError};

/// Groups 0 and 1 in a pool of 70 blocks, group 2 in one of 5; null is 0, and 3 is
/// reserved in the small one.
fn layout() -> Arc<CacheLayout> {
    let mut builder = LayoutBuilder::new()
        .pool(0, 70, Some(0))
        .pool(1, 5, Some(0))
        .reserved(3, 4);
    for (group, pool) in [(0, 0), (1, 0), (2, 1)] {
        let field = FieldSpec::new("kv", "uint8").at(group, 0).page_stride(8);
        let spec = GroupSpec::new(group, "full_attention", 16, pool);
        let name = alloc::format!("layers.{group}");
        builder = builder
            .allocation(group, 8 * 70)
            .group(spec.layer(&name, [field.dim(Axis::Byte, 8, 1)]));
    }
    Arc::new(builder.build().unwrap())
}

/// What is asked of a book, in order.
#[derive(Clone, Debug)]
enum Ask {
    Take(Vec<(u32, Vec<Option<u32>>)>),
    Share(Vec<(u32, Vec<Option<u32>>)>),
    /// The lease of this index ends, modulo their number.
    End(u8),
}

impl Arbitrary for Ask {
    fn arbitrary(g: &mut Gen) -> Self {
        let pick = |g: &mut Gen, end: u8| u8::arbitrary(g) % end;
        let kind = pick(g, 8);
        if kind >= 5 {
            return Self::End(u8::arbitrary(g));
        }
        let mut lists = Vec::new();
        for (group, ids) in [(0, 70), (1, 70), (2, 5)] {
            // Seldom of other groups, seldom out of the pool.
            if pick(g, 16) == 0 {
                continue;
            }
            let entry = |g: &mut Gen| match pick(g, 24) {
                0 => None,
                1 => Some(u32::from(pick(g, 80))),
                _ => Some(u32::from(pick(g, ids))),
            };
            let most = if group == 2 { 2 } else { 5 };
            lists.push((group, (0..pick(g, most)).map(|_| entry(g)).collect()));
        }
        if kind < 4 {
            Self::Take(lists)
        } else {
            Self::Share(lists)
        }
    }
}

fn tables(lists: &[(u32, Vec<Option<u32>>)]) -> Arc<BlockTables> {
    let groups = lists.iter().map(|(group, entries)| GroupTable {
        group: GroupId::new(*group),
        first_block: None,
        entries: entries.clone(),
    });
    Arc::new(BlockTables::new(groups).unwrap())
}

/// What tables hold, or the kind of their error: block by block.
fn naive(
    lists: &[(u32, Vec<Option<u32>>)],
    taken: &BTreeSet<(u32, u32)>,
) -> Result<BTreeSet<(u32, u32)>, &'static str> {
    let groups: Vec<u32> = lists.iter().map(|(group, _)| *group).collect();
    if groups != [0, 1, 2] {
        return Err("groups");
    }
    let mut ours = BTreeSet::new();
    for (group, entries) in lists {
        let (pool, capacity) = if *group == 2 { (1, 5) } else { (0, 70) };
        for id in entries.iter().flatten() {
            if *id == 0 {
                continue;
            }
            if *id >= capacity || (pool, *id) == (1, 3) {
                return Err("entry");
            }
            if taken.contains(&(pool, *id)) {
                return Err("leased");
            }
            if !ours.insert((pool, *id)) {
                return Err("twice");
            }
        }
    }
    Ok(ours)
}

fn kind(error: &TablesError) -> &'static str {
    match error {
        TablesError::Groups { .. } => "groups",
        TablesError::Entry { .. } => "entry",
        TablesError::Leased { .. } => "leased",
        TablesError::BlockTwice { .. } => "twice",
        other => panic!("{other}"),
    }
}

/// Every block of both pools that the book holds.
fn marked(book: &LeaseBook) -> BTreeSet<(u32, u32)> {
    let pools = book.taken.iter();
    let bits = pools.flat_map(|(pool, words)| {
        let ids = (0_u32..).zip(words).flat_map(|(word, bits)| {
            let set = (0..u64::BITS).filter(move |bit| bits >> bit & 1 == 1);
            set.map(move |bit| word * u64::BITS + bit)
        });
        ids.map(|id| (pool.get(), id))
    });
    bits.collect()
}

fn agrees_with_a_set(asks: Vec<Ask>) {
    let mut book = LeaseBook::new(layout(), seeded(1));
    let mut leases: Vec<(Lease, BTreeSet<(u32, u32)>)> = Vec::new();
    let mut taken = BTreeSet::new();
    for ask in asks {
        match ask {
            Ask::Take(lists) => {
                let expected = naive(&lists, &taken);
                let result = book.take(tables(&lists)).map_err(|error| kind(&error));
                assert_eq!(result.as_ref().err(), expected.as_ref().err());
                if let (Ok(lease), Ok(ours)) = (result, expected) {
                    taken.extend(&ours);
                    leases.push((lease, ours));
                }
            }
            Ask::Share(lists) => {
                let expected = naive(&lists, &taken);
                let result = book.share(tables(&lists)).map_err(|error| kind(&error));
                assert_eq!(result.as_ref().err(), expected.as_ref().err());
                if let Ok(lease) = result {
                    leases.push((lease, BTreeSet::new()));
                }
            }
            Ask::End(index) if !leases.is_empty() => {
                let (mut lease, ours) = leases.swap_remove(usize::from(index) % leases.len());
                let loan = lease.lend();
                let mut lease = book.end(lease).unwrap_err();
                assert_eq!(marked(&book), taken, "it is lent");
                lease.repay(loan, Quiescence::witnessed());
                book.end(lease).unwrap();
                taken.retain(|block| !ours.contains(block));
            }
            Ask::End(_) => {}
        }
        assert_eq!(marked(&book), taken);
        assert_eq!(book.live(), leases.len());
    }
}

#[test]
fn a_lease_book_agrees_with_a_plain_set_and_an_error_changes_nothing() {
    let check: fn(Vec<Ask>) = agrees_with_a_set;
    QuickCheck::new().tests(2_000).quickcheck(check);
}

#[test]
fn a_lease_ends_when_its_last_loan_is_repaid() {
    let mut book = LeaseBook::new(layout(), seeded(1));
    let lists = [(0, Vec::from([Some(1)])), (1, Vec::new()), (2, Vec::new())];
    let mut lease = book.take(tables(&lists)).unwrap();
    let (first, second) = (lease.lend(), lease.lend());
    lease.repay(second, Quiescence::told());
    let mut lease = book.end(lease).unwrap_err();
    lease.repay(first, Quiescence::untouched());
    assert_eq!(book.end(lease).unwrap(), tables(&lists));
    assert_eq!(book.live(), 0);
}
