//! One transfer under way.

use super::record::Reply;
use crate::failure::Failure;
use crate::id::TransferId;
use crate::lease::Loan;
use crate::time::Time;
use crate::timer::TimerId;

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) transfer: TransferId,
    pub(super) reply: Reply,
    pub(super) loan: Loan,
    pub(super) since: Time,
    pub(super) timer: Option<TimerId>,
    /// The engine was told to drain it.
    pub(super) draining: bool,
    /// Why, where it was not for its own sake: what it fails of then is no news.
    pub(super) cause: Option<Failure>,
}
