//! Whether descriptors of one submission write the same bytes.

use crate::batch::{Descriptor, Operation, Submission};
use crate::error::{SubmitError, Violation};

/// Addresses `start..end` of one descriptor.
#[derive(Clone, Copy, Debug)]
struct Used {
    start: u64,
    end: u64,
    index: usize,
}

/// Destinations of a submission, ascending and disjoint.
#[derive(Debug)]
pub(super) struct Written {
    used: Vec<Used>,
}

impl Written {
    /// Checks that destinations `(address, len)` are disjoint; says which
    /// descriptor is wrong otherwise.
    pub(super) fn new(
        destinations: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Self, (usize, Violation)> {
        let used = |(index, (start, len)): (usize, (u64, u64))| Used {
            start,
            end: start.saturating_add(len),
            index,
        };
        let mut used: Vec<Used> = destinations.enumerate().map(used).collect();
        used.sort_unstable_by_key(|used| used.start);
        for (first, second) in used.iter().zip(used.iter().skip(1)) {
            if second.start < first.end {
                let (index, other) = (first.index.max(second.index), first.index.min(second.index));
                let at = |used: &Used| (used.index == index).then_some(used.start);
                let address = at(first).or(at(second)).unwrap_or(second.start);
                return Err((index, Violation::DestinationTwice { address, other }));
            }
        }
        Ok(Self { used })
    }

    /// Checks that no source `(address, len)` of the same process is written.
    pub(super) fn check_sources(
        &self,
        sources: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), (usize, Violation)> {
        for (other, (start, len)) in sources.enumerate() {
            // They are disjoint: only the first that ends behind the start can
            // meet this source first.
            let at = self.used.partition_point(|used| used.end <= start);
            if let Some(used) = self.used.get(at)
                && used.start < start.saturating_add(len)
            {
                let address = used.start;
                return Err((
                    used.index,
                    Violation::DestinationIsSource { address, other },
                ));
            }
        }
        Ok(())
    }
}

/// Checks what can be known without asking the peer; where both sides are one
/// engine, sources as well.
pub(super) fn check(submission: Submission<'_>, is_self: bool) -> Result<(), SubmitError> {
    let refused = |(index, violation)| SubmitError::Descriptor { index, violation };
    let writes = submission.operation() == Operation::Write;
    let local = |one: &Descriptor| (one.local().get(), one.len().get());
    let remote = |one: &Descriptor| (one.remote().get(), one.len().get());
    let to = |one| if writes { remote(one) } else { local(one) };
    let from = |one| if writes { local(one) } else { remote(one) };
    let all = submission.descriptors();
    let written = Written::new(all.iter().map(to)).map_err(refused)?;
    if is_self {
        let checked = written.check_sources(all.iter().map(from));
        checked.map_err(refused)?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    quickcheck! {
        fn a_byte_written_twice_is_found_and_nothing_else(raw: Vec<(u8, u8)>) -> bool {
            let all: Vec<(u64, u64)> = raw
                .iter()
                .map(|(start, len)| (u64::from(*start), u64::from(len % 16) + 1))
                .collect();
            let mut seen = [false; 512];
            let twice = all.iter().any(|(start, len)| {
                (*start..start + len)
                    .any(|at| std::mem::replace(&mut seen[usize::try_from(at).unwrap()], true))
            });
            Written::new(all.into_iter()).is_err() == twice
        }

        fn a_source_that_is_written_is_found_and_nothing_else(to: u8, source: u8, len: u8) -> bool {
            let [to, source, len] = [to, source, len].map(u64::from);
            let written = Written::new([(to, 8), (to + 8, len + 1)].into_iter()).unwrap();
            let meets = source < to + 9 + len && to < source + len + 1;
            written.check_sources([(source, len + 1)].into_iter()).is_err() == meets
        }
    }
}
