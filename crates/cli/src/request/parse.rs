//! From the text of a request file to requests.

use mooncake_pd_plan::{REQUEST_FORMAT, RawRequest, RawRequests};
use serde_json::Value;

use super::case::Case;
use super::error::RequestFileError;
use super::name::RequestName;
use super::{bench, oracle, sglang};

/// What a request file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Planned as one batch.
    pub requests: Vec<RawRequest>,
    /// Blocks of source and destination that the ids are meant for, where
    /// the file names them.
    pub blocks: Option<(u64, u64)>,
}

/// Reads the text of a request file of any known format.
///
/// # Errors
/// The file, the case or a value in it is not what it should be; an unknown
/// case comes with the list of known ones.
pub fn parse(name: &RequestName, text: &str) -> Result<Requests, RequestFileError> {
    let file = name.file.as_str();
    let json = |error: serde_json::Error| RequestFileError::Json {
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let value: Value = serde_json::from_str(text).map_err(json)?;
    let format = value
        .get("format")
        .or_else(|| value.get("schema"))
        .and_then(Value::as_str);
    let (requests, blocks) = match format {
        Some(REQUEST_FORMAT) => {
            if let Some(case) = &name.case {
                return Err(RequestFileError::NotACase {
                    file: file.to_owned(),
                    case: case.clone(),
                });
            }
            let read: RawRequests = serde_json::from_value(value).map_err(json)?;
            (read.requests, None)
        }
        Some("vllm-mooncake-oracle/1") => {
            let case = find(name, &value, "case", &oracle::names(&value))?;
            (oracle::requests(case)?, None)
        }
        Some("sglang-pd-layout-facts/1") => {
            let case = find(name, &value, "label", &sglang::names(&value))?;
            (vec![sglang::request(case)?], None)
        }
        Some(other) => {
            return Err(RequestFileError::Format {
                file: file.to_owned(),
                found: other.to_owned(),
            });
        }
        None => from_bench(name, &value)?,
    };
    Ok(Requests { requests, blocks })
}

type Read = (Vec<RawRequest>, Option<(u64, u64)>);

/// A bench states no format: it is known by its models' cases.
fn from_bench(name: &RequestName, value: &Value) -> Result<Read, RequestFileError> {
    let known = value.as_object().map(bench::names).unwrap_or_default();
    if known.is_empty() {
        return Err(RequestFileError::Format {
            file: name.file.clone(),
            found: String::new(),
        });
    }
    let wanted = wanted(name, &known)?;
    let case = Case {
        file: &name.file,
        name: wanted,
        value,
    };
    let (request, blocks) = bench::request(case)?.ok_or_else(|| unknown(name, wanted, &known))?;
    Ok((vec![request], Some(blocks)))
}

fn wanted<'a>(name: &'a RequestName, known: &[String]) -> Result<&'a str, RequestFileError> {
    name.case
        .as_deref()
        .ok_or_else(|| RequestFileError::NoCase {
            file: name.file.clone(),
            known: known.to_vec(),
        })
}

fn unknown(name: &RequestName, case: &str, known: &[String]) -> RequestFileError {
    RequestFileError::UnknownCase {
        file: name.file.clone(),
        case: case.to_owned(),
        known: known.to_vec(),
    }
}

/// The case of the wanted name in the file's list of cases.
fn find<'a>(
    name: &'a RequestName,
    value: &'a Value,
    key: &str,
    known: &[String],
) -> Result<Case<'a>, RequestFileError> {
    let case = wanted(name, known)?;
    let found = cases(value)
        .find(|entry| entry.get(key).and_then(Value::as_str) == Some(case))
        .ok_or_else(|| unknown(name, case, known))?;
    Ok(Case {
        file: &name.file,
        name: case,
        value: found,
    })
}

fn cases(value: &Value) -> impl Iterator<Item = &Value> {
    value
        .get("cases")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The names of a file's cases.
pub(super) fn labels(value: &Value, key: &str) -> Vec<String> {
    cases(value)
        .filter_map(|case| case.get(key)?.as_str().map(str::to_owned))
        .collect()
}
