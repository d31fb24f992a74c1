//! The recorded vLLM 0.33 facts that tests and benches share.
#![allow(dead_code, reason = "each target uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read fails the test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_layout::import::vllm_033;
use mooncake_pd_plan::testing::vllm::{GroupKind, Region, Regions, Request};
use mooncake_pd_plan::{RawRequest, RawSlots, RawTables};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A side as the connector registered it.
#[derive(Deserialize)]
pub(crate) struct Side {
    pub(crate) num_blocks: u32,
    pub(crate) physical_blocks_per_logical: NonZeroU64,
    pub(crate) regions: Vec<Region>,
}

/// One model of `planning-bench.json`.
#[derive(Deserialize)]
pub(crate) struct BenchModel {
    prompt_tokens: u64,
    pub(crate) producer: Side,
    pub(crate) consumer: Side,
    group_is_mamba: Vec<bool>,
    prepared_local: Vec<Region>,
    prepared_remote: Vec<Region>,
    pub(crate) cases: BTreeMap<String, BenchCase>,
}

/// One row of `planning-bench.json`.
#[derive(Deserialize)]
pub(crate) struct BenchCase {
    pub(crate) producer_block_ids: Vec<Vec<u64>>,
    pub(crate) consumer_block_ids: Vec<Vec<u64>>,
    pub(crate) descriptors: usize,
    pub(crate) total_bytes: u64,
    pub sha256_le_u64_triples_src_dst_len: String,
}

/// One `<model>.oracle.json`.
#[derive(Deserialize)]
pub(crate) struct Oracle {
    pub(crate) producer: Side,
    pub(crate) consumer: Side,
    prepared: Prepared,
    pub(crate) cases: Vec<OracleCase>,
}

#[derive(Deserialize)]
struct Prepared {
    local_regions: Vec<Region>,
    remote_regions: Vec<Region>,
}

/// One named batch of an oracle file.
#[derive(Deserialize)]
pub(crate) struct OracleCase {
    pub(crate) case: String,
    pub(crate) requests: Vec<Request>,
    pub(crate) descriptors: Recorded,
}

/// What vLLM computed for it.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) n: usize,
    pub(crate) src_off: Vec<u64>,
    pub(crate) dst_off: Vec<u64>,
    pub(crate) len: Vec<u64>,
    pub(crate) err_reqs: Vec<String>,
    pub(crate) err_msg: Option<String>,
}

#[derive(Deserialize)]
struct Layout {
    groups: Vec<LayoutGroup>,
}

#[derive(Deserialize)]
struct LayoutGroup {
    index: usize,
    kind: String,
    enable_kv_transfer: bool,
}

impl BenchModel {
    pub(crate) fn regions(&self) -> Regions {
        Regions::prepared(self.prepared_local.clone(), self.prepared_remote.clone()).unwrap()
    }

    pub(crate) fn kinds(&self) -> Vec<GroupKind> {
        self.group_is_mamba.iter().copied().map(kind).collect()
    }
}

impl BenchModel {
    /// P's and D's layouts, at the sizes the bench file names.
    pub(crate) fn layouts(&self, model: &str) -> (CacheLayout, CacheLayout) {
        let side = |name: &str, side: &Side| {
            let layout = vllm_033(&text(name)).unwrap();
            let pool = layout.pools().first().unwrap().id();
            layout.resized(pool, side.num_blocks).unwrap()
        };
        (
            side(&format!("{model}.json"), &self.producer),
            side(&format!("{model}.consumer.json"), &self.consumer),
        )
    }

    /// One row as a request for planning.
    pub(crate) fn raw_request(&self, id: &str, case: &BenchCase) -> RawRequest {
        let slots = |ids: &Vec<u64>| RawSlots {
            first_block: None,
            entries: ids.iter().copied().map(Some).collect(),
        };
        let sides = case.producer_block_ids.iter().zip(&case.consumer_block_ids);
        RawRequest {
            id: id.to_owned(),
            computed_tokens: Some(self.prompt_tokens),
            tail_aligned: false,
            groups: (0..)
                .zip(sides)
                .map(|(group, (source, destination))| RawTables {
                    group,
                    source: slots(source),
                    destination: slots(destination),
                })
                .collect(),
        }
    }
}

impl BenchCase {
    /// Block ids that both sides list, nulls included.
    pub(crate) fn listed(&self) -> usize {
        let sides = self
            .producer_block_ids
            .iter()
            .chain(&self.consumer_block_ids);
        sides.map(Vec::len).sum()
    }

    pub(crate) fn request(&self, id: &str) -> Request {
        Request::new(
            id.to_owned(),
            self.producer_block_ids.clone(),
            self.consumer_block_ids.clone(),
        )
    }
}

impl Oracle {
    pub(crate) fn regions(&self) -> Regions {
        let Prepared {
            local_regions,
            remote_regions,
        } = &self.prepared;
        Regions::prepared(local_regions.clone(), remote_regions.clone()).unwrap()
    }
}

fn kind(state: bool) -> GroupKind {
    if state {
        GroupKind::State
    } else {
        GroupKind::Paged
    }
}

/// The folder of vLLM 0.33 fixtures.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-0.33")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn load<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The bench file, by model.
pub(crate) fn bench() -> BTreeMap<String, BenchModel> {
    load("planning-bench.json")
}

/// Every oracle of equal TP with its model's name and group kinds.
pub(crate) fn oracles() -> Vec<(String, Vec<GroupKind>, Oracle)> {
    let mut models: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".oracle.json").map(str::to_owned))
        .filter(|model| model != "hetero-tp")
        .collect();
    models.sort();
    models
        .into_iter()
        .map(|model| {
            let layout: Layout = load(&format!("{model}.json"));
            let mut groups = layout.groups;
            groups.retain(|group| group.enable_kv_transfer);
            groups.sort_by_key(|group| group.index);
            let kinds = groups.iter().map(|group| kind(group.kind == "mamba"));
            let kinds = kinds.collect();
            let oracle = load(&format!("{model}.oracle.json"));
            (model, kinds, oracle)
        })
        .collect()
}
