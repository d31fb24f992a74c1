//! Memory of a transfer is never released early: whoever owns it writes over it
//! on release, and no byte may change after that.

use std::sync::Arc;
use std::time::Duration;

use mooncake_pd_layout::ByteLen;

use super::owner::{COPIES, Owner};
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::engine::Patience;
use crate::flight::InFlight;
use crate::loopback::{DescriptorFault, Fabric, FaultPlan};

/// More polls than any fault waits.
const LONG: u64 = 1_000;
/// Faults, one for each copy of both transfers.
const FAULTS: usize = 2 * COPIES;

/// Two transfers of eight copies over one [`Loopback`](crate::Loopback), with
/// faults and owners as the bytes say:
/// - byte 0: descriptors in flight at once (bits 0, 1: less one), whether the
///   queue overflows (bit 2), its room (bits 3, 4: less one), and when what it
///   holds up completes (bits 5 to 7: never, or after four polls each);
/// - bytes 1 to 16: what happens to each descriptor, as it is submitted;
/// - the others, what is done with one of the transfers (bit 3): polled,
///   drained, cancelled, left alone while time passes, dropped, or ended.
///
/// # Panics
/// A transfer gives its memory back while a byte of it may still land, keeps it
/// although it has ended, or reports what is not so.
pub fn check_transfer_bytes(data: &[u8]) {
    let _ = transfers_released(data);
}

/// As [`check_transfer_bytes`]; which of the transfers gave their memory back.
#[must_use]
pub fn transfers_released(data: &[u8]) -> [bool; 2] {
    let (&first, rest) = data.split_first().unwrap_or((&0, &[]));
    let (faults, actions) = rest.split_at(rest.len().min(FAULTS));
    let fabric = Fabric::new();
    let bytes = ByteLen::new(1 << 20).expect("a mebibyte is a length");
    let limits = SubmissionLimits::new(u32::from(first & 3) + 1, bytes);
    let limits = limits.expect("at least one descriptor");
    let attach = |name| fabric.attach_with(name, RegistrationLimits::default(), limits);
    let engine = Arc::new(attach("prefill").expect("the name is free"));
    let decode = attach("decode").expect("the name is free");
    let mut owners = [0, 1].map(|n| Owner::new(n, &engine, &decode));
    let (plan, knowable) = plan(first, faults);
    engine.inject(plan);
    for action in actions {
        let owner = &mut owners[usize::from(action >> 3 & 1)];
        let polls = u64::from(action >> 4) + 1;
        match action & 7 {
            0 | 1 => owner.advance(InFlight::poll),
            2 | 3 => {
                let patience = Patience::new(Duration::from_millis(polls));
                owner.advance(|flight| flight.drain(patience));
            }
            4 => owner.cancel(),
            5 => engine.advance(polls),
            6 if polls == 16 => {
                fabric.kill("decode");
            }
            6 => owner.let_go(),
            _ => owner.end(),
        }
        owners.iter().for_each(Owner::look);
    }
    owners.iter_mut().for_each(Owner::let_go);
    owners.iter().for_each(Owner::look);
    engine.advance(LONG);
    owners.iter().for_each(Owner::look);
    let released = owners.each_ref().map(Owner::is_released);
    assert!(
        !knowable || released == [true; 2],
        "all tasks have ended and memory is gone"
    );
    released
}

/// The faults, and whether every task's end is known some time.
fn plan(first: u8, faults: &[u8]) -> (FaultPlan, bool) {
    let mut plan = FaultPlan::new();
    let mut knowable = true;
    if first & 4 != 0 {
        let room = u32::from(first >> 3 & 3) + 1;
        let completes_at = Some(u64::from(first >> 5) * 4).filter(|at| *at > 0);
        knowable = completes_at.is_some();
        plan = plan.overflow(room, completes_at);
    }
    for (n, byte) in (0..).zip(faults) {
        if let Some(fault) = fault(*byte) {
            knowable &= fault != DescriptorFault::TimesOut { completes_at: None };
            plan = plan.descriptor(n, fault);
        }
    }
    (plan, knowable)
}

fn fault(byte: u8) -> Option<DescriptorFault> {
    let polls = u64::from(byte >> 3) + 1;
    match byte & 7 {
        0 => Some(DescriptorFault::Fail { landed: polls * 2 }),
        1 | 2 => Some(DescriptorFault::Late { polls }),
        3 => Some(DescriptorFault::TimesOut {
            completes_at: Some(polls),
        }),
        4 => Some(DescriptorFault::TimesOut { completes_at: None }),
        5 if byte > 200 => Some(DescriptorFault::PeerDies),
        _ => None,
    }
}
