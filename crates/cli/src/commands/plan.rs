//! `mooncake-pd plan`.

use std::time::{Duration, Instant};

use mooncake_pd_plan::{Pairing, Plan};
use serde::Serialize;

use crate::args::PlanArgs;
use crate::batch::{Batch, Planned, Refusal};
use crate::contract::{BoundsReport, ContractReport};
use crate::failure::Failure;
use crate::output::Output;
use crate::pair::Pair;

/// A copy: source allocation and offset, destination allocation and offset,
/// length.
type Descriptor = (u32, u64, u32, u64, u64);

#[derive(Serialize)]
struct Unfilled {
    request: usize,
    group: u32,
    position: u64,
    destination: u32,
    reason: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Report {
    contract: ContractReport,
    bounds: BoundsReport,
    bytes: u64,
    payload_bytes: u64,
    unfilled: Vec<Unfilled>,
    refused: Vec<Refusal>,
    ns_per_descriptor: Option<f64>,
    ns: Option<u64>,
    descriptors: Vec<Descriptor>,
}

/// Plans a batch and explains the plan.
///
/// # Errors
/// A file is not what it should be, or the layouts are incompatible. A
/// request that is refused is part of the result.
pub fn plan(args: &PlanArgs, json: bool) -> Result<Output, Failure> {
    let pair = Pair::read(&args.source, &args.destination, &args.request, &args.pair)?;
    let pairing = Pairing::new(pair.source.layout(), pair.destination.layout())?;
    let batch = Batch::new(&pairing, &pair.requests, pair.options());
    let mut planned = batch.plan()?;
    let mut shortest = None;
    for _ in 0..args.time.unwrap_or(0) {
        let start = Instant::now();
        planned = batch.plan()?;
        let took = start.elapsed();
        shortest = Some(shortest.map_or(took, |least: Duration| least.min(took)));
    }
    let mut output = if json {
        Output::json(
            "mooncake-pd-plan/1",
            &report(&planned, shortest),
            planned.exit(),
        )?
    } else {
        Output::text(explain(&planned, shortest), planned.exit())
    };
    output.notes = planned.refused.iter().map(Refusal::to_string).collect();
    Ok(output)
}

/// Unfilled blocks with the indices that their requests have in the file.
fn unfilled(planned: &Planned) -> Vec<Unfilled> {
    planned
        .plan
        .unfilled()
        .iter()
        .map(|unfilled| Unfilled {
            request: planned
                .admitted
                .get(unfilled.request)
                .copied()
                .unwrap_or(unfilled.request),
            group: unfilled.group.get(),
            position: unfilled.position,
            destination: unfilled.destination,
            reason: unfilled.reason.name(),
            message: unfilled.reason.to_string(),
        })
        .collect()
}

fn report(planned: &Planned, shortest: Option<Duration>) -> Report {
    let plan = &planned.plan;
    Report {
        contract: plan.contract().into(),
        bounds: plan.bounds().into(),
        bytes: plan.bytes(),
        payload_bytes: plan.payload_bytes(),
        unfilled: unfilled(planned),
        refused: planned.refused.clone(),
        ns_per_descriptor: shortest.and_then(|took| per_descriptor(plan, took)),
        ns: shortest.map(nanoseconds),
        descriptors: plan
            .copies()
            .map(|copy| {
                (
                    copy.source().get(),
                    copy.source_offset().get(),
                    copy.destination().get(),
                    copy.destination_offset().get(),
                    copy.len().get(),
                )
            })
            .collect(),
    }
}

fn explain(planned: &Planned, shortest: Option<Duration>) -> String {
    let text = planned.plan.explain();
    let Some(took) = shortest else {
        return text;
    };
    match per_descriptor(&planned.plan, took) {
        None => format!("{text}nothing to plan, no time per descriptor\n"),
        Some(each) => {
            let all = nanoseconds(took);
            format!("{text}planned in {all} ns, {each:.2} ns per descriptor\n")
        }
    }
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds for each descriptor; a plan without any has none.
fn per_descriptor(plan: &Plan, took: Duration) -> Option<f64> {
    let descriptors = u32::try_from(plan.descriptors()).unwrap_or(u32::MAX);
    (descriptors > 0).then(|| took.as_secs_f64() * 1e9 / f64::from(descriptors))
}
