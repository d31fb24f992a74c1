//! From the text of a request file to requests.

use mooncake_pd_plan::{REQUEST_FORMAT, RawRequest, RawRequests};
use serde::Deserialize;
use serde_json::Value;

use super::case::Case;
use super::error::{Found, RequestFileError};
use super::name::RequestName;
use super::strict::Strict;
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

const ORACLE: &str = "vllm-mooncake-oracle/1";
const SGLANG: &str = "sglang-pd-layout-facts/1";
const FORMATS: &[&str] = &[REQUEST_FORMAT, ORACLE, SGLANG];

/// What a file says it is.
#[derive(Deserialize)]
#[serde(expecting = "a request file, an object with `format`")]
struct Head {
    #[serde(default)]
    format: Option<Value>,
    /// The key in `SGLang`'s reports.
    #[serde(default)]
    schema: Option<Value>,
}

/// Reads the text of a request file of any known format.
///
/// # Errors
/// The file, the case or a value in it is not what it should be; an unknown
/// case comes with the list of known ones.
pub fn parse(name: &RequestName, text: &str) -> Result<Requests, RequestFileError> {
    let file = name.file.as_str();
    let head: Head = json(file, text)?;
    let format = head.format.or(head.schema);
    let (requests, blocks) = match (&format, format.as_ref().and_then(Value::as_str)) {
        (_, Some(REQUEST_FORMAT)) => {
            if let Some(case) = &name.case {
                return Err(RequestFileError::NotACase {
                    file: file.to_owned(),
                    case: case.clone(),
                });
            }
            let read: RawRequests = json(file, text)?;
            (read.requests, None)
        }
        (_, Some(ORACLE)) => {
            let Strict(value) = json(file, text)?;
            let case = find(name, &value, "case", &oracle::names(&value))?;
            (oracle::requests(&case)?, None)
        }
        (_, Some(SGLANG)) => {
            let Strict(value) = json(file, text)?;
            let case = find(name, &value, "label", &sglang::names(&value))?;
            (vec![sglang::request(&case)?], None)
        }
        (None, _) => {
            let Strict(value) = json(file, text)?;
            from_bench(name, &value)?
        }
        (found, _) => return Err(format_error(file, found.as_ref())),
    };
    if requests.is_empty() {
        return Err(RequestFileError::Empty {
            file: file.to_owned(),
        });
    }
    Ok(Requests { requests, blocks })
}

/// Straight from the text, so that errors come with line and column.
fn json<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, RequestFileError> {
    serde_json::from_str(text).map_err(|error| RequestFileError::Json {
        file: file.to_owned(),
        reason: error.to_string(),
    })
}

fn format_error(file: &str, found: Option<&Value>) -> RequestFileError {
    RequestFileError::Format {
        file: file.to_owned(),
        found: Found::new(found),
        known: FORMATS,
    }
}

type Read = (Vec<RawRequest>, Option<(u64, u64)>);

/// A bench states no format: it is known by its models' cases.
fn from_bench(name: &RequestName, value: &Value) -> Result<Read, RequestFileError> {
    let known = value.as_object().map(bench::names).unwrap_or_default();
    if known.is_empty() {
        return Err(format_error(&name.file, None));
    }
    let wanted = wanted(name, &known)?;
    let case = Case {
        file: &name.file,
        name: wanted,
        value,
        place: String::new(),
    };
    let (request, blocks) = bench::request(&case)?.ok_or_else(|| unknown(name, wanted, &known))?;
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
        place: String::new(),
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
