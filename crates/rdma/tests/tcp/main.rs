//! Transfers between processes over `tcp`, with peers that are killed, stopped
//! and restarted in the middle. The peer is this test binary again.
#![cfg(test)]

mod peer;

use std::time::{Duration, Instant};

use mooncake_pd_layout::{AllocationId, Axis, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::tcp::{TcpConfig, TcpLoopback, TcpPeer, TcpRegistration, TcpTicket};
use mooncake_pd_rdma::{
    Address, BoundBatch, Drained, Engine, HostBuffer, Memory, Operation, Patience, Progress,
    Region, RegionMap, SubmitError, TaskFailure, TaskStatus, UnregisterError, bind, transfer,
};
use peer::{CANARY, LEN, PAGE, PAGES, Peer, THERE, buffer, digest, whole};

const ID: AllocationId = AllocationId::new(0);

/// This process.
struct Here {
    engine: TcpLoopback,
    source: HostBuffer,
    registration: Option<TcpRegistration>,
    batch: BoundBatch,
}

impl Here {
    fn new(config: &TcpConfig) -> Self {
        let engine = TcpLoopback::start(config).unwrap();
        let source = buffer(1 << 30);
        for (at, byte) in source.write().iter_mut().enumerate() {
            let [low, _, high, ..] = at.wrapping_mul(0x9E37_79B1).to_le_bytes();
            *byte = low ^ high;
        }
        let registration = engine.register(&source, whole()).unwrap();
        let batch = batch(&source, &engine);
        Self {
            engine,
            source,
            registration: Some(registration),
            batch,
        }
    }

    fn submit(&self, peer: &TcpPeer) -> Result<TcpTicket, SubmitError> {
        let submission = self.batch.submission(0).unwrap();
        assert_eq!(
            submission.descriptors().len(),
            self.batch.descriptors().len()
        );
        self.engine.submit(peer, submission)
    }

    /// Submits, and comes back when some bytes are there and no more land until
    /// the peer goes on.
    fn begin(&self, peer: &mut Peer, opened: &TcpPeer) -> TcpTicket {
        loop {
            peer.ask("fill");
            peer.say("halt");
            let mut ticket = self.submit(opened).unwrap();
            if peer.hear() == "halted" {
                return ticket;
            }
            peer.say("go on");
            assert_eq!(self.ended(&mut ticket).first_failure(), None);
            self.engine.release(ticket).unwrap();
        }
    }

    fn ended(&self, ticket: &mut TcpTicket) -> Progress {
        match self.engine.drain(ticket, Patience::default()) {
            Drained::Quiescent(progress) => progress,
            Drained::Unknown(progress) => panic!("{progress:?}"),
        }
    }

    /// Moves everything to a peer that is opened for that, and compares.
    fn assert_moves(&self, peer: &mut Peer) {
        peer.ask("fill");
        let opened = self.engine.open(&peer.name).unwrap();
        let moved = transfer(
            &self.engine,
            &opened,
            &self.batch,
            Patience::default(),
            |_| {},
        )
        .unwrap();
        assert_eq!(moved.bytes(), LEN - PAGE);
        assert_eq!(peer.ask("digest"), self.expected().to_string());
    }

    /// Digest of a destination with everything.
    fn expected(&self) -> u64 {
        let page = usize::try_from(PAGE).unwrap();
        let source = self.source.read();
        let mut pages: Vec<&[u8]> = source.chunks(page).collect();
        let canaries = vec![CANARY; page];
        pages[0] = &canaries;
        pages[1..].reverse();
        digest(&pages.concat())
    }
}

fn untouched() -> String {
    digest(&vec![CANARY; usize::try_from(LEN).unwrap()]).to_string()
}

/// All pages but the first, in reverse order.
fn batch(source: &HostBuffer, engine: &TcpLoopback) -> BoundBatch {
    let kv = FieldSpec::new("kv", "uint8")
        .at(0, 0)
        .page_stride(PAGE)
        .dim(Axis::Token, 1, PAGE)
        .dim(Axis::Content, PAGE, 1);
    let layout = LayoutBuilder::new()
        .allocation(0, LEN)
        .pool(0, PAGES, Some(0))
        .group(GroupSpec::new(0, "full_attention", 1, 0).layer("layer.0", [kv]))
        .build()
        .unwrap();
    let slots = |ids: Vec<u32>| RawSlots {
        first_block: Some(0),
        entries: ids.into_iter().map(|id| Some(id.into())).collect(),
    };
    let request = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some((PAGES - 1).into()),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots((1..PAGES).collect()),
            destination: slots((1..PAGES).rev().collect()),
        }],
    };
    let pairing = Pairing::new(&layout, &layout).unwrap();
    let request = Request::new(&request, &pairing).unwrap();
    let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;
    let map = |base| RegionMap::new([Region::new(ID, whole(), base).unwrap()]).unwrap();
    let (here, there) = (map(source.base()), map(Address::new(THERE).unwrap()));
    let limits = engine.capabilities().submission();
    bind(plan.copies(), Operation::Write, &here, &there, limits).unwrap()
}

fn failures(progress: &Progress) -> Vec<TaskFailure> {
    let failed = |task: &TaskStatus| match task {
        TaskStatus::Failed(failure) => Some(*failure),
        _ => None,
    };
    progress.tasks().iter().filter_map(failed).collect()
}

#[test]
fn a_killed_peer_fails_its_transfer_and_its_successor_is_written_only_when_opened() {
    let here = Here::new(&TcpConfig::default());
    let mut peer = Peer::start(0);
    here.assert_moves(&mut peer);
    let opened = here.engine.open(&peer.name).unwrap();
    let mut ticket = here.begin(&mut peer, &opened);
    peer.kill();
    let failures = failures(&here.ended(&mut ticket));
    assert!(!failures.is_empty());
    assert!(
        failures
            .iter()
            .all(|failure| *failure == TaskFailure::PeerGone)
    );
    here.engine.release(ticket).unwrap();
    let error = here.submit(&opened).unwrap_err();
    assert!(matches!(error, SubmitError::PeerGone { .. }), "{error}");
    assert!(here.engine.open(&peer.name).is_err());

    let mut next = Peer::start(peer.port());
    here.submit(&opened).unwrap_err();
    assert_eq!(next.ask("digest"), untouched());
    here.assert_moves(&mut next);
}

#[test]
fn a_peer_replaced_in_mid_transfer_is_stale_and_nothing_reaches_its_successor() {
    let here = Here::new(&TcpConfig::default());
    let mut peer = Peer::start(0);
    let opened = here.engine.open(&peer.name).unwrap();
    let idle = here.engine.open(&peer.name).unwrap();
    let mut ticket = here.begin(&mut peer, &opened);
    peer.kill();
    let mut next = Peer::start(peer.port());
    let failures = failures(&here.ended(&mut ticket));
    assert!(
        failures
            .iter()
            .all(|failure| *failure == TaskFailure::PeerGone)
    );
    assert!(!failures.is_empty());
    // The one that nothing went over finds out when it is used.
    let error = here.submit(&idle).unwrap_err();
    assert!(matches!(error, SubmitError::StalePeer { .. }), "{error}");
    here.submit(&opened).unwrap_err();
    assert_eq!(next.ask("digest"), untouched());
    here.assert_moves(&mut next);
}

#[test]
fn a_stopped_peer_is_unknown_and_completes_when_it_goes_on() {
    let mut here = Here::new(&TcpConfig::default());
    let mut peer = Peer::start(0);
    let opened = here.engine.open(&peer.name).unwrap();
    let mut ticket = here.begin(&mut peer, &opened);
    peer.signal("-STOP");
    let Drained::Unknown(progress) = here
        .engine
        .drain(&mut ticket, Patience::new(Duration::from_secs(3)))
    else {
        panic!("nobody knows");
    };
    assert!(progress.tasks().contains(&TaskStatus::Unknown));
    assert_eq!(progress.first_failure(), None);
    let registration = here.registration.take().unwrap();
    let error = here.engine.unregister(registration).unwrap_err();
    assert!(matches!(error, UnregisterError::InFlight { .. }), "{error}");
    peer.signal("-CONT");
    peer.say("go on");
    assert_eq!(here.ended(&mut ticket).first_failure(), None);
    here.engine.release(ticket).unwrap();
    assert_eq!(peer.ask("digest"), here.expected().to_string());
    here.registration = Some(here.engine.register(&here.source, whole()).unwrap());
    here.assert_moves(&mut peer);
}

#[test]
fn a_stopped_peer_that_was_given_up_is_unknown_until_it_says_that_nothing_lands() {
    let config = TcpConfig::default().stall_limit(Duration::from_secs(2));
    let here = Here::new(&config);
    let mut peer = Peer::start(0);
    let opened = here.engine.open(&peer.name).unwrap();
    let mut ticket = here.begin(&mut peer, &opened);
    peer.signal("-STOP");
    let patience = Patience::new(Duration::from_secs(5));
    let drained = here.engine.drain(&mut ticket, patience);
    assert!(matches!(drained, Drained::Unknown(_)));
    let error = here.submit(&opened).unwrap_err();
    assert!(matches!(error, SubmitError::PeerFailed { .. }), "{error}");
    peer.signal("-CONT");
    // It answers again, but is still about to write.
    let patience = Patience::new(Duration::from_secs(3));
    let drained = here.engine.drain(&mut ticket, patience);
    assert!(matches!(drained, Drained::Unknown(_)));
    peer.say("go on");
    let failures = failures(&here.ended(&mut ticket));
    assert!(!failures.is_empty());
    assert!(
        failures
            .iter()
            .all(|failure| matches!(failure, TaskFailure::Engine { .. }))
    );
    // The owner uses the memory again from here on.
    peer.ask("fill");
    assert_eq!(peer.ask("digest"), untouched());
    here.engine.release(ticket).unwrap();
    here.assert_moves(&mut peer);
}

#[test]
fn a_stopped_peer_that_is_killed_fails_its_transfer() {
    let config = TcpConfig::default().stall_limit(Duration::from_secs(2));
    let here = Here::new(&config);
    let mut peer = Peer::start(0);
    let opened = here.engine.open(&peer.name).unwrap();
    let mut ticket = here.begin(&mut peer, &opened);
    peer.signal("-STOP");
    let patience = Patience::new(Duration::from_secs(4));
    let drained = here.engine.drain(&mut ticket, patience);
    assert!(matches!(drained, Drained::Unknown(_)));
    peer.kill();
    let failures = failures(&here.ended(&mut ticket));
    assert!(!failures.is_empty());
    assert!(
        failures
            .iter()
            .all(|failure| *failure == TaskFailure::PeerGone)
    );
}

#[test]
fn an_engine_dropped_while_its_peer_is_stopped_ends_in_time_and_keeps_what_is_unknown() {
    let here = Here::new(&TcpConfig::default());
    let mut peer = Peer::start(0);
    let opened = here.engine.open(&peer.name).unwrap();
    let ticket = here.begin(&mut peer, &opened);
    peer.signal("-STOP");
    let kept = std::sync::Arc::new(());
    here.engine
        .abandon(ticket, Box::new(std::sync::Arc::clone(&kept)));
    let since = Instant::now();
    drop(here);
    assert!(since.elapsed() < Duration::from_secs(10));
    assert_eq!(std::sync::Arc::strong_count(&kept), 2);
    peer.kill();
}
