//! A sequence of named steps, each printed with the time it took.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;

/// A step of the suite, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    SetUp,
    Engines,
    Fmt,
    Arrows,
    Deny,
    Clippy,
    Doc,
    NoStd,
    Integrator,
    FuzzBuild,
    Tests,
    Doctests,
    Snapshots,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// Runs steps in order and keeps their times for the closing table.
pub(crate) struct Steps {
    chosen: Vec<Step>,
    done: Vec<(Step, Duration)>,
}

impl Steps {
    /// The given steps only; all of them when none is given.
    pub(crate) fn choosing(chosen: &[Step]) -> Self {
        Self {
            chosen: chosen.to_vec(),
            done: Vec::new(),
        }
    }

    /// Runs one step, unless others were chosen.
    pub(crate) fn step(&mut self, name: Step, body: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.chosen.is_empty() && !self.chosen.contains(&name) {
            return Ok(());
        }
        println!("==> {name}");
        let start = Instant::now();
        body().with_context(|| format!("step `{name}` failed"))?;
        let took = start.elapsed();
        println!("<== {name}: {:.1} s", took.as_secs_f64());
        self.done.push((name, took));
        Ok(())
    }

    /// Prints the table of times.
    pub(crate) fn finish(self) {
        println!("\nall passed:");
        for (name, took) in &self.done {
            println!("{name:>12} {:7.1} s", took.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|(_, took)| took).sum();
        println!("{:>12} {:7.1} s", "total", total.as_secs_f64());
    }
}
