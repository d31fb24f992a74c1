//! The oracle for vLLM's descriptor lists agrees with what vLLM 0.33 computed.

#![expect(clippy::unwrap_used, reason = "test helpers")]

mod common;

use common::{bench, oracles};
use mooncake_pd_plan::testing::vllm::{
    DescriptorError, Descriptors, GroupKind, PrepareError, Refusal, Region, Regions, Request,
    descriptors,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::num::NonZeroU64;

fn sha256(found: &Descriptors) -> String {
    let mut hash = Sha256::new();
    for triple in found.triples() {
        hash.update(triple.to_le_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

#[test]
fn every_bench_row_has_vllms_sha256_count_and_bytes() {
    let mut rows = 0;
    for (model, facts) in bench() {
        let (regions, kinds) = (facts.regions(), facts.kinds());
        let ratio = facts.producer.physical_blocks_per_logical;
        for (name, case) in &facts.cases {
            let found = descriptors(&regions, &kinds, ratio, &[case.request(name)]).unwrap();
            let bytes: u64 = found.triples().iter().map(|triple| triple.len()).sum();
            assert_eq!(found.triples().len(), case.descriptors, "{model}/{name}");
            assert_eq!(bytes, case.total_bytes, "{model}/{name}");
            assert_eq!(
                sha256(&found),
                case.sha256_le_u64_triples_src_dst_len,
                "{model}/{name}"
            );
            assert_eq!(found.refused(), [], "{model}/{name}");
            rows += 1;
        }
    }
    assert_eq!(rows, 33);
}

#[test]
fn every_oracle_case_has_vllms_descriptors_and_errors() {
    let (mut cases, mut errors) = (0, 0);
    for (model, kinds, oracle) in oracles() {
        let regions = oracle.regions();
        let ratio = oracle.producer.physical_blocks_per_logical;
        for case in &oracle.cases {
            let place = format!("{model}#{}", case.case);
            let found = descriptors(&regions, &kinds, ratio, &case.requests).unwrap();
            let column = |of: fn(&_) -> u64| found.triples().iter().map(of).collect::<Vec<u64>>();
            let recorded = &case.descriptors;
            assert_eq!(found.triples().len(), recorded.n, "{place}");
            assert_eq!(column(|t| t.source()), recorded.src_off, "{place}");
            assert_eq!(column(|t| t.destination()), recorded.dst_off, "{place}");
            assert_eq!(column(|t| t.len()), recorded.len, "{place}");

            let refused: Vec<&str> = found.refused().iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(refused, recorded.err_reqs, "{place}");
            let message = found.refused().first().map(|(_, why)| why.to_string());
            assert_eq!(message, recorded.err_msg, "{place}");
            cases += 1;
            errors += refused.len();
        }
    }
    assert_eq!((cases, errors), (242, 40));
}

#[test]
fn registered_regions_prepare_to_what_vllm_prepared() {
    let mut sides: Vec<(String, Vec<Region>, Vec<Region>, Regions)> = Vec::new();
    for (model, _, oracle) in oracles() {
        let prepared = oracle.regions();
        sides.push((
            model,
            oracle.producer.regions,
            oracle.consumer.regions,
            prepared,
        ));
    }
    for (model, facts) in bench() {
        let prepared = facts.regions();
        sides.push((
            model,
            facts.producer.regions,
            facts.consumer.regions,
            prepared,
        ));
    }
    assert_eq!(sides.len(), 31);
    for (model, local, remote, prepared) in sides {
        let found = Regions::registered(&local, &remote).unwrap();
        assert_eq!(found, prepared, "{model}");
    }
}

const ONE: NonZeroU64 = NonZeroU64::MIN;

fn region(layer: &str, group: i64, page: u64, row_offset: i64) -> Region {
    serde_json::from_value(json!({
        "layer_name": layer, "layer_index": 0, "group_index": group,
        "shared_group_ids": [0, 1], "base_off": 1000, "block_len": 100,
        "kv_block_len": page, "row_offset": row_offset,
    }))
    .unwrap()
}

fn request(producer: &[&[u64]], consumer: &[&[u64]]) -> Request {
    let lists = |side: &[&[u64]]| side.iter().map(|ids| ids.to_vec()).collect();
    Request::new("r".to_owned(), lists(producer), lists(consumer))
}

fn single(region: &Region) -> Regions {
    Regions::prepared(vec![region.clone()], vec![region.clone()]).unwrap()
}

fn triples(found: &Descriptors) -> Vec<(u64, u64, u64)> {
    found
        .triples()
        .iter()
        .map(|t| (t.source(), t.destination(), t.len()))
        .collect()
}

#[test]
fn a_shared_region_carries_a_run_from_one_group_into_the_next() {
    let regions = single(&region("a", -1, 100, 0));
    let request = request(&[&[1, 2], &[3]], &[&[5, 6], &[7]]);
    let found = descriptors(&regions, &[GroupKind::Paged; 2], ONE, &[request]).unwrap();
    assert_eq!(triples(&found), [(1100, 1500, 300)]);
}

#[test]
fn a_padded_page_is_one_triple_per_block() {
    let regions = single(&region("a", 0, 60, 0));
    let request = request(&[&[9, 1, 2]], &[&[5, 6]]);
    let found = descriptors(&regions, &[GroupKind::Paged], ONE, &[request]).unwrap();
    assert_eq!(triples(&found), [(1100, 1500, 60), (1200, 1600, 60)]);
}

#[test]
fn nulls_are_dropped_in_state_groups_and_kept_in_paged_ones() {
    let regions = single(&region("a", 0, 100, -1));
    let request = request(&[&[0, 0, 4]], &[&[0, 8]]);
    let plan = |kind| descriptors(&regions, &[kind], ONE, std::slice::from_ref(&request)).unwrap();
    assert_eq!(triples(&plan(GroupKind::State)), [(1400, 1800, 100)]);
    assert_eq!(
        triples(&plan(GroupKind::Paged)),
        [(1000, 1000, 100), (1400, 1800, 100)]
    );
}

#[test]
fn kernel_blocks_expand_paged_ids_and_leave_states_alone() {
    let regions = single(&region("a", 0, 100, -1));
    let ratio = NonZeroU64::new(17).unwrap();
    let request = request(&[&[2]], &[&[3]]);
    let plan =
        |kind| descriptors(&regions, &[kind], ratio, std::slice::from_ref(&request)).unwrap();
    assert_eq!(triples(&plan(GroupKind::Paged)), [(4400, 6100, 1700)]);
    assert_eq!(triples(&plan(GroupKind::State)), [(1200, 1300, 100)]);
}

#[test]
fn a_release_copies_nothing_whatever_it_lists() {
    let regions = single(&region("a", 0, 100, -1));
    let release = request(&[&[1]], &[]);
    let found = descriptors(&regions, &[GroupKind::Paged], ONE, &[release]).unwrap();
    assert_eq!(found, Descriptors::default());
}

#[test]
fn a_refused_request_leaves_the_others_unharmed() {
    let regions = single(&region("a", 0, 100, -1));
    let batch = [request(&[&[1]], &[&[1, 2]]), request(&[&[1]], &[&[2]])];
    let found = descriptors(&regions, &[GroupKind::Paged], ONE, &batch).unwrap();
    assert_eq!(found.refused(), [("r".to_owned(), Refusal::FewerBlocks)]);
    assert_eq!(triples(&found), [(1100, 1200, 100)]);
}

#[test]
fn only_a_row_that_starts_at_zero_on_both_sides_is_promoted() {
    let row = |start| vec![region("a", 0, 40, start), region("b", 0, 40, start + 50)];
    let pages = |local: Vec<Region>, remote: Vec<Region>| -> Vec<(u64, u64)> {
        let regions = Regions::registered(&local, &remote).unwrap();
        let page = |(l, r): &(Region, Region)| (l.page(), r.page());
        regions.pairs().iter().map(page).collect()
    };
    assert_eq!(pages(row(0), row(0)), [(100, 100)]);
    assert_eq!(pages(row(0), row(10)), [(40, 40), (40, 40)]);
    assert_eq!(pages(row(10), row(10)), [(40, 40), (40, 40)]);
}

#[test]
fn regions_that_do_not_pair_are_refused() {
    let a = || region("a", 0, 40, -1);
    let missing = Regions::registered(&[a(), a()], &[a()]).unwrap_err();
    let layer = "a".to_owned();
    assert_eq!(
        missing,
        PrepareError::Missing {
            layer: layer.clone(),
            occurrence: 1
        }
    );
    let count = Regions::prepared(vec![a(), a()], vec![a()]).unwrap_err();
    assert_eq!(
        count,
        PrepareError::Count {
            local: 2,
            remote: 1
        }
    );
    let page = Regions::prepared(vec![a()], vec![region("a", 0, 20, -1)]).unwrap_err();
    assert_eq!(
        page,
        PrepareError::Page {
            layer,
            local: 40,
            remote: 20
        }
    );
    let owner = Regions::prepared(vec![a()], vec![region("a", 1, 40, -1)]).unwrap_err();
    assert!(matches!(owner, PrepareError::Identity { .. }));
    let extra = Regions::registered(&[a()], &[region("b", 0, 40, -1), a()]).unwrap();
    assert_eq!(extra, single(&a()));
}

#[test]
fn inputs_without_a_list_are_errors_that_name_the_place() {
    let one = [GroupKind::Paged];
    let regions = single(&region("a", 0, 100, -1));
    let fail = |regions: &Regions, ratio: u64, request: Request| {
        descriptors(regions, &one, NonZeroU64::new(ratio).unwrap(), &[request])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        fail(&regions, 1, request(&[&[1], &[1]], &[&[1], &[1]])),
        "request r lists 2 groups, the model has 1"
    );
    assert_eq!(
        fail(
            &single(&region("a", 3, 100, -1)),
            1,
            request(&[&[1]], &[&[1]])
        ),
        "group 3 of a region of layer a is outside 0..1"
    );
    assert_eq!(
        fail(&regions, 2, request(&[&[u64::MAX]], &[&[1]])),
        "kernel blocks of block 18446744073709551615 with 2 to a block overflow"
    );
    let error = descriptors(&regions, &one, ONE, &[request(&[&[u64::MAX]], &[&[1]])]);
    assert!(matches!(
        error,
        Err(DescriptorError::Offset {
            block: u64::MAX,
            ..
        })
    ));
}

#[test]
fn a_recorded_region_below_minus_one_is_refused() {
    let raw = json!({
        "layer_name": "a", "layer_index": 0, "group_index": -2, "shared_group_ids": [],
        "base_off": 0, "block_len": 1, "kv_block_len": 1, "row_offset": -1,
    });
    let error = serde_json::from_value::<Region>(raw).unwrap_err();
    assert_eq!(error.to_string(), "group_index -2 of layer a is below -1");
}
