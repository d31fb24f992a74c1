//! The examples that `mooncake-pd transfer` runs without arguments: real
//! layouts and requests of vLLM 0.33.

use crate::args::PairArgs;
use crate::failure::Failure;
use crate::pair::Pair;
use crate::request::RequestName;

/// A model's layouts on both sides and the requests recorded with them.
struct Example {
    source: (&'static str, &'static str),
    destination: (&'static str, &'static str),
    request: (&'static str, &'static str),
}

macro_rules! example {
    ($model:literal) => {
        Example {
            source: (
                concat!($model, ".json"),
                include_str!(concat!("../../../fixtures/vllm-0.33/", $model, ".json")),
            ),
            destination: (
                concat!($model, ".consumer.json"),
                include_str!(concat!(
                    "../../../fixtures/vllm-0.33/",
                    $model,
                    ".consumer.json"
                )),
            ),
            request: (
                concat!($model, ".oracle.json"),
                include_str!(concat!(
                    "../../../fixtures/vllm-0.33/",
                    $model,
                    ".oracle.json"
                )),
            ),
        }
    };
}

const EXAMPLES: [Example; 2] = [example!("qwen3.5-0.8b"), example!("deepseek-v4-flash")];

/// A part of the prompt is cached on the decode side, and blocks are
/// scattered on both.
const CASE: &str = "fragmented/consumer-prefix-hit";

/// The examples with the names of their cases.
///
/// # Errors
/// They can't have the block counts asked for.
pub(crate) fn pairs(args: &PairArgs) -> Result<Vec<(String, Pair)>, Failure> {
    EXAMPLES
        .iter()
        .map(|example| {
            let request = RequestName {
                file: example.request.0.to_owned(),
                case: Some(CASE.to_owned()),
            };
            let pair = Pair::of(
                (example.source.0, example.source.1.to_owned()),
                (example.destination.0, example.destination.1.to_owned()),
                (&request, example.request.1),
                args,
            )?;
            Ok((format!("{}, {CASE}", pair.source.layout().model()), pair))
        })
        .collect()
}
