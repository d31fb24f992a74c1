//! What of a layout is registered, and what a peer is told of it.

use mooncake_pd_layout::{AllocationId, Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};

use super::bench::{buffer, len};
use super::*;
use crate::bind::{Part, bind_parts};
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::region::Region;
use crate::registered::Registered;
use crate::registration::RegistrationPlan;

/// A field `name` of 8 blocks, 1,024 bytes apart, of `tokens` rows of 32 bytes.
fn view(name: &str, allocation: u32, offset: u64, tokens: u64) -> FieldSpec {
    FieldSpec::new(name, "bfloat16")
        .at(allocation, offset)
        .page_stride(1_024)
        .dim(Axis::Token, tokens, 32)
        .dim(Axis::Content, 16, 2)
}

fn full(id: u32) -> GroupSpec {
    GroupSpec::new(id, "full_attention", 32, 0)
}

/// Registers a layout's plan, its allocations at these addresses.
fn register(layout: &CacheLayout, limits: RegistrationLimits, bases: &[u64]) -> Setup {
    let engine = Fabric::new()
        .attach_with("decode", limits, SubmissionLimits::default())
        .unwrap();
    let memory: Vec<HostBuffer> = layout
        .allocations()
        .iter()
        .zip(bases)
        .map(|(allocation, base)| buffer(*base, allocation.len().get()))
        .collect();
    let plan = RegistrationPlan::of_layout(layout, limits).unwrap();
    let of = |id: AllocationId| memory.get(usize::try_from(id.get()).unwrap());
    let registered = Registered::new(&engine, &plan, of).unwrap();
    Setup { engine, registered }
}

struct Setup {
    engine: Loopback,
    registered: Registered<Loopback>,
}

impl Setup {
    /// Address ranges the engine holds.
    fn held(&self) -> Vec<(u64, u64)> {
        self.engine.endpoint.table().ranges()
    }

    /// Address ranges a peer is told.
    fn told(&self) -> Vec<(u64, u64)> {
        let range = |region: &Region| {
            let start = region.address().get();
            (start, start + region.span().len().get())
        };
        self.registered
            .regions()
            .regions()
            .iter()
            .map(range)
            .collect()
    }
}

#[test]
fn c21_overlaid_views_of_one_allocation_are_one_registration() {
    // The second group's view lies inside the first one's.
    let layout = LayoutBuilder::new()
        .allocation(0, 8 * 1_024)
        .pool(0, 8, Some(0))
        .group(full(0).layer("a", [view("kv", 0, 0, 32)]))
        .group(full(1).layer("b", [view("kv", 0, 256, 4)]))
        .build()
        .unwrap();
    let setup = register(&layout, RegistrationLimits::default(), &[4_096]);
    assert_eq!(setup.held(), [(4_096, 4_096 + 8 * 1_024)]);
    assert_eq!(setup.told(), setup.held());
    let offset = |group: usize| {
        let (_, page) = layout.groups()[group].layers().iter().next().unwrap();
        page.fields()[0].offset().get()
    };
    assert_eq!((offset(0), offset(1)), (0, 256));
}

#[test]
fn c22_duplicate_and_touching_views_of_two_allocations_are_two_registrations() {
    // The same range under two groups, then one that touches it, and a second
    // allocation whose addresses go on where the first one's end.
    let layout = LayoutBuilder::new()
        .allocation(0, 8 * 1_024)
        .allocation(1, 8 * 1_024)
        .pool(0, 8, Some(0))
        .group(full(0).layer("a", [view("kv", 0, 0, 16)]))
        .group(full(1).layer("b", [view("kv", 0, 0, 16)]))
        .group(full(2).layer("c", [view("kv", 0, 512, 16), view("x", 1, 0, 32)]))
        .build()
        .unwrap();
    let (first, second) = (1 << 20, (1 << 20) + 8 * 1_024);
    let setup = register(&layout, RegistrationLimits::default(), &[first, second]);
    assert_eq!(
        setup.held(),
        [(first, second), (second, second + 8 * 1_024)]
    );
    assert_eq!(setup.told(), setup.held());

    // A copy over the border of touching allocations is not one descriptor, and
    // not two either: it would leave its allocation.
    let over = |len| Part {
        source: (AllocationId::new(0), 8 * 1_024 - 4),
        destination: (AllocationId::new(1), 0),
        len,
    };
    let regions = setup.registered.regions();
    let bind = |part| {
        let limits = SubmissionLimits::default();
        bind_parts([part], Operation::Write, regions, regions, limits)
    };
    assert!(bind(over(4)).is_ok());
    assert!(bind(over(5)).is_err());
}

#[test]
fn c23_a_peer_is_told_exactly_what_was_registered() {
    let layout = LayoutBuilder::new()
        .allocation(0, 8 * 1_024 + 100)
        .allocation(1, 3_000)
        .pool(0, 8, Some(0))
        .group(full(0).layer("a", [view("kv", 0, 0, 32)]))
        .build()
        .unwrap();
    let limits = RegistrationLimits::new(8)
        .unwrap()
        .with_max_len(len(5_000), len(1_000))
        .unwrap();
    let setup = register(&layout, limits, &[10_000, 50_000]);
    assert_eq!(
        setup.held(),
        [(10_000, 15_000), (15_000, 18_292), (50_000, 53_000)]
    );
    assert_eq!(setup.told(), setup.held());
    setup.registered.release(&setup.engine).unwrap();
    assert_eq!(setup.engine.endpoint.table().ranges(), []);
}
