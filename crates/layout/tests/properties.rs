//! Properties of every layout, over the generators of `testing`.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may fail by panic, and quickcheck passes values"
)]

use std::collections::BTreeSet;

use mooncake_pd_layout::testing::{
    AnyLayout, AnyManifest, AnyPair, MAX_ALLOCATION, Naive, Verdict, check_layout_bytes, check_raw,
};
use mooncake_pd_layout::{
    Axis, CacheLayout, Difference, Field, GroupKind, LayoutError, Page, RawLayout, Split, compare,
};
use quickcheck::{QuickCheck, quickcheck};

fn incompatible(differences: &[Difference]) -> bool {
    differences.iter().any(Difference::is_incompatible)
}

quickcheck! {
    fn any_bytes_pass_the_check(data: Vec<u8>) -> bool {
        check_layout_bytes(&data);
        true
    }

    fn a_valid_layout_is_what_its_bytes_say(any: AnyLayout) -> bool {
        check_raw(&any.layout.to_raw())
    }

    fn generated_layouts_are_small(any: AnyLayout) -> bool {
        let small = |len| len < MAX_ALLOCATION;
        any.layout.allocations().iter().all(|allocation| small(allocation.len().get()))
    }

    fn decoding_any_text_never_panics(text: String) -> bool {
        check_layout_bytes(text.as_bytes());
        true
    }

    fn a_changed_manifest_text_never_panics(any: AnyLayout, at: usize, byte: u8) -> bool {
        let mut json = any.layout.to_json().unwrap().into_bytes();
        let at = at % json.len();
        json[at] = byte;
        check_layout_bytes(&json);
        true
    }

    fn a_layout_has_no_difference_from_itself(any: AnyLayout) -> bool {
        compare(&any.layout, &any.layout).is_empty()
    }

    fn a_generated_pair_is_compatible(any: AnyPair) -> bool {
        let found = compare(&any.source, &any.destination);
        !incompatible(&found)
    }

    fn bytes_of_a_pair_are_in_the_same_order(any: AnyPair) -> bool {
        any.source.groups().iter().all(|group| {
            let other = any.destination.group(group.id()).unwrap();
            group.fields().all(|(layer, field)| {
                let other = other.layers().get(layer).unwrap().field(field.id()).unwrap();
                field.payload_len() == other.payload_len() && field.byte_order() == other.byte_order()
            })
        })
    }

    fn incompatibility_is_symmetric_but_for_missing_layers(a: AnyLayout, b: AnyLayout) -> bool {
        let kept = |found: Vec<Difference>| {
            let one_sided = |difference: &Difference| matches!(
                difference,
                Difference::SourceLayer { .. } | Difference::DestinationLayer { .. }
            );
            let (layers, others): (Vec<_>, Vec<_>) = found.into_iter().partition(one_sided);
            (layers.len(), others.len(), incompatible(&others))
        };
        kept(compare(&a.layout, &b.layout)) == kept(compare(&b.layout, &a.layout))
    }

    fn equal_fingerprints_are_compatible(any: AnyPair) -> bool {
        any.source.fingerprint() != any.destination.fingerprint()
            || !incompatible(&compare(&any.source, &any.destination))
    }

    fn a_fingerprint_ignores_where_things_lie(any: AnyLayout) -> bool {
        let fingerprint = any.layout.fingerprint();
        let mut raw = any.layout.to_raw();
        raw.groups.reverse();
        for group in &mut raw.groups {
            group.layers.reverse();
            for layer in &mut group.layers {
                layer.fields.reverse();
            }
        }
        raw.allocations.reverse();
        raw.pools.reverse();
        // Twice the room between blocks, another block more, and other ranks.
        for allocation in &mut raw.allocations {
            allocation.len = 1 << 40;
        }
        raw.shard.tp_size = 4;
        raw.shard.tp_rank = 3;
        raw.shard.pp_size = 2;
        "other".clone_into(&mut raw.engine);
        let moved = spread(&raw);
        moved.is_none_or(|moved| moved.fingerprint() == fingerprint)
    }
}

/// Every field in an allocation of its own, at twice the page stride, of pools
/// with three blocks more.
fn spread(raw: &RawLayout) -> Option<CacheLayout> {
    let mut raw = raw.clone();
    raw.allocations.clear();
    for pool in &mut raw.pools {
        pool.capacity += 3;
    }
    let fields = raw
        .groups
        .iter_mut()
        .flat_map(|group| &mut group.layers)
        .flat_map(|layer| &mut layer.fields);
    for (id, field) in (0..).zip(fields) {
        let first = field.dims.first()?;
        if first.extent > 1 && first.stride >= field.page_stride {
            // Heads a plane apart would need planes of the new length.
            return None;
        }
        field.allocation = id;
        field.offset = 77;
        field.page_stride *= 2;
        raw.allocations
            .push(mooncake_pd_layout::raw::RawAllocation { id, len: 1 << 40 });
    }
    Some(CacheLayout::new(&raw).unwrap())
}

#[test]
fn most_hostile_manifests_are_refused_and_some_are_not() {
    fn hostile(any: AnyManifest) -> bool {
        check_raw(&any.raw);
        true
    }
    QuickCheck::new()
        .tests(2000)
        .quickcheck(hostile as fn(AnyManifest) -> bool);
}

/// Draws until every one of `wanted` was seen.
fn all_are_seen(wanted: &[&str], seen_in: impl Fn(&[u8]) -> Vec<&'static str>) {
    let mut missing: BTreeSet<&str> = wanted.iter().copied().collect();
    let mut state = 1_u64;
    for _ in 0..20_000 {
        if missing.is_empty() {
            return;
        }
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        for seen in seen_in(&bytes) {
            missing.remove(seen);
        }
    }
    assert_eq!(missing, BTreeSet::new(), "never generated");
}

#[test]
fn valid_layouts_cover_every_shape() {
    let wanted = [
        "full",
        "sliding",
        "mla",
        "sliding mla",
        "gdn",
        "three pools",
        "overlaid groups",
        "arbitrated",
        "pages",
        "scattered",
        "null",
        "reserved",
        "several allocations",
        "padded",
        "field apart",
        "split",
        "packed row",
    ];
    all_are_seen(&wanted, |bytes| {
        let layout = AnyLayout::new(bytes.to_vec()).layout;
        let mut seen = Vec::new();
        if layout.pools().len() == 3 {
            seen.push("three pools");
        }
        if !layout.arbitrated().is_empty() {
            seen.push("arbitrated");
        }
        if layout.allocations().len() > 1 {
            seen.push("several allocations");
        }
        for pool in layout.pools() {
            seen.extend(pool.null_id().map(|_| "null"));
            seen.extend(pool.reserved().first().map(|_| "reserved"));
        }
        let mut starts = BTreeSet::new();
        for group in layout.groups() {
            seen.push(match group.kind() {
                GroupKind::FullAttention => "full",
                GroupKind::SlidingWindow(_) => "sliding",
                GroupKind::Mla => "mla",
                GroupKind::SlidingWindowMla(_) => "sliding mla",
                GroupKind::GdnState => "gdn",
            });
            if group.expansion().pages_per_block().get() > 1 {
                seen.push("pages");
            }
            for (_, field) in group.fields() {
                if !starts.insert((field.allocation(), field.offset(), field.block_stride())) {
                    seen.push("overlaid groups");
                }
                seen.extend(shapes(field));
            }
            let pages: Vec<_> = group.layers().values().map(Page::fields).collect();
            let offset = |field: &Field| (field.allocation(), field.offset().get());
            for page in &pages {
                if let [a, b] = page
                    && (a.allocation() != b.allocation()
                        || offset(a).1.abs_diff(offset(b).1) >= a.block_stride().get())
                {
                    seen.push("field apart");
                }
            }
            if let [[a, ..], [b, ..], ..] = pages.as_slice()
                && a.allocation() == b.allocation()
                && offset(a).1.abs_diff(offset(b).1) < a.block_stride().get()
            {
                seen.push("packed row");
            }
        }
        seen
    });
}

fn shapes(field: &Field) -> Vec<&'static str> {
    let mut seen = Vec::new();
    let stride = field.block_stride().get();
    if field.dims().iter().any(|dim| dim.stride() >= stride) {
        seen.push("scattered");
    }
    if field.payload_len() < field.span() && field.span().get() < stride {
        seen.push("padded");
    }
    if *field.split() != Split::Replicated {
        seen.push("split");
    }
    seen
}

#[test]
fn pairs_differ_in_everything_that_may_differ() {
    let wanted = [
        "stride",
        "capacity",
        "pages",
        "layer order",
        "draft layer",
        "tag",
        "equal",
    ];
    all_are_seen(&wanted, |bytes| {
        let pair = AnyPair::new(bytes.to_vec());
        let mut seen = Vec::new();
        if pair.source.fingerprint() == pair.destination.fingerprint() {
            seen.push("equal");
        }
        for difference in compare(&pair.source, &pair.destination) {
            seen.push(match difference {
                Difference::PagesPerBlock { .. } => "pages",
                Difference::DestinationLayer { .. } => "draft layer",
                Difference::Content { .. } => "tag",
                _ => "other",
            });
        }
        for group in pair.source.groups() {
            let other = pair.destination.group(group.id()).unwrap();
            if !group.layers().keys().eq(other.layers().keys()) {
                seen.push("layer order");
            }
            let capacity = |layout: &CacheLayout, pool| layout.pool(pool).unwrap().capacity();
            if capacity(&pair.source, group.pool()) != capacity(&pair.destination, other.pool()) {
                seen.push("capacity");
            }
            let stride = |group: &mooncake_pd_layout::Group| {
                group.fields().map(|(_, field)| field.block_stride()).min()
            };
            if stride(group) != stride(other) {
                seen.push("stride");
            }
        }
        seen
    });
}

#[test]
fn hostile_manifests_meet_every_answer() {
    let wanted = [
        "accepted",
        "format",
        "id twice",
        "unknown",
        "quantity",
        "rank",
        "pool id",
        "kind",
        "window",
        "name twice",
        "field",
        "outside",
        "stride",
        "overlap",
        "state pages",
        "empty",
        "legal though strides differ",
    ];
    all_are_seen(&wanted, |bytes| {
        let raw = AnyManifest::new(bytes.to_vec()).raw;
        let verdict = Naive::new(&raw).map(|naive| naive.verdict());
        let strides: BTreeSet<u64> = raw
            .groups
            .iter()
            .flat_map(|group| &group.layers)
            .flat_map(|layer| &layer.fields)
            .map(|field| field.page_stride)
            .collect();
        vec![match CacheLayout::new(&raw) {
            Ok(_) if raw.engine.is_empty() && strides.len() > 1 => {
                assert!(verdict.is_none_or(|verdict| verdict == Verdict::Legal));
                "legal though strides differ"
            }
            Ok(_) => "accepted",
            Err(LayoutError::Format { .. }) => "format",
            Err(LayoutError::IdTwice { .. }) => "id twice",
            Err(LayoutError::Unknown { .. }) => "unknown",
            Err(LayoutError::Quantity { .. }) => "quantity",
            Err(LayoutError::Rank { .. }) => "rank",
            Err(LayoutError::NullId { .. } | LayoutError::Reserved { .. }) => "pool id",
            Err(LayoutError::UnknownKind { .. }) => "kind",
            Err(LayoutError::NoWindow { .. } | LayoutError::WindowOfKind { .. }) => "window",
            Err(LayoutError::NameTwice { .. }) => "name twice",
            Err(LayoutError::Field { .. }) => "field",
            Err(LayoutError::OutsideAllocation { .. }) => "outside",
            Err(LayoutError::PayloadExceedsStride { .. }) => "stride",
            Err(LayoutError::Overlap { .. }) => "overlap",
            Err(LayoutError::StatePages { .. }) => "state pages",
            Err(LayoutError::Empty { .. }) => "empty",
            Err(_) => "other",
        }]
    });
}

#[test]
fn a_page_of_one_element_encodes_to_itself() {
    let one = mooncake_pd_layout::FieldSpec::new("x", "float32")
        .page_stride(4)
        .dim(Axis::Head, 1, 900)
        .dim(Axis::Token, 1, 4)
        .split(Axis::Head, &[1]);
    let layout = mooncake_pd_layout::LayoutBuilder::new()
        .allocation(0, 40)
        .pool(0, 10, None)
        .group(mooncake_pd_layout::GroupSpec::new(0, "mla", 1, 0).layer("l", [one]))
        .build()
        .unwrap();
    assert_eq!(CacheLayout::new(&layout.to_raw()), Ok(layout.clone()));
    let json = layout.to_json().unwrap();
    assert_eq!(CacheLayout::from_json(&json), Ok(layout));
}
