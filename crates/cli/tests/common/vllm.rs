//! What vLLM 0.33 recorded about its own transfers.

use mooncake_pd::request::{RequestName, parse};
use mooncake_pd::verify::{Layout, Side};
use mooncake_pd_layout::{CacheLayout, PoolId, import};
use mooncake_pd_plan::{RawRequest, RawSlots, RawTables};
use serde_json::{Value, json};

use super::moves::{Bytes, Moves};
use super::{stems, text};

const FOLDER: &str = "vllm-0.33";

/// Both sides of a model: as layouts, and as the walker reads them.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) source: CacheLayout,
    pub(crate) destination: CacheLayout,
    pub(crate) source_views: Layout,
    pub(crate) destination_views: Layout,
}

impl Model {
    pub(crate) fn read(name: &str) -> Self {
        let source = text(FOLDER, &format!("{name}.json"));
        let destination = text(FOLDER, &format!("{name}.consumer.json"));
        Self {
            name: name.to_owned(),
            source: import::vllm_033(&source).unwrap(),
            destination: import::vllm_033(&destination).unwrap(),
            source_views: Layout::read(&source, Side::Prefill).unwrap(),
            destination_views: Layout::read(&destination, Side::Decode).unwrap(),
        }
    }

    /// The model with other numbers of blocks; the walker reads the manifests of
    /// the result.
    pub(crate) fn resized(self, [source, destination]: [u32; 2]) -> Self {
        let resize = |layout: &CacheLayout, blocks| layout.resized(PoolId::new(0), blocks).unwrap();
        let views =
            |layout: &CacheLayout, side| Layout::read(&layout.to_json().unwrap(), side).unwrap();
        let source = resize(&self.source, source);
        let destination = resize(&self.destination, destination);
        Self {
            source_views: views(&source, Side::Prefill),
            destination_views: views(&destination, Side::Decode),
            source,
            destination,
            ..self
        }
    }

    /// Every byte that any layer has of the destination blocks that a request
    /// lists, moved or not.
    pub(crate) fn requested(&self, requests: &[RawRequest]) -> Bytes {
        let mut all = Vec::new();
        let mut spans = Vec::new();
        for tables in requests.iter().flat_map(|request| &request.groups) {
            let null = self.destination_views.groups[&tables.group].null;
            let views = &self.destination_views.views;
            for view in views.iter().filter(|view| view.group == tables.group) {
                let live = tables.destination.entries.iter().flatten();
                for &id in live.filter(|&&id| null != Some(id)) {
                    view.block(id, &mut spans).unwrap();
                }
                let pieces = spans.drain(..);
                all.extend(pieces.map(|span| (view.allocation, span.offset, span.len)));
            }
        }
        all.into_iter().collect()
    }
}

/// Every model with a recorded oracle of equal TP.
pub(crate) fn models() -> Vec<String> {
    let mut names = stems(FOLDER, ".oracle.json");
    names.retain(|name| name != "hetero-tp");
    names
}

/// One named batch of an oracle file.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) facts: Value,
    /// What vLLM's descriptors move.
    pub(crate) moves: Moves,
    /// How many descriptors those are.
    pub(crate) descriptors: u64,
}

impl Case {
    /// Requests as the command reads them; an error is the parser's.
    pub(crate) fn requests(&self) -> Result<Vec<RawRequest>, String> {
        let mut facts = self.facts.clone();
        // Not for the parser, and long.
        facts.as_object_mut().unwrap().remove("descriptors");
        let file = json!({"format": "vllm-mooncake-oracle/1", "cases": [facts]});
        let name: RequestName = format!("oracle#{}", self.name).parse().unwrap();
        parse(&name, &file.to_string())
            .map(|read| read.requests)
            .map_err(|error| error.to_string())
    }

    /// The one request of the case whose sides name different numbers of groups,
    /// which the command's parser refuses, with an empty list for each missing
    /// one.
    pub(crate) fn padded_with_groups(&self) -> RawRequest {
        let request = &self.facts["requests"][0];
        let side = |key: &str| -> Vec<Vec<Option<u64>>> {
            serde_json::from_value(request[key].clone()).unwrap()
        };
        let (source, destination) = (side("producer_block_ids"), side("consumer_block_ids"));
        let slots = |lists: &[Vec<Option<u64>>], at| RawSlots {
            first_block: None,
            entries: lists.get(at).cloned().unwrap_or_default(),
        };
        RawRequest {
            id: request["req_id"].as_str().unwrap().to_owned(),
            computed_tokens: None,
            tail_aligned: true,
            groups: (0..source.len().max(destination.len()))
                .map(|at| RawTables {
                    group: u32::try_from(at).unwrap(),
                    source: slots(&source, at),
                    destination: slots(&destination, at),
                })
                .collect(),
        }
    }

    /// Requests that vLLM refused.
    pub(crate) fn refused(&self) -> Vec<&str> {
        self.facts["descriptors"]["err_reqs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect()
    }
}

/// The cases of a model's oracle, and the blocks of both sides.
pub(crate) fn oracle(model: &str) -> (Vec<Case>, [u64; 2]) {
    let file: Value = serde_json::from_str(&text(FOLDER, &format!("{model}.oracle.json"))).unwrap();
    let cases = file["cases"].as_array().unwrap().iter().map(|facts| {
        let recorded = &facts["descriptors"];
        let column =
            |key: &str| -> Vec<u64> { serde_json::from_value(recorded[key].clone()).unwrap() };
        let (from, to, len) = (column("src_off"), column("dst_off"), column("len"));
        assert_eq!((from.len(), to.len()), (len.len(), len.len()));
        let moves = from.iter().zip(&to).zip(&len);
        Case {
            name: facts["case"].as_str().unwrap().to_owned(),
            facts: facts.clone(),
            descriptors: recorded["n"].as_u64().unwrap(),
            moves: Moves::of(moves.map(|((from, to), len)| (0, *from, 0, *to, *len))),
        }
    });
    let blocks = ["producer", "consumer"].map(|side| file[side]["num_blocks"].as_u64().unwrap());
    (cases.collect(), blocks)
}
