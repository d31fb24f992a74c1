//! How a prefill worker makes itself known.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mooncake_pd_layout::JsonError;
use serde::{Deserialize, Serialize};

use super::address::{Address, AddressError};
use super::json::{TextError, from_json};
use super::limits::Limits;
use super::rank::Rank;
use crate::id::{EngineId, IdError};

/// Most bytes of a worker's address.
const MAX_ADDRESS: usize = 512;

/// Where a worker says it listens, 1..=512 bytes.
///
/// Stock servers hand on any text. Whether it is an address, whoever wants to go there finds
/// out: one bad worker doesn't hide the others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerAddr(Arc<str>);

impl WorkerAddr {
    /// Takes a text of 1 to 512 bytes.
    ///
    /// # Errors
    /// An empty or longer text.
    pub fn new(text: &str) -> Result<Self, WorkerAddrError> {
        match text.len() {
            1..=MAX_ADDRESS => Ok(Self(text.into())),
            len => Err(WorkerAddrError { len }),
        }
    }

    /// The text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address that it is.
    ///
    /// # Errors
    /// It is not `tcp://host:port`.
    pub fn address(&self) -> Result<Address, AddressError> {
        Address::worker(&self.0)
    }
}

impl fmt::Display for WorkerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for WorkerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A text that can't be a worker's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker address of {len} bytes is outside 1..=512")]
pub struct WorkerAddrError {
    /// Its length in bytes.
    pub len: usize,
}

/// Body of `POST /register`: `{"engine_id":"...","dp_rank":0,"tp_rank":0,"pp_rank":0,"addr":"tcp://..."}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The worker's engine; each data-parallel rank is one of its own.
    pub engine: EngineId,
    /// Data-parallel rank.
    pub dp_rank: Rank,
    /// Tensor-parallel rank.
    pub tp_rank: Rank,
    /// Pipeline-parallel rank.
    pub pp_rank: Rank,
    /// Where it listens for pulls.
    pub addr: WorkerAddr,
}

/// Why a text is no JSON message of the bootstrap server. Who sent it is at fault, or our
/// [`Limits`] are too narrow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// It is too long, or no JSON of this form.
    #[error(transparent)]
    Text(#[from] TextError),
    /// It names more workers than are taken.
    #[error("{count} workers are more than {limit}")]
    TooMany {
        /// Its workers.
        count: usize,
        /// Most workers.
        limit: u32,
    },
    /// Its engine has no name that we could know.
    #[error("engine_id: {0}")]
    Engine(#[from] IdError),
    /// A worker's address is none.
    #[error("{key}: {error}")]
    Address {
        /// The key it stands under.
        key: &'static str,
        /// What is wrong.
        error: WorkerAddrError,
    },
}

/// The body as serde sees it.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    engine_id: Cow<'a, str>,
    dp_rank: Rank,
    tp_rank: Rank,
    pp_rank: Rank,
    #[serde(borrow)]
    addr: Cow<'a, str>,
}

impl Register {
    /// Reads a body. Ranks may be texts and unknown keys are skipped, as stock servers do;
    /// unlike there, a key that is repeated, and a rank that is a float, a bool or negative, is
    /// refused.
    pub fn decode(body: &[u8], limits: &Limits) -> Result<Self, BootstrapError> {
        let body: Body<'_> = from_json(body, limits)?;
        let addr = WorkerAddr::new(&body.addr);
        Ok(Self {
            engine: EngineId::new(&body.engine_id)?,
            dp_rank: body.dp_rank,
            tp_rank: body.tp_rank,
            pp_rank: body.pp_rank,
            addr: addr.map_err(|error| BootstrapError::Address { key: "addr", error })?,
        })
    }

    /// Writes the body that a stock worker sends.
    ///
    /// # Errors
    /// None that is known.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        let body = Body {
            engine_id: self.engine.as_str().into(),
            dp_rank: self.dp_rank,
            tp_rank: self.tp_rank,
            pp_rank: self.pp_rank,
            addr: self.addr.as_str().into(),
        };
        Ok(serde_json::to_vec(&body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{BootstrapError, Register, WorkerAddrError};
    use crate::id::EngineId;
    use crate::wire::{Directory, Limits, TextError};
    use alloc::string::ToString;

    const BODY: &str =
        r#"{"engine_id":"e","dp_rank":0,"tp_rank":1,"pp_rank":2,"addr":"tcp://h:1"}"#;

    fn decode(text: &str) -> Result<Register, BootstrapError> {
        Register::decode(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_body_is_an_object_with_five_keys() {
        let worker = decode(BODY).unwrap();
        assert_eq!(worker.encode().unwrap(), BODY.as_bytes());
        let spaced = BODY
            .replace(':', " : ")
            .replace("tcp : ", "tcp:")
            .replace("h : 1", "h:1");
        let extra = BODY.replace('}', r#","more":{"x":[1]}}"#);
        let texts = BODY.replace(":1,", r#":"1","#);
        for text in [spaced, extra, texts] {
            assert_eq!(decode(&text).as_ref(), Ok(&worker), "{text}");
        }
        for key in ["engine_id", "dp_rank", "tp_rank", "pp_rank", "addr"] {
            let error = decode(&BODY.replace(key, "other")).unwrap_err().to_string();
            assert!(
                error.contains(&alloc::format!("missing field `{key}`")),
                "{error}"
            );
        }
        for text in [
            r#"["e",0,1,2,"tcp://h:1"]"#,
            "null",
            "",
            "7",
            &BODY[1..],
            &alloc::format!("{BODY}x"),
        ] {
            assert!(
                matches!(decode(text), Err(BootstrapError::Text(TextError::Json(_)))),
                "{text}"
            );
        }
    }

    #[test]
    fn names_and_addresses_are_bounded() {
        let error = decode(&BODY.replace("\"e\"", "\"\"")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "engine_id: engine id of 0 bytes is outside 1..=256"
        );
        let long = BODY.replace("tcp://h:1", &"x".repeat(513));
        let (key, error) = ("addr", WorkerAddrError { len: 513 });
        assert_eq!(decode(&long), Err(BootstrapError::Address { key, error }));
        assert!(decode(&BODY.replace("tcp://h:1", &"x".repeat(512))).is_ok());
    }

    #[test]
    fn a_directory_is_objects_all_the_way_down() {
        let text = r#"{"0":{"engine_id":"e","worker_addr":{"1":{"2":"tcp://h:1"}}}}"#;
        let decode = |text: &str, limits| Directory::decode(text.as_bytes(), limits);
        let wide = &Limits::default();
        assert_eq!(
            decode(text, wide).unwrap().encode().unwrap(),
            text.as_bytes()
        );
        for (right, wrong) in [
            (text, r#"{"0":["e",{}]}"#),
            (text, "[]"),
            (r#"{"2":"tcp://h:1"}"#, "[]"),
            (r#"{"2":"tcp://h:1"}"#, "null"),
            (r#""tcp://h:1""#, "1"),
            (r#""tcp://h:1""#, r#""""#),
            (r#""e""#, r#""""#),
            (r#""e""#, "1"),
            (r#""0""#, r#""x""#),
            (r#""1""#, r#""-1""#),
            ("engine_id", "engine"),
            ("worker_addr", "workers"),
        ] {
            let text = text.replacen(right, wrong, 1);
            assert!(decode(&text, wide).is_err(), "{text}");
        }
        let again = text.replace("}}}}", r#"}}},"1":{"engine_id":"e","worker_addr":{}}}"#);
        let again = decode(&again, wide).unwrap();
        let last = again.engine(&EngineId::new("e").unwrap()).unwrap();
        assert_eq!((again.engines().len(), last.tp_size()), (2, 0));
        let two = text.replace(r#""2":"tcp://h:1""#, r#""2":"a","3":"b""#);
        let narrow = &Limits { ranks: 1, ..*wide };
        assert!(decode(text, narrow).is_ok());
        let error = decode(&two, narrow).unwrap_err();
        assert_eq!(error.to_string(), "2 workers are more than 1");
    }
}
