//! Sets of bytes as intervals, and which byte comes from which.

/// A set of bytes under keys: disjoint intervals in order, neighbours merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set<K>(Vec<(K, u64, u64)>);

/// Bytes by allocation.
pub(crate) type Bytes = Set<u32>;

/// Destination bytes by source allocation, destination allocation and the
/// distance between the two offsets: two of these are equal only if every byte
/// comes from the same one.
pub(crate) type Moves = Set<(u32, u32, i128)>;

/// Source allocation and offset, destination allocation and offset, length.
pub(crate) type Move = (u32, u64, u32, u64, u64);

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// From keys, first bytes and lengths.
impl<K: Ord> FromIterator<(K, u64, u64)> for Set<K> {
    fn from_iter<I: IntoIterator<Item = (K, u64, u64)>>(pieces: I) -> Self {
        let mut all: Vec<(K, u64, u64)> = Vec::new();
        for (key, start, len) in pieces {
            push(&mut all, (key, start, start + len));
        }
        // Few are left where pieces come in order, and sorting is what takes long.
        all.sort_unstable();
        let mut merged = Vec::new();
        for piece in all {
            push(&mut merged, piece);
        }
        Self(merged)
    }
}

/// Adds an interval, to the last one if it begins in it or at its end.
fn push<K: PartialEq>(pieces: &mut Vec<(K, u64, u64)>, (key, start, end): (K, u64, u64)) {
    match pieces.last_mut() {
        Some(last) if last.0 == key && (last.1..=last.2).contains(&start) => {
            last.2 = last.2.max(end);
        }
        _ => pieces.push((key, start, end)),
    }
}

impl<K: Ord + Copy> Set<K> {
    /// Bytes; those under two keys count twice.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|(_, start, end)| end - start).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Intervals as key, first byte and length.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (K, u64, u64)> + '_ {
        self.0
            .iter()
            .map(|&(key, start, end)| (key, start, end - start))
    }

    /// The bytes that are not in `other`.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.0.iter().copied().peekable();
        for &(key, start, end) in &self.0 {
            let mut at = start;
            while let Some(&(hole, from, to)) = holes.peek() {
                if (hole, to) <= (key, at) {
                    holes.next();
                    continue;
                }
                if hole > key || from >= end {
                    break;
                }
                if from > at {
                    left.push((key, at, from));
                }
                at = to.min(end);
                if to >= end {
                    break;
                }
            }
            if at < end {
                left.push((key, at, end));
            }
        }
        Self(left)
    }
}

impl Moves {
    pub(crate) fn of(moves: impl IntoIterator<Item = Move>) -> Self {
        moves
            .into_iter()
            .map(|(source, from, destination, to, len)| {
                let distance = i128::from(to) - i128::from(from);
                ((source, destination, distance), to, len)
            })
            .collect()
    }

    /// The destination bytes, whatever their source.
    pub(crate) fn written(&self) -> Bytes {
        self.pieces()
            .map(|((_, destination, _), to, len)| (destination, to, len))
            .collect()
    }

    /// Whether no destination byte is written from two sources.
    pub(crate) fn have_one_source_each(&self) -> bool {
        self.written().len() == self.len()
    }
}
