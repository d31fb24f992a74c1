//! Two engines with one allocation each.

use std::sync::Arc;

use mooncake_pd_layout::{AllocationId, CacheLayout};
use mooncake_pd_plan::{Options, Pairing, Plan, RawRequest, RawSlots, RawTables, Request};
use mooncake_pd_rdma::{BoundBatch, Bytes, Operation, Registered, RegistrationPlan, bind};

use super::{Subject, bytes, pattern};

pub(crate) const ID: AllocationId = AllocationId::new(0);

/// What the destination holds before a transfer.
pub(crate) const CANARY: u8 = 0xC5;

/// A source with a pattern, a destination with canaries, both registered.
pub(crate) struct Pair<E: Subject> {
    pub(crate) layout: CacheLayout,
    pub(crate) prefill: Arc<E>,
    pub(crate) decode: Arc<E>,
    pub(crate) source: E::Memory,
    pub(crate) destination: E::Memory,
    pub(crate) local: Registered<E>,
    pub(crate) remote: Registered<E>,
}

impl<E: Subject> Pair<E> {
    /// Memory for the one allocation of `layout` at each of two engines.
    pub(crate) fn new((prefill, decode): &(Arc<E>, Arc<E>), layout: CacheLayout) -> Self {
        let len = layout.allocation(ID).unwrap().len();
        let (source, destination) = (E::zeroed(len), E::zeroed(len));
        let limits = prefill.capabilities().registration();
        let regions = RegistrationPlan::of_layout(&layout, limits).unwrap();
        let local = Registered::new(&**prefill, &regions, |_| Some(&source)).unwrap();
        let remote = Registered::new(&**decode, &regions, |_| Some(&destination)).unwrap();
        let len = usize::try_from(len.get()).unwrap();
        source.copy_in(0, &pattern(len)).unwrap();
        destination.copy_in(0, &vec![CANARY; len]).unwrap();
        Self {
            layout,
            prefill: Arc::clone(prefill),
            decode: Arc::clone(decode),
            source,
            destination,
            local,
            remote,
        }
    }

    /// Blocks `1..=count` to the same blocks in reverse order, so that no two
    /// copies are one.
    fn plan(&self, count: u32) -> Plan {
        let slots = |ids: Vec<u32>| RawSlots {
            first_block: Some(0),
            entries: ids.into_iter().map(|id| Some(id.into())).collect(),
        };
        let request = RawRequest {
            id: "r".to_owned(),
            computed_tokens: Some(u64::from(count)),
            tail_aligned: false,
            groups: vec![RawTables {
                group: 0,
                source: slots((1..=count).collect()),
                destination: slots((1..=count).rev().collect()),
            }],
        };
        let pairing = Pairing::new(&self.layout, &self.layout).unwrap();
        let request = Request::new(&request, &pairing).unwrap();
        pairing.plan(&[request], &Options::default()).unwrap().plan
    }

    pub(crate) fn batch(&self, count: u32) -> BoundBatch {
        self.share(count, 0, 1)
    }

    /// Every copy `n` of the plan with `n % of == which`.
    pub(crate) fn share(&self, count: u32, which: usize, of: usize) -> BoundBatch {
        let limits = self.prefill.capabilities().submission();
        let (local, remote) = (self.local.regions(), self.remote.regions());
        let plan = self.plan(count);
        let copies = plan.copies().skip(which).step_by(of);
        bind(copies, Operation::Write, local, remote, limits).unwrap()
    }

    /// Checks every byte of the destination against blocks moved in reverse.
    pub(crate) fn assert_landed(&self, count: usize, page: usize, stride: usize) {
        let source = bytes(&self.source);
        assert!(source == pattern(source.len()), "the source has changed");
        let mut expected = vec![CANARY; source.len()];
        for block in 1..=count {
            let to = count + 1 - block;
            expected[to * stride..][..page].copy_from_slice(&source[block * stride..][..page]);
        }
        assert!(
            bytes(&self.destination) == expected,
            "{count} pages of {page} bytes"
        );
    }

    /// Unregisters both sides.
    pub(crate) fn release(self) {
        self.local.release(&*self.prefill).unwrap();
        self.remote.release(&*self.decode).unwrap();
    }
}
