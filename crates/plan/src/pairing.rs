//! Two layouts that fit each other.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use mooncake_pd_layout::{
    CacheLayout, Difference, Group, GroupId, GroupKind, LayerId, MAX_SEGMENTS, Pool,
    TokensPerBlock, compare,
};

use crate::atom::{Atom, atoms};
use crate::dead::is_bridgeable;
use crate::expected::Expected;
use crate::lower::dead_gaps;

/// Two layouts between which nothing can be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible {
    differences: Vec<Difference>,
}

impl Incompatible {
    /// All differences, also those that would do no harm by themselves.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the layouts are incompatible")?;
        let mut separator = ": ";
        for difference in self.differences.iter().filter(|d| d.is_incompatible()) {
            write!(f, "{separator}{difference}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl core::error::Error for Incompatible {}

/// Why two layouts can't be paired: an incompatible peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// They differ in what their bytes mean.
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    /// A block is interrupted too often to be planned within bounded memory.
    #[error("a block is more than {limit} pieces that are contiguous on both sides")]
    TooManyPieces {
        /// Most pieces allowed.
        limit: usize,
    },
}

/// What ids and positions of a request depend on: every group's kind and tokens
/// per block, and its pool at the source and at the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape(Vec<GroupShape>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupShape {
    id: GroupId,
    kind: GroupKind,
    tokens_per_block: TokensPerBlock,
    source: Option<Pool>,
    destination: Option<Pool>,
}

impl Shape {
    fn new(source: &CacheLayout, destination: &CacheLayout) -> Self {
        let groups = source.groups().iter().zip(destination.groups());
        let shape = |(from, to): (&Group, &Group)| GroupShape {
            id: from.id(),
            kind: from.kind(),
            tokens_per_block: from.tokens_per_block(),
            source: source.pool(from.pool()).cloned(),
            destination: destination.pool(to.pool()).cloned(),
        };
        Self(groups.map(shape).collect())
    }
}

/// One group on both sides.
#[derive(Clone, Debug)]
pub(crate) struct GroupPair<'a> {
    pub(crate) source: &'a Group,
    pub(crate) destination: &'a Group,
    /// By destination address.
    pub(crate) atoms: Vec<Atom>,
    /// Whether gaps may be bridged at all.
    pub(crate) bridgeable: bool,
    /// For each atom: whether the gap to the next one is dead.
    pub(crate) dead: Vec<bool>,
    /// Payload bytes of one block over all common layers.
    pub(crate) payload: u64,
    /// Layers that only the destination has.
    pub(crate) local: Vec<&'a LayerId>,
}

/// Two layouts that fit each other, prepared for planning: groups paired by id,
/// layers and fields by name.
#[derive(Clone, Debug)]
pub struct Pairing<'a> {
    source: &'a CacheLayout,
    destination: &'a CacheLayout,
    groups: Vec<GroupPair<'a>>,
    /// What the check expects, worked out without `groups`.
    expected: Vec<Expected<'a>>,
    shape: Arc<Shape>,
    notes: Vec<Difference>,
}

impl<'a> Pairing<'a> {
    /// Pairs the side that has the bytes with the side that wants them.
    ///
    /// # Errors
    /// The layouts are incompatible, or a block is in too many pieces.
    pub fn new(
        source: &'a CacheLayout,
        destination: &'a CacheLayout,
    ) -> Result<Self, PairingError> {
        let differences = compare(source, destination);
        if differences.iter().any(Difference::is_incompatible) {
            return Err(Incompatible { differences }.into());
        }
        let mut groups = Vec::new();
        let mut pieces = 0_usize;
        for (from, to) in source.groups().iter().zip(destination.groups()) {
            let pair = group_pair(from, to);
            pieces = pieces.saturating_add(pair.atoms.len());
            if pieces > MAX_SEGMENTS {
                return Err(PairingError::TooManyPieces {
                    limit: MAX_SEGMENTS,
                });
            }
            groups.push(pair);
        }
        let bridgeable = is_bridgeable(destination, pieces);
        for pair in groups.iter_mut().filter(|_| bridgeable) {
            pair.bridgeable = true;
            pair.dead = dead_gaps(&pair.atoms, destination, pair.destination);
        }
        let expected = source
            .groups()
            .iter()
            .zip(destination.groups())
            .map(|(from, to)| Expected::new(from, to, destination, bridgeable))
            .collect();
        Ok(Self {
            source,
            destination,
            groups,
            expected,
            shape: Arc::new(Shape::new(source, destination)),
            notes: differences,
        })
    }

    /// The side that has the bytes.
    #[must_use]
    pub const fn source(&self) -> &'a CacheLayout {
        self.source
    }

    /// The side that wants them.
    #[must_use]
    pub const fn destination(&self) -> &'a CacheLayout {
        self.destination
    }

    /// Differences that do no harm: layers only the destination has, content
    /// that only one side states.
    #[must_use]
    pub fn notes(&self) -> &[Difference] {
        &self.notes
    }

    pub(crate) const fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    pub(crate) fn expected(&self) -> &[Expected<'a>] {
        &self.expected
    }

    pub(crate) fn group(&self, id: GroupId) -> Option<&GroupPair<'a>> {
        let at = self
            .groups
            .binary_search_by_key(&id, |pair| pair.source.id())
            .ok()?;
        self.groups.get(at)
    }
}

fn group_pair<'a>(source: &'a Group, destination: &'a Group) -> GroupPair<'a> {
    let mut pair = GroupPair {
        source,
        destination,
        atoms: Vec::new(),
        bridgeable: false,
        dead: Vec::new(),
        payload: 0,
        local: Vec::new(),
    };
    for (layer, page) in destination.layers() {
        let Some(other) = source.layers().get(layer) else {
            pair.local.push(layer);
            continue;
        };
        for field in page.fields() {
            if let Some(from) = other.field(field.id()) {
                atoms(from, field, &mut pair.atoms);
                pair.payload = pair.payload.saturating_add(field.payload_len().get());
            }
        }
    }
    pair.atoms
        .sort_by_key(|atom| (atom.destination, atom.destination_start));
    pair.dead = vec![false; pair.atoms.len()];
    pair
}
