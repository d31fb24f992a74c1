//! How much there is to do: with runs of blocks, not with blocks times layers.

use allocation_counter::measure;
use mooncake_pd_layout::{CacheLayout, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{Contract, Leases, Options, Pairing};

use crate::ask::{bytes, copies, group, plan, request, side};

const LAYERS: u64 = 1 << 13;
const BLOCKS: u32 = 1 << 18;

/// Blocks of 8,192 layers of one byte each: two to the 31st parts in all. One by
/// one, the check would be at them for minutes.
fn deep() -> CacheLayout {
    let layer =
        |spec: GroupSpec, at: u64| spec.layer(&format!("{at:04}"), [bytes(0, at, LAYERS, 1)]);
    LayoutBuilder::new()
        .allocation(0, LAYERS * u64::from(BLOCKS))
        .pool(0, BLOCKS, None)
        .group((0..LAYERS).fold(group(0, 0), layer))
        .build()
        .unwrap()
}

#[test]
fn blocks_of_a_run_are_proved_by_the_first_of_them() {
    let side = deep();
    let ids: Vec<u64> = (0..u64::from(BLOCKS)).collect();
    let tokens = 16 * u64::from(BLOCKS);
    let plan = plan(&side, &side, Contract::PayloadOnly, tokens, &[(&ids, &ids)]);
    assert_eq!(copies(&plan), [(0, 0, LAYERS * u64::from(BLOCKS))]);
}

#[test]
fn blocks_apart_are_proved_row_by_row() {
    let side = deep();
    let ids: Vec<u64> = (0..u64::from(BLOCKS)).rev().collect();
    let tokens = 16 * u64::from(BLOCKS);
    let plan = plan(&side, &side, Contract::PayloadOnly, tokens, &[(&ids, &ids)]);
    assert_eq!(plan.descriptors(), u64::from(BLOCKS));
    assert_eq!(plan.bytes(), LAYERS * u64::from(BLOCKS));
}

#[test]
fn blocks_under_way_are_not_gone_through_where_no_bytes_are_shared() {
    let side = side(60, [group(0, 0).layer("a", [bytes(0, 0, 10, 10)])]);
    let pairing = Pairing::new(&side, &side).unwrap();
    let mut leases = Leases::default();
    let asked = [request(&pairing, 16, &[(&[1], &[59])])];
    let mut allocations = Vec::new();
    for more in [&[1][..], &(2..50).collect::<Vec<u64>>()] {
        let tokens = 16 * u64::try_from(more.len()).unwrap();
        let held = [request(&pairing, tokens, &[(more, more)])];
        let held = pairing.plan(&held, &Options::default()).unwrap().plan;
        let _lease = leases.add(&held).unwrap();
        let options = Options {
            leases: Some(&leases),
            ..Options::default()
        };
        let memory = measure(|| assert!(pairing.plan(&asked, &options).is_ok()));
        allocations.push(memory.count_total);
    }
    assert_eq!(allocations[0], allocations[1]);
}
