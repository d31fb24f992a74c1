//! `mooncake-pd transfer`.

use std::time::Instant;

use mooncake_pd_plan::{Contract, Pairing};

use super::plan::refusal;
use super::transfer_report::{Report, Reports};
use crate::args::TransferArgs;
use crate::batch::{Batch, Planned};
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
    let mut notes = Vec::new();
    let mut exit = Exit::Ok;
    for (name, pair) in &pairs {
        let (report, planned) = run(name, pair)?;
        notes.extend(planned.refused.iter().map(refusal));
        if !report.passed() {
            exit = Exit::Unverified;
        } else if exit == Exit::Ok {
            exit = planned.exit();
        }
        reports.push(report);
    }
    let mut output = if json {
        Output::json(&reports, exit)?
    } else {
        Output::text(reports.to_string(), exit)
    };
    output.notes = notes;
    Ok(output)
}

fn run(name: &str, pair: &Pair) -> Result<(Report, Planned), Failure> {
    let (source, destination) = (pair.source.layout(), pair.destination.layout());
    let pairing = Pairing::new(source, destination)?;
    let batch = Batch::new(&pairing, &pair.requests, pair.options());
    let start = Instant::now();
    let planned = batch.plan()?;
    let plan_took = start.elapsed();
    let demand = demand(pair, &planned)?;
    let meter = Meter::new(work(source, destination, planned.plan.bytes()));
    let sides = Sides::filled(source, destination, &meter)?;
    let moved = sides.transfer(planned.plan.copies(), &meter)?;
    let outcome = sides.check(&demand, &meter)?;
    drop(meter);
    let raw = pair.destination.raw()?;
    let report = Report::new(
        name,
        destination,
        &raw,
        &planned,
        (plan_took, moved),
        &outcome,
    );
    Ok((report, planned))
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
    if let Contract::BridgeDead { .. } = pair.contract {
        let copies = planned.plan.copies().map(|copy| {
            (
                copy.source().get(),
                copy.source_offset(),
                copy.destination().get(),
                copy.destination_offset(),
                copy.len(),
            )
        });
        verify::bridge(&mut demand, &raw, copies).map_err(Failure::Demand)?;
    }
    Ok(demand)
}
