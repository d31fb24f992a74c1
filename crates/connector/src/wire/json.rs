//! Bounded JSON.

use core::fmt;
use core::marker::PhantomData;

use mooncake_pd_layout::JsonError;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::limits::Limits;

/// Why a text is no JSON of a message. Who sent it is at fault, or our [`Limits`] are too narrow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It is longer than is taken.
    #[error("a text of {bytes} bytes is more than {limit}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// Most bytes.
        limit: usize,
    },
    /// It is no JSON, or not of this form.
    #[error("not JSON of this form: {0}")]
    Json(#[from] JsonError),
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(
    text: &'a [u8],
    limits: &Limits,
) -> Result<T, TextError> {
    let (bytes, limit) = (text.len(), limits.json_bytes);
    if bytes > limit {
        return Err(TextError::TooLong { bytes, limit });
    }
    let object: Object<T> = serde_json::from_slice(text).map_err(JsonError::from)?;
    Ok(object.0)
}

/// A JSON object; serde would take a list of the values as well.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectReader(PhantomData))
    }
}

struct ObjectReader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectReader<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(from)).map(Object)
    }
}
