//! One named case of a file, with its place in every error.

use mooncake_pd_plan::{RawSlots, RawTables};
use serde_json::Value;

use super::error::{Found, RequestFileError};

/// A JSON value of a case, and the names for its errors.
#[derive(Clone, Debug)]
pub(super) struct Case<'a> {
    pub(super) file: &'a str,
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
    /// How the value is reached from the case, as `requests[0].req_id`.
    pub(super) place: String,
}

impl<'a> Case<'a> {
    /// A value that lies under the case itself.
    pub(super) fn with(&self, value: &'a Value) -> Self {
        Self {
            value,
            ..self.clone()
        }
    }

    /// An element of the list under a key.
    fn element(&self, key: &str, index: usize, value: &'a Value) -> Self {
        Self {
            value,
            place: format!("{}[{index}]", self.under(key)),
            ..self.clone()
        }
    }

    fn under(&self, key: &str) -> String {
        if self.place.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.place)
        }
    }

    /// What is under a key is not what it should be.
    pub(super) fn wrong(&self, key: &str, wanted: &'static str) -> RequestFileError {
        self.error(self.under(key), self.value.get(key), wanted)
    }

    fn error(
        &self,
        place: String,
        found: Option<&Value>,
        wanted: &'static str,
    ) -> RequestFileError {
        RequestFileError::Value {
            file: self.file.to_owned(),
            case: self.name.to_owned(),
            place,
            found: Found::new(found),
            wanted,
        }
    }

    /// The elements of the list under a key.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Self>, RequestFileError> {
        let list = self.value.get(key).and_then(Value::as_array);
        let list = list.ok_or_else(|| self.wrong(key, "a list"))?;
        let elements = list.iter().enumerate();
        Ok(elements
            .map(|(index, value)| self.element(key, index, value))
            .collect())
    }

    pub(super) fn number(&self, key: &str) -> Result<u64, RequestFileError> {
        let number = self.value.get(key).and_then(Value::as_u64);
        number.ok_or_else(|| self.wrong(key, "a number"))
    }

    pub(super) fn text(&self, key: &str) -> Result<&'a str, RequestFileError> {
        let text = self.value.get(key).and_then(Value::as_str);
        text.ok_or_else(|| self.wrong(key, "a text"))
    }

    /// The value as a list of ids.
    pub(super) fn ids(&self) -> Result<Vec<Option<u64>>, RequestFileError> {
        let list = self.value.as_array();
        let list =
            list.ok_or_else(|| self.error(self.place.clone(), Some(self.value), "a list of ids"))?;
        list.iter()
            .enumerate()
            .map(|(index, id)| {
                let place = || format!("{}[{index}]", self.place);
                id.as_u64()
                    .map(Some)
                    .ok_or_else(|| self.error(place(), Some(id), "an id"))
            })
            .collect()
    }

    /// The value under a key.
    pub(super) fn at(&self, key: &str, wanted: &'static str) -> Result<Self, RequestFileError> {
        let value = self.value.get(key);
        Ok(Self {
            value: value.ok_or_else(|| self.wrong(key, wanted))?,
            place: self.under(key),
            ..self.clone()
        })
    }

    /// vLLM's lists of ids by transfer group, on both sides.
    pub(super) fn vllm_tables(&self) -> Result<Vec<RawTables>, RequestFileError> {
        let producer = self.list("producer_block_ids")?;
        let consumer = self.list("consumer_block_ids")?;
        if producer.len() != consumer.len() {
            return Err(self.group_counts(producer.len(), consumer.len()));
        }
        (0_u32..)
            .zip(producer.iter().zip(consumer))
            .map(|(group, (producer, consumer))| {
                Ok(tables(group, producer.ids()?, consumer.ids()?))
            })
            .collect()
    }

    /// The two sides have lists of other numbers of groups.
    pub(super) fn group_counts(&self, producer: usize, consumer: usize) -> RequestFileError {
        RequestFileError::GroupCounts {
            file: self.file.to_owned(),
            case: self.name.to_owned(),
            place: self.place.clone(),
            producer,
            consumer,
        }
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
