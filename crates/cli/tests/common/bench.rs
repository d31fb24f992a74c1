//! The requests of 128k and 1M tokens that vLLM 0.33 was timed on.

use mooncake_pd::request::{RequestName, parse};
use mooncake_pd_plan::RawRequest;
use mooncake_pd_plan::testing::vllm::{GroupKind, Regions, Request, descriptors};
use serde_json::{Map, Value, json};

use super::moves::Moves;
use super::text;
use super::vllm::Model;

/// One model of the bench, with layouts of the bench's sizes.
pub(crate) struct Bench {
    pub(crate) model: Model,
    pub(crate) rows: Vec<Row>,
}

/// One row of the bench.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) request: RawRequest,
    /// Descriptors that vLLM computed.
    pub(crate) descriptors: u64,
    /// Bytes of those.
    pub(crate) bytes: u64,
    /// What they move.
    pub(crate) moves: Moves,
}

/// The file, by model.
pub(crate) fn file() -> Value {
    serde_json::from_str(&text("vllm-0.33", "planning-bench.json")).unwrap()
}

impl Bench {
    pub(crate) fn read(name: &str, facts: &Value, wanted: &[&str]) -> Self {
        let blocks = ["producer", "consumer"]
            .map(|side| u32::try_from(facts[side]["num_blocks"].as_u64().unwrap()).unwrap());
        let model = Model::read(name);
        let model = model.resized(blocks);
        let rows = facts["cases"].as_object().unwrap();
        Self {
            rows: rows
                .keys()
                .filter(|row| wanted.contains(&row.as_str()))
                .map(|row| Row::read(name, row, facts, blocks))
                .collect(),
            model,
        }
    }
}

impl Row {
    fn read(model: &str, row: &str, facts: &Value, blocks: [u32; 2]) -> Self {
        let case = &facts["cases"][row];
        // Only this row: the file is long.
        let mut alone: Map<String, Value> = facts
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "cases")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        alone.insert("cases".to_owned(), json!({row: case}));
        let name: RequestName = format!("bench#{model}/{row}").parse().unwrap();
        let read = parse(&name, &json!({model: alone}).to_string()).unwrap();
        assert_eq!(
            read.blocks,
            Some((u64::from(blocks[0]), u64::from(blocks[1])))
        );
        let [request] = <[RawRequest; 1]>::try_from(read.requests).unwrap();

        let ids = |key: &str| serde_json::from_value(case[key].clone()).unwrap();
        let theirs = Request::new(
            row.to_owned(),
            ids("producer_block_ids"),
            ids("consumer_block_ids"),
        );
        let states: Vec<bool> = serde_json::from_value(facts["group_is_mamba"].clone()).unwrap();
        let kinds: Vec<GroupKind> = states
            .iter()
            .map(|&state| {
                if state {
                    GroupKind::State
                } else {
                    GroupKind::Paged
                }
            })
            .collect();
        let regions = |key: &str| serde_json::from_value(facts[key].clone()).unwrap();
        let regions =
            Regions::prepared(regions("prepared_local"), regions("prepared_remote")).unwrap();
        let ratio = &facts["producer"]["physical_blocks_per_logical"];
        let ratio = serde_json::from_value(ratio.clone()).unwrap();
        let found = descriptors(&regions, &kinds, ratio, &[theirs]).unwrap();
        let (descriptors, bytes) = (&case["descriptors"], &case["total_bytes"]);
        let triples = found.triples();
        assert_eq!(u64::try_from(triples.len()).ok(), descriptors.as_u64());
        assert_eq!(Some(triples.iter().map(|t| t.len()).sum()), bytes.as_u64());
        Self {
            name: format!("{model}/{row}"),
            request,
            descriptors: descriptors.as_u64().unwrap(),
            bytes: bytes.as_u64().unwrap(),
            moves: Moves::of(
                triples
                    .iter()
                    .map(|t| (0, t.source(), 0, t.destination(), t.len())),
            ),
        }
    }
}
