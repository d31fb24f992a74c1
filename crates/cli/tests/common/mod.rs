//! Recorded fixtures of engines, for the tests that compare with them.
#![allow(dead_code, reason = "each target uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a fixture that can't be read fails the test"
)]

pub(crate) mod bench;
pub(crate) mod moves;
pub(crate) mod vllm;

use std::fs;
use std::path::PathBuf;

use mooncake_pd::verify::Demand;
use mooncake_pd_layout::ByteLen;
use mooncake_pd_plan::{Batch, BoundsGrade, Contract, Options, Pairing, Plan, Request};

use moves::Moves;

/// A folder of fixtures.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// The text of a fixture.
pub(crate) fn text(folder_name: &str, file: &str) -> String {
    fs::read_to_string(folder(folder_name).join(file))
        .unwrap_or_else(|error| panic!("{folder_name}/{file}: {error}"))
}

/// Stems of the files of a folder that end in `suffix`, in order.
pub(crate) fn stems(folder_name: &str, suffix: &str) -> Vec<String> {
    let mut stems: Vec<String> = fs::read_dir(folder(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(suffix).map(str::to_owned))
        .collect();
    stems.sort();
    stems
}

/// Every gap that is dead may be bridged.
pub(crate) fn bridge_all() -> Contract {
    Contract::BridgeDead {
        max_gap: ByteLen::new(1 << 40).unwrap(),
    }
}

/// Plans a batch.
pub(crate) fn plan(pairing: &Pairing<'_>, requests: &[Request], contract: Contract) -> Batch {
    let options = Options {
        contract,
        bounds: BoundsGrade::Proved,
        ..Options::default()
    };
    pairing.plan(requests, &options).unwrap()
}

/// What a plan moves.
pub(crate) fn planned(plan: &Plan) -> Moves {
    Moves::of(plan.copies().map(|copy| {
        (
            copy.source().get(),
            copy.source_offset().get(),
            copy.destination().get(),
            copy.destination_offset().get(),
            copy.len().get(),
        )
    }))
}

/// What the walker demands.
pub(crate) fn demanded(demand: &Demand) -> Moves {
    Moves::of(demand.rows.iter().map(|row| {
        (
            row.source,
            row.source_offset,
            row.destination,
            row.destination_offset,
            row.len,
        )
    }))
}
