//! What has to hold for any bytes.

use std::collections::BTreeSet;
use std::string::String;
use std::vec::Vec;

use arbitrary::Unstructured;

use super::naive::{Byte, Naive, Verdict};
use super::{hostile, layout};
use crate::error::LayoutError;
use crate::layout::CacheLayout;
use crate::place::FieldPlace;
use crate::raw::{RawField, RawGroup, RawLayout};
use crate::{PoolId, compare};

/// Reads bytes as the text of a manifest, as a generated hostile manifest and
/// as a generated valid one, and [checks](check_raw) each. Any bytes will do.
///
/// # Panics
/// The validation is wrong.
pub fn check_layout_bytes(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(layout) = CacheLayout::from_json(&text) {
        check_raw(&layout.to_raw());
    }
    if let Ok(raw) = serde_json::from_str::<RawLayout>(&text) {
        check_raw(&raw);
    }
    if let Ok(raw) = hostile(&mut Unstructured::new(data)) {
        check_raw(&raw);
    }
    if let Ok(raw) = layout(&mut Unstructured::new(data)) {
        assert!(check_raw(&raw), "generated layout is refused: {raw:?}");
    }
}

/// Validates a manifest, and checks the answer, which is returned as whether it
/// was accepted:
/// - an accepted one encodes to itself, is compatible with itself, and, where it
///   is small enough to count its bytes out, has every byte inside its
///   allocation, no byte with two owners, and the payload the manifest says;
/// - one that is refused for its bytes really has such a byte, and an overlap
///   named is one.
///
/// # Panics
/// The validation is wrong.
pub fn check_raw(raw: &RawLayout) -> bool {
    let naive = Naive::new(raw);
    match CacheLayout::new(raw) {
        Ok(layout) => {
            check_encoding(&layout);
            assert_eq!(compare(&layout, &layout), [], "{raw:?}");
            if let Some(naive) = &naive {
                assert_eq!(naive.verdict(), Verdict::Legal, "accepted: {raw:?}");
                check_payload(raw, &layout, naive);
                check_resize(&layout);
            }
            true
        }
        Err(error) => {
            if let Some(naive) = &naive {
                check_refusal(raw, naive, &error);
            }
            false
        }
    }
}

fn check_encoding(layout: &CacheLayout) {
    let raw = layout.to_raw();
    assert_eq!(CacheLayout::new(&raw).as_ref(), Ok(layout));
    let json = layout.to_json().expect("manifests are JSON");
    let again = CacheLayout::from_json(&json);
    assert_eq!(again.as_ref(), Ok(layout));
    assert_eq!(again.map(|again| again.to_raw()), Ok(raw));
}

fn check_payload(raw: &RawLayout, layout: &CacheLayout, naive: &Naive<'_>) {
    for group in layout.groups() {
        let capacity = layout.pool(group.pool()).map_or(0, crate::Pool::capacity);
        for (layer, field) in group.fields() {
            let place = FieldPlace {
                group: group.id(),
                layer: layer.clone(),
                field: field.id().clone(),
            };
            let (raw_group, raw_field) = find(raw, &place).expect("the manifest has the field");
            for id in [0, capacity - 1] {
                let start = field.block_offset(id).expect("a valid offset").get();
                let found: Vec<u64> = field
                    .payload()
                    .iter()
                    .flat_map(crate::Run::pieces)
                    .flat_map(|piece| start + piece.start().get()..start + piece.end())
                    .collect();
                let mut expected: Vec<u64> = naive
                    .block(raw_group, raw_field, id)
                    .into_iter()
                    .map(|byte| byte.at)
                    .collect();
                expected.sort_unstable();
                assert_eq!(found, expected, "payload of block {id} of {place}");
                assert_eq!(usize::try_from(field.payload_len().get()), Ok(found.len()));
            }
        }
    }
}

fn find<'a>(raw: &'a RawLayout, place: &FieldPlace) -> Option<(&'a RawGroup, &'a RawField)> {
    let group = raw
        .groups
        .iter()
        .find(|group| group.id == place.group.get())?;
    let layer = group
        .layers
        .iter()
        .find(|layer| layer.name == place.layer.as_str())?;
    let field = layer
        .fields
        .iter()
        .find(|field| field.name == place.field.as_str())?;
    Some((group, field))
}

/// Another number of blocks leaves the pages as they are, and can be taken back.
fn check_resize(layout: &CacheLayout) {
    for pool in layout.pools() {
        let more = pool.capacity().saturating_add(3);
        let fewer = (pool.capacity() / 2).max(2);
        for capacity in [more, fewer] {
            let Ok(resized) = layout.resized(pool.id(), capacity) else {
                continue;
            };
            check_resized(layout, &resized, pool.id(), capacity);
            if pool.capacity() > 1 {
                let back = resized.resized(pool.id(), pool.capacity());
                assert_eq!(back.as_ref(), Ok(layout), "{capacity} blocks and back");
            }
        }
    }
}

fn check_resized(layout: &CacheLayout, resized: &CacheLayout, pool: PoolId, capacity: u32) {
    assert_eq!(
        resized.pool(pool).map(crate::Pool::capacity),
        Some(capacity)
    );
    assert_eq!(resized.fingerprint(), layout.fingerprint());
    assert_eq!(compare(layout, resized), []);
    for (before, after) in layout.groups().iter().zip(resized.groups()) {
        for ((_, before), (_, after)) in before.fields().zip(after.fields()) {
            assert_eq!(before.payload_len(), after.payload_len());
            assert_eq!(before.page_stride(), after.page_stride());
        }
    }
}

fn check_refusal(raw: &RawLayout, naive: &Naive<'_>, error: &LayoutError) {
    match error {
        LayoutError::OutsideAllocation { .. }
        | LayoutError::PayloadExceedsStride { .. }
        | LayoutError::OverlayUnprovable { .. } => {
            assert_ne!(naive.verdict(), Verdict::Legal, "{error}: {raw:?}");
        }
        LayoutError::Overlap {
            first,
            first_block,
            second,
            second_block,
            ..
        } => {
            let bytes = |place: &FieldPlace, id: u64| -> BTreeSet<Byte> {
                let (group, field) = find(raw, place).expect("an error names a field there is");
                let id = u32::try_from(id).expect("an error names a block there is");
                naive.block(group, field, id).into_iter().collect()
            };
            let shared = !bytes(first, *first_block).is_disjoint(&bytes(second, *second_block));
            assert!(shared, "{error}: {raw:?}");
            // The overlay of two groups under one id would be no error.
            let pool = |place| find(raw, place).map(|(group, _)| group.pool);
            let legal = pool(first) == pool(second)
                && first_block == second_block
                && first.group != second.group;
            assert!(!legal, "{error}: {raw:?}");
        }
        _ => {}
    }
}
