//! What prefill says to a pull.

use alloc::string::String;
use alloc::vec::Vec;

use super::error::{DecodeError, EncodeError, Place};
use super::limits::Limits;
use super::pull::{LayoutId, read_layout_id};
use super::reader::Reader;
use super::version::Version;
use super::writer::Writer;
use crate::id::RequestId;

const STATUS: &str = "status";
const OK: &str = "ok_reqs";
const FAILED: &str = "err_reqs";
const MESSAGE: &str = "err_msg";
const LAYOUT_ID: &str = "layout_id";

/// A prefill rank's message to the decode rank that pulled. A pull gets any number of answers;
/// the first that is the last, an error or a miss ends it.
///
/// On the wire it is one msgpack map with `status`, and, unless they are empty, `ok_reqs`,
/// `err_reqs`, `err_msg` and `layout_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Status 1, or 0 if it is the last: some requests are done.
    Progress(Progress),
    /// Status 2: nothing of the pull will be served.
    Error {
        /// Why, for people.
        message: Option<String>,
    },
    /// Status 3, not in 0.32: the pull left out a layout that is not known here. Pull again with
    /// it.
    LayoutMiss {
        /// Why, for people.
        message: Option<String>,
    },
}

/// Requests of a pull that are done.
///
/// 0.33 counts a request that no answer names as failed, 0.32 waits for it: name every one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the pull is over.
    pub last: bool,
    /// Requests whose blocks are written, or released.
    pub ok: Vec<RequestId>,
    /// Requests that failed. Nothing keeps a peer from naming one in both lists.
    pub failed: Vec<RequestId>,
    /// Why, for people.
    pub message: Option<String>,
    /// The pull's layout id, once the layout is known here; the next pull may leave it out.
    pub layout_id: Option<LayoutId>,
}

impl Answer {
    /// Reads one, as 0.33's decode does: keys in any order, unknown keys skipped, nil where a
    /// list or the message is left out, of a repeated key the last value.
    pub fn decode(message: &[u8], limits: &Limits) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(message, limits.message_bytes)?;
        let mut status = None;
        let mut found = Progress::default();
        for _ in 0..reader.map(Place::MESSAGE)? {
            match reader.key()? {
                b"status" => status = Some(reader.int(Place::key(STATUS))?),
                b"ok_reqs" => found.ok = names(OK, &mut reader, limits)?,
                b"err_reqs" => found.failed = names(FAILED, &mut reader, limits)?,
                b"err_msg" => {
                    let text = (!reader.nil()).then(|| reader.text(Place::key(MESSAGE)));
                    found.message = text.transpose()?.map(String::from);
                }
                b"layout_id" => found.layout_id = read_layout_id(&mut reader)?,
                _ => reader.skip(Place::key("an unknown key"))?,
            }
        }
        reader.end()?;
        let status = status.ok_or(DecodeError::Missing { key: STATUS })?;
        let Progress { message, .. } = &mut found;
        match status {
            0 | 1 => {
                found.last = status == 0;
                Ok(Self::Progress(found))
            }
            2 => Ok(Self::Error {
                message: message.take(),
            }),
            3 => Ok(Self::LayoutMiss {
                message: message.take(),
            }),
            found => Err(DecodeError::Status { found }),
        }
    }

    /// Writes the bytes that a stock prefill rank of this release writes. 0.32 has no layout
    /// ids: they are left out.
    ///
    /// # Errors
    /// The release has no such status.
    pub fn encode(&self, version: Version) -> Result<Vec<u8>, EncodeError> {
        let (status, progress, message) = match self {
            Self::Progress(progress) => {
                let status = u8::from(!progress.last);
                (status, Some(progress), progress.message.as_deref())
            }
            Self::Error { message } => (2, None, message.as_deref()),
            Self::LayoutMiss { .. } if version == Version::V032 => {
                let what = "answer that a layout is unknown";
                return Err(EncodeError::Unknown { version, what });
            }
            Self::LayoutMiss { message } => (3, None, message.as_deref()),
        };
        let ok = progress.map_or(&[][..], |progress| &progress.ok);
        let failed = progress.map_or(&[][..], |progress| &progress.failed);
        let layout_id = progress
            .filter(|_| version == Version::V033)
            .and_then(|progress| progress.layout_id);
        let present = [
            !ok.is_empty(),
            !failed.is_empty(),
            message.is_some(),
            layout_id.is_some(),
        ];
        let keys = present.into_iter().filter(|present| *present).count();
        let mut to = Writer::default();
        to.map("the answer", keys.saturating_add(1))?;
        to.text(STATUS, STATUS)?;
        to.number(status);
        for (key, names) in [(OK, ok), (FAILED, failed)] {
            if !names.is_empty() {
                to.text(key, key)?;
                to.array(key, names.len())?;
                names
                    .iter()
                    .try_for_each(|name| to.text(key, name.as_str()))?;
            }
        }
        if let Some(message) = message {
            to.text(MESSAGE, MESSAGE)?;
            to.text(MESSAGE, message)?;
        }
        if let Some(layout_id) = layout_id {
            to.text(LAYOUT_ID, LAYOUT_ID)?;
            to.number(layout_id.get());
        }
        Ok(to.finish())
    }
}

fn names(
    key: &'static str,
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<Vec<RequestId>, DecodeError> {
    if reader.nil() {
        return Ok(Vec::new());
    }
    let at = Place::key(key);
    let count = reader.bounded(at, limits.requests)?;
    let mut names = Vec::with_capacity(count);
    for position in 0..count {
        let at = at.at(position);
        let name = RequestId::new(reader.text(at)?);
        names.push(name.map_err(|error| DecodeError::Id { at, error })?);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::Answer;
    use crate::wire::{DecodeError, LayoutId, Limits, Version};
    use alloc::string::ToString;

    fn decode(message: &[u8]) -> Result<Answer, DecodeError> {
        Answer::decode(message, &Limits::default())
    }

    /// `{"status": <status>, <rest>}`
    fn answer(entries: u8, status: u8, rest: &[u8]) -> Result<Answer, DecodeError> {
        decode(&[&[0x80 | entries, 0xa6], &b"status"[..], &[status], rest].concat())
    }

    fn progress(answer: Result<Answer, DecodeError>) -> super::Progress {
        match answer.unwrap() {
            Answer::Progress(progress) => progress,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unknown_keys_and_nil_lists_are_taken() {
        let plain = progress(answer(1, 0, &[]));
        assert!(plain.last && plain.ok.is_empty() && plain.failed.is_empty());
        assert_eq!(progress(answer(2, 0, b"\xa3new\x93\x01\x02\xc0")), plain);
        let nil = answer(4, 0, b"\xa7ok_reqs\xc0\xa8err_reqs\x90\xa7err_msg\xc0");
        assert_eq!(progress(nil), plain);
        assert_eq!(progress(answer(2, 0, b"\xa9layout_id\x00")), plain);
        assert!(!progress(answer(1, 1, &[])).last);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let text = |answer: Result<Answer, DecodeError>| answer.unwrap_err().to_string();
        assert_eq!(text(answer(1, 4, &[])), "status 4 is outside 0..=3");
        assert_eq!(text(answer(1, 0xff, &[])), "status -1 is outside 0..=3");
        assert_eq!(
            text(answer(1, 0xc3, &[])),
            "status is a bool, not an integer"
        );
        assert_eq!(text(decode(&[0x80])), "there is no status");
        assert_eq!(text(decode(&[0x91, 0])), "the message is a list, not a map");
        assert_eq!(
            text(answer(2, 0, b"\xa7ok_reqs\x91\xc0")),
            "ok_reqs[0] is nil, not a text"
        );
        assert_eq!(
            text(answer(2, 0, b"\xa8err_reqs\x80")),
            "err_reqs is a map, not a list"
        );
        assert_eq!(
            text(answer(2, 0, b"\xa7err_msg\x00")),
            "err_msg is an integer, not a text"
        );
        assert_eq!(
            text(answer(2, 0, b"\xa9layout_id\xc0")),
            "layout_id is nil, not an integer"
        );
        assert_eq!(
            text(answer(2, 0, b"\xa7ok_reqs\x91\xa0")),
            "ok_reqs[0]: request id of 0 bytes is outside 1..=256"
        );
        assert_eq!(text(answer(1, 0, &[0])), "1 bytes follow the message's 9");
    }

    #[test]
    fn lists_are_bounded() {
        let limits = Limits {
            requests: 1,
            ..Limits::default()
        };
        let two = b"\x82\xa6status\x00\xa7ok_reqs\x92\xa1a\xa1b";
        let error = Answer::decode(two, &limits).unwrap_err();
        assert_eq!(error.to_string(), "2 entries of ok_reqs are more than 1");
    }

    #[test]
    fn the_older_version_has_neither_layout_ids_nor_misses() {
        let message = Some("m".into());
        let miss = Answer::LayoutMiss { message };
        let error = miss.encode(Version::V032).unwrap_err();
        let text = "vLLM 0.32 has no answer that a layout is unknown";
        assert_eq!(error.to_string(), text);
        let done = Answer::Progress(super::Progress {
            last: true,
            layout_id: LayoutId::new(1),
            ..super::Progress::default()
        });
        assert_eq!(done.encode(Version::V032).unwrap(), b"\x81\xa6status\x00");
        let newer = b"\x82\xa6status\x00\xa9layout_id\x01";
        assert_eq!(done.encode(Version::V033).unwrap(), newer);
    }
}
