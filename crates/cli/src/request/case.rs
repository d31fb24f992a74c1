//! One named case of a file, with its name in every error.

use mooncake_pd_plan::{RawSlots, RawTables};
use serde_json::Value;

use super::error::RequestFileError;

/// A JSON object and the names for its errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) file: &'a str,
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl<'a> Case<'a> {
    pub(super) fn with(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    pub(super) fn missing(self, key: &'static str, wanted: &'static str) -> RequestFileError {
        RequestFileError::Missing {
            file: self.file.to_owned(),
            case: self.name.to_owned(),
            key,
            wanted,
        }
    }

    pub(super) fn list(self, key: &'static str) -> Result<&'a Vec<Value>, RequestFileError> {
        self.value
            .get(key)
            .and_then(Value::as_array)
            .ok_or_else(|| self.missing(key, "list"))
    }

    pub(super) fn number(self, key: &'static str) -> Result<u64, RequestFileError> {
        self.value
            .get(key)
            .and_then(Value::as_u64)
            .ok_or_else(|| self.missing(key, "number"))
    }

    pub(super) fn ids(
        self,
        key: &'static str,
        list: &Value,
    ) -> Result<Vec<Option<u64>>, RequestFileError> {
        list.as_array()
            .and_then(|list| list.iter().map(|id| id.as_u64().map(Some)).collect())
            .ok_or_else(|| self.missing(key, "list of ids"))
    }

    /// vLLM's lists of ids by transfer group, on both sides.
    pub(super) fn vllm_tables(self) -> Result<Vec<RawTables>, RequestFileError> {
        const PRODUCER: &str = "producer_block_ids";
        const CONSUMER: &str = "consumer_block_ids";
        let producer = self.list(PRODUCER)?;
        let consumer = self.list(CONSUMER)?;
        if producer.len() != consumer.len() {
            return Err(RequestFileError::GroupCounts {
                file: self.file.to_owned(),
                case: self.name.to_owned(),
                producer: producer.len(),
                consumer: consumer.len(),
            });
        }
        (0_u32..)
            .zip(producer.iter().zip(consumer))
            .map(|(group, (producer, consumer))| {
                Ok(tables(
                    group,
                    self.ids(PRODUCER, producer)?,
                    self.ids(CONSUMER, consumer)?,
                ))
            })
            .collect()
    }
}

/// Tables of one group, both ending with the computed tokens.
pub(super) fn tables(
    group: u32,
    source: Vec<Option<u64>>,
    destination: Vec<Option<u64>>,
) -> RawTables {
    RawTables {
        group,
        source: RawSlots {
            first_block: None,
            entries: source,
        },
        destination: RawSlots {
            first_block: None,
            entries: destination,
        },
    }
}
