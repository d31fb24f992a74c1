//! Cases of `sglang-pd-layout-facts/1`: the index lists of one request's
//! steps. The kv component is group 0, state components follow in order; index
//! keys (`dsa`) lie under the pages of kv and belong to its group.

use mooncake_pd_plan::RawRequest;
use serde_json::Value;

use super::case::{Case, tables};
use super::error::RequestFileError;

/// Names of the cases.
pub(super) fn names(file: &Value) -> Vec<String> {
    super::parse::labels(file, "label")
}

/// The request of a case: the pages of its chunks one after the other, and
/// the state indices sent with the last one.
pub(super) fn request(case: &Case<'_>) -> Result<RawRequest, RequestFileError> {
    if case.name.contains("-> decode tp") {
        return Err(RequestFileError::UnequalTp {
            file: case.file.to_owned(),
            case: case.name.to_owned(),
        });
    }
    let mut source = Vec::new();
    let mut destination = Vec::new();
    let mut states = Vec::new();
    for step in case.list("steps")? {
        match step.value.get("step").and_then(Value::as_str) {
            Some("kv") => {
                let pages = |key| step.at(key, "a list of ids")?.ids();
                source.extend(pages("src_pages")?);
                destination.extend(pages("dst_pages")?);
            }
            Some("state") => {
                let from = step.list("src_indices")?;
                let to = step.list("dst_indices")?;
                if from.len() != to.len() {
                    return Err(step.group_counts(from.len(), to.len()));
                }
                let names = step.list("components")?;
                for (group, ((from, to), name)) in (1_u32..).zip(from.iter().zip(to).zip(names)) {
                    let (from, to) = (from.ids()?, to.ids()?);
                    if name.value.as_str() != Some("dsa") {
                        states.push(tables(group, from, to));
                    } else if (&from, &to) != (&source, &destination) {
                        return Err(RequestFileError::IndexPages {
                            file: case.file.to_owned(),
                            case: case.name.to_owned(),
                        });
                    }
                }
            }
            // Metadata rows are not part of the cache.
            _ => {}
        }
    }
    let mut groups = vec![tables(0, source, destination)];
    groups.extend(states);
    Ok(RawRequest {
        id: case.name.to_owned(),
        computed_tokens: Some(case.number("num_tokens")?),
        tail_aligned: false,
        groups,
    })
}
