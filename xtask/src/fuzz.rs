//! `cargo xtask fuzz`: each fuzz target for a while, from its committed corpus.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::repo::{Repo, run as run_command, succeeds};
use crate::{outside, tool};

/// The targets of `fuzz/`.
const TARGETS: &[&str] = &[
    "layout", "plan", "check", "schedule", "events", "wire", "transfer",
];

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Time for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only these targets
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
}

/// Runs the targets one after another and stops at the first finding.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    ensure!(
        succeeds(&mut repo.command("rustup", ["run", "nightly", "cargo", "--version"])),
        "fuzzing needs nightly: `rustup toolchain install nightly --profile minimal`"
    );
    let program = tool::FUZZ.install(repo)?;
    outside::lock(repo, outside::FUZZ)?;
    for target in TARGETS {
        if !args.targets.is_empty() && !args.targets.iter().any(|chosen| chosen == target) {
            continue;
        }
        // New inputs go to the first folder, so the committed corpus stays as it is.
        let found = repo.path("target/fuzz-corpus").join(target);
        fs::create_dir_all(&found).with_context(|| format!("can't make {}", found.display()))?;
        let mut fuzz = repo.command("rustup", ["run", "nightly"]);
        fuzz.arg(&program)
            // No unsafe code runs here for a sanitizer to look at.
            .args(["fuzz", "run", "--sanitizer", "none", target])
            .arg(&found)
            .arg(repo.path("fuzz/corpus").join(target))
            .args(["--", "-timeout=10", "-rss_limit_mb=4096"])
            .arg(format!("-max_total_time={}", args.seconds))
            // These name the stable toolchain that runs xtask.
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN");
        println!("==> {target}, {} s", args.seconds);
        run_command(&mut fuzz)?;
    }
    Ok(())
}
