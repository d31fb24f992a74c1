//! Messages, as bytes. Their meaning is in the documentation of the parent.

use crate::batch::Operation;
use crate::error::{Side, Violation};

/// Descriptors of one request, 1..=16,384.
pub(super) const MAX_DESCRIPTORS: u32 = 1 << 14;

/// The format this process speaks.
pub(super) const VERSION: u32 = 1;

/// Bytes of every message with a fixed length but [`Request`].
pub(super) const FRAME: usize = 40;

/// Bytes of a [`Request`] without its descriptors.
pub(super) const REQUEST: usize = 16;

/// Bytes of one descriptor of a request.
pub(super) const DESCRIPTOR: usize = 16;

const HELLO: u64 = u64::from_le_bytes(*b"mpdtcp?\n");
const ANSWER: u64 = u64::from_le_bytes(*b"mpdtcp!\n");

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Which engine of which process: random, never 0.
pub(super) type Generation = u64;

/// A connection's name, chosen at random by whoever opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId {
    pub(super) client: Generation,
    pub(super) number: u64,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Transfers.
    Session,
    /// To end the session of that id.
    End,
}

/// The first message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) purpose: Purpose,
    pub(super) session: SessionId,
    /// The generation that it is meant for; 0 is any.
    pub(super) expected: Generation,
}

/// What a hello is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Another version is spoken here.
    Version,
    /// The session is open.
    Welcome,
    /// The session writes and reads nothing any more.
    Ended,
    /// It is not yet sure that the session has ended.
    NotYet,
    /// Another generation is here.
    OtherGeneration,
    /// No room for another session.
    Full,
}

/// The answer to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) version: u32,
    pub(super) verdict: Verdict,
    pub(super) generation: Generation,
    /// The number of the hello.
    pub(super) number: u64,
}

/// A request; its descriptors follow, then the bytes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) operation: Operation,
    /// 1..=[`MAX_DESCRIPTORS`].
    pub(super) count: u32,
    /// Bytes of all descriptors.
    pub(super) bytes: u64,
}

/// What a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// All descriptors are allowed.
    Go,
    /// As many of the first descriptors are done.
    Done { count: u32 },
    /// That descriptor is not allowed; nothing is done for it and those behind.
    Denied { index: u32, violation: Violation },
    /// As many bytes of a read follow, 1...
    Data { len: u64 },
}

/// Reads little-endian numbers from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Result<u32, Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        let (number, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }
}

fn frame(first: u64, second: [u32; 2], rest: [u64; 3]) -> [u8; FRAME] {
    let [second, third] = second.map(u32::to_le_bytes);
    let rest = rest.map(u64::to_le_bytes);
    let mut bytes = [0; FRAME];
    let first = first.to_le_bytes();
    let all = first.iter().chain(&second).chain(&third);
    for (to, from) in bytes.iter_mut().zip(all.chain(rest.iter().flatten())) {
        *to = *from;
    }
    bytes
}

fn split(bytes: &[u8; FRAME]) -> Result<(u64, [u32; 2], [u64; 3]), Malformed> {
    let mut reader = Reader(bytes);
    Ok((
        reader.u64()?,
        [reader.u32()?, reader.u32()?],
        [reader.u64()?, reader.u64()?, reader.u64()?],
    ))
}

impl Hello {
    pub(super) fn encode(self) -> [u8; FRAME] {
        let purpose = match self.purpose {
            Purpose::Session => 1,
            Purpose::End => 2,
        };
        let SessionId { client, number } = self.session;
        let rest = [client, number, self.expected];
        frame(HELLO, [self.version, purpose], rest)
    }

    pub(super) fn decode(bytes: &[u8; FRAME]) -> Result<Self, Malformed> {
        let (magic, [version, purpose], [client, number, expected]) = split(bytes)?;
        let purpose = match purpose {
            1 => Purpose::Session,
            2 => Purpose::End,
            _ => return Err(Malformed),
        };
        if magic != HELLO {
            return Err(Malformed);
        }
        Ok(Self {
            version,
            purpose,
            session: SessionId { client, number },
            expected,
        })
    }
}

impl Answer {
    pub(super) fn encode(self) -> [u8; FRAME] {
        let verdict = match self.verdict {
            Verdict::Version => 0,
            Verdict::Welcome => 1,
            Verdict::Ended => 2,
            Verdict::NotYet => 3,
            Verdict::OtherGeneration => 4,
            Verdict::Full => 5,
        };
        let rest = [self.generation, self.number, 0];
        frame(ANSWER, [self.version, verdict], rest)
    }

    pub(super) fn decode(bytes: &[u8; FRAME]) -> Result<Self, Malformed> {
        let (magic, [version, verdict], [generation, number, zero]) = split(bytes)?;
        let verdict = match verdict {
            0 => Verdict::Version,
            1 => Verdict::Welcome,
            2 => Verdict::Ended,
            3 => Verdict::NotYet,
            4 => Verdict::OtherGeneration,
            5 => Verdict::Full,
            _ => return Err(Malformed),
        };
        if magic != ANSWER || generation == 0 || zero != 0 {
            return Err(Malformed);
        }
        Ok(Self {
            version,
            verdict,
            generation,
            number,
        })
    }
}

impl Request {
    pub(super) fn encode(self) -> [u8; REQUEST] {
        let operation: u32 = match self.operation {
            Operation::Write => 1,
            Operation::Read => 2,
        };
        let mut bytes = [0; REQUEST];
        let (count, len) = (self.count.to_le_bytes(), self.bytes.to_le_bytes());
        let all = operation.to_le_bytes().into_iter().chain(count).chain(len);
        for (to, from) in bytes.iter_mut().zip(all) {
            *to = from;
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8; REQUEST]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let operation = match reader.u32()? {
            1 => Operation::Write,
            2 => Operation::Read,
            _ => return Err(Malformed),
        };
        let count = reader.u32()?;
        if !(1..=MAX_DESCRIPTORS).contains(&count) {
            return Err(Malformed);
        }
        Ok(Self {
            operation,
            count,
            bytes: reader.u64()?,
        })
    }
}

/// `(address, len)` of every descriptor.
pub(super) fn encode_descriptors(descriptors: &[(u64, u64)], into: &mut Vec<u8>) {
    for (address, len) in descriptors {
        into.extend_from_slice(&address.to_le_bytes());
        into.extend_from_slice(&len.to_le_bytes());
    }
}

/// `(address, len)` of every descriptor, about which nothing is known.
pub(super) fn decode_descriptors(bytes: &[u8]) -> Result<Vec<(u64, u64)>, Malformed> {
    let one = |bytes: &[u8]| {
        let mut reader = Reader(bytes);
        Ok((reader.u64()?, reader.u64()?))
    };
    bytes.chunks(DESCRIPTOR).map(one).collect()
}

impl Reply {
    pub(super) fn encode(self) -> [u8; FRAME] {
        match self {
            Self::Go => frame(1, [0, 0], [0; 3]),
            Self::Done { count } => frame(2, [count, 0], [0; 3]),
            Self::Data { len } => frame(4, [0, 0], [len, 0, 0]),
            Self::Denied { index, violation } => {
                let other = |other: usize| u64::try_from(other).unwrap_or(u64::MAX);
                let (code, rest) = match violation {
                    Violation::Empty { address, .. } => (1, [address, 0, 0]),
                    Violation::Unregistered { address, .. } => (2, [address, 0, 0]),
                    Violation::CrossesRegion {
                        address,
                        len,
                        region_end,
                        ..
                    } => (3, [address, len, region_end]),
                    Violation::DestinationTwice { address, other: n } => {
                        (4, [address, other(n), 0])
                    }
                    Violation::DestinationIsSource { address, other: n } => {
                        (5, [address, other(n), 0])
                    }
                };
                frame(3, [index, code], rest)
            }
        }
    }

    pub(super) fn decode(bytes: &[u8; FRAME]) -> Result<Self, Malformed> {
        let (kind, [number, code], [address, len, region_end]) = split(bytes)?;
        let side = Side::Remote;
        let other = || usize::try_from(len).map_err(|_| Malformed);
        Ok(match (kind, code) {
            (1, 0) => Self::Go,
            (2, 0) => Self::Done { count: number },
            (4, 0) => Self::Data { len: address },
            (3, code) => Self::Denied {
                index: number,
                violation: match code {
                    1 => Violation::Empty { side, address },
                    2 => Violation::Unregistered { side, address },
                    3 => Violation::CrossesRegion {
                        side,
                        address,
                        len,
                        region_end,
                    },
                    4 => Violation::DestinationTwice {
                        address,
                        other: other()?,
                    },
                    5 => Violation::DestinationIsSource {
                        address,
                        other: other()?,
                    },
                    _ => return Err(Malformed),
                },
            },
            _ => return Err(Malformed),
        })
    }
}
