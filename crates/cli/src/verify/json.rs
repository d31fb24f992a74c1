//! Typed access to raw JSON, with the place in every error.

use super::error::WalkError;
use serde_json::Value;

/// A JSON object and where it stands in its file.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    value: &'a Value,
    place: String,
}

impl<'a> Object<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            value,
            place: "the file".to_owned(),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn missing(&self, key: &str, wanted: &'static str) -> WalkError {
        WalkError::Missing {
            place: self.place.clone(),
            key: key.to_owned(),
            wanted,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key)
    }

    pub(super) fn number(&self, key: &str) -> Result<u64, WalkError> {
        self.get(key)
            .and_then(Value::as_u64)
            .ok_or_else(|| self.missing(key, "number"))
    }

    pub(super) fn id(&self, key: &str) -> Result<u32, WalkError> {
        let wide = self.number(key)?;
        u32::try_from(wide).map_err(|_| self.missing(key, "32-bit number"))
    }

    /// The number under `key`, or `absent` where the key is not written.
    pub(super) fn number_or(&self, key: &str, absent: u64) -> Result<u64, WalkError> {
        match self.get(key) {
            None => Ok(absent),
            Some(_) => self.number(key),
        }
    }

    /// The number under `key`, if one is written.
    pub(super) fn number_if(&self, key: &str) -> Result<Option<u64>, WalkError> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.number(key).map(Some),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<&'a str, WalkError> {
        self.get(key)
            .and_then(Value::as_str)
            .ok_or_else(|| self.missing(key, "text"))
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Vec<u64>, WalkError> {
        self.get(key)
            .and_then(Value::as_array)
            .and_then(|list| list.iter().map(Value::as_u64).collect())
            .ok_or_else(|| self.missing(key, "list of numbers"))
    }

    pub(super) fn object(&self, key: &str) -> Result<Object<'a>, WalkError> {
        let value = self
            .get(key)
            .filter(|value| value.is_object())
            .ok_or_else(|| self.missing(key, "object"))?;
        Ok(Object {
            value,
            place: key.to_owned(),
        })
    }

    pub(super) fn objects(&self, key: &str) -> Result<Vec<Object<'a>>, WalkError> {
        let list = self
            .get(key)
            .and_then(Value::as_array)
            .ok_or_else(|| self.missing(key, "list"))?;
        let prefix = if self.place == "the file" {
            String::new()
        } else {
            format!("{}.", self.place)
        };
        Ok(list
            .iter()
            .enumerate()
            .map(|(at, value)| Object {
                value,
                place: format!("{prefix}{key}[{at}]"),
            })
            .collect())
    }
}
