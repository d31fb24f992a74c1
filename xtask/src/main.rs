//! Set-up, tests and other chores of this repository: `cargo xtask help`.

mod arrows;
mod engines;
mod fuzz;
mod mutants;
mod outside;
mod repo;
mod simulate;
mod steps;
mod suite;
mod tally;
mod tool;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::repo::Repo;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Sets up what the tests need, then runs all of them
    Test(suite::Args),
    /// Installs real engines of Mooncake for tests, and prints the variables that name them
    Engines(engines::Args),
    /// Runs each fuzz target for a while (needs a nightly toolchain)
    Fuzz(fuzz::Args),
    /// Runs random schedules of the connector, each of which its seed replays
    Simulate(simulate::Args),
    /// Runs cargo-mutants on layout and plan, resuming where the last run stopped
    Mutants(mutants::Args),
}

fn main() -> ExitCode {
    let chore = Args::parse().chore;
    let done = Repo::locate().and_then(|repo| match chore {
        Chore::Test(args) => suite::run(&repo, &args),
        Chore::Engines(args) => engines::run(&repo, &args),
        Chore::Fuzz(args) => fuzz::run(&repo, &args),
        Chore::Simulate(args) => simulate::run(&repo, &args),
        Chore::Mutants(args) => mutants::run(&repo, &args),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::steps::Step;

    #[test]
    fn an_unknown_step_is_refused_with_the_list_of_steps() {
        let error = Args::try_parse_from(["xtask", "test", "fmt", "nosuchstep"])
            .err()
            .expect("an unknown step was taken")
            .to_string();
        assert!(error.contains("nosuchstep"), "{error}");
        for step in Step::value_variants() {
            assert!(error.contains(&step.to_string()), "{step}: {error}");
        }
        assert!(Args::try_parse_from(["xtask", "test", "set-up", "fuzz-build"]).is_ok());
    }
}
