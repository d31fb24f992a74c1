//! A progress bar for what takes over a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a command may take before the bar shows.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts bytes; draws on the standard error, and only on a terminal.
#[derive(Debug)]
pub struct Meter {
    bar: ProgressBar,
    start: Instant,
}

impl Meter {
    /// A meter of that many bytes of work.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template = "{msg} [{bar:40}] {bytes}/{total_bytes}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self {
            bar,
            start: Instant::now(),
        }
    }

    /// Names what is being done.
    pub fn stage(&self, name: &'static str) {
        self.bar.set_message(name);
    }

    /// Counts bytes as done.
    pub fn add(&self, bytes: u64) {
        if self.bar.is_hidden() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
