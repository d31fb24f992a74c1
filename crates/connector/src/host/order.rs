//! What the ranks of an engine have to be told.

use alloc::sync::Arc;

use crate::decode::{DecodeEvent, Load, Source};
use crate::handoff::HandOff;
use crate::id::{RequestId, TransferId};
use crate::prefill::PrefillEvent;
use crate::tables::BlockTables;

/// For every rank of a prefill engine; [`PrefillOrder::event`] is for its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefillOrder {
    /// The engine took a request.
    Started {
        /// Its name.
        request: RequestId,
        /// The name that the pull will give.
        transfer: TransferId,
    },
    /// Its prompt is computed.
    Finished {
        /// Its name.
        request: RequestId,
        /// The hand-over's name.
        transfer: TransferId,
        /// How far.
        hand_off: HandOff,
        /// The engine's blocks.
        tables: Arc<BlockTables>,
    },
    /// It is given up.
    Aborted {
        /// Its name.
        request: RequestId,
        /// The hand-over's name.
        transfer: TransferId,
    },
}

impl PrefillOrder {
    /// The event for one rank's machine.
    #[must_use]
    pub fn event(&self) -> PrefillEvent {
        match self.clone() {
            Self::Started { request, transfer } => PrefillEvent::Started { request, transfer },
            Self::Finished {
                request,
                transfer,
                hand_off,
                tables,
            } => PrefillEvent::Finished {
                request,
                transfer,
                hand_off,
                tables,
            },
            Self::Aborted { request, transfer } => PrefillEvent::Aborted { request, transfer },
        }
    }

    /// The request it is about.
    #[must_use]
    pub const fn request(&self) -> &RequestId {
        match self {
            Self::Started { request, .. }
            | Self::Finished { request, .. }
            | Self::Aborted { request, .. } => request,
        }
    }

    /// The hand-over it is about.
    #[must_use]
    pub const fn transfer(&self) -> &TransferId {
        match self {
            Self::Started { transfer, .. }
            | Self::Finished { transfer, .. }
            | Self::Aborted { transfer, .. } => transfer,
        }
    }
}

/// For every rank of a decode engine; [`DecodeOrder::event`] is for its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeOrder {
    /// A cache is wanted.
    Load(Load),
    /// Nothing is wanted of a cache that waits.
    Release {
        /// The engine's name for the request.
        request: RequestId,
        /// The name that prefill knows.
        transfer: TransferId,
        /// Who has it.
        source: Source,
    },
    /// A load is given up.
    Aborted {
        /// The engine's name for the request.
        request: RequestId,
        /// The name that prefill knows.
        transfer: TransferId,
    },
}

impl DecodeOrder {
    /// The event for one rank's machine.
    #[must_use]
    pub fn event(&self) -> DecodeEvent {
        match self.clone() {
            Self::Load(load) => DecodeEvent::Load(load),
            Self::Release {
                transfer, source, ..
            } => DecodeEvent::Release { transfer, source },
            Self::Aborted { request, .. } => DecodeEvent::Aborted { request },
        }
    }

    /// The request it is about.
    #[must_use]
    pub const fn request(&self) -> &RequestId {
        match self {
            Self::Load(Load { request, .. })
            | Self::Release { request, .. }
            | Self::Aborted { request, .. } => request,
        }
    }

    /// The hand-over it is about.
    #[must_use]
    pub const fn transfer(&self) -> &TransferId {
        match self {
            Self::Load(Load { transfer, .. })
            | Self::Release { transfer, .. }
            | Self::Aborted { transfer, .. } => transfer,
        }
    }
}
