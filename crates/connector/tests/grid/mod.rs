//! The recorded grid.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a fixture that cannot be read fails the test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mooncake_pd_connector::{Accounting, Flavour, HandOffPoint, Holdback, PromptInput, TokenCount};
use serde_json::Value;

pub(crate) struct Grid(Value);

/// A row of one table, with its configuration.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    grid: &'a Value,
    columns: &'a Value,
    cells: &'a Value,
    config: u32,
}

fn number(value: &Value) -> u32 {
    let number = value.as_u64().or_else(|| value.as_bool().map(u64::from));
    number
        .unwrap_or_else(|| panic!("{value}"))
        .try_into()
        .unwrap()
}

fn at<'a>(columns: &Value, cells: &'a Value, name: &str) -> &'a Value {
    let mut names = columns.as_array().unwrap().iter();
    let column = names.position(|column| column == name);
    &cells[column.unwrap_or_else(|| panic!("no column {name}"))]
}

/// Kinds are token ids, embeddings, both.
pub(crate) fn prompt(kind: u32, count: u32) -> PromptInput {
    let count = TokenCount::new(count);
    match kind {
        0 | 2 => PromptInput::TokenIds(count),
        1 => PromptInput::Embeddings(count),
        other => panic!("prompt kind {other}"),
    }
}

impl Grid {
    pub(crate) fn load() -> Self {
        let path = "../../fixtures/vllm-0.33/accounting.json";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    pub(crate) fn rows(&self, table: &str) -> impl Iterator<Item = Row<'_>> {
        let columns = &self.0[table]["columns"];
        let rows = self.0[table]["rows"].as_array().unwrap();
        assert!(rows.len() > 100, "{table}");
        rows.iter().map(move |cells| Row {
            grid: &self.0,
            columns,
            cells,
            config: cells[0]
                .as_u64()
                .map_or(u32::MAX, |at| at.try_into().unwrap()),
        })
    }

    /// Elements computed locally, and stock's answer to it.
    pub(crate) fn matched(&self, row: &Row<'_>) -> Vec<(u32, u32, bool)> {
        let locals = self.0["computed_values"][row.number("n").to_string()].as_array();
        let locals: Vec<u32> = locals.unwrap().iter().map(number).collect();
        let flags: Vec<bool> = row.text("async").chars().map(|flag| flag == '1').collect();
        let counts = row.list("counts");
        assert!(locals.len() == counts.len() && counts.len() == flags.len());
        let answers = counts.into_iter().zip(flags);
        locals
            .into_iter()
            .zip(answers)
            .map(|(local, (count, flag))| (local, count, flag))
            .collect()
    }
}

impl Row<'_> {
    pub(crate) fn with_config(&self, config: u32) -> Self {
        Self { config, ..*self }
    }

    fn cell(&self, name: &str) -> &Value {
        at(self.columns, self.cells, name)
    }

    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.cell(name).is_null()
    }

    pub(crate) fn number(&self, name: &str) -> u32 {
        number(self.cell(name))
    }

    /// Numbers; none where there is no list.
    pub(crate) fn list(&self, name: &str) -> Vec<u32> {
        let list = self.cell(name).as_array();
        list.map_or_else(Vec::new, |list| list.iter().map(number).collect())
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.cell(name).as_str().unwrap()
    }

    fn of_config(&self, name: &str) -> &Value {
        let config = &self.grid["configs"][usize::try_from(self.config).unwrap()];
        at(&self.grid["config_columns"], config, name)
    }

    pub(crate) fn connector(&self) -> &str {
        self.of_config("connector").as_str().unwrap()
    }

    pub(crate) fn threshold(&self) -> u32 {
        number(self.of_config("kv_recompute_threshold"))
    }

    pub(crate) fn bidirectional(&self) -> bool {
        self.of_config("bidirectional").as_bool().unwrap()
    }

    /// Our terms for the model of its configuration.
    pub(crate) fn terms(&self, flavour: Flavour) -> Accounting {
        let plain = match self.of_config("state").as_str().unwrap() {
            "none" => Holdback::plain(),
            "gdn" => Holdback::plain().gdn(),
            "replay" => Holdback::plain().bounded_replay(),
            other => panic!("state {other}"),
        };
        let look_ahead = number(self.of_config("num_prefill_lookahead_tokens"));
        Accounting {
            holdback: plain.look_ahead(TokenCount::new(look_ahead)).unwrap(),
            flavour,
            point: HandOffPoint::Recompute,
        }
    }
}

/// A name of a difference, and what it is true of.
pub(crate) type Name<C> = (&'static str, fn(&C) -> bool);

/// How many numbers are equal, and how many differ by which name.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<&'static str, u32>);

impl Tally {
    pub(crate) fn add<C: std::fmt::Debug>(&mut self, same: bool, names: &[Name<C>], case: &C) {
        let name = if same {
            "equal"
        } else {
            let name = names.iter().find(|(_, applies)| applies(case));
            name.unwrap_or_else(|| panic!("a difference without a name: {case:?}"))
                .0
        };
        *self.0.entry(name).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Vec<(&'static str, u32)> {
        self.0.iter().map(|(name, count)| (*name, *count)).collect()
    }
}
