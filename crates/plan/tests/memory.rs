//! Planning needs little memory, and asks for it seldom.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod common;

use allocation_counter::{AllocationInfo, measure};
use common::{BenchCase, BenchModel, bench};
use mooncake_pd_layout::ByteLen;
use mooncake_pd_plan::{Contract, Options, Pairing, Request};

/// What planning one row took.
struct Cost {
    descriptors: u64,
    memory: AllocationInfo,
}

fn cost(model: &str, facts: &BenchModel, case: &BenchCase, contract: Contract) -> Cost {
    let (source, destination) = facts.layouts(model);
    let pairing = Pairing::new(&source, &destination).unwrap();
    let request = Request::new(&facts.raw_request("r", case), &pairing).unwrap();
    let requests = [request];
    let options = Options {
        contract,
        ..Options::default()
    };
    let mut descriptors = 0;
    let memory = measure(|| {
        let batch = pairing.plan(&requests, &options).unwrap();
        assert!(batch.refused.is_empty(), "{model}");
        descriptors = batch.plan.descriptors();
    });
    Cost {
        descriptors,
        memory,
    }
}

fn bridge() -> Contract {
    Contract::BridgeDead {
        max_gap: ByteLen::new(1 << 30).unwrap(),
    }
}

#[test]
fn large_plans_peak_at_64_bytes_a_descriptor() {
    let mut large = 0;
    for (model, facts) in bench() {
        for (name, case) in &facts.cases {
            let Cost {
                descriptors,
                memory,
            } = cost(&model, &facts, case, Contract::PayloadOnly);
            if descriptors >= 20_000 {
                let limit = descriptors * 64;
                let peak = memory.bytes_max;
                assert!(
                    peak <= limit,
                    "{model}/{name}: {peak} bytes for {descriptors} descriptors, limit {limit}"
                );
                large += 1;
            }
        }
    }
    assert!(large >= 4, "{large} large rows");
}

#[test]
fn no_descriptor_has_an_allocation_of_its_own() {
    let mut compared = 0;
    for (model, facts) in bench() {
        let row = |name| cost(&model, &facts, &facts.cases[name], Contract::PayloadOnly);
        let (few, many) = (row("contiguous"), row("shuffled"));
        let more = many.descriptors - few.descriptors;
        let extra = many
            .memory
            .count_total
            .saturating_sub(few.memory.count_total);
        assert!(
            extra <= 128 + more / 1_000,
            "{model}: {extra} more allocations for {more} more descriptors"
        );
        let all = many.memory.count_total;
        assert!(
            all <= 512 + many.descriptors / 1_000,
            "{model}: {all} allocations for {} descriptors",
            many.descriptors
        );
        compared += u32::from(more >= 900);
    }
    assert_eq!(
        compared, 9,
        "models whose shuffled row has many more descriptors"
    );
}

#[test]
fn bridging_never_takes_more_descriptors_than_vllm() {
    let mut rows = 0;
    for (model, facts) in bench() {
        for (name, case) in &facts.cases {
            let ours = cost(&model, &facts, case, bridge()).descriptors;
            let stock = u64::try_from(case.descriptors).unwrap();
            assert!(ours <= stock, "{model}/{name}: {ours} against {stock}");
            rows += 1;
        }
    }
    assert_eq!(rows, 33);
}
