//! Cases of a planning bench: `MODEL/CASE`, with the block counts of both
//! sides.

use mooncake_pd_plan::RawRequest;
use serde_json::{Map, Value};

use super::case::Case;
use super::error::RequestFileError;

/// Names of the cases, `MODEL/CASE`.
pub(super) fn names(file: &Map<String, Value>) -> Vec<String> {
    file.iter()
        .flat_map(|(model, row)| {
            row.get("cases")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
                .map(move |case| format!("{model}/{case}"))
        })
        .collect()
}

/// A request, and the blocks of producer and consumer.
pub(super) type Row = (RawRequest, (u64, u64));

/// The request of a case, and the blocks of producer and consumer.
///
/// A state model computes one token less than its prompt: the last one is
/// computed by the decode side.
pub(super) fn request(case: &Case<'_>) -> Result<Option<Row>, RequestFileError> {
    let Some((model, name)) = case.name.rsplit_once('/') else {
        return Ok(None);
    };
    let Some(row) = case.value.get(model) else {
        return Ok(None);
    };
    let Some(found) = row.get("cases").and_then(|cases| cases.get(name)) else {
        return Ok(None);
    };
    let row = case.with(row);
    let states = row.list("group_is_mamba")?;
    let state = states.iter().any(|flag| flag.value.as_bool() == Some(true));
    let prompt = row.number("prompt_tokens")?;
    let side = |key| row.at(key, "an object")?.number("num_blocks");
    let request = RawRequest {
        id: case.name.to_owned(),
        computed_tokens: Some(prompt.saturating_sub(u64::from(state))),
        tail_aligned: false,
        groups: case.with(found).vllm_tables()?,
    };
    Ok(Some((request, (side("producer")?, side("consumer")?))))
}
