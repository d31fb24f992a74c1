//! Plans for people.

use alloc::string::String;
use core::fmt::{self, Write};

use crate::plan::{Plan, Section};
use crate::request::Tokens;
use crate::select::Pair;

/// Most ranges of blocks, and most unfilled blocks, that are printed for one
/// group.
const MAX_LISTED: usize = 16;

impl Plan {
    /// What moves where and what does not, for people to read.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "{} copies, {} bytes ({} payload); contract: {}; bounds: {}",
            self.descriptors(),
            self.bytes(),
            self.payload_bytes(),
            self.contract(),
            self.bounds(),
        )?;
        for (index, (id, tokens)) in self.requests.iter().enumerate() {
            match tokens {
                Tokens::Computed(tokens) => {
                    writeln!(out, "request {id}: {tokens} tokens computed")?;
                }
                Tokens::TailAligned => {
                    writeln!(
                        out,
                        "request {id}: token count unknown, lists aligned at their ends"
                    )?;
                }
            }
            for section in self.sections().iter().filter(|s| s.request == index) {
                self.write_section(out, section)?;
            }
        }
        Ok(())
    }

    fn write_section(&self, out: &mut String, section: &Section) -> fmt::Result {
        write!(out, "  group {} {}", section.group, section.kind.name())?;
        if let Some(window) = section.kind.window() {
            write!(out, "({window})")?;
        }
        writeln!(
            out,
            ": {} layers, {} blocks, {} copies, {} bytes",
            section.layers,
            section.pairs.len(),
            section.copies,
            section.bytes,
        )?;
        write_pairs(out, &section.pairs)?;
        let unfilled = self
            .unfilled()
            .iter()
            .filter(|u| u.request == section.request && u.group == section.group);
        let mut hidden = 0_usize;
        for (count, unfilled) in unfilled.enumerate() {
            if count < MAX_LISTED {
                writeln!(
                    out,
                    "    position {} (block {}) is not filled: {}",
                    unfilled.position, unfilled.destination, unfilled.reason
                )?;
            } else {
                hidden = hidden.saturating_add(1);
            }
        }
        if hidden > 0 {
            writeln!(out, "    and {hidden} more are not filled")?;
        }
        for layer in section.local_layers().iter().take(MAX_LISTED) {
            writeln!(
                out,
                "    layer {layer} is the destination's own and stays as it is"
            )?;
        }
        Ok(())
    }
}

/// Prints pairs as ranges in which position and both ids advance together.
fn write_pairs(out: &mut String, pairs: &[Pair]) -> fmt::Result {
    let follows = |a: &Pair, b: &Pair| {
        a.position.checked_add(1) == Some(b.position)
            && a.source.checked_add(1) == Some(b.source)
            && a.destination.checked_add(1) == Some(b.destination)
    };
    let mut hidden = 0_usize;
    for (count, range) in pairs.chunk_by(follows).enumerate() {
        if count >= MAX_LISTED {
            hidden = hidden.saturating_add(range.len());
        } else if let (Some(first), Some(last)) = (range.first(), range.last()) {
            if range.len() == 1 {
                writeln!(
                    out,
                    "    position {}: block {} -> {}",
                    first.position, first.source, first.destination
                )?;
            } else {
                writeln!(
                    out,
                    "    positions {}..={}: blocks {}..={} -> {}..={}",
                    first.position,
                    last.position,
                    first.source,
                    last.source,
                    first.destination,
                    last.destination
                )?;
            }
        }
    }
    if hidden > 0 {
        writeln!(out, "    and {hidden} more blocks")?;
    }
    Ok(())
}
