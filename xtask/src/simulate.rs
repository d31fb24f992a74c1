//! `cargo xtask simulate`: random schedules of the connector's session machines.

use anyhow::Result;

use crate::repo::{self, Repo};

/// Arguments of `cargo xtask simulate`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many schedules
    schedules: u64,
    /// Seed of the first; the others follow by one
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print every event and command
    #[arg(long)]
    trace: bool,
}

/// Builds the simulator with optimisations, and runs it on all cores.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    let mut simulate = repo.cargo(["run", "--quiet", "--release", "--locked"]);
    simulate
        .args(["--package=mooncake-pd-connector", "--features=testing"])
        .args(["--example=simulate", "--"])
        .arg(args.schedules.to_string())
        .args(["--seed", &args.seed.to_string()])
        .args(args.trace.then_some("--trace"));
    repo::run(&mut simulate)
}
