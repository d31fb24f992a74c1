//! Contracts and bounds as they are written in JSON.

use mooncake_pd_plan::{BoundsGrade, Contract};
use serde::Serialize;

/// Which bytes may be written besides payload.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ContractReport {
    PayloadOnly,
    BridgeDead {
        /// Bytes.
        max_gap: u64,
    },
}

impl From<Contract> for ContractReport {
    fn from(contract: Contract) -> Self {
        match contract {
            Contract::PayloadOnly => Self::PayloadOnly,
            Contract::BridgeDead { max_gap } => Self::BridgeDead {
                max_gap: max_gap.get(),
            },
        }
    }
}

/// How far the destination's bounds are proved.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoundsReport {
    Proved,
    PeerAsserted,
}

impl From<BoundsGrade> for BoundsReport {
    fn from(bounds: BoundsGrade) -> Self {
        match bounds {
            BoundsGrade::Proved => Self::Proved,
            BoundsGrade::PeerAsserted => Self::PeerAsserted,
        }
    }
}
