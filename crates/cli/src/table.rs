//! Numbers and columns for people.

use std::fmt;

/// Rows with a heading; the first columns are text, the others numbers.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    text: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first `text` columns are aligned left.
    #[must_use]
    pub(crate) fn new(text: usize, heading: &[&str]) -> Self {
        Self {
            text,
            rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Two spaces between columns, each row on a line of its own.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|at| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(at))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let width = *width;
                let cell = if at < self.text {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                };
                if at > 0 {
                    line.push_str("  ");
                }
                line.push_str(&cell);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with its thousands set apart.
#[must_use]
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(at);
        if at > 0 && left.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
