//! Names that engines and routers give.

use alloc::sync::Arc;
use core::fmt;

/// Most bytes of a name. Names come from outside and are kept while a record lives.
pub const MAX_ID_BYTES: usize = 256;

/// A text that can't be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} of {len} bytes is outside 1..={MAX_ID_BYTES}")]
pub struct IdError {
    /// What it was to name.
    pub kind: &'static str,
    /// Its length in bytes.
    pub len: usize,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a name of 1 to [`MAX_ID_BYTES`] bytes.
            ///
            /// # Errors
            /// An empty or longer text.
            pub fn new(text: &str) -> Result<Self, IdError> {
                if text.is_empty() || text.len() > MAX_ID_BYTES {
                    return Err(IdError { kind: $kind, len: text.len() });
                }
                Ok(Self(text.into()))
            }

            /// The text as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// Name of a request inside one engine, 1..=256 bytes. The two engines of a
    /// transfer may call it differently.
    RequestId, "request id"
}
name! {
    /// Name that prefill and decode share for one hand-over, 1..=256 bytes; the router gives it.
    TransferId, "transfer id"
}
name! {
    /// Name of an engine, 1..=256 bytes; one of several data-parallel engines has a name of its own.
    EngineId, "engine id"
}

#[cfg(test)]
mod tests {
    use super::{IdError, MAX_ID_BYTES, RequestId};
    use alloc::string::ToString;

    #[test]
    fn a_name_is_neither_empty_nor_too_long() {
        let longest = "x".repeat(MAX_ID_BYTES);
        assert_eq!(RequestId::new(&longest).unwrap().as_str(), longest);
        let kind = "request id";
        assert_eq!(RequestId::new(""), Err(IdError { kind, len: 0 }));
        let error = RequestId::new(&"x".repeat(257)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "request id of 257 bytes is outside 1..=256"
        );
    }
}
