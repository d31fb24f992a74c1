//! Plans for people.

use alloc::string::{String, ToString};
use core::fmt::{self, Display, Write};

use crate::plan::Plan;
use crate::request::Tokens;
use crate::section::Section;
use crate::select::{Pair, Unfilled};

/// Most ranges of blocks that are printed for one group.
const MAX_RANGES: usize = 32;
/// Most ranges of unfilled blocks and most layers that are printed for one
/// group, a line each.
const MAX_LISTED: usize = 16;
/// Most ids that are printed for one range of unfilled blocks.
const MAX_IDS: usize = 8;
/// Columns of a line of block ranges; only a single range may be longer.
const COLUMNS: usize = 80;

impl Plan {
    /// What moves where and what does not, for people to read. Long lists are
    /// cut, and say by how much.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        write!(
            out,
            "{}, {} bytes: ",
            Count(self.descriptors(), "copy", "copies"),
            Number(self.bytes()),
        )?;
        match self.bytes().checked_sub(self.payload_bytes()) {
            _ if self.bytes() == 0 => writeln!(out, "nothing to copy")?,
            None | Some(0) => writeln!(out, "all payload")?,
            Some(stale) => writeln!(
                out,
                "{} payload, {} stale in bridged gaps",
                Number(self.payload_bytes()),
                Number(stale)
            )?,
        }
        writeln!(
            out,
            "contract: {}; bounds: {}",
            self.contract(),
            self.bounds()
        )?;
        if self.sections().iter().any(|s| !s.pairs.is_empty()) {
            writeln!(out, "blocks are listed as position: source -> destination")?;
        }
        // Every request has a section for each of its groups.
        let mut sections = self.sections().iter().peekable();
        for (index, (id, tokens)) in self.requests.iter().enumerate() {
            // Names come from peers: no control characters.
            write!(out, "request {}: ", id.escape_debug())?;
            match tokens {
                Tokens::Computed(tokens) => {
                    writeln!(out, "{} computed", Count(*tokens, "token", "tokens"))?;
                }
                Tokens::TailAligned => {
                    writeln!(out, "token count unknown, lists aligned at their ends")?;
                }
            }
            while let Some(section) = sections.next_if(|s| s.request == index) {
                self.write_section(out, section)?;
            }
        }
        Ok(())
    }

    fn write_section(&self, out: &mut String, section: &Section) -> fmt::Result {
        write!(out, "  group {}, {}", section.group, section.kind.name())?;
        if let Some(window) = section.kind.window() {
            write!(out, " of {}", Count(window.get().into(), "token", "tokens"))?;
        }
        write!(
            out,
            ", {} a block: ",
            Count(section.tokens_per_block.get().into(), "token", "tokens")
        )?;
        if section.pairs.is_empty() {
            writeln!(out, "nothing moves")?;
        } else {
            write!(
                out,
                "{}, {}, {} bytes in ",
                Count::of(section.pairs.len(), "block", "blocks"),
                Count::of(section.layers, "layer", "layers"),
                Number(section.payload_bytes()),
            )?;
            if section.copies == 0 {
                writeln!(out, "copies of the groups before")?;
            } else {
                writeln!(out, "{}", Count(section.copies, "copy", "copies"))?;
            }
        }
        write_pairs(out, &section.pairs)?;
        self.write_unfilled(out, section)?;
        let local = section.local_layers();
        for layer in local.iter().take(MAX_LISTED) {
            writeln!(
                out,
                "    layer {} is the destination's own and stays as it is",
                layer.as_str().escape_debug()
            )?;
        }
        write_hidden(out, local.len(), "layer of its own", "layers of its own")
    }

    fn write_unfilled(&self, out: &mut String, section: &Section) -> fmt::Result {
        let follows = |a: &Unfilled, b: &Unfilled| {
            (a.request, a.group, a.reason) == (b.request, b.group, b.reason)
                && a.position.checked_add(1) == Some(b.position)
        };
        let ranges = self
            .unfilled()
            .chunk_by(follows)
            .filter(|range| {
                range
                    .iter()
                    .all(|u| u.request == section.request && u.group == section.group)
            })
            .filter_map(|range| Some((range, range.first()?, range.last()?)));
        let mut count = 0_usize;
        for (range, first, last) in ranges {
            count = count.saturating_add(1);
            if count > MAX_LISTED {
                continue;
            }
            let (positions, blocks) = if range.len() == 1 {
                ("position", "block")
            } else {
                ("positions", "blocks")
            };
            write!(
                out,
                "    not filled: {positions} {}, {blocks} ",
                Range(first.position, last.position)
            )?;
            for (at, unfilled) in range.iter().take(MAX_IDS).enumerate() {
                let separator = if at == 0 { "" } else { " " };
                write!(out, "{separator}{}", unfilled.destination)?;
            }
            if range.len() > MAX_IDS {
                write!(out, " ...")?;
            }
            writeln!(out, ": {}", first.reason)?;
        }
        write_hidden(out, count, "range not filled", "ranges not filled")
    }
}

/// Prints pairs as ranges in which position and both ids advance together.
fn write_pairs(out: &mut String, pairs: &[Pair]) -> fmt::Result {
    let follows = |a: &Pair, b: &Pair| {
        a.position.checked_add(1) == Some(b.position)
            && a.source.checked_add(1) == Some(b.source)
            && a.destination.checked_add(1) == Some(b.destination)
    };
    let mut line = String::new();
    let mut left = pairs.len();
    for range in pairs.chunk_by(follows).take(MAX_RANGES) {
        let (Some(first), Some(last)) = (range.first(), range.last()) else {
            continue;
        };
        left = left.saturating_sub(range.len());
        let mut item = String::new();
        write!(
            item,
            "{}: {} -> {}",
            Range(first.position, last.position),
            Range(first.source.into(), last.source.into()),
            Range(first.destination.into(), last.destination.into())
        )?;
        push(out, &mut line, &item)?;
    }
    if let (1.., Some(last)) = (left, pairs.last()) {
        let mut item = String::new();
        write!(
            item,
            "and {} up to position {}",
            Count::of(left, "more block", "more blocks"),
            last.position
        )?;
        push(out, &mut line, &item)?;
    }
    if line.is_empty() {
        return Ok(());
    }
    writeln!(out, "    {line}")
}

/// Adds an item to a line; a line that has no room for it is written first.
fn push(out: &mut String, line: &mut String, item: &str) -> fmt::Result {
    // Indentation and separator.
    let needed = line.len().saturating_add(item.len()).saturating_add(7);
    if !line.is_empty() && needed > COLUMNS {
        writeln!(out, "    {line},")?;
        line.clear();
    }
    if !line.is_empty() {
        line.push_str(", ");
    }
    line.push_str(item);
    Ok(())
}

/// Says how many of a list were not printed.
fn write_hidden(out: &mut String, all: usize, one: &str, many: &str) -> fmt::Result {
    match all.checked_sub(MAX_LISTED) {
        None | Some(0) => Ok(()),
        Some(hidden) => {
            let hidden = u64::try_from(hidden).unwrap_or(u64::MAX);
            let noun = if hidden == 1 { one } else { many };
            writeln!(out, "    and {} more {noun}", Number(hidden))
        }
    }
}

/// First and last, which may be the same.
struct Range(u64, u64);

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(first, last) = self;
        if first == last {
            write!(f, "{first}")
        } else {
            write!(f, "{first}-{last}")
        }
    }
}

/// A number with commas between thousands.
struct Number(u64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// A number and its noun in singular and plural.
struct Count<'a>(u64, &'a str, &'a str);

impl<'a> Count<'a> {
    fn of(count: usize, one: &'a str, many: &'a str) -> Self {
        Self(u64::try_from(count).unwrap_or(u64::MAX), one, many)
    }
}

impl Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, one, many) = self;
        write!(
            f,
            "{} {}",
            Number(*count),
            if *count == 1 { one } else { many }
        )
    }
}
