//! Which ranges of which allocations are registered.

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, CacheLayout, Offset, QuantityError};

use crate::capabilities::RegistrationLimits;

/// Why allocations can't be registered within an engine's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationPlanError {
    /// A length of zero or beyond 2^62.
    #[error("allocation {allocation}: {error}")]
    Length {
        /// Which allocation.
        allocation: AllocationId,
        /// What is wrong with its length.
        error: QuantityError,
    },
    /// The same allocation twice.
    #[error("allocation {allocation} appears twice")]
    Twice {
        /// Which.
        allocation: AllocationId,
    },
    /// More regions than the engine takes.
    #[error(
        "allocations up to {allocation} need {regions} regions, the engine takes at most {limit}"
    )]
    TooManyRegions {
        /// The allocation with which the limit was passed.
        allocation: AllocationId,
        /// Regions needed so far.
        regions: u64,
        /// Most regions.
        limit: u32,
    },
}

/// One range to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRegion {
    allocation: AllocationId,
    span: ByteSpan,
}

impl PlannedRegion {
    /// The allocation it is of.
    #[must_use]
    pub const fn allocation(&self) -> AllocationId {
        self.allocation
    }

    /// Its bytes, from the allocation's start.
    #[must_use]
    pub const fn span(&self) -> ByteSpan {
        self.span
    }
}

/// Every allocation of a layout once, each whole where the engine can.
///
/// Views (groups, layers, fields) are never registered, so that duplicate,
/// nested and touching views don't matter. Allocations are never merged, even
/// where their addresses touch: a descriptor must lie within one registration,
/// and within one allocation, whoever made them neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationPlan {
    regions: Vec<PlannedRegion>,
}

impl RegistrationPlan {
    /// Plans the allocations of a layout.
    ///
    /// # Errors
    /// They need more regions than the engine takes.
    pub fn of_layout(
        layout: &CacheLayout,
        limits: RegistrationLimits,
    ) -> Result<Self, RegistrationPlanError> {
        Self::of(
            layout
                .allocations()
                .iter()
                .map(|allocation| (allocation.id(), allocation.len().get())),
            limits,
        )
    }

    /// Plans allocations of these lengths in bytes.
    ///
    /// # Errors
    /// A length out of range, an allocation twice, or more regions needed than
    /// the engine takes; the last before any memory is spent on them.
    pub fn of(
        allocations: impl IntoIterator<Item = (AllocationId, u64)>,
        limits: RegistrationLimits,
    ) -> Result<Self, RegistrationPlanError> {
        let mut seen = indexmap::IndexSet::new();
        let mut regions = Vec::new();
        for (allocation, len) in allocations {
            if !seen.insert(allocation) {
                return Err(RegistrationPlanError::Twice { allocation });
            }
            let length = |error| RegistrationPlanError::Length { allocation, error };
            let len = ByteLen::new(len).map_err(length)?;
            let piece = limits.piece().unwrap_or(len);
            let needed = u64::try_from(regions.len())
                .unwrap_or(u64::MAX)
                .saturating_add(len.get().div_ceil(piece.get()));
            if needed > u64::from(limits.max_regions()) {
                return Err(RegistrationPlanError::TooManyRegions {
                    allocation,
                    regions: needed,
                    limit: limits.max_regions(),
                });
            }
            let mut start = Offset::ZERO;
            while let Some(left) = len.get().checked_sub(start.get()).filter(|left| *left > 0) {
                let len = ByteLen::new(left.min(piece.get())).map_err(length)?;
                let span = ByteSpan::new(start, len).map_err(length)?;
                start = Offset::new(span.end()).map_err(length)?;
                regions.push(PlannedRegion { allocation, span });
            }
        }
        Ok(Self { regions })
    }

    /// Ranges to register: allocations as given, their pieces ascending.
    #[must_use]
    pub fn regions(&self) -> &[PlannedRegion] {
        &self.regions
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    fn limits(max_len: u64, alignment: u64, max_regions: u32) -> RegistrationLimits {
        RegistrationLimits::new(max_regions)
            .unwrap()
            .with_max_len(
                ByteLen::new(max_len).unwrap(),
                ByteLen::new(alignment).unwrap(),
            )
            .unwrap()
    }

    fn flat(plan: &RegistrationPlan) -> Vec<(u32, u64, u64)> {
        plan.regions()
            .iter()
            .map(|region| {
                let span = region.span();
                (region.allocation().get(), span.start().get(), span.end())
            })
            .collect()
    }

    fn named(lens: &[u64]) -> impl Iterator<Item = (AllocationId, u64)> {
        (0..).map(AllocationId::new).zip(lens.iter().copied())
    }

    #[test]
    fn c23_an_allocation_over_the_limit_is_split_at_the_alignment() {
        let plan = RegistrationPlan::of(named(&[10_000, 8_192]), limits(9_000, 4_096, 8)).unwrap();
        assert_eq!(
            flat(&plan),
            [(0, 0, 8_192), (0, 8_192, 10_000), (1, 0, 8_192)]
        );
    }

    #[test]
    fn c23_more_regions_than_the_engine_takes_are_refused() {
        assert!(RegistrationPlan::of(named(&[100, 100]), limits(50, 50, 4)).is_ok());
        assert_eq!(
            RegistrationPlan::of(named(&[100, 101]), limits(50, 50, 4)),
            Err(RegistrationPlanError::TooManyRegions {
                allocation: AllocationId::new(1),
                regions: 5,
                limit: 4
            })
        );
    }

    #[test]
    fn an_absurd_allocation_is_refused_without_spending_memory_on_it() {
        assert_eq!(
            RegistrationPlan::of(named(&[1 << 61]), limits(4_096, 4_096, u32::MAX)),
            Err(RegistrationPlanError::TooManyRegions {
                allocation: AllocationId::new(0),
                regions: 1 << 49,
                limit: u32::MAX
            })
        );
    }

    #[test]
    fn an_allocation_is_registered_once_and_is_not_empty() {
        let id = AllocationId::new(0);
        let plan = |lens: &[u64]| {
            RegistrationPlan::of(
                lens.iter().map(|len| (id, *len)),
                RegistrationLimits::default(),
            )
        };
        assert_eq!(flat(&plan(&[7]).unwrap()), [(0, 0, 7)]);
        assert_eq!(
            plan(&[7, 7]),
            Err(RegistrationPlanError::Twice { allocation: id })
        );
        assert!(matches!(
            plan(&[0]),
            Err(RegistrationPlanError::Length { .. })
        ));
    }

    quickcheck! {
        fn every_allocation_is_covered_exactly_once(lens: Vec<u16>, max: u16, align: u8) -> bool {
            let lens: Vec<u64> = lens.iter().map(|len| u64::from(*len) + 1).collect();
            let align = u64::from(align) + 1;
            let max = u64::from(max) + align;
            let plan = RegistrationPlan::of(named(&lens), limits(max, align, u32::MAX)).unwrap();
            let mut regions = plan.regions().iter();
            for (id, len) in named(&lens) {
                let mut at = 0;
                while at < len {
                    let Some(region) = regions.next() else { return false };
                    let span = region.span();
                    let inner_border = span.end() < len;
                    if region.allocation() != id
                        || span.start().get() != at
                        || span.len().get() > max
                        || (inner_border && span.end() % align != 0)
                    {
                        return false;
                    }
                    at = span.end();
                }
                if at != len {
                    return false;
                }
            }
            regions.next().is_none()
        }
    }
}
