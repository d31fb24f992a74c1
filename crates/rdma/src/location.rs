//! Where memory is, as engines are told.

use std::fmt;
use std::str::FromStr;

/// Why a text is not a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no location: `*`, `cpu:N` or `cuda:N` with N in 0..65536")]
pub struct LocationError {
    /// The text.
    pub text: String,
}

/// Where memory is: `*`, `cpu:N` or `cuda:N`. Mooncake's strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Location {
    /// On the host, on whichever node: `*`.
    #[default]
    Host,
    /// On the host, on that NUMA node: `cpu:N`.
    Cpu(u16),
    /// On that CUDA device: `cuda:N`.
    Cuda(u16),
}

impl Location {
    /// Whether the processor can't reach it.
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::Cuda(_))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("*"),
            Self::Cpu(node) => write!(f, "cpu:{node}"),
            Self::Cuda(device) => write!(f, "cuda:{device}"),
        }
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u16>().ok().filter(|_| plain)
        };
        let parsed = match text.split_once(':') {
            None if text == "*" => Some(Self::Host),
            Some(("cpu", node)) => number(node).map(Self::Cpu),
            Some(("cuda", device)) => number(device).map(Self::Cuda),
            _ => None,
        };
        parsed.ok_or_else(|| LocationError {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_as_it_is_printed() {
        for location in [Location::Host, Location::Cpu(1), Location::Cuda(65_535)] {
            assert_eq!(location.to_string().parse(), Ok(location));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "cpu",
            "cpu:",
            "cuda:+1",
            "cuda:65536",
            "gpu:0",
            "cuda:0:1",
        ] {
            let error = text.parse::<Location>().unwrap_err();
            assert_eq!(error.text, text);
        }
    }
}
