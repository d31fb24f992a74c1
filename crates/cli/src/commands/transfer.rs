//! `mooncake-pd transfer`.

use std::time::{Duration, Instant};

use mooncake_pd_plan::{Contract, Copy, Pairing};

use super::transfer_report::{Report, Reports};
use crate::args::TransferArgs;
use crate::batch::{Batch, Planned, Refusal};
use crate::bundled;
use crate::failure::{Exit, Failure};
use crate::meter::Meter;
use crate::output::Output;
use crate::pair::Pair;
use crate::sides::{Sides, work};
use crate::verify::{self, Demand};
use crate::walk::lists;

/// Moves and verifies a request, or the bundled examples.
///
/// # Errors
/// A file is not what it should be, the layouts are incompatible, or the
/// engine fails. Wrong bytes and refused requests are part of the result.
pub fn transfer(args: &TransferArgs, json: bool) -> Result<Output, Failure> {
    let pairs = match (&args.source, &args.destination, &args.request) {
        (Some(source), Some(destination), Some(request)) => {
            let pair = Pair::read(source, destination, request, &args.pair)?;
            let case = request.case.as_deref().unwrap_or(&request.file);
            let name = match pair.source.layout().model() {
                "" => case.to_owned(),
                model => format!("{model}, {case}"),
            };
            vec![(name, pair)]
        }
        _ => bundled::pairs(&args.pair)?,
    };
    let mut reports = Reports::default();
    for (name, pair) in &pairs {
        let pairing = Pairing::new(pair.source.layout(), pair.destination.layout())?;
        let batch = Batch::new(&pairing, &pair.requests, pair.options());
        let start = Instant::now();
        let planned = batch.plan()?;
        let took = start.elapsed();
        reports.push(verified(name, pair, &planned, took, planned.plan.copies())?);
    }
    let mut output = if json {
        Output::json("mooncake-pd-transfer/1", &reports, reports.exit())?
    } else {
        Output::text(reports.to_string(), reports.exit())
    };
    output.notes = reports.refused().map(Refusal::to_string).collect();
    Ok(output)
}

/// Moves copies that a plan of the pair gave, or some of them, and verifies
/// every byte against what the requests demand. A batch of which every
/// request was refused moves nothing.
///
/// # Errors
/// The walker can't read a layout, there is no room, or the engine fails.
pub fn verified(
    name: &str,
    pair: &Pair,
    planned: &Planned,
    plan_took: Duration,
    copies: impl IntoIterator<Item = Copy>,
) -> Result<Report, Failure> {
    let (source, destination) = (pair.source.layout(), pair.destination.layout());
    let raw = pair.destination.raw()?;
    if planned.exit() == Exit::Invalid {
        return Ok(Report::new(
            name,
            destination,
            &raw,
            planned,
            plan_took,
            None,
        ));
    }
    let demand = demand(pair, planned)?;
    let meter = Meter::new(work(source, destination, planned.plan.bytes()));
    let sides = Sides::filled(source, destination, &meter)?;
    let moved = sides.transfer(copies, &meter)?;
    let outcome = sides.check(&demand, &meter)?;
    drop(meter);
    let run = Some((moved, &outcome));
    Ok(Report::new(
        name,
        destination,
        &raw,
        planned,
        plan_took,
        run,
    ))
}

/// What the walker demands for the admitted requests, and under a bridging
/// contract the dead gaps that the plan writes besides.
fn demand(pair: &Pair, planned: &Planned) -> Result<Demand, Failure> {
    let admitted: Vec<_> = planned
        .admitted
        .iter()
        .filter_map(|&at| pair.requests.get(at))
        .map(lists)
        .collect();
    let raw = pair.destination.raw()?;
    let mut demand =
        verify::demand(&pair.source.raw()?, &raw, &admitted).map_err(Failure::Demand)?;
    if let Contract::BridgeDead { max_gap } = pair.contract {
        let copies = planned.plan.copies().map(|copy| {
            (
                copy.source().get(),
                copy.source_offset().get(),
                copy.destination().get(),
                copy.destination_offset().get(),
                copy.len().get(),
            )
        });
        verify::bridge(&mut demand, &raw, copies, max_gap.get()).map_err(Failure::Demand)?;
    }
    Ok(demand)
}
