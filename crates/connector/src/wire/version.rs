//! Which release a message is meant for.

use core::fmt;

/// A release of vLLM whose messages we write. Both are read alike.
///
/// 0.33 added layout ids, and with them pulls that leave the layout out and the answer that such
/// a layout is unknown. A 0.32 peer skips layout ids, so [`Version::V033`] suits every prefill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// vLLM 0.32.
    V032,
    /// vLLM 0.33.
    V033,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V032 => "vLLM 0.32",
            Self::V033 => "vLLM 0.33",
        })
    }
}
