use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use mooncake_pd_layout::GroupId;
use mooncake_pd_plan::{MAX_ENTRIES, RawSlots};

use super::{BlockTables, GroupTable, MAX_GROUPS};
use crate::tokens::TokenCount;

fn table(group: u32, entries: &[Option<u32>]) -> GroupTable {
    GroupTable {
        group: GroupId::new(group),
        first_block: None,
        entries: entries.to_vec(),
    }
}

#[test]
fn groups_are_put_in_order_whatever_order_they_come_in() {
    let tables = BlockTables::new([table(7, &[Some(1)]), table(0, &[]), table(3, &[None])]);
    let groups: Vec<u32> = tables
        .unwrap()
        .groups()
        .iter()
        .map(|table| table.group.get())
        .collect();
    assert_eq!(groups, [0, 3, 7]);
    assert_eq!(BlockTables::new([]).unwrap(), BlockTables::default());
}

#[test]
fn a_group_twice_is_refused_wherever_it_stands() {
    let error = BlockTables::new([table(1, &[]), table(0, &[]), table(1, &[])]).unwrap_err();
    assert_eq!(error.to_string(), "group 1 has two block tables");
}

#[test]
fn groups_and_entries_are_bounded_in_all() {
    let many = |count: usize| (0..u32::try_from(count).unwrap()).map(|group| table(group, &[]));
    assert!(BlockTables::new(many(MAX_GROUPS)).is_ok());
    let error = BlockTables::new(many(MAX_GROUPS + 1)).unwrap_err();
    assert_eq!(error.to_string(), "4097 groups, the limit is 4096");
    let long = |more: usize| {
        [
            table(0, &vec![None; MAX_ENTRIES / 2]),
            table(1, &vec![None; MAX_ENTRIES - MAX_ENTRIES / 2 + more]),
        ]
    };
    assert!(BlockTables::new(long(0)).is_ok());
    let text = BlockTables::new(long(1)).unwrap_err().to_string();
    let (more, most) = (MAX_ENTRIES + 1, MAX_ENTRIES);
    assert_eq!(
        text,
        alloc::format!("{more} block table entries, the limit is {most}")
    );
}

#[test]
fn a_request_has_both_sides_of_each_group_of_either() {
    let mut first = table(0, &[Some(5), None]);
    first.first_block = Some(3);
    let source = BlockTables::new([first, table(2, &[Some(9)])]).unwrap();
    let destination =
        BlockTables::new([table(1, &[Some(6)]), table(2, &[Some(8)]), table(4, &[])]).unwrap();
    let request = source.request(&destination, "a", TokenCount::new(33));
    assert_eq!(
        (
            request.id.as_str(),
            request.computed_tokens,
            request.tail_aligned
        ),
        ("a", Some(33), false)
    );
    let slots = |first_block, entries: &[Option<u64>]| RawSlots {
        first_block,
        entries: entries.to_vec(),
    };
    let groups: Vec<_> = request
        .groups
        .into_iter()
        .map(|raw| (raw.group, raw.source, raw.destination))
        .collect();
    assert_eq!(
        groups,
        [
            (0, slots(Some(3), &[Some(5), None]), slots(None, &[])),
            (1, slots(None, &[]), slots(None, &[Some(6)])),
            (2, slots(None, &[Some(9)]), slots(None, &[Some(8)])),
            (4, slots(None, &[]), slots(None, &[])),
        ]
    );
}
