//! Damage to drafts.

use std::vec::Vec;

use mooncake_pd_layout::GroupId;

use crate::{Draft, Stretch, UnfilledReason};

/// One change of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A piece reads from `by` bytes further on (wrapping, so also before).
    ShiftSource {
        /// Its index.
        piece: usize,
        /// Bytes.
        by: u64,
    },
    /// A piece writes `by` bytes further on (wrapping, so also before).
    ShiftDestination {
        /// Its index.
        piece: usize,
        /// Bytes.
        by: u64,
    },
    /// A piece is longer by that much (wrapping, so also shorter).
    Resize {
        /// Its index.
        piece: usize,
        /// Bytes.
        by: u64,
    },
    /// A piece copies nothing.
    Empty {
        /// Its index.
        piece: usize,
    },
    /// A piece is not there.
    Drop {
        /// Its index.
        piece: usize,
    },
    /// A piece is there twice.
    Duplicate {
        /// Its index.
        piece: usize,
    },
    /// Two pieces read each other's blocks.
    SwapSources(usize, usize),
    /// Two pieces write each other's blocks.
    SwapDestinations(usize, usize),
    /// Two pieces change places in the list.
    SwapPieces(usize, usize),
    /// A piece is two.
    Cut {
        /// Its index.
        piece: usize,
        /// Bytes of the first.
        at: u64,
    },
    /// Two stretches are for each other's groups.
    SwapGroups(usize, usize),
    /// Two stretches are for each other's requests.
    SwapRequests(usize, usize),
    /// Two stretches are between each other's allocations.
    SwapAllocations(usize, usize),
    /// A stretch is for a group that does not exist.
    UnknownGroup(usize),
    /// A stretch gives its last piece to the next.
    GiveLast(usize),
    /// A stretch takes the first piece of the next.
    TakeFirst(usize),
    /// An entry of the unfilled is not there.
    UnfilledDrop(usize),
    /// An entry of the unfilled is there twice.
    UnfilledDuplicate(usize),
    /// An entry of the unfilled is of the next position.
    UnfilledPosition(usize),
    /// An entry of the unfilled is of another block.
    UnfilledBlock(usize),
    /// An entry of the unfilled is of another request.
    UnfilledRequest(usize),
    /// An entry of the unfilled is for another reason.
    UnfilledReason(usize),
    /// A first entry of the unfilled where there was none.
    UnfilledInvented,
}

impl Mutation {
    /// Every single mutation of a draft; shifts and changes of length by one
    /// byte and by each of `steps` (strides of pages and blocks), pieces
    /// swapped with their neighbours and, of a short draft, with all others.
    #[must_use]
    pub fn singles(draft: &Draft, steps: &[u64]) -> Vec<Self> {
        let mut all = Vec::new();
        let mut steps = steps.to_vec();
        steps.push(1);
        steps.sort_unstable();
        steps.dedup();
        for (piece, original) in draft.pieces.iter().enumerate() {
            for step in &steps {
                for by in [*step, step.wrapping_neg()] {
                    all.push(Self::ShiftSource { piece, by });
                    all.push(Self::ShiftDestination { piece, by });
                    if *step != original.len {
                        all.push(Self::Resize { piece, by });
                    }
                }
            }
            all.push(Self::Empty { piece });
            all.push(Self::Drop { piece });
            all.push(Self::Duplicate { piece });
            let at = original.len / 2;
            if at > 0 {
                all.push(Self::Cut { piece, at });
            }
        }
        for (a, b) in pairs(draft.pieces.len()) {
            all.push(Self::SwapSources(a, b));
            all.push(Self::SwapDestinations(a, b));
            all.push(Self::SwapPieces(a, b));
        }
        for stretch in 0..draft.stretches.len() {
            all.push(Self::UnknownGroup(stretch));
            if stretch + 1 < draft.stretches.len() {
                all.push(Self::GiveLast(stretch));
                all.push(Self::TakeFirst(stretch));
            }
        }
        for (a, b) in pairs(draft.stretches.len()) {
            all.push(Self::SwapGroups(a, b));
            all.push(Self::SwapRequests(a, b));
            all.push(Self::SwapAllocations(a, b));
        }
        for entry in 0..draft.unfilled.len() {
            all.push(Self::UnfilledDrop(entry));
            all.push(Self::UnfilledDuplicate(entry));
            all.push(Self::UnfilledPosition(entry));
            all.push(Self::UnfilledBlock(entry));
            all.push(Self::UnfilledRequest(entry));
            all.push(Self::UnfilledReason(entry));
        }
        all.push(Self::UnfilledInvented);
        all
    }

    /// The draft with this change; one that no longer applies changes nothing.
    #[must_use]
    pub fn apply(self, draft: &Draft) -> Draft {
        let mut draft = draft.clone();
        // `None`: an earlier change took away what this one is about.
        let _ = self.change_piece(&mut draft);
        let _ = self.change_stretch(&mut draft);
        let _ = self.change_unfilled(&mut draft);
        draft
    }

    fn change_piece(self, draft: &mut Draft) -> Option<()> {
        let pieces = &mut draft.pieces;
        match self {
            Self::ShiftSource { piece, by } => {
                let piece = pieces.get_mut(piece)?;
                piece.source_offset = piece.source_offset.wrapping_add(by);
            }
            Self::ShiftDestination { piece, by } => {
                let piece = pieces.get_mut(piece)?;
                piece.destination_offset = piece.destination_offset.wrapping_add(by);
            }
            Self::Resize { piece, by } => {
                let piece = pieces.get_mut(piece)?;
                piece.len = piece.len.wrapping_add(by);
            }
            Self::Empty { piece } => pieces.get_mut(piece)?.len = 0,
            Self::Drop { piece } => {
                stretch_of(draft, piece)?.pieces -= 1;
                draft.pieces.remove(piece);
            }
            Self::Duplicate { piece } => {
                stretch_of(draft, piece)?.pieces += 1;
                draft.pieces.insert(piece, draft.pieces[piece]);
            }
            Self::Cut { piece, at } => {
                let mut rest = *pieces.get(piece).filter(|piece| piece.len > at)?;
                rest.len -= at;
                rest.source_offset = rest.source_offset.wrapping_add(at);
                rest.destination_offset = rest.destination_offset.wrapping_add(at);
                stretch_of(draft, piece)?.pieces += 1;
                draft.pieces[piece].len = at;
                draft.pieces.insert(piece + 1, rest);
            }
            Self::SwapSources(a, b) => {
                let (x, y) = (pieces.get(a)?.source_offset, pieces.get(b)?.source_offset);
                pieces[a].source_offset = y;
                pieces[b].source_offset = x;
            }
            Self::SwapDestinations(a, b) => {
                let of = |at: usize| pieces.get(at).map(|piece| piece.destination_offset);
                let (x, y) = (of(a)?, of(b)?);
                pieces[a].destination_offset = y;
                pieces[b].destination_offset = x;
            }
            Self::SwapPieces(a, b) if a.max(b) < pieces.len() => pieces.swap(a, b),
            _ => {}
        }
        Some(())
    }

    fn change_stretch(self, draft: &mut Draft) -> Option<()> {
        let stretches = &mut draft.stretches;
        match self {
            Self::SwapGroups(a, b) => {
                let (x, y) = (stretches.get(a)?.group, stretches.get(b)?.group);
                stretches[a].group = y;
                stretches[b].group = x;
            }
            Self::SwapRequests(a, b) => {
                let (x, y) = (stretches.get(a)?.request, stretches.get(b)?.request);
                stretches[a].request = y;
                stretches[b].request = x;
            }
            Self::SwapAllocations(a, b) => {
                let of = |at: usize| stretches.get(at).map(|s| (s.source, s.destination));
                let (x, y) = (of(a)?, of(b)?);
                (stretches[a].source, stretches[a].destination) = y;
                (stretches[b].source, stretches[b].destination) = x;
            }
            Self::UnknownGroup(at) => stretches.get_mut(at)?.group = GroupId::new(u32::MAX),
            Self::GiveLast(at) => {
                stretches.get(at + 1)?;
                let given = stretches[at].pieces.checked_sub(1)?;
                stretches[at].pieces = given;
                stretches[at + 1].pieces += 1;
            }
            Self::TakeFirst(at) => {
                let left = stretches.get(at + 1)?.pieces.checked_sub(1)?;
                stretches[at + 1].pieces = left;
                stretches[at].pieces += 1;
            }
            _ => {}
        }
        Some(())
    }

    fn change_unfilled(self, draft: &mut Draft) -> Option<()> {
        let unfilled = &mut draft.unfilled;
        match self {
            Self::UnfilledDrop(at) if at < unfilled.len() => drop(unfilled.remove(at)),
            Self::UnfilledDuplicate(at) => unfilled.insert(at, *unfilled.get(at)?),
            Self::UnfilledPosition(at) => {
                let entry = unfilled.get_mut(at)?;
                entry.position = entry.position.wrapping_add(1);
            }
            Self::UnfilledBlock(at) => {
                let entry = unfilled.get_mut(at)?;
                entry.destination = entry.destination.wrapping_add(1);
            }
            Self::UnfilledRequest(at) => unfilled.get_mut(at)?.request += 1,
            Self::UnfilledReason(at) => {
                let entry = unfilled.get_mut(at)?;
                entry.reason = match entry.reason {
                    UnfilledReason::SourceNull => UnfilledReason::NotHeld,
                    _ => UnfilledReason::SourceNull,
                };
            }
            Self::UnfilledInvented => unfilled.insert(
                0,
                crate::Unfilled {
                    request: 0,
                    group: draft.stretches.first()?.group,
                    position: 0,
                    destination: 0,
                    reason: UnfilledReason::NotHeld,
                },
            ),
            _ => {}
        }
        Some(())
    }
}

/// Neighbours, and all pairs where there are few.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    let reach = if count <= 8 { count } else { 2 };
    (0..count).flat_map(move |a| (a + 1..count.min(a + reach)).map(move |b| (a, b)))
}

/// The stretch that a piece belongs to.
fn stretch_of(draft: &mut Draft, piece: usize) -> Option<&mut Stretch> {
    let mut left = piece;
    draft.stretches.iter_mut().find(|stretch| {
        let inside = left < stretch.pieces;
        left = left.saturating_sub(stretch.pieces);
        inside
    })
}
