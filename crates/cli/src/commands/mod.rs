//! The commands, each from its arguments to its [`Output`](crate::output::Output).

mod diff;
mod inspect;
mod plan;
mod transfer;
mod transfer_report;

pub use diff::diff;
pub use inspect::inspect;
pub use plan::plan;
pub use transfer::{transfer, verified};
pub use transfer_report::Report;
