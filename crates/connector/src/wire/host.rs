//! Machines as peers name them.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most bytes of a host.
const MAX_BYTES: usize = 253;

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Empty or too long.
    #[error("a host of {len} bytes is outside 1..=253")]
    Length {
        /// Its bytes.
        len: usize,
    },
    /// It has a colon, and is no IPv6 address. Brackets belong to an address, not to its host.
    #[error("{text:?} has a colon and is no IPv6 address")]
    Ipv6 {
        /// The text.
        text: String,
    },
    /// Its last part is a number, and it is no IPv4 address.
    #[error("{text:?} ends in a number and is no IPv4 address")]
    Ipv4 {
        /// The text.
        text: String,
    },
    /// A part between dots is empty, too long, or has other characters than letters, digits,
    /// `-` and `_`.
    #[error("{part:?} in {text:?} is no part of a host name")]
    Name {
        /// The text.
        text: String,
        /// The part.
        part: String,
    },
}

/// A host, 1..=253 bytes: a name, an IPv4 address, or an IPv6 address without brackets and zone.
///
/// It stays as it was written: two spellings of one address are different hosts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    text: Arc<str>,
    ip: Option<IpAddr>,
}

impl Host {
    /// Takes a host exactly as it is written.
    pub fn new(text: &str) -> Result<Self, HostError> {
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(HostError::Length { len: text.len() });
        }
        let last = text.rsplit('.').next().unwrap_or(text);
        let ip = if text.contains(':') {
            let ip = text.parse::<Ipv6Addr>();
            Some(
                ip.map_err(|_| HostError::Ipv6 { text: text.into() })?
                    .into(),
            )
        } else if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
            let ip = text.parse::<Ipv4Addr>();
            Some(
                ip.map_err(|_| HostError::Ipv4 { text: text.into() })?
                    .into(),
            )
        } else {
            if let Some(part) = text.split('.').find(|part| !is_label(part)) {
                return Err(HostError::Name {
                    text: text.into(),
                    part: part.into(),
                });
            }
            None
        };
        let text = text.into();
        Ok(Self { text, ip })
    }

    /// The text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The IP address, unless the host is a name.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        self.ip
    }
}

fn is_label(part: &str) -> bool {
    let ok = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&part.len()) && part.bytes().all(ok)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, HostError};
    use alloc::string::ToString;

    #[test]
    fn hosts_are_names_and_addresses_and_stay_as_written() {
        for text in [
            "h",
            "localhost",
            "node-3.rack_1.example.com",
            "10.0.0.7",
            "::1",
            "2001:DB8:0::1",
            "::ffff:1.2.3.4",
            "4u.example",
            "xn--bcher-kva.example",
        ] {
            let host = Host::new(text).unwrap();
            assert_eq!(host.as_str(), text);
            let ip = text.contains(':') || text == "10.0.0.7";
            assert_eq!(host.ip().is_some(), ip, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            " ",
            "a b",
            "a..b",
            ".a",
            "a.",
            "[::1]",
            "fe80::1%eth0",
            "::g",
            "1:2",
            "1.2.3",
            "999.1.1.1",
            "01.2.3.4",
            "1.2.3.4.5",
            "7",
            "a/b",
            "a@b",
            "b\u{fc}cher",
            "a\0",
            &"a".repeat(64),
            &"a.".repeat(127),
        ] {
            Host::new(text).unwrap_err();
        }
        let longest = "a.".repeat(126) + "b";
        assert!(Host::new(&longest).is_ok());
        let len = 254;
        assert_eq!(Host::new(&(longest + "b")), Err(HostError::Length { len }));
        let error = Host::new("1.2.3").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"1.2.3\" ends in a number and is no IPv4 address"
        );
        assert_eq!(
            Host::new(&"a".repeat(300)),
            Err(HostError::Length { len: 300 })
        );
    }
}
