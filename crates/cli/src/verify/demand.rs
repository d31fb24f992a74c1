//! Which destination byte must come from which source byte.

use std::collections::BTreeMap;

use super::error::WalkError;
use super::layout::Layout;
use super::lists::{Lists, pairs};
use super::view::{Span, View};

/// Bytes that must be copied as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Destination allocation.
    pub destination: u32,
    /// First byte there.
    pub destination_offset: u64,
    /// Source allocation.
    pub source: u32,
    /// First byte there.
    pub source_offset: u64,
    /// Bytes, 1 or more.
    pub len: u64,
    /// Index of the request.
    pub request: u32,
    /// The group.
    pub group: u32,
    /// Destination block.
    pub block: u64,
}

/// Everything a batch of requests demands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Sorted by destination, disjoint there.
    pub rows: Vec<Row>,
    /// Pairs of blocks by group.
    pub blocks: BTreeMap<u32, u64>,
    /// Demanded bytes by group.
    pub bytes: BTreeMap<u32, u64>,
}

/// The rows of every layer and block that the lists pair. A layer that only
/// one side has is left alone.
///
/// # Errors
/// The lists don't fit the layouts, or claim one destination byte twice.
pub fn demand(
    source: &Layout,
    destination: &Layout,
    requests: &[Lists],
) -> Result<Demand, WalkError> {
    let from = by_layer(source);
    let to = by_layer(destination);
    let mut out = Demand::default();
    for (request, lists) in (0_u32..).zip(requests) {
        for group in &lists.groups {
            let missing = |side| WalkError::Group {
                request: lists.id.clone(),
                group: group.group,
                side,
            };
            let source_facts = source
                .groups
                .get(&group.group)
                .ok_or_else(|| missing("source"))?;
            let destination_facts = destination
                .groups
                .get(&group.group)
                .ok_or_else(|| missing("destination"))?;
            let paired = pairs(group, lists.tokens, source_facts, destination_facts);
            let layers: Vec<_> = to
                .range((group.group, "")..)
                .take_while(|((id, _), _)| *id == group.group)
                .filter_map(|(key, to)| {
                    Some(Twins {
                        layer: key.1,
                        from: from.get(key)?,
                        to,
                    })
                })
                .collect();
            let blocks = out.blocks.entry(group.group).or_default();
            *blocks = blocks.saturating_add(crate::number::count(paired.len()));
            for &(_, source_id, destination_id) in &paired {
                for layer in &layers {
                    let at = Row {
                        destination: 0,
                        destination_offset: 0,
                        source: 0,
                        source_offset: 0,
                        len: 0,
                        request,
                        group: group.group,
                        block: destination_id,
                    };
                    layer.rows(source_id, at, &mut out)?;
                }
            }
        }
    }
    out.rows.sort_unstable();
    disjoint(&out.rows)?;
    Ok(out)
}

type Layers<'a> = BTreeMap<(u32, &'a str), Vec<&'a View>>;

fn by_layer(layout: &Layout) -> Layers<'_> {
    let mut out = Layers::new();
    for view in &layout.views {
        out.entry((view.group, view.layer.as_str()))
            .or_default()
            .push(view);
    }
    out
}

/// The views of one layer on both sides.
#[derive(Clone, Copy, Debug)]
struct Twins<'a> {
    layer: &'a str,
    from: &'a [&'a View],
    to: &'a [&'a View],
}

impl Twins<'_> {
    /// The rows of one pair of blocks.
    fn rows(self, source_id: u64, at: Row, out: &mut Demand) -> Result<(), WalkError> {
        let names = sorted_names(self.from);
        let unique = names.iter().zip(names.iter().skip(1)).all(|(a, b)| a != b);
        if !unique || names != sorted_names(self.to) {
            // Files that cut a layer differently: its bytes in the order of the file.
            return self.zip(source_id, at, out);
        }
        for view in self.to {
            for twin in self.from.iter().filter(|other| other.name == view.name) {
                let (from, to) = (&[*twin], &[*view]);
                Twins { from, to, ..self }.zip(source_id, at, out)?;
            }
        }
        Ok(())
    }

    /// Rows for the bytes of both sides in order.
    fn zip(self, source_id: u64, at: Row, out: &mut Demand) -> Result<(), WalkError> {
        let source = spans(self.from, source_id)?;
        let destination = spans(self.to, at.block)?;
        let (source_bytes, destination_bytes) = (bytes(&source), bytes(&destination));
        if source_bytes != destination_bytes {
            return Err(WalkError::Length {
                group: at.group,
                layer: self.layer.to_owned(),
                source_bytes,
                destination_bytes,
            });
        }
        let demanded = out.bytes.entry(at.group).or_default();
        *demanded = demanded.saturating_add(destination_bytes);
        let (mut source, mut destination) = (source.into_iter(), destination.into_iter());
        let (mut left, mut right) = (source.next(), destination.next());
        while let (Some((source_allocation, s)), Some((destination_allocation, d))) = (left, right)
        {
            let len = s.len.min(d.len);
            out.rows.push(Row {
                destination: destination_allocation,
                destination_offset: d.offset,
                source: source_allocation,
                source_offset: s.offset,
                len,
                ..at
            });
            left = rest(s, len)
                .map(|span| (source_allocation, span))
                .or_else(|| source.next());
            right = rest(d, len)
                .map(|span| (destination_allocation, span))
                .or_else(|| destination.next());
        }
        Ok(())
    }
}

fn sorted_names<'a>(views: &[&'a View]) -> Vec<&'a str> {
    let mut names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
    names.sort_unstable();
    names
}

fn bytes(spans: &[(u32, Span)]) -> u64 {
    spans
        .iter()
        .fold(0, |sum, (_, span)| sum.saturating_add(span.len))
}

/// What is left of a span after its first `len` bytes.
fn rest(span: Span, len: u64) -> Option<Span> {
    Some(Span {
        offset: span.offset.checked_add(len)?,
        len: span.len.checked_sub(len).filter(|&left| left > 0)?,
    })
}

fn spans(views: &[&View], block: u64) -> Result<Vec<(u32, Span)>, WalkError> {
    let mut out = Vec::new();
    let mut of_view = Vec::new();
    for view in views {
        view.block(block, &mut of_view)?;
        out.extend(of_view.drain(..).map(|span| (view.allocation, span)));
    }
    Ok(out)
}

pub(super) fn disjoint(rows: &[Row]) -> Result<(), WalkError> {
    for (left, right) in rows.iter().zip(rows.iter().skip(1)) {
        let end = left.destination_offset.saturating_add(left.len);
        if left.destination == right.destination && end > right.destination_offset {
            return Err(WalkError::Twice {
                allocation: right.destination,
                offset: right.destination_offset,
            });
        }
    }
    Ok(())
}
