//! Tasks that end between a look at them and their release.

use mooncake_pd_layout::ByteSpan;

use crate::batch::Submission;
use crate::capabilities::Capabilities;
use crate::engine::{Drained, Engine, Kept, Patience, Progress, StillRunning};
use crate::error::{OpenError, RegisterError, SubmitError, UnregisterError};
use crate::loopback::bench::Bench;
use crate::loopback::{
    DescriptorFault, FaultPlan, Loopback, LoopbackPeer, LoopbackRegistration, LoopbackTicket,
};
use crate::memory::HostBuffer;
use crate::transfer::{TransferError, transfer};

/// Tells what was true before the tasks ended.
struct Late(Loopback);

impl Engine for Late {
    type Memory = HostBuffer;
    type Registration = LoopbackRegistration;
    type Peer = LoopbackPeer;
    type Ticket = LoopbackTicket;

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }
    fn name(&self) -> &str {
        self.0.name()
    }
    fn register(
        &self,
        memory: &HostBuffer,
        span: ByteSpan,
    ) -> Result<LoopbackRegistration, RegisterError> {
        self.0.register(memory, span)
    }
    fn unregister(&self, registration: LoopbackRegistration) -> Result<(), UnregisterError> {
        self.0.unregister(registration)
    }
    fn open(&self, name: &str) -> Result<LoopbackPeer, OpenError> {
        self.0.open(name)
    }
    fn submit(
        &self,
        peer: &LoopbackPeer,
        submission: Submission<'_>,
    ) -> Result<LoopbackTicket, SubmitError> {
        self.0.submit(peer, submission)
    }
    fn poll(&self, ticket: &mut LoopbackTicket) -> Progress {
        let before = ticket.flight.progress();
        self.0.advance(1);
        before
    }
    fn drain(&self, ticket: &mut LoopbackTicket, _: Patience) -> Drained {
        Drained::of(self.poll(ticket))
    }
    fn release(&self, ticket: LoopbackTicket) -> Result<(), StillRunning<LoopbackTicket>> {
        self.0.release(ticket)
    }
    fn abandon(&self, ticket: LoopbackTicket, kept: Kept) {
        self.0.abandon(ticket, kept);
    }
}

#[test]
fn a_failure_between_the_look_and_the_release_does_not_count_as_moved() {
    let bench = Bench::new(4_096);
    let fault = DescriptorFault::Fail { landed: 1 };
    bench.prefill.inject(FaultPlan::new().descriptor(0, fault));
    let batch = bench.batch(&[(0, 0, 500)]);
    let engine = Late(bench.prefill);
    let error = transfer(&engine, &bench.peer, &batch, Patience::default(), |_| {}).unwrap_err();
    let TransferError::Unknown { unfinished, .. } = error else {
        panic!("{error}");
    };
    let mut ticket = unfinished.ticket;
    assert!(engine.poll(&mut ticket).first_failure().is_some());
}
