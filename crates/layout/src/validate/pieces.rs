//! The checks of how much a block is made of.

use crate::error::LayoutError;
use crate::field::Field;
use crate::limits::MAX_SEGMENTS;
use crate::place::Place;
use crate::run::Run;

/// Contiguous pieces that one block of all fields so far has.
#[derive(Default)]
pub(super) struct Pieces(u64);

impl Pieces {
    /// Counts those of one more field.
    pub(super) fn spend(&mut self, field: &Field) -> Result<(), LayoutError> {
        let own = field
            .payload()
            .iter()
            .map(Run::count)
            .fold(0_u64, |sum, count| sum.saturating_add(u64::from(count)));
        self.0 = self.0.saturating_add(own);
        let limit = u64::try_from(MAX_SEGMENTS).unwrap_or(u64::MAX);
        if self.0 > limit {
            return Err(LayoutError::TooMany {
                place: Place::Layout,
                what: "pieces in a block",
                count: self.0,
                limit,
            });
        }
        Ok(())
    }
}
