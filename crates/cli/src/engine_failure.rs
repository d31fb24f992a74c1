//! What an engine was doing when it failed.

use mooncake_pd_rdma::{
    AttachError, BindError, LoopbackTicket, OpenError, RegistrationError, RegistrationPlanError,
    ReleaseError, TransferError,
};
use thiserror::Error;

/// A step of a transfer that the engine did not do; the source says why.
#[derive(Debug, Error)]
pub enum EngineFailure {
    /// An endpoint of it.
    #[error("the engine has no endpoint")]
    Attach(#[from] AttachError),
    /// Which ranges it is asked to register.
    #[error("the allocations can't be cut into regions")]
    Regions(#[from] RegistrationPlanError),
    /// Registering them.
    #[error("the engine did not register the memory")]
    Register(#[from] RegistrationError),
    /// Addresses for the plan's copies.
    #[error("the plan does not fit the registered memory")]
    Bind(#[from] BindError),
    /// Reaching the peer.
    #[error("the engine did not open its peer")]
    Open(#[from] OpenError),
    /// Moving the bytes.
    #[error("the engine did not move the bytes")]
    Transfer(#[from] Box<TransferError<LoopbackTicket>>),
    /// Giving the memory back.
    #[error("the engine did not release the memory")]
    Release(#[from] ReleaseError),
}
