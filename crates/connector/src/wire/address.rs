//! Addresses in the forms that peers, routers and settings give them.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroU16;

use super::host::{Host, HostError};

/// Most bytes of an address.
const MAX_BYTES: usize = 272;

/// What comes before the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `tcp://`, a worker's message socket.
    Tcp,
    /// `http://`, a bootstrap server.
    Http,
    /// `https://`, a bootstrap server behind TLS.
    Https,
}

impl Scheme {
    /// The text before `://`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means.
    const fn port(self) -> Option<NonZeroU16> {
        match self {
            Self::Tcp => None,
            Self::Http => NonZeroU16::new(80),
            Self::Https => NonZeroU16::new(443),
        }
    }
}

/// Why a text is not the address it has to be. Whoever wrote it is at fault: a peer, a router or
/// a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Empty or too long.
    #[error("an address of {len} bytes is outside 1..=272")]
    Length {
        /// Its bytes.
        len: usize,
    },
    /// It begins with something else.
    #[error("{text:?} does not begin with {expected}")]
    Scheme {
        /// The text.
        text: String,
        /// What it has to begin with.
        expected: &'static str,
    },
    /// Its host is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Brackets are for an IPv6 address, and an IPv6 address needs them.
    #[error("{text:?} is not `host:port` or `[IPv6]:port`")]
    Brackets {
        /// The text after the scheme.
        text: String,
    },
    /// It has no port, and its use has no usual one.
    #[error("{text:?} has no port")]
    NoPort {
        /// The text.
        text: String,
    },
    /// Its port is no number in 1..=65535, or is followed by something.
    #[error("port {port:?} of {text:?} is outside 1..=65535")]
    Port {
        /// The text.
        text: String,
        /// The text after the colon.
        port: String,
    },
}

/// A host and a port, in one of the forms below; neither path, query nor user is part of it.
///
/// It is shown exactly as it was written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    text: Arc<str>,
    scheme: Option<Scheme>,
    host: Host,
    port: NonZeroU16,
}

impl Address {
    /// A worker's message socket, `tcp://host:port` or `tcp://[2001:db8::1]:port`.
    ///
    /// # Errors
    /// Any other text; the port is not optional.
    pub fn worker(text: &str) -> Result<Self, AddressError> {
        Self::new(text, &[Scheme::Tcp], "tcp://")
    }

    /// A bootstrap server, `http://host:port`; port 80 if it has none, 443 with `https`.
    ///
    /// # Errors
    /// Any other text, also one with a path: stock peers put `/query` behind it.
    pub fn bootstrap(text: &str) -> Result<Self, AddressError> {
        let schemes = [Scheme::Http, Scheme::Https];
        Self::new(text, &schemes, "http:// or https://")
    }

    /// What a setting names, `host:port`, `1.2.3.4:port` or `[2001:db8::1]:port`.
    ///
    /// # Errors
    /// Any other text; the port is not optional.
    pub fn endpoint(text: &str) -> Result<Self, AddressError> {
        Self::new(text, &[], "")
    }

    fn new(text: &str, schemes: &[Scheme], expected: &'static str) -> Result<Self, AddressError> {
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(AddressError::Length { len: text.len() });
        }
        let (scheme, rest) = match schemes {
            [] => (None, text),
            schemes => schemes
                .iter()
                .find_map(|scheme| {
                    let rest = text.strip_prefix(scheme.as_str())?.strip_prefix("://")?;
                    Some((Some(*scheme), rest))
                })
                .ok_or_else(|| AddressError::Scheme {
                    text: text.into(),
                    expected,
                })?,
        };
        let brackets = || AddressError::Brackets { text: rest.into() };
        let (host, port) = if let Some(inside) = rest.strip_prefix('[') {
            let (host, rest) = inside.split_once(']').ok_or_else(brackets)?;
            if !host.contains(':') {
                return Err(brackets());
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(brackets()),
            }
        } else {
            match rest.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(brackets()),
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        let host = Host::new(host)?;
        let port = match port {
            Some(port) => parse_port(port).ok_or_else(|| AddressError::Port {
                text: text.into(),
                port: port.into(),
            })?,
            None => scheme
                .and_then(Scheme::port)
                .ok_or_else(|| AddressError::NoPort { text: text.into() })?,
        };
        Ok(Self {
            text: text.into(),
            scheme,
            host,
            port,
        })
    }

    /// The text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it begins with; none for an endpoint.
    #[must_use]
    pub const fn scheme(&self) -> Option<Scheme> {
        self.scheme
    }

    /// The host, without brackets.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port, 1..=65535.
    #[must_use]
    pub const fn port(&self) -> NonZeroU16 {
        self.port
    }
}

/// Digits without sign and leading zero.
fn parse_port(text: &str) -> Option<NonZeroU16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !text.starts_with('0')).then(|| text.parse().ok())?
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, AddressError, Scheme};
    use alloc::string::ToString;

    type Parse = fn(&str) -> Result<Address, AddressError>;

    #[test]
    fn c65_addresses_are_parsed_exactly() {
        let cases: [(Parse, &str, &str, u16, Option<Scheme>); 12] = [
            (
                Address::endpoint,
                "[2001:db8::1]:9000",
                "2001:db8::1",
                9000,
                None,
            ),
            (Address::endpoint, "host:1", "host", 1, None),
            (Address::endpoint, "1.2.3.4:65535", "1.2.3.4", 65535, None),
            (
                Address::worker,
                "tcp://127.0.0.1:41234",
                "127.0.0.1",
                41234,
                Some(Scheme::Tcp),
            ),
            (
                Address::worker,
                "tcp://[::1]:41237",
                "::1",
                41237,
                Some(Scheme::Tcp),
            ),
            (
                Address::worker,
                "tcp://node-1:80",
                "node-1",
                80,
                Some(Scheme::Tcp),
            ),
            (
                Address::bootstrap,
                "http://p.example:8998",
                "p.example",
                8998,
                Some(Scheme::Http),
            ),
            (
                Address::bootstrap,
                "http://1.2.3.4",
                "1.2.3.4",
                80,
                Some(Scheme::Http),
            ),
            (
                Address::bootstrap,
                "http://[::1]",
                "::1",
                80,
                Some(Scheme::Http),
            ),
            (
                Address::bootstrap,
                "http://[::1]:8998",
                "::1",
                8998,
                Some(Scheme::Http),
            ),
            (
                Address::bootstrap,
                "https://p",
                "p",
                443,
                Some(Scheme::Https),
            ),
            (
                Address::bootstrap,
                "https://p:1",
                "p",
                1,
                Some(Scheme::Https),
            ),
        ];
        for (parse, text, host, port, scheme) in cases {
            let address = parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.host().as_str(), host);
            assert_eq!(address.port().get(), port);
            assert_eq!(address.scheme(), scheme);
        }
    }

    #[test]
    fn c65_or_they_are_refused() {
        let no_port = AddressError::NoPort {
            text: "1.2.3.4".into(),
        };
        assert_eq!(Address::endpoint("1.2.3.4"), Err(no_port));
        for text in [
            "",
            ":1",
            "host:",
            "host:0",
            "host:65536",
            "host:01",
            "host:+1",
            "host: 1",
            "host:1 ",
            "host:1/",
            "host:1/x",
            "host",
            "2001:db8::1",
            "2001:db8::1:9000",
            "[2001:db8::1]",
            "[2001:db8::1]9000",
            "[2001:db8::1]:",
            "[::1",
            "::1]:1",
            "[host]:1",
            "[1.2.3.4]:1",
            "[]:1",
            "a@b:1",
            "tcp://host:1",
            "//host:1",
            "host:1:2",
            "host:\u{0661}",
        ] {
            let refused = Address::endpoint(text).unwrap_err();
            assert!(!refused.to_string().is_empty());
        }
        for text in [
            "host:1",
            "http://host:1",
            "tcp:/host:1",
            "TCP://host:1",
            "tcp://host",
            "tcp://*:1",
            "not-an-address",
        ] {
            Address::worker(text).unwrap_err();
        }
        for text in [
            "host:1",
            "tcp://host:1",
            "http://host:1/",
            "http://host:1/query",
            "http://u@host:1",
            "http://",
        ] {
            Address::bootstrap(text).unwrap_err();
        }
    }

    #[test]
    fn a_refusal_names_what_was_found() {
        let error = Address::worker("host:1").unwrap_err();
        assert_eq!(error.to_string(), "\"host:1\" does not begin with tcp://");
        let error = Address::endpoint("host:70000").unwrap_err();
        assert_eq!(
            error.to_string(),
            "port \"70000\" of \"host:70000\" is outside 1..=65535"
        );
        let error = Address::endpoint(&"h".repeat(273)).unwrap_err();
        assert_eq!(error, AddressError::Length { len: 273 });
    }
}
