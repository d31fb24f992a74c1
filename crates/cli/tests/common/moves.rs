//! Which destination byte comes from which source byte, as intervals.

use std::collections::BTreeMap;

/// A set of bytes of one allocation: disjoint intervals in order, neighbours
/// merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes(Vec<(u64, u64)>);

/// From first bytes and lengths.
impl FromIterator<(u64, u64)> for Bytes {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(pieces: I) -> Self {
        let mut all: Vec<(u64, u64)> = pieces
            .into_iter()
            .map(|(start, len)| (start, start + len))
            .collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in all {
            match merged.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }
}

impl Bytes {
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Intervals as first byte and length.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|&(start, end)| (start, end - start))
    }

    /// The bytes that are not in `other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.0.iter().copied().peekable();
        for &(start, end) in &self.0 {
            let mut at = start;
            while let Some(&(from, to)) = holes.peek() {
                if to <= at {
                    holes.next();
                    continue;
                }
                if from >= end {
                    break;
                }
                if from > at {
                    left.push((at, from));
                }
                at = to;
                if to >= end {
                    break;
                }
            }
            if at < end {
                left.push((at, end));
            }
        }
        Self(left)
    }
}

/// Destination bytes by source allocation, destination allocation and the
/// distance between the two offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves(BTreeMap<(u32, u32, i128), Bytes>);

/// Source allocation and offset, destination allocation and offset, length.
pub(crate) type Move = (u32, u64, u32, u64, u64);

impl FromIterator<Move> for Moves {
    fn from_iter<I: IntoIterator<Item = Move>>(moves: I) -> Self {
        let mut all: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
        for (source, from, destination, to, len) in moves {
            let distance = i128::from(to) - i128::from(from);
            all.entry((source, destination, distance))
                .or_default()
                .push((to, len));
        }
        Self(
            all.into_iter()
                .map(|(key, pieces)| (key, pieces.into_iter().collect()))
                .collect(),
        )
    }
}

impl Moves {
    /// Bytes moved; a byte that is written from two sources counts twice.
    pub(crate) fn len(&self) -> u64 {
        self.0.values().map(Bytes::len).sum()
    }

    /// What is moved here and not, or from elsewhere, there.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let nothing = Bytes::default();
        Self(
            self.0
                .iter()
                .map(|(key, bytes)| (*key, bytes.minus(other.0.get(key).unwrap_or(&nothing))))
                .filter(|(_, bytes)| bytes.len() > 0)
                .collect(),
        )
    }

    /// The destination bytes by allocation, whatever their source.
    pub(crate) fn written(&self) -> BTreeMap<u32, Bytes> {
        let mut all: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for (&(_, destination, _), bytes) in &self.0 {
            all.entry(destination).or_default().extend(bytes.pieces());
        }
        all.into_iter()
            .map(|(allocation, pieces)| (allocation, pieces.into_iter().collect()))
            .collect()
    }

    /// Whether no destination byte is written from two sources.
    pub(crate) fn have_one_source_each(&self) -> bool {
        self.written().values().map(Bytes::len).sum::<u64>() == self.len()
    }
}
