//! What is sent: sizes, counts, places and bytes.

use mooncake_pd_layout::{AllocationId, Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{Options, Pairing, Plan, RawRequest, RawSlots, RawTables, Request};

pub(crate) const ID: AllocationId = AllocationId::new(0);

/// Descriptors of one call: what a peer queues.
pub(crate) const PORTION: usize = 1_024;

/// Bytes repeat with this period: no size is a multiple of it.
const PERIOD: u64 = 251;

/// Descriptors of one size.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) count: u64,
    pub(crate) len: u64,
}

/// The largest first.
pub(crate) const CASES: [Case; 3] = [
    Case {
        count: 256,
        len: 1 << 20,
    },
    Case {
        count: 1_024,
        len: 64 << 10,
    },
    Case {
        count: 10_000,
        len: 4 << 10,
    },
];

impl Case {
    /// Bytes of either side: the first slot is not used.
    pub(crate) const fn memory(self) -> u64 {
        (self.count + 1) * self.len
    }

    /// From which slot to which: no two that follow each other are neighbours.
    pub(crate) fn slots(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).map(move |n| (1 + n, 1 + n * 7_919 % self.count))
    }

    /// The source's bytes of a sender.
    pub(crate) fn bytes(self, slot: u64, seed: u64) -> Vec<u8> {
        let first = 31 * slot + seed;
        (first..first + self.len)
            .map(|at| u8::try_from(at % PERIOD).unwrap())
            .collect()
    }

    /// Both sides' layout: a block is a slot.
    pub(crate) fn layout(self) -> CacheLayout {
        let kv = FieldSpec::new("kv", "uint8")
            .at(0, 0)
            .page_stride(self.len)
            .dim(Axis::Token, 1, self.len)
            .dim(Axis::Content, self.len, 1);
        LayoutBuilder::new()
            .allocation(0, self.memory())
            .pool(0, u32::try_from(self.count + 1).unwrap(), Some(0))
            .group(GroupSpec::new(0, "full_attention", 1, 0).layer("layer.0", [kv]))
            .build()
            .unwrap()
    }

    /// Every slot to its place.
    pub(crate) fn plan(self) -> Plan {
        let slots = |entries: Vec<u64>| RawSlots {
            first_block: Some(0),
            entries: entries.into_iter().map(Some).collect(),
        };
        let request = RawRequest {
            id: "r".to_owned(),
            computed_tokens: Some(self.count),
            tail_aligned: false,
            groups: vec![RawTables {
                group: 0,
                source: slots(self.slots().map(|(from, _)| from).collect()),
                destination: slots(self.slots().map(|(_, to)| to).collect()),
            }],
        };
        let layout = self.layout();
        let pairing = Pairing::new(&layout, &layout).unwrap();
        let request = Request::new(&request, &pairing).unwrap();
        let plan = pairing.plan(&[request], &Options::default()).unwrap().plan;
        assert_eq!(plan.descriptors(), self.count);
        plan
    }
}
