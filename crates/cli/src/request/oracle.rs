//! Cases of `vllm-mooncake-oracle/1`: requests as vLLM's connector saw them.

use mooncake_pd_plan::RawRequest;
use serde_json::Value;

use super::case::Case;
use super::error::RequestFileError;

/// Names of the cases.
pub(super) fn names(file: &Value) -> Vec<String> {
    super::parse::labels(file, "case")
}

/// The requests of a case. The computed tokens are the consumer's cached
/// prefix and what it asked for; where they aren't recorded the lists are
/// aligned at their ends, as vLLM does it.
pub(super) fn requests(case: &Case<'_>) -> Result<Vec<RawRequest>, RequestFileError> {
    let number = |key| case.value.get(key).and_then(Value::as_u64);
    let computed_tokens = number("consumer_prefix_hit")
        .zip(number("num_external_tokens"))
        .and_then(|(cached, asked)| cached.checked_add(asked));
    case.list("requests")?
        .iter()
        .map(|request| {
            Ok(RawRequest {
                id: request.text("req_id")?.to_owned(),
                computed_tokens,
                tail_aligned: computed_tokens.is_none(),
                groups: request.vllm_tables()?,
            })
        })
        .collect()
}
