//! What a caller sees of each fault, and what the memory holds meanwhile.

use std::time::Duration;

use super::bench::{Bench, len, span};
use super::*;
use crate::engine::TaskStatus;
use crate::error::{Fault, TaskFailure};
use crate::registered::{Registered, RegistrationError};
use crate::registration::RegistrationPlan;
use crate::transfer::{TransferError, transfer};

const FAILED: TaskStatus = TaskStatus::Failed(TaskFailure::Engine { code: INJECTED });
const GONE: TaskStatus = TaskStatus::Failed(TaskFailure::PeerGone);
use TaskStatus::{Completed, Running, Unknown};

const COPIES: [(u64, u64, u64); 3] = [(0, 32, 8), (8, 48, 8), (16, 0, 8)];

fn patience(polls: u64) -> Patience {
    Patience::new(Duration::from_millis(polls))
}

fn fail(landed: u64) -> DescriptorFault {
    DescriptorFault::Fail { landed }
}

#[test]
fn nothing_lands_before_a_poll_and_everything_after_one() {
    let bench = Bench::new(64);
    let mut ticket = bench.submit(&COPIES).unwrap();
    bench.assert_landed(&[]);
    assert_eq!(bench.prefill.poll(&mut ticket).tasks(), [Completed; 3]);
    bench.assert_landed(&COPIES);
    bench.prefill.release(ticket).unwrap();
}

#[test]
fn one_descriptor_fails_and_the_others_complete() {
    let bench = Bench::new(64);
    bench
        .prefill
        .inject(FaultPlan::new().descriptor(1, fail(0)));
    let mut ticket = bench.submit(&COPIES).unwrap();
    let progress = bench.prefill.poll(&mut ticket);
    assert_eq!(progress.tasks(), [Completed, FAILED, Completed]);
    assert_eq!(
        progress.first_failure().map(|(n, f)| (n, f.fault())),
        Some((1, Fault::Engine))
    );
    bench.assert_landed(&[COPIES[0], COPIES[2]]);
}

#[test]
fn descriptors_count_over_submissions() {
    let bench = Bench::new(64);
    bench
        .prefill
        .inject(FaultPlan::new().descriptor(3, fail(0)));
    let mut first = bench.submit(&COPIES).unwrap();
    assert_eq!(bench.prefill.poll(&mut first).tasks(), [Completed; 3]);
    let mut second = bench.submit(&COPIES).unwrap();
    let progress = bench.prefill.poll(&mut second);
    assert_eq!(progress.tasks(), [FAILED, Completed, Completed]);
}

#[test]
fn a_failed_descriptor_may_have_landed_in_part() {
    let bench = Bench::new(64);
    bench
        .prefill
        .inject(FaultPlan::new().descriptor(0, fail(3)));
    let mut ticket = bench.submit(&COPIES[..1]).unwrap();
    assert_eq!(bench.prefill.poll(&mut ticket).tasks(), [FAILED]);
    bench.assert_landed(&[(0, 32, 3)]);
}

#[test]
fn memory_changes_after_an_error_was_reported() {
    let bench = Bench::new(64);
    let late = DescriptorFault::Late { polls: 3 };
    bench.prefill.inject(
        FaultPlan::new()
            .descriptor(0, fail(0))
            .descriptors(1..3, late),
    );
    let mut ticket = bench.submit(&COPIES).unwrap();
    let progress = bench.prefill.poll(&mut ticket);
    assert_eq!(progress.tasks(), [FAILED, Running, Running]);
    bench.assert_landed(&[]);

    let refused = bench.prefill.release(ticket).unwrap_err();
    assert_eq!((refused.unfinished, refused.tasks), (2, 3));
    let mut ticket = refused.ticket;
    assert!(!bench.prefill.poll(&mut ticket).is_quiescent());
    bench.assert_landed(&[]);
    let progress = bench.prefill.poll(&mut ticket);
    assert_eq!(progress.tasks(), [FAILED, Completed, Completed]);
    bench.assert_landed(&COPIES[1..]);
    bench.prefill.release(ticket).unwrap();
}

#[test]
fn c41_a_timeout_is_unknown_and_the_rest_still_lands() {
    let bench = Bench::new(64);
    let fault = DescriptorFault::TimesOut {
        completes_at: Some(10),
    };
    bench.prefill.inject(FaultPlan::new().descriptor(1, fault));
    let batch = bench.batch(&COPIES);
    let error = transfer(&bench.prefill, &bench.peer, &batch, patience(9), |_| {}).unwrap_err();
    let TransferError::Unknown { unfinished, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((unfinished.unfinished, unfinished.tasks), (1, 3));
    bench.assert_landed(&[COPIES[0], COPIES[2]]);

    let mut ticket = unfinished.ticket;
    let drained = bench.prefill.drain(&mut ticket, patience(1));
    assert!(matches!(drained, Drained::Quiescent(all) if all.tasks() == [Completed; 3]));
    bench.assert_landed(&COPIES);
    bench.prefill.release(ticket).unwrap();
}

#[test]
fn memory_released_at_a_deadline_is_written_afterwards() {
    // What the rule is for: an owner that takes a deadline for the end.
    let bench = Bench::new(4_096);
    let plan = FaultPlan::new().descriptor(
        0,
        DescriptorFault::TimesOut {
            completes_at: Some(9),
        },
    );
    bench.prefill.inject(plan);
    let mut ticket = bench.submit(&[(0, 0, 500)]).unwrap();
    let _ = bench.prefill.drain(&mut ticket, patience(3));
    bench.destination.write().fill(0xDD);
    bench.prefill.advance(1_000);
    assert!(bench.destination.read().iter().any(|byte| *byte != 0xDD));
}

#[test]
fn what_never_ends_stays_unknown_and_keeps_its_place_in_the_queue() {
    let bench = Bench::new(1_024);
    let fault = DescriptorFault::TimesOut { completes_at: None };
    bench.prefill.inject(FaultPlan::new().descriptor(0, fault));
    let mut ticket = bench.submit(&COPIES[..1]).unwrap();
    let drained = bench.prefill.drain(&mut ticket, patience(u64::MAX));
    assert!(matches!(drained, Drained::Unknown(all) if all.tasks() == [Unknown]));
    drop(ticket);
    let full: Vec<(u64, u64, u64)> = (0..1_024).map(|n| (0, n, 1)).collect();
    assert!(matches!(
        bench.submit(&full),
        Err(SubmitError::QueueFull { outstanding: 1, .. })
    ));
    bench.submit(&full[1..]).unwrap();
    bench.assert_landed(&[]);
}

#[test]
fn a_dropped_ticket_does_not_stop_its_writes() {
    let bench = Bench::new(64);
    let late = DescriptorFault::Late { polls: 5 };
    bench
        .prefill
        .inject(FaultPlan::new().descriptors(0..3, late));
    drop(bench.submit(&COPIES).unwrap());
    bench.prefill.advance(4);
    bench.assert_landed(&[]);
    bench.prefill.advance(1);
    bench.assert_landed(&COPIES);
}

#[test]
fn unregistering_does_not_stop_a_late_write() {
    let bench = Bench::new(64);
    let late = DescriptorFault::Late { polls: 2 };
    bench
        .prefill
        .inject(FaultPlan::new().descriptors(0..3, late));
    let mut ticket = bench.submit(&COPIES).unwrap();
    bench.prefill.poll(&mut ticket);
    let address = bench.destination.base();
    bench
        .decode
        .unregister(LoopbackRegistration { address })
        .unwrap();
    bench.prefill.poll(&mut ticket);
    bench.assert_landed(&COPIES);
}

#[test]
fn the_peer_dies_in_the_middle_of_a_submission() {
    let bench = Bench::new(64);
    bench
        .prefill
        .inject(FaultPlan::new().descriptor(1, DescriptorFault::PeerDies));
    let mut ticket = bench.submit(&COPIES).unwrap();
    let drained = bench.prefill.drain(&mut ticket, Patience::default());
    assert!(matches!(drained, Drained::Quiescent(all) if all.tasks() == [Completed, GONE, GONE]));
    bench.assert_landed(&COPIES[..1]);
    let error = bench.submit(&COPIES).unwrap_err();
    assert!(matches!(error, SubmitError::PeerGone { .. }));
    assert_eq!(error.fault(), Fault::Peer);
    assert!(matches!(
        bench.prefill.open("decode"),
        Err(OpenError::Unreachable { .. })
    ));
}

#[test]
fn late_writes_to_a_dead_peer_never_land() {
    let bench = Bench::new(64);
    let late = DescriptorFault::Late { polls: 4 };
    bench
        .prefill
        .inject(FaultPlan::new().descriptors(0..3, late));
    let mut ticket = bench.submit(&COPIES).unwrap();
    assert!(bench.fabric.kill("decode"));
    let drained = bench.prefill.drain(&mut ticket, Patience::default());
    assert!(matches!(drained, Drained::Quiescent(all) if all.tasks() == [GONE; 3]));
    bench.assert_landed(&[]);
}

#[test]
fn c48_a_restarted_peer_is_stale_until_opened_again() {
    let bench = Bench::new(64);
    assert!(matches!(
        bench.fabric.attach("decode"),
        Err(AttachError::NameTaken { generation: 1, .. })
    ));
    assert!(bench.fabric.kill("decode"));
    let restarted = bench.fabric.attach("decode").unwrap();
    assert_eq!(restarted.identity(), ("decode", 2));
    restarted.register(&bench.destination, span(0, 64)).unwrap();
    assert_eq!(
        bench.submit(&COPIES).unwrap_err(),
        SubmitError::StalePeer {
            peer: "decode".to_owned(),
            opened: 1,
            current: 2
        }
    );
    let peer = bench.prefill.open("decode").unwrap();
    let batch = bench.batch(&COPIES);
    transfer(&bench.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    bench.assert_landed(&COPIES);
}

#[test]
fn a_killed_engine_moves_and_takes_nothing_more() {
    let bench = Bench::new(64);
    let mut ticket = bench.submit(&COPIES).unwrap();
    assert!(bench.fabric.kill("prefill"));
    assert!(!bench.fabric.kill("prefill"));
    assert_eq!(bench.prefill.poll(&mut ticket).tasks(), [Unknown; 3]);
    bench.assert_landed(&[]);
    assert_eq!(bench.submit(&COPIES).unwrap_err(), SubmitError::Closed);
    assert_eq!(
        bench
            .prefill
            .register(&bench.source, span(0, 64))
            .unwrap_err(),
        RegisterError::Closed
    );
}

#[test]
fn a_task_that_fails_is_named_by_its_place_in_the_batch() {
    let limits = crate::SubmissionLimits::new(2, len(64)).unwrap();
    let bench = Bench::with_limits(64, limits);
    bench
        .prefill
        .inject(FaultPlan::new().descriptor(2, fail(0)));
    let batch = bench.batch(&COPIES);
    let error = transfer(
        &bench.prefill,
        &bench.peer,
        &batch,
        Patience::default(),
        |_| {},
    )
    .unwrap_err();
    let TransferError::Task {
        descriptor, moved, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((descriptor, moved.descriptors()), (2, 2));
    bench.assert_landed(&COPIES[..2]);
}

#[test]
fn one_refused_registration_leaves_nothing_registered() {
    let engine = Fabric::new().attach("prefill").unwrap();
    let ids = [0, 1, 2].map(mooncake_pd_layout::AllocationId::new);
    let memory = crate::HostMemory::new(ids.map(|id| (id, 16))).unwrap();
    let plan =
        RegistrationPlan::of(ids.map(|id| (id, 16)), engine.capabilities().registration()).unwrap();
    engine.inject(FaultPlan::new().refuse_registration(2));
    let error = Registered::new(&engine, &plan, |id| memory.buffer(id)).unwrap_err();
    let RegistrationError::Register {
        allocation, error, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((allocation, error.fault()), (ids[2], Fault::Engine));
    // Every range is free again, so that the whole plan registers.
    let registered = Registered::new(&engine, &plan, |id| memory.buffer(id)).unwrap();
    assert_eq!(registered.regions().regions().len(), 3);
    registered.release(&engine).unwrap();
    let again = Registered::new(&engine, &plan, |id| memory.buffer(id)).unwrap();
    again.release(&engine).unwrap();
}
