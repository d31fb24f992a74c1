//! `mooncake-pd diff`.

use std::fmt;

use mooncake_pd_layout::import::Side;
use mooncake_pd_layout::{Difference, compare};
use serde::Serialize;

use crate::args::DiffArgs;
use crate::failure::{Exit, Failure};
use crate::input::Input;
use crate::loaded::Loaded;
use crate::output::Output;

#[derive(Serialize)]
struct Entry {
    kind: &'static str,
    incompatible: bool,
    message: String,
}

#[derive(Serialize)]
struct Report {
    compatible: bool,
    fingerprints: [String; 2],
    differences: Vec<Entry>,
}

/// The differences of two layouts, one a line.
///
/// # Errors
/// A layout can't be read.
pub fn diff(args: &DiffArgs, json: bool) -> Result<Output, Failure> {
    let mut input = Input::default();
    let source = Loaded::new(&args.source, input.text(&args.source)?, Side::Prefill)?;
    let text = input.text(&args.destination)?;
    let destination = Loaded::new(&args.destination, text, Side::Decode)?;
    let (source, destination) = (source.layout(), destination.layout());
    let differences = compare(source, destination);
    let compatible = !differences.iter().any(Difference::is_incompatible);
    let exit = if compatible {
        Exit::Ok
    } else {
        Exit::Incompatible
    };
    let report = Report {
        compatible,
        fingerprints: [source, destination].map(|layout| layout.fingerprint().to_string()),
        differences: differences
            .iter()
            .map(|difference| Entry {
                kind: difference.name(),
                incompatible: difference.is_incompatible(),
                message: difference.to_string(),
            })
            .collect(),
    };
    if json {
        return Output::json("mooncake-pd-diff/1", &report, exit);
    }
    Ok(Output::text(report.to_string(), exit))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.differences {
            let grade = if entry.incompatible {
                "incompatible"
            } else {
                "note"
            };
            writeln!(f, "{grade}: {}: {}", entry.kind, entry.message)?;
        }
        if self.compatible {
            writeln!(f, "compatible")?;
        }
        Ok(())
    }
}
