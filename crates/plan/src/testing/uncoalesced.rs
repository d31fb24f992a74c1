//! The longest way to say a transfer: one copy for every contiguous row of
//! every kernel page.

use std::collections::BTreeMap;
use std::vec::Vec;

use mooncake_pd_layout::{Axis, BlockEntry, CacheLayout, Dim, Field, Group, GroupId};

use super::demand::Move;
use super::memory::Descriptor;

/// Coordinates of a row: those that are not zero.
type Key = Vec<(Axis, u64)>;

/// Lowers moves of blocks by kernel pages: logical ids become pages by each
/// side's own [`Expansion`](mooncake_pd_layout::Expansion), pages become
/// addresses by the stride of pages, and rows pair by coordinates.
///
/// # Panics
/// The moves are not of these layouts.
#[must_use]
pub fn uncoalesced(
    source: &CacheLayout,
    destination: &CacheLayout,
    moves: &[Move],
) -> Vec<Descriptor> {
    let mut all = Vec::new();
    for moved in moves {
        let id = GroupId::new(moved.group);
        let from = source.group(id).expect("the group is on both sides");
        let to = destination.group(id).expect("the group is on both sides");
        let read = pages(source, from, moved.source);
        let write = pages(destination, to, moved.destination);
        for (layer, field) in to.fields() {
            let page = from.layers().get(layer);
            let Some(other) = page.and_then(|page| page.field(field.id())) else {
                continue;
            };
            let whole = row(other).is_some() && row(other) == row(field);
            let sources = rows(other, &read, whole);
            for (key, (place, len)) in rows(field, &write, whole) {
                all.push(Descriptor {
                    source: (other.allocation().get(), sources[&key].0),
                    destination: (field.allocation().get(), place),
                    len,
                });
            }
        }
    }
    all
}

/// Numbers of the kernel pages of a block; a state slot is one page.
fn pages(layout: &CacheLayout, group: &Group, id: u32) -> Vec<u64> {
    match layout.entry(group.id(), u64::from(id)) {
        Ok(BlockEntry::Block(block)) => {
            let pages = group.expansion().pages(block);
            pages.map(mooncake_pd_layout::PhysicalBlock::get).collect()
        }
        Ok(BlockEntry::State(slot)) => Vec::from([u64::from(slot.get())]),
        other => panic!("{id} is not a block: {other:?}"),
    }
}

fn page_dims(field: &Field) -> impl DoubleEndedIterator<Item = &Dim> {
    field.dims().iter().filter(|dim| dim.axis() != Axis::Page)
}

/// The axis and extent of a page's contiguous rows.
fn row(field: &Field) -> Option<(Axis, u64)> {
    let last = page_dims(field).next_back()?;
    (last.stride() == field.dtype().size()).then_some((last.axis(), last.extent()))
}

/// Addresses and lengths of the rows (or elements) of a block by coordinates.
fn rows(field: &Field, pages: &[u64], whole: bool) -> BTreeMap<Key, (u64, u64)> {
    let mut dims: Vec<&Dim> = page_dims(field).collect();
    let token = |dim: &&Dim| dim.axis() == Axis::Token;
    let tokens = dims.iter().copied().find(token).map_or(1, Dim::extent);
    let mut len = field.dtype().size();
    if whole && let Some(last) = dims.pop() {
        len *= last.extent();
    }
    let count: u64 = dims.iter().map(|dim| dim.extent()).product();
    let mut rows = BTreeMap::new();
    for (number, page) in (0_u64..).zip(pages) {
        for row in 0..count {
            let mut left = row;
            let mut place = field.offset().get() + page * field.page_stride().get();
            let mut at = BTreeMap::from([(Axis::Token, number * tokens)]);
            for dim in dims.iter().rev() {
                *at.entry(dim.axis()).or_insert(0) += left % dim.extent();
                place += left % dim.extent() * dim.stride();
                left /= dim.extent();
            }
            at.retain(|_, coordinate| *coordinate > 0);
            rows.insert(at.into_iter().collect(), (place, len));
        }
    }
    rows
}
