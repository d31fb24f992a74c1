//! What a router tells the two engines of one request.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use mooncake_pd_layout::JsonError;
use serde::{Deserialize, Serialize};

use super::address::{Address, AddressError};
use super::json::{TextError, from_json};
use super::limits::Limits;
use crate::id::{EngineId, IdError, TransferId};

/// `kv_transfer_params` of one request, as the Mooncake connector reads them. The connector
/// itself returns none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Params {
    /// Neither `do_remote_decode` nor `do_remote_prefill` is true: nothing is transferred, or
    /// stock decode has taken the parameters up already.
    Local,
    /// `do_remote_decode`: this engine prefills, another one decodes.
    Prefill(PrefillParams),
    /// `do_remote_prefill`: another engine prefills, this one decodes.
    Decode(DecodeParams),
}

/// Parameters of a request to prefill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefillParams {
    /// What both engines call the hand-over.
    pub transfer: TransferId,
    /// `_p_side_truncated`: the last elements of the prompt are held back already.
    pub held_back: bool,
}

/// Parameters of a request to decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeParams {
    /// What both engines call the hand-over.
    pub transfer: TransferId,
    /// The engine that prefills, as its bootstrap server names it.
    pub engine: EngineId,
    /// The bootstrap server of that engine.
    pub bootstrap: Address,
}

/// Why parameters are none. The router is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// They are too long, or no JSON of this form.
    #[error(transparent)]
    Text(#[from] TextError),
    /// One request can't go both ways.
    #[error("do_remote_decode and do_remote_prefill are both true")]
    Both,
    /// A key is missing.
    #[error("there is no {key} besides {role}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The key that asks for it.
        role: &'static str,
    },
    /// A name is none.
    #[error("{key}: {error}")]
    Id {
        /// Its key.
        key: &'static str,
        /// What is wrong with it.
        error: IdError,
    },
    /// The bootstrap server has no address.
    #[error("remote_bootstrap_addr: {0}")]
    Bootstrap(#[from] AddressError),
}

/// The object as serde sees it.
#[derive(Default, Serialize, Deserialize)]
struct Raw<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    do_remote_decode: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    do_remote_prefill: Option<bool>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    transfer_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    remote_engine_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    remote_bootstrap_addr: Option<Cow<'a, str>>,
    #[serde(
        rename = "_p_side_truncated",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    held_back: Option<bool>,
}

const TRANSFER: &str = "transfer_id";
const ENGINE: &str = "remote_engine_id";
const BOOTSTRAP: &str = "remote_bootstrap_addr";

impl Params {
    /// Reads the object. Null is as good as absent, unknown keys are skipped; flags are bools.
    ///
    /// Stock prefill serves a request without `transfer_id` alone and sends nothing; here it is
    /// an error at once, since its decode would wait for nothing.
    pub fn decode(text: &[u8], limits: &Limits) -> Result<Self, ParamsError> {
        let raw: Raw<'_> = from_json(text, limits)?;
        let [prefill, decode] =
            [raw.do_remote_decode, raw.do_remote_prefill].map(Option::unwrap_or_default);
        let role = match (prefill, decode) {
            (false, false) => return Ok(Self::Local),
            (true, true) => return Err(ParamsError::Both),
            (true, false) => "do_remote_decode",
            (false, true) => "do_remote_prefill",
        };
        let missing = |key| ParamsError::Missing { key, role };
        let wrong = |key| move |error| ParamsError::Id { key, error };
        let transfer = raw.transfer_id.ok_or(missing(TRANSFER))?;
        let transfer = TransferId::new(&transfer).map_err(wrong(TRANSFER))?;
        if prefill {
            let held_back = raw.held_back.unwrap_or_default();
            return Ok(Self::Prefill(PrefillParams {
                transfer,
                held_back,
            }));
        }
        let engine = raw.remote_engine_id.ok_or(missing(ENGINE))?;
        let bootstrap = raw.remote_bootstrap_addr.ok_or(missing(BOOTSTRAP))?;
        Ok(Self::Decode(DecodeParams {
            transfer,
            engine: EngineId::new(&engine).map_err(wrong(ENGINE))?,
            bootstrap: Address::bootstrap(&bootstrap)?,
        }))
    }

    /// Writes the object that a router sends.
    ///
    /// # Errors
    /// None that is known.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        let raw = match self {
            Self::Local => Raw::default(),
            Self::Prefill(prefill) => Raw {
                do_remote_decode: Some(true),
                transfer_id: Some(prefill.transfer.as_str().into()),
                held_back: prefill.held_back.then_some(true),
                ..Raw::default()
            },
            Self::Decode(decode) => Raw {
                do_remote_prefill: Some(true),
                transfer_id: Some(decode.transfer.as_str().into()),
                remote_engine_id: Some(decode.engine.as_str().into()),
                remote_bootstrap_addr: Some(decode.bootstrap.as_str().into()),
                ..Raw::default()
            },
        };
        Ok(serde_json::to_vec(&raw)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{Params, ParamsError, PrefillParams};
    use crate::id::TransferId;
    use crate::wire::Limits;
    use alloc::string::ToString;

    fn decode(text: &str) -> Result<Params, ParamsError> {
        Params::decode(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn parameters_say_which_side_an_engine_is() {
        let text = r#"{"do_remote_prefill":true,"transfer_id":"t","remote_engine_id":"e_dp1","remote_bootstrap_addr":"http://h:8998"}"#;
        let Params::Decode(params) = decode(text).unwrap() else {
            panic!("decode")
        };
        assert_eq!(params.transfer.as_str(), "t");
        assert_eq!(params.engine.as_str(), "e_dp1");
        assert_eq!(params.bootstrap.host().as_str(), "h");
        assert_eq!(Params::Decode(params).encode().unwrap(), text.as_bytes());

        let transfer = TransferId::new("t").unwrap();
        for held_back in [false, true] {
            let transfer = transfer.clone();
            let params = Params::Prefill(PrefillParams {
                transfer,
                held_back,
            });
            let text = params.encode().unwrap();
            assert_eq!(Params::decode(&text, &Limits::default()), Ok(params));
        }
        let text = r#"{"do_remote_decode":true,"do_remote_prefill":false,"x":[1],"transfer_id":"t","_p_side_truncated":true}"#;
        let held_back = true;
        let params = Params::Prefill(PrefillParams {
            transfer,
            held_back,
        });
        assert_eq!(decode(text), Ok(params));
    }

    #[test]
    fn an_engine_that_is_asked_nothing_works_alone() {
        for text in [
            "{}",
            r#"{"do_remote_prefill":false,"transfer_id":"t"}"#,
            r#"{"do_remote_decode":null}"#,
        ] {
            assert_eq!(decode(text), Ok(Params::Local));
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (text, error) in [
            (
                r#"{"do_remote_decode":true}"#,
                "there is no transfer_id besides do_remote_decode",
            ),
            (
                r#"{"do_remote_prefill":true,"transfer_id":"t"}"#,
                "there is no remote_engine_id besides do_remote_prefill",
            ),
            (
                r#"{"do_remote_prefill":true,"transfer_id":"t","remote_engine_id":"e"}"#,
                "there is no remote_bootstrap_addr besides do_remote_prefill",
            ),
            (
                r#"{"do_remote_prefill":true,"do_remote_decode":true}"#,
                "do_remote_decode and do_remote_prefill are both true",
            ),
            (
                r#"{"do_remote_decode":true,"transfer_id":""}"#,
                "transfer_id: transfer id of 0 bytes is outside 1..=256",
            ),
            (
                r#"{"do_remote_prefill":true,"transfer_id":"t","remote_engine_id":"e","remote_bootstrap_addr":"h:1"}"#,
                "remote_bootstrap_addr: \"h:1\" does not begin with http:// or https://",
            ),
        ] {
            assert_eq!(decode(text).unwrap_err().to_string(), error);
        }
        for text in [
            "[]",
            "",
            r#"{"do_remote_decode":1}"#,
            r#"{"transfer_id":7}"#,
        ] {
            assert!(matches!(decode(text), Err(ParamsError::Text(_))), "{text}");
        }
        let limits = Limits {
            json_bytes: 1,
            ..Limits::default()
        };
        let error = Params::decode(b"{}", &limits).unwrap_err();
        assert_eq!(error.to_string(), "a text of 2 bytes is more than 1");
        let json_bytes = 2;
        let limits = Limits {
            json_bytes,
            ..limits
        };
        assert_eq!(Params::decode(b"{}", &limits), Ok(Params::Local));
    }
}
