//! `mooncake-pd transfer`.

use std::time::{Duration, Instant};

use mooncake_pd_plan::{Contract, Copy, Pairing};

use super::transfer_report::{Report, Reports};
use crate::args::{EngineArgs, TransferArgs};
use crate::batch::{Batch, Planned, Refusal};
use crate::bundled;
use crate::failure::{Exit, Failure};
use crate::meter::Meter;
use crate::output::Output;
use crate::pair::Pair;
use crate::remote::{Kinds, MemoryKind, RemoteSides};
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
    let mut remote = remote(&args.engine)?;
    let mut reports = Reports::default();
    for (name, pair) in &pairs {
        let pairing = Pairing::new(pair.source.layout(), pair.destination.layout())?;
        let batch = Batch::new(&pairing, &pair.requests, pair.options());
        let start = Instant::now();
        let planned = batch.plan()?;
        let took = start.elapsed();
        let repeats = args.engine.repeat;
        reports.push(match &mut remote {
            None => verified(name, pair, &planned, took, planned.plan.copies())?,
            Some(sides) => verified_between(sides, repeats, name, pair, &planned, took)?,
        });
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

/// Starts the target, if the transfer is between two processes.
fn remote(args: &EngineArgs) -> Result<Option<RemoteSides>, Failure> {
    let Some(engine) = args.engine.between_processes() else {
        return match args.memory {
            MemoryKind::Host if !args.target.is_empty() => {
                Err(Failure::NeedsEngine { option: "--target" })
            }
            MemoryKind::Host if args.repeat > 1 => Err(Failure::NeedsEngine { option: "--repeat" }),
            MemoryKind::Host => Ok(None),
            MemoryKind::Cuda(_) => Err(Failure::NeedsEngine {
                option: "--memory cuda",
            }),
        };
    };
    let kinds = Kinds {
        engine,
        memory: args.memory,
    };
    Ok(Some(RemoteSides::start(kinds, &args.target)?))
}

/// The same as [`verified`] between this process and its target.
fn verified_between(
    sides: &mut RemoteSides,
    repeats: u32,
    name: &str,
    pair: &Pair,
    planned: &Planned,
    plan_took: Duration,
) -> Result<Report, Failure> {
    let layouts = [pair.source.layout(), pair.destination.layout()];
    let [source, destination] = layouts;
    let raw = pair.destination.raw()?;
    let report = |run| Report::new(name, destination, &raw, planned, plan_took, run);
    if planned.exit() == Exit::Invalid {
        return Ok(report(None).between(sides.kinds()));
    }
    let demand = demand(pair, planned)?;
    let meter = Meter::new(work(source, destination, planned.plan.bytes()));
    let mut copies = planned.plan.copies();
    let (moved, outcome) = sides.transfer(layouts, &mut copies, &demand, repeats, &meter)?;
    drop(meter);
    Ok(report(Some((moved, &outcome))).between(sides.kinds()))
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
