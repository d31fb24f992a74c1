//! Ranks as JSON gives them.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Place of a worker along one axis (data, tensor or pipeline parallel), 0..2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u32);

impl Rank {
    /// A rank.
    #[must_use]
    pub const fn new(rank: u32) -> Self {
        Self(rank)
    }

    /// The rank.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for Rank {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Rank {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

/// Takes an integer, and a text of one: keys are texts, and stock takes texts everywhere.
struct Reader;

impl Visitor<'_> for Reader {
    type Value = Rank;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rank in 0..2^32")
    }

    fn visit_u64<E: Error>(self, rank: u64) -> Result<Rank, E> {
        let wrong = serde::de::Unexpected::Unsigned(rank);
        u32::try_from(rank)
            .map(Rank)
            .map_err(|_| E::invalid_value(wrong, &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Rank, E> {
        let wrong = serde::de::Unexpected::Str(text);
        text.trim()
            .parse()
            .map(Rank)
            .map_err(|_| E::invalid_value(wrong, &self))
    }
}

#[cfg(test)]
mod tests {
    use super::Rank;

    #[test]
    fn ranks_are_integers_or_texts_of_them() {
        for text in ["7", "\"7\"", "\" 7 \"", "\"+7\"", "\"007\""] {
            let rank: Rank = serde_json::from_str(text).unwrap();
            assert_eq!(rank.get(), 7, "{text}");
        }
        for text in [
            "-1",
            "\"-1\"",
            "4294967296",
            "\"4294967296\"",
            "1.0",
            "true",
            "null",
            "\"\"",
            "\"7.0\"",
            "\"7_0\"",
            "[7]",
        ] {
            serde_json::from_str::<Rank>(text).unwrap_err();
        }
    }
}
