//! Whether bytes of one layout mean the same in another.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::difference::Difference;
use crate::field::Field;
use crate::group::{Group, Page};
use crate::ids::LayerId;
use crate::layout::CacheLayout;
use crate::place::FieldPlace;

/// Everything in which two layouts differ that a transfer between them has to
/// know: nothing when their pages are the same, whatever their strides,
/// offsets, block counts and padding.
///
/// Groups are paired by [`GroupId`](crate::GroupId), layers and fields by name.
/// A transfer is possible when no entry
/// [is incompatible](Difference::is_incompatible). Both sides must have the
/// same tensor- and pipeline-parallel place.
#[must_use]
pub fn compare(source: &CacheLayout, destination: &CacheLayout) -> Vec<Difference> {
    let mut found = Vec::new();
    if source.shard() != destination.shard() {
        found.push(Difference::Shard {
            source_shard: source.shard(),
            destination_shard: destination.shard(),
        });
    }
    let (from, to) = (source.content(), destination.content());
    for (tag, from, to) in [
        ("model revision", &from.model_revision, &to.model_revision),
        ("state order", &from.state_order, &to.state_order),
    ] {
        if from != to {
            found.push(Difference::Content {
                tag,
                source_tag: from.clone(),
                destination_tag: to.clone(),
            });
        }
    }
    let ids = |layout: &CacheLayout| layout.groups().iter().map(Group::id).collect::<Vec<_>>();
    let (from, to) = (ids(source), ids(destination));
    if from != to {
        found.push(Difference::Groups {
            source_groups: from,
            destination_groups: to,
        });
    }
    for group in source.groups() {
        if let Some(other) = destination.group(group.id()) {
            compare_groups(group, other, &mut found);
        }
    }
    found
}

fn compare_groups(source: &Group, destination: &Group, found: &mut Vec<Difference>) {
    let group = source.id();
    let (source_kind, destination_kind) = (source.kind(), destination.kind());
    if source_kind.name() != destination_kind.name() {
        found.push(Difference::Kind {
            group,
            source_kind,
            destination_kind,
        });
    } else if source_kind != destination_kind {
        found.push(Difference::Window {
            group,
            source_kind,
            destination_kind,
        });
    }
    if source.tokens_per_block() != destination.tokens_per_block() {
        found.push(Difference::TokensPerBlock {
            group,
            source_tokens: source.tokens_per_block(),
            destination_tokens: destination.tokens_per_block(),
        });
    }
    if source.expansion() != destination.expansion() {
        found.push(Difference::PagesPerBlock {
            group,
            source_pages: source.expansion().pages_per_block(),
            destination_pages: destination.expansion().pages_per_block(),
        });
    }
    let (from, to) = (source.layers(), destination.layers());
    if !from.keys().any(|layer| to.contains_key(layer)) {
        found.push(Difference::NoCommonLayer {
            group,
            source_layers: from.len(),
            destination_layers: to.len(),
        });
        return;
    }
    for (layer, page) in from {
        match to.get(layer) {
            Some(other) => compare_pages((source, layer), page, other, found),
            None => found.push(Difference::SourceLayer {
                group,
                layer: layer.clone(),
            }),
        }
    }
    found.extend(
        to.keys()
            .filter(|layer| !from.contains_key(*layer))
            .map(|layer| Difference::DestinationLayer {
                group,
                layer: layer.clone(),
            }),
    );
}

/// Merges the fields of both sides by name.
fn compare_pages(
    at: (&Group, &LayerId),
    source: &Page,
    destination: &Page,
    found: &mut Vec<Difference>,
) {
    let (from, to) = (by_name(source), by_name(destination));
    let (mut from, mut to) = (from.into_iter().peekable(), to.into_iter().peekable());
    loop {
        let order = match (from.peek(), to.peek()) {
            (Some(a), Some(b)) => a.id().cmp(b.id()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let a = if order.is_le() { from.next() } else { None };
        let b = if order.is_ge() { to.next() } else { None };
        match (a, b) {
            (Some(a), Some(b)) => compare_fields(at, a, b, found),
            (Some(a), None) => found.push(Difference::SourceField {
                place: place(at, a),
            }),
            (None, Some(b)) => found.push(Difference::DestinationField {
                place: place(at, b),
            }),
            (None, None) => return,
        }
    }
}

fn by_name(page: &Page) -> Vec<&Field> {
    let mut fields: Vec<&Field> = page.fields().iter().collect();
    fields.sort_by_key(|field| field.id());
    fields
}

#[expect(clippy::unnecessary_box_returns, reason = "differences hold it boxed")]
fn place((group, layer): (&Group, &LayerId), field: &Field) -> Box<FieldPlace> {
    Box::new(FieldPlace {
        group: group.id(),
        layer: layer.clone(),
        field: field.id().clone(),
    })
}

fn compare_fields(
    at: (&Group, &LayerId),
    source: &Field,
    destination: &Field,
    found: &mut Vec<Difference>,
) {
    if source.dtype() != destination.dtype() {
        found.push(Difference::DType {
            place: place(at, source),
            source_dtype: source.dtype(),
            source_len: source.payload_len(),
            destination_dtype: destination.dtype(),
            destination_len: destination.payload_len(),
        });
    }
    let (source_order, destination_order) = (source.byte_order(), destination.byte_order());
    if source_order != destination_order {
        found.push(Difference::Shape {
            place: place(at, source),
            source_order,
            destination_order,
        });
    }
    if source.split() != destination.split() {
        found.push(Difference::Split {
            place: place(at, source),
            source_split: source.split().clone(),
            destination_split: destination.split().clone(),
        });
    }
}
