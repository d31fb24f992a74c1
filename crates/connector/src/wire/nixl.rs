//! What stock's NIXL connector returns with a finished request.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::num::{NonZeroU16, NonZeroU32};

use mooncake_pd_layout::JsonError;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::blocks::BlockLists;
use super::host::{Host, HostError};
use super::json::{TextError, from_json};
use super::limits::Limits;
use crate::id::{EngineId, IdError, RequestId};
use crate::tokens::TokenCount;

/// Which side holds the blocks, and so which role the next engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NixlSide {
    /// Prefill has them; `do_remote_prefill` is true.
    Prefill,
    /// Decode has them, for the next turn; `do_remote_decode` is true.
    Decode,
}

/// Who moves the bytes. The two kinds of engine can't work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NixlMode {
    /// The engine that wants them reads.
    Pull,
    /// The engine that has them writes.
    Push,
}

/// `kv_transfer_params` that an engine with stock's NIXL connector (0.33) returns; a router
/// hands them to the other engine as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct NixlHandOver {
    /// `do_remote_prefill`, `do_remote_decode`.
    pub side: NixlSide,
    /// `remote_block_ids`: ids per group, in logical blocks of the engine that has them.
    pub blocks: BlockLists,
    /// `remote_engine_id`.
    pub engine: EngineId,
    /// `remote_request_id`: what that engine calls the request.
    pub request: RequestId,
    /// `remote_host`: where that engine's handshake listens.
    pub host: Host,
    /// `remote_port`.
    pub port: NonZeroU16,
    /// `tp_size`; 1 if absent.
    pub tp_size: NonZeroU32,
    /// `dcp_size`, decode-context parallel; 1 if absent.
    pub dcp_size: NonZeroU32,
    /// `pp_size`; 1 if absent.
    pub pp_size: NonZeroU32,
    /// `remote_num_tokens`: elements that were computed.
    pub tokens: Option<TokenCount>,
    /// `remote_blocks_expiry_time`: seconds on that engine's own clock, for nobody else.
    pub expiry: Option<f64>,
    /// `remote_registration_generation`: how often that engine registered its memory; 0 if absent.
    pub generation: u64,
    /// `transfer_mode`.
    pub mode: NixlMode,
}

/// Why an object is no hand-over. The other engine or the router is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NixlError {
    /// It is too long, or no JSON of this form.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Exactly one side has the blocks.
    #[error("do_remote_prefill and do_remote_decode are both {both}")]
    Side {
        /// What both are.
        both: bool,
    },
    /// A name is none.
    #[error("{key}: {error}")]
    Id {
        /// Its key.
        key: &'static str,
        /// What is wrong with it.
        error: IdError,
    },
    /// The engine has no address.
    #[error("remote_host: {0}")]
    Host(#[from] HostError),
}

/// The object as serde sees it.
#[derive(Serialize, Deserialize)]
struct Raw<'a> {
    do_remote_prefill: bool,
    do_remote_decode: bool,
    remote_block_ids: BlockLists,
    #[serde(borrow)]
    remote_engine_id: Cow<'a, str>,
    #[serde(borrow)]
    remote_request_id: Cow<'a, str>,
    #[serde(borrow)]
    remote_host: Cow<'a, str>,
    remote_port: NonZeroU16,
    #[serde(default = "one")]
    tp_size: NonZeroU32,
    #[serde(default = "one")]
    dcp_size: NonZeroU32,
    #[serde(default = "one")]
    pp_size: NonZeroU32,
    #[serde(default)]
    remote_num_tokens: Option<u32>,
    #[serde(default)]
    remote_blocks_expiry_time: Option<f64>,
    #[serde(default)]
    remote_registration_generation: u64,
    transfer_mode: NixlMode,
}

const fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

impl NixlHandOver {
    /// Reads the object; unknown keys are skipped.
    pub fn decode(text: &[u8], limits: &Limits) -> Result<Self, NixlError> {
        let raw: Raw<'_> = from_json(text, limits)?;
        let side = match (raw.do_remote_prefill, raw.do_remote_decode) {
            (true, false) => NixlSide::Prefill,
            (false, true) => NixlSide::Decode,
            (both, _) => return Err(NixlError::Side { both }),
        };
        let wrong = |key| move |error| NixlError::Id { key, error };
        Ok(Self {
            side,
            blocks: raw.remote_block_ids,
            engine: EngineId::new(&raw.remote_engine_id).map_err(wrong("remote_engine_id"))?,
            request: RequestId::new(&raw.remote_request_id).map_err(wrong("remote_request_id"))?,
            host: Host::new(&raw.remote_host)?,
            port: raw.remote_port,
            tp_size: raw.tp_size,
            dcp_size: raw.dcp_size,
            pp_size: raw.pp_size,
            tokens: raw.remote_num_tokens.map(TokenCount::new),
            expiry: raw.remote_blocks_expiry_time,
            generation: raw.remote_registration_generation,
            mode: raw.transfer_mode,
        })
    }

    /// Writes the object, keys in the order of stock's pulling connector.
    ///
    /// # Errors
    /// None that is known.
    pub fn encode(&self) -> Result<Vec<u8>, JsonError> {
        let raw = Raw {
            do_remote_prefill: self.side == NixlSide::Prefill,
            do_remote_decode: self.side == NixlSide::Decode,
            remote_block_ids: self.blocks.clone(),
            remote_engine_id: self.engine.as_str().into(),
            remote_request_id: self.request.as_str().into(),
            remote_host: self.host.as_str().into(),
            remote_port: self.port,
            tp_size: self.tp_size,
            dcp_size: self.dcp_size,
            pp_size: self.pp_size,
            remote_num_tokens: self.tokens.map(TokenCount::get),
            remote_blocks_expiry_time: self.expiry,
            remote_registration_generation: self.generation,
            transfer_mode: self.mode,
        };
        Ok(serde_json::to_vec(&raw)?)
    }
}

impl Serialize for BlockLists {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.groups())
    }
}

impl<'de> Deserialize<'de> for BlockLists {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(GroupsReader)
    }
}

struct GroupsReader;

impl<'de> Visitor<'de> for GroupsReader {
    type Value = BlockLists;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of block ids per group")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<BlockLists, A::Error> {
        let mut lists = BlockLists::release();
        while let Some(group) = from.next_element::<Vec<u32>>()? {
            lists.push_group(&group);
        }
        Ok(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::{NixlError, NixlHandOver, NixlMode, NixlSide};
    use crate::wire::Limits;
    use alloc::string::String;
    use alloc::vec::Vec;

    const TEXT: &str = r#"{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2],[],[4294967295]],"remote_engine_id":"e","remote_request_id":"r","remote_host":"10.0.0.1","remote_port":5600,"tp_size":2,"dcp_size":1,"pp_size":1,"remote_num_tokens":41,"remote_blocks_expiry_time":1.5,"remote_registration_generation":3,"transfer_mode":"pull"}"#;

    fn decode(text: &str) -> Result<NixlHandOver, NixlError> {
        NixlHandOver::decode(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_hand_over_is_read_and_written_key_by_key() {
        let found = decode(TEXT).unwrap();
        assert_eq!(found.side, NixlSide::Prefill);
        let groups: [&[u32]; 3] = [&[1, 2], &[], &[u32::MAX]];
        assert_eq!(found.blocks.groups().collect::<Vec<_>>(), groups);
        assert_eq!(found.tokens.unwrap().get(), 41);
        assert_eq!(found.expiry, Some(1.5));
        assert_eq!(found.generation, 3);
        assert_eq!(found.mode, NixlMode::Pull);
        assert_eq!(String::from_utf8(found.encode().unwrap()).unwrap(), TEXT);
    }

    #[test]
    fn what_stock_may_leave_out_has_its_default() {
        let text = r#"{"do_remote_prefill":false,"do_remote_decode":true,"remote_block_ids":[],"remote_engine_id":"e","remote_request_id":"r","remote_host":"h","remote_port":1,"remote_blocks_expiry_time":null,"transfer_mode":"push"}"#;
        let found = decode(text).unwrap();
        assert_eq!(found.side, NixlSide::Decode);
        assert_eq!(found.tp_size.get(), 1);
        assert_eq!(
            (found.tokens, found.expiry, found.generation),
            (None, None, 0)
        );
    }

    #[test]
    fn wrong_values_are_refused() {
        let both = TEXT.replace(r#""do_remote_decode":false"#, r#""do_remote_decode":true"#);
        assert_eq!(decode(&both), Err(NixlError::Side { both: true }));
        for (right, wrong) in [
            ("[1,2]", "[-1]"),
            ("[1,2]", "[4294967296]"),
            ("[1,2]", "7"),
            ("5600", "0"),
            ("5600", "65536"),
            ("\"tp_size\":2", "\"tp_size\":0"),
            ("\"pull\"", "\"both\""),
            ("\"e\"", "\"\""),
            ("10.0.0.1", "10.0.0"),
            ("41", "-1"),
        ] {
            decode(&TEXT.replacen(right, wrong, 1)).unwrap_err();
        }
        decode("[]").unwrap_err();
    }
}
