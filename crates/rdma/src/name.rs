//! The names of peers.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::str::FromStr;

/// Characters of a host's name, 1..=253 (RFC 1035).
const HOST_LIMIT: usize = 253;

/// Why a text names no peer. The caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerNameError {
    /// Nothing behind the host.
    #[error("`{name}` has no port; a peer is named `host:port` or `[v6]:port`")]
    NoPort {
        /// The text.
        name: String,
    },
    /// What is behind the host is no port.
    #[error("port `{port}` of `{name}` is outside 1..65536")]
    Port {
        /// The text.
        name: String,
        /// What stands for the port.
        port: String,
    },
    /// An IPv6 address without brackets: its end and the port can't be told apart.
    #[error("`{name}` has more than one colon; write an IPv6 address as `[v6]:port`")]
    Brackets {
        /// The text.
        name: String,
    },
    /// What stands in brackets is no IPv6 address.
    #[error("`{host}` of `{name}` is no IPv6 address")]
    Ipv6 {
        /// The text.
        name: String,
        /// What stands in brackets.
        host: String,
    },
    /// No address and no host name either.
    #[error("`{host}` of `{name}` is neither an address nor a host name")]
    Host {
        /// The text.
        name: String,
        /// What stands for the host.
        host: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Name(String),
}

/// A peer: `host:port`, `a.b.c.d:port` or `[v6]:port`, port 1..65536.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerName {
    host: Host,
    port: NonZeroU16,
}

impl PeerName {
    /// Its port, 1..65536.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.get()
    }
}

impl FromStr for PeerName {
    type Err = PeerNameError;

    fn from_str(name: &str) -> Result<Self, PeerNameError> {
        let owned = || name.to_owned();
        let (host, port) = if let Some(rest) = name.strip_prefix('[') {
            let (host, port) = rest
                .split_once("]:")
                .ok_or_else(|| PeerNameError::NoPort { name: owned() })?;
            let parsed = host.parse().map_err(|_| PeerNameError::Ipv6 {
                name: owned(),
                host: host.to_owned(),
            })?;
            (Host::V6(parsed), port)
        } else {
            let (host, port) = name
                .split_once(':')
                .ok_or_else(|| PeerNameError::NoPort { name: owned() })?;
            if port.contains(':') {
                return Err(PeerNameError::Brackets { name: owned() });
            }
            let parsed = parse_host(host).ok_or_else(|| PeerNameError::Host {
                name: owned(),
                host: host.to_owned(),
            })?;
            (parsed, port)
        };
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| PeerNameError::Port {
                name: owned(),
                port: port.to_owned(),
            })?;
        Ok(Self { host, port })
    }
}

fn parse_host(host: &str) -> Option<Host> {
    if let Ok(address) = host.parse() {
        return Some(Host::V4(address));
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A name whose last label is a number is a misspelt address.
    let last = host.rsplit('.').next().unwrap_or(host);
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit());
    let good = host.len() <= HOST_LIMIT && !numeric && host.split('.').all(label);
    good.then(|| Host::Name(host.to_owned()))
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::V4(address) => write!(f, "{address}:{}", self.port),
            Host::V6(address) => write!(f, "[{address}]:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    #[test]
    fn c65_names_are_parsed_exactly_or_refused() {
        let good = [
            "[2001:db8::1]:9000",
            "host:1",
            "1.2.3.4:65535",
            "a-b.example_1.org:80",
        ];
        for name in good {
            assert_eq!(name.parse::<PeerName>().unwrap().to_string(), name);
        }
        let refused = |name: &str| name.parse::<PeerName>().unwrap_err();
        assert!(matches!(refused("1.2.3.4"), PeerNameError::NoPort { .. }));
        assert!(matches!(refused(""), PeerNameError::NoPort { .. }));
        assert!(matches!(refused("[::1]"), PeerNameError::NoPort { .. }));
        assert!(matches!(refused("[::1"), PeerNameError::NoPort { .. }));
        assert!(matches!(
            refused("2001:db8::1:9000"),
            PeerNameError::Brackets { .. }
        ));
        assert!(matches!(refused("[1.2.3.4]:1"), PeerNameError::Ipv6 { .. }));
        assert!(matches!(
            refused("[fe80::1%eth0]:1"),
            PeerNameError::Ipv6 { .. }
        ));
        for port in ["", "0", "65536", "+1", "1 ", "-1", "0x10"] {
            let error = refused(&format!("host:{port}"));
            assert!(matches!(&error, PeerNameError::Port { port: found, .. } if found == port));
        }
        for host in ["", "1.2.3", "1.2.3.256", "a..b", "-a", "a b", "a/b", "ä"] {
            assert!(matches!(
                refused(&format!("{host}:1")),
                PeerNameError::Host { .. }
            ));
        }
    }

    quickcheck! {
        fn what_parses_is_printed_so_that_it_parses_to_the_same(text: String) -> bool {
            match text.parse::<PeerName>() {
                Ok(name) => name.to_string().parse() == Ok(name),
                Err(_) => true,
            }
        }

        fn every_socket_address_parses_to_itself(v6: bool, bits: u128, port: u16) -> bool {
            let address = if v6 {
                format!("[{}]:{port}", Ipv6Addr::from(bits))
            } else {
                let [a, b, c, d, ..] = bits.to_le_bytes();
                format!("{}:{port}", Ipv4Addr::from([a, b, c, d]))
            };
            match address.parse::<PeerName>() {
                Ok(name) => name.to_string() == address && name.port() == port,
                Err(_) => port == 0,
            }
        }
    }
}
