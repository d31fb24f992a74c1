//! A sequence of named steps, each printed with the time it took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Runs steps in order and keeps their times for the closing table.
pub(crate) struct Steps {
    chosen: Vec<String>,
    done: Vec<(&'static str, Duration)>,
}

impl Steps {
    /// Steps of the given names only; all of them when there are no names.
    pub(crate) fn choosing(chosen: &[String]) -> Self {
        Self {
            chosen: chosen.to_vec(),
            done: Vec::new(),
        }
    }

    /// Runs one step, unless others were chosen.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        body: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if !self.chosen.is_empty() && !self.chosen.iter().any(|chosen| chosen == name) {
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
