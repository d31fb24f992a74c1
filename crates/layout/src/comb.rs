//! Which bytes one field owns over all ids.

use alloc::boxed::Box;

use crate::error::LayoutError;
use crate::field::Field;
use crate::group::Group;
use crate::ids::{LayerId, PoolId};
use crate::place::FieldPlace;

/// One contiguous piece of one field's block, repeated for every id.
#[derive(Clone, Copy)]
pub(crate) struct Comb<'a> {
    pub(crate) group: &'a Group,
    pub(crate) layer: &'a LayerId,
    pub(crate) field: &'a Field,
    /// Of block 0, from the allocation's start.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) stride: u64,
    pub(crate) blocks: u64,
}

impl Comb<'_> {
    pub(crate) fn end(&self) -> u64 {
        self.blocks
            .saturating_sub(1)
            .saturating_mul(self.stride)
            .saturating_add(self.start)
            .saturating_add(self.len)
    }

    #[expect(clippy::unnecessary_box_returns, reason = "errors hold it boxed")]
    pub(crate) fn place(&self) -> Box<FieldPlace> {
        Box::new(FieldPlace {
            group: self.group.id(),
            layer: self.layer.clone(),
            field: self.field.id().clone(),
        })
    }

    pub(crate) fn class(&self) -> (PoolId, u64) {
        (self.group.pool(), self.stride)
    }
}

/// Counts steps of comparing.
pub(crate) fn spend(
    steps: &mut u64,
    cost: u64,
    a: &Comb<'_>,
    b: &Comb<'_>,
) -> Result<(), LayoutError> {
    *steps = steps
        .checked_sub(cost)
        .ok_or_else(|| LayoutError::OverlayUnprovable {
            first: a.place(),
            second: b.place(),
        })?;
    Ok(())
}

/// Two ids, one of each comb, at which both own a byte, unless that is the same
/// id of one pool under two groups.
pub(crate) fn meet(
    a: &Comb<'_>,
    b: &Comb<'_>,
    steps: &mut u64,
) -> Result<Option<(u64, u64)>, LayoutError> {
    let (common, divisions) = gcd(a.stride, b.stride);
    // Strides of engines need a few; only hostile ones cost steps.
    spend(steps, divisions >> 3, a, b)?;
    let apart = i128::from(a.start)
        .saturating_sub(i128::from(b.start))
        .rem_euclid(i128::from(common));
    if apart >= i128::from(b.len) && apart.saturating_add(i128::from(a.len)) <= i128::from(common) {
        return Ok(None);
    }
    let (few, many, swapped) = if a.blocks <= b.blocks {
        (a, b, false)
    } else {
        (b, a, true)
    };
    spend(steps, few.blocks, a, b)?;
    let same_pool = a.group.pool() == b.group.pool();
    let own = a.group.id() == b.group.id();
    for id in 0..few.blocks {
        let start = id.saturating_mul(few.stride).saturating_add(few.start);
        let end = start.saturating_add(few.len);
        // Ids of `many` whose piece ends after `start` and starts before `end`.
        let low = start
            .saturating_add(1)
            .saturating_sub(many.start.saturating_add(many.len))
            .div_ceil(many.stride);
        let Some(reach) = end
            .checked_sub(1)
            .and_then(|last| last.checked_sub(many.start))
        else {
            continue;
        };
        let high = reach
            .checked_div(many.stride)
            .unwrap_or(0)
            .min(many.blocks.saturating_sub(1));
        let other = if same_pool && !own && low == id {
            low.saturating_add(1)
        } else {
            low
        };
        if other <= high {
            return Ok(Some(if swapped { (other, id) } else { (id, other) }));
        }
    }
    Ok(None)
}

/// Their greatest common divisor, and the divisions it took.
fn gcd(mut a: u64, mut b: u64) -> (u64, u64) {
    let mut divisions = 0_u64;
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
        divisions = divisions.saturating_add(1);
    }
    (a, divisions)
}

#[cfg(test)]
mod tests {
    use super::gcd;

    #[test]
    fn divisions_of_the_greatest_common_divisor_are_counted() {
        assert_eq!(gcd(12, 12), (12, 1));
        assert_eq!(gcd(18, 12), (6, 2));
        assert_eq!(gcd(12, 18), (6, 3));
        // Neighbours in Fibonacci's series are the worst.
        assert_eq!(gcd(1_836_311_903, 1_134_903_170), (1, 44));
    }
}
