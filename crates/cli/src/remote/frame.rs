//! Frames of the channel between a source and its target.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Longest header, in bytes: a layout of 10^5 fields fits.
pub(crate) const HEADER_LIMIT: u32 = 64 << 20;
/// Longest payload, in bytes.
pub(crate) const PAYLOAD_LIMIT: u32 = 16 << 20;

/// Why there is no frame.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The other side is gone, or is silent for too long.
    #[error("the channel: {0}")]
    Io(#[from] io::Error),
    /// A header longer than any.
    #[error("a header of {len} bytes, at most {HEADER_LIMIT} are read")]
    Header {
        /// Its bytes.
        len: u64,
    },
    /// A payload longer than any.
    #[error("a payload of {len} bytes, at most {PAYLOAD_LIMIT} are read")]
    Payload {
        /// Its bytes.
        len: u64,
    },
    /// A header that is no message.
    #[error("a header that is no message: {0}")]
    Message(#[from] serde_json::Error),
}

/// Writes a frame: bytes of the header and of the payload as little-endian
/// 32-bit numbers, the header as JSON, the payload.
pub(crate) fn write(
    to: &mut impl Write,
    message: &impl Serialize,
    payload: &[u8],
) -> Result<(), FrameError> {
    let header = serde_json::to_vec(message)?;
    let [header_len, payload_len] = lengths(&header, payload)?;
    let mut head = Vec::with_capacity(header.len().saturating_add(8));
    head.extend(header_len.to_le_bytes());
    head.extend(payload_len.to_le_bytes());
    head.extend(header);
    to.write_all(&head)?;
    to.write_all(payload)?;
    Ok(to.flush()?)
}

fn lengths(header: &[u8], payload: &[u8]) -> Result<[u32; 2], FrameError> {
    let short = |bytes: &[u8], limit| u32::try_from(bytes.len()).ok().filter(|len| *len <= limit);
    let long = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let header_len =
        short(header, HEADER_LIMIT).ok_or_else(|| FrameError::Header { len: long(header) })?;
    let payload_len =
        short(payload, PAYLOAD_LIMIT).ok_or_else(|| FrameError::Payload { len: long(payload) })?;
    Ok([header_len, payload_len])
}

/// Reads a frame. Memory grows with what arrives, not with what is announced.
pub(crate) fn read<M: DeserializeOwned>(from: &mut impl Read) -> Result<(M, Vec<u8>), FrameError> {
    let header_len = number(from)?;
    let payload_len = number(from)?;
    if header_len > HEADER_LIMIT {
        let len = u64::from(header_len);
        return Err(FrameError::Header { len });
    }
    if payload_len > PAYLOAD_LIMIT {
        let len = u64::from(payload_len);
        return Err(FrameError::Payload { len });
    }
    let header = bytes(from, header_len)?;
    let payload = bytes(from, payload_len)?;
    Ok((serde_json::from_slice(&header)?, payload))
}

fn number(from: &mut impl Read) -> Result<u32, FrameError> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn bytes(from: &mut impl Read, len: u32) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::new();
    let read = from.take(u64::from(len)).read_to_end(&mut bytes)?;
    if u32::try_from(read).is_ok_and(|read| read == len) {
        Ok(bytes)
    } else {
        Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()))
    }
}

#[cfg(test)]
mod tests {
    use quickcheck::quickcheck;
    use serde_json::{Value, json};

    use super::*;

    quickcheck! {
        fn a_frame_is_read_as_it_was_written(text: String, payload: Vec<u8>, rest: Vec<u8>) -> bool {
            let message = json!({ "text": text });
            let mut wire = Vec::new();
            write(&mut wire, &message, &payload).unwrap();
            wire.extend(&rest);
            let mut from = wire.as_slice();
            let read: (Value, Vec<u8>) = read(&mut from).unwrap();
            read == (message, payload) && from == rest.as_slice()
        }

        fn a_cut_frame_is_an_error(text: String, payload: Vec<u8>, at: usize) -> bool {
            let mut wire = Vec::new();
            write(&mut wire, &text, &payload).unwrap();
            wire.truncate(at.checked_rem(wire.len()).unwrap());
            read::<String>(&mut wire.as_slice()).is_err()
        }

        fn other_bytes_are_no_message(wire: Vec<u8>) -> bool {
            read::<std::collections::BTreeMap<String, u8>>(&mut wire.as_slice()).is_err()
        }
    }

    #[test]
    fn lengths_over_the_limits_are_refused_before_anything_is_read() {
        let wire =
            |header: u32, payload: u32| [header.to_le_bytes(), payload.to_le_bytes()].concat();
        let error = read::<()>(&mut wire(HEADER_LIMIT + 1, 0).as_slice()).unwrap_err();
        assert!(matches!(error, FrameError::Header { len: 67_108_865 }));
        let error = read::<()>(&mut wire(4, PAYLOAD_LIMIT + 1).as_slice()).unwrap_err();
        assert!(matches!(error, FrameError::Payload { len: 16_777_217 }));
    }
}
