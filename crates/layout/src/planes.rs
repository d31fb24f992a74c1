//! Where the blocks of a layout repeat.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::axis::Dim;
use crate::field::Field;
use crate::group::Group;
use crate::ids::{AllocationId, LayerId, PoolId};
use crate::layout::CacheLayout;
use crate::place::FieldPlace;
use crate::raw::RawField;
use crate::resize::{Change, ResizeError};

/// One field and how its blocks are spread.
pub(crate) struct Member<'a> {
    group: &'a Group,
    layer: &'a LayerId,
    pub(crate) field: &'a Field,
    /// Outer axes that step from plane to plane; the others stay in a row.
    apart: &'a [Dim],
    /// Bytes from its first byte in a plane to its last.
    reach: u64,
    /// Its only block is in more than one row: where planes begin is unknown,
    /// and it is taken as a whole.
    unclear: bool,
}

/// Every field of a layout, in the order of a manifest.
pub(crate) fn members(layout: &CacheLayout) -> Vec<Member<'_>> {
    let mut members = Vec::new();
    for group in layout.groups() {
        let capacity = layout
            .pool(group.pool())
            .map_or(0, crate::pool::Pool::capacity);
        for (layer, field) in group.fields() {
            members.push(Member::new(group, layer, field, capacity));
        }
    }
    members
}

/// The same by allocation.
pub(crate) fn by_allocation<'m, 'a>(
    members: &'m [Member<'a>],
) -> BTreeMap<AllocationId, Vec<&'m Member<'a>>> {
    let mut all: BTreeMap<AllocationId, Vec<&Member<'_>>> = BTreeMap::new();
    for member in members {
        let allocation = member.field.allocation();
        all.entry(allocation).or_default().push(member);
    }
    all
}

// Every byte of a validated field is below 2^62, so that saturating arithmetic is
// exact on where it lies; on where it would lie, what saturates is not even.
impl<'a> Member<'a> {
    fn new(group: &'a Group, layer: &'a LayerId, field: &'a Field, capacity: u32) -> Self {
        let stride = field.block_stride().get();
        let mut row = field.dtype().size();
        let mut apart = field.dims();
        while let Some((dim, outer)) = apart.split_last() {
            let steps = dim.extent().saturating_sub(1);
            let wider = steps.saturating_mul(dim.stride()).saturating_add(row);
            if wider > stride {
                break;
            }
            row = wider;
            apart = outer;
        }
        let unclear = capacity == 1 && !apart.is_empty();
        if unclear {
            row = field.span().get();
            apart = &[];
        }
        let last = u64::from(capacity.saturating_sub(1));
        Self {
            group,
            layer,
            field,
            apart,
            reach: last.saturating_mul(stride).saturating_add(row),
            unclear,
        }
    }

    fn stride(&self) -> u64 {
        self.field.block_stride().get()
    }

    fn class(&self) -> (PoolId, u64) {
        (self.group.pool(), self.stride())
    }

    #[expect(clippy::unnecessary_box_returns, reason = "errors hold it boxed")]
    fn place(&self) -> Box<FieldPlace> {
        Box::new(FieldPlace {
            group: self.group.id(),
            layer: self.layer.clone(),
            field: self.field.id().clone(),
        })
    }

    pub(crate) fn scattered(&self) -> ResizeError {
        ResizeError::Scattered {
            place: self.place(),
            stride: self.stride(),
        }
    }

    /// Its first byte in each of its planes, were it at `offset` and its axes
    /// apart of these strides; ascending for the offset and strides it has.
    fn starts(&self, offset: u64, strides: &[u64]) -> Vec<u64> {
        let mut starts = vec![offset];
        for (dim, stride) in self.apart.iter().zip(strides) {
            starts = starts
                .into_iter()
                .flat_map(|start| {
                    (0..dim.extent())
                        .map(move |step| step.saturating_mul(*stride).saturating_add(start))
                })
                .collect();
        }
        starts
    }

    fn planes(&self) -> Vec<u64> {
        let strides: Vec<u64> = self.apart.iter().map(Dim::stride).collect();
        self.starts(self.field.offset().get(), &strides)
    }

    /// Changes the manifest of this field to where its planes come to lie.
    pub(crate) fn relocate(
        &self,
        change: &Change,
        planes: &Planes,
        raw: &mut RawField,
    ) -> Result<(), ResizeError> {
        let moved = |at| change.moved(at, planes.strides_before(at));
        let offset = self.field.offset().get();
        raw.offset = moved(offset)?;
        let mut strides = Vec::new();
        for dim in self.apart {
            let stride = moved(offset.saturating_add(dim.stride()))?.saturating_sub(raw.offset);
            strides.push(stride);
            for raw in raw.dims.iter_mut().filter(|raw| raw.axis == dim.axis()) {
                raw.stride = stride;
            }
        }
        let even = self.starts(raw.offset, &strides);
        for (start, even) in self.planes().into_iter().zip(even) {
            if moved(start)? != even {
                return Err(self.scattered());
            }
        }
        Ok(())
    }
}

/// Part of a field that lies in one plane.
struct Strip<'m, 'a> {
    start: u64,
    end: u64,
    index: usize,
    member: &'m Member<'a>,
}

/// The planes of one allocation that change their length.
pub(crate) struct Planes {
    /// End of each, ascending, and the sum of strides up to it.
    ends: Vec<(u64, u64)>,
    /// Sum of all their strides.
    pub(crate) strides: u64,
}

impl Planes {
    /// Finds the planes of the pool that is to change.
    pub(crate) fn find(
        change: &Change,
        allocation: AllocationId,
        members: &[&Member<'_>],
    ) -> Result<Self, ResizeError> {
        let mut strips = Vec::new();
        for (index, member) in members.iter().enumerate() {
            if member.unclear && member.group.pool() == change.pool {
                return Err(ResizeError::SingleBlock {
                    pool: change.pool,
                    first: member.place(),
                    second: member.place(),
                });
            }
            strips.extend(member.planes().into_iter().map(|start| Strip {
                start,
                end: start.saturating_add(member.reach),
                index,
                member,
            }));
        }
        strips.sort_by_key(|strip| strip.start);
        let mut found = Self {
            ends: Vec::new(),
            strides: 0,
        };
        let mut previous: Option<&Member<'_>> = None;
        // Of each member, the plane it was last seen in.
        let mut seen = vec![0_u64; members.len()];
        let mut number = 0_u64;
        let mut rest = strips.as_slice();
        while let Some((plane, end)) = take_plane(&mut rest) {
            number = number.saturating_add(1);
            let Some(own) = plane
                .iter()
                .find(|strip| strip.member.group.pool() == change.pool)
                .map(|strip| strip.member)
            else {
                continue;
            };
            for strip in plane {
                if strip.member.class() != own.class() {
                    return Err(mixed(allocation, own, strip.member));
                }
                if let Some(last) = seen.get_mut(strip.index)
                    && core::mem::replace(last, number) == number
                {
                    return Err(strip.member.scattered());
                }
                // Fewer blocks would pull it apart into a plane of its own.
                if let Some(first) = plane.first()
                    && strip.start.saturating_sub(first.start) >= own.stride()
                {
                    return Err(ResizeError::Skewed {
                        first: first.member.place(),
                        second: strip.member.place(),
                        stride: own.stride(),
                        allocation,
                    });
                }
            }
            if let Some(previous) = previous
                && change.from == 1
            {
                return Err(ResizeError::SingleBlock {
                    pool: change.pool,
                    first: previous.place(),
                    second: own.place(),
                });
            }
            previous = Some(own);
            found.strides = found.strides.saturating_add(own.stride());
            found.ends.push((end, found.strides));
        }
        Ok(found)
    }

    /// Sum of the strides of the planes that end at or before a byte.
    fn strides_before(&self, at: u64) -> u64 {
        let count = self.ends.partition_point(|(end, _)| *end <= at);
        count
            .checked_sub(1)
            .and_then(|last| self.ends.get(last))
            .map_or(0, |(_, strides)| *strides)
    }
}

/// Splits off the leading strips that reach over each other's bytes, and says
/// where they end.
fn take_plane<'s, 'm, 'a>(rest: &mut &'s [Strip<'m, 'a>]) -> Option<(&'s [Strip<'m, 'a>], u64)> {
    let mut end = rest.first()?.end;
    let count = rest
        .iter()
        .take_while(|strip| {
            let inside = strip.start < end;
            end = end.max(if inside { strip.end } else { 0 });
            inside
        })
        .count();
    let (plane, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    Some((plane, end))
}

fn mixed(allocation: AllocationId, first: &Member<'_>, second: &Member<'_>) -> ResizeError {
    ResizeError::Mixed {
        first: first.place(),
        first_pool: first.group.pool(),
        first_stride: first.stride(),
        second: second.place(),
        second_pool: second.group.pool(),
        second_stride: second.stride(),
        allocation,
    }
}
