//! Element types.

use core::fmt;

/// The type of a field's elements. Two sides exchange bytes only when it is
/// the same on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DType {
    /// Unsigned byte; also opaque bytes.
    U8,
    /// Signed byte.
    I8,
    /// 8-bit float, 4 exponent bits.
    F8E4M3,
    /// 8-bit float, 5 exponent bits.
    F8E5M2,
    /// bfloat16.
    BF16,
    /// IEEE half.
    F16,
    /// IEEE single.
    F32,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
}

/// A dtype name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{0}`")]
pub struct UnknownDType(pub alloc::string::String);

const NAMES: [(&str, DType); 9] = [
    ("uint8", DType::U8),
    ("int8", DType::I8),
    ("float8_e4m3fn", DType::F8E4M3),
    ("float8_e5m2", DType::F8E5M2),
    ("bfloat16", DType::BF16),
    ("float16", DType::F16),
    ("float32", DType::F32),
    ("int32", DType::I32),
    ("int64", DType::I64),
];

impl DType {
    /// Bytes per element: 1, 2, 4 or 8.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::BF16 | Self::F16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::I64 => 8,
        }
    }

    /// The name used in manifests (PyTorch's, without its `torch.` prefix).
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, dtype)| *dtype == self)
            .map_or("uint8", |(name, _)| name)
    }

    /// The dtype of a PyTorch name, with or without `torch.`.
    ///
    /// # Errors
    /// A name that is not listed in [`DType`].
    pub fn parse(name: &str) -> Result<Self, UnknownDType> {
        let short = name.strip_prefix("torch.").unwrap_or(name);
        NAMES
            .iter()
            .find(|(known, _)| *known == short)
            .map(|(_, dtype)| *dtype)
            .ok_or_else(|| UnknownDType(short.into()))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
