//! The proof every plan passes.
//!
//! It looks at every piece of a [`Draft`] and works out anew what each
//! must be, from the layouts and the requests' tables alone.

use alloc::vec::Vec;

use mooncake_pd_layout::{AllocationId, GroupId};

use crate::admission::{Admission, Claim};
use crate::contract::Contract;
use crate::demand::Demand;
use crate::draft::{Draft, Piece, Stretch};
use crate::expected::demanded;
use crate::leases::Leases;
use crate::pairing::Pairing;
use crate::request::{Request, RequestError};
use crate::select::Unfilled;
use crate::walk::Walk;

/// What is wrong with one piece of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PieceProblem {
    /// It reads or writes where nothing is due, or comes out of order.
    #[error("no block's bytes come there")]
    Place,
    /// It ends inside bytes that belong together.
    #[error("it ends inside a block's bytes")]
    Length,
    /// It writes bytes that the contract keeps as they are.
    #[error("it covers bytes that must not be touched")]
    LiveGap,
}

/// Why a draft is not a plan. A fault of the planner, never of its caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Requests, groups or allocations don't come as they should.
    #[error(
        "stretch {stretch} is for group {group} of request {request} between allocations {source_allocation} and {destination_allocation}, which is not what comes there"
    )]
    Stretch {
        /// Index of the stretch.
        stretch: usize,
        /// The request it names.
        request: usize,
        /// The group it names.
        group: GroupId,
        /// The source allocation it names.
        source_allocation: AllocationId,
        /// The destination allocation it names.
        destination_allocation: AllocationId,
    },
    /// A request that may not own its blocks.
    #[error("request {request}: {error}")]
    Request {
        /// Its index.
        request: usize,
        /// Why not.
        error: RequestError,
    },
    /// A piece that reads or writes where it must not, or is out of order.
    #[error(
        "piece {piece} copies {len} bytes from {source_offset} to {destination_offset}: {problem} in group {group} of request {request}"
    )]
    Piece {
        /// Index of the piece.
        piece: usize,
        /// The request.
        request: usize,
        /// The group.
        group: GroupId,
        /// Where it reads.
        source_offset: u64,
        /// Where it writes.
        destination_offset: u64,
        /// Its length.
        len: u64,
        /// What is wrong with it.
        problem: PieceProblem,
    },
    /// Demanded bytes that no piece writes.
    #[error("position {position} of group {group} of request {request} is not written completely")]
    Missing {
        /// The request.
        request: usize,
        /// The group.
        group: GroupId,
        /// Position in blocks.
        position: u64,
    },
    /// A report of unfilled blocks that is not the right one.
    #[error("{reported} blocks are reported unfilled, {unfilled} are, or their reasons differ")]
    Unfilled {
        /// Blocks reported.
        reported: usize,
        /// Blocks that are unfilled.
        unfilled: usize,
    },
    /// Pieces and stretches that don't add up.
    #[error("{pieces} pieces in stretches of {counted}")]
    Count {
        /// Pieces there are.
        pieces: usize,
        /// Pieces the stretches have.
        counted: usize,
    },
}

/// What is checked against.
pub(crate) struct Against<'a> {
    pub(crate) pairing: &'a Pairing<'a>,
    pub(crate) requests: &'a [&'a Request],
    pub(crate) leases: Option<&'a Leases>,
    pub(crate) contract: Contract,
}

/// What comes out of proving a draft.
pub(crate) struct Proof {
    /// Destination blocks that the requests own.
    pub(crate) claims: Vec<Claim>,
    /// Bytes of each stretch.
    pub(crate) bytes: Vec<u64>,
}

/// Proves a draft.
///
/// It proves that each destination byte's source is the byte at the same
/// (group, layer, field, position, offset in page); that destinations are
/// pairwise disjoint and are the demanded payload, no byte missing and, but for
/// gaps the contract allows, none besides; that every piece lies inside one
/// allocation on each side; and that what is not filled is reported.
pub(crate) fn prove(draft: &Draft, against: &Against<'_>) -> Result<Proof, CheckError> {
    let mut claims = Vec::new();
    let destination = against.pairing.destination();
    let mut admission = Admission::new(against.pairing, against.leases);
    for (request, asked) in against.requests.iter().enumerate() {
        admission
            .admit(asked, &mut claims)
            .map_err(|error| CheckError::Request { request, error })?;
    }
    let counted = draft
        .stretches
        .iter()
        .map(|s| s.pieces)
        .fold(0, usize::saturating_add);
    if counted != draft.pieces.len() {
        return Err(CheckError::Count {
            pieces: draft.pieces.len(),
            counted,
        });
    }
    let mut rest = Rest {
        bytes: Vec::with_capacity(draft.stretches.len()),
        stretches: &draft.stretches,
        pieces: &draft.pieces,
        stretch: 0,
        piece: 0,
    };
    let mut unfilled = Vec::new();
    for (request, asked) in against.requests.iter().enumerate() {
        let mut demands = Vec::new();
        for (tables, expected) in asked.tables().iter().zip(against.pairing.expected()) {
            let (pairs, left) = demanded(expected.group, asked.tokens(), tables);
            let group = expected.group.id();
            unfilled.extend(
                left.into_iter()
                    .map(|(position, destination, reason)| Unfilled {
                        request,
                        group,
                        position,
                        destination,
                        reason,
                    }),
            );
            if !pairs.is_empty() && !expected.cells.is_empty() {
                demands.push(Demand::new(expected, pairs));
            }
        }
        rest.request(request, Walk::new(destination, against.contract, demands))?;
    }
    if let Some(stretch) = rest.stretches.first() {
        return Err(stretch_error(rest.stretch, stretch));
    }
    if unfilled != draft.unfilled {
        return Err(CheckError::Unfilled {
            reported: draft.unfilled.len(),
            unfilled: unfilled.len(),
        });
    }
    Ok(Proof {
        claims,
        bytes: rest.bytes,
    })
}

fn stretch_error(index: usize, stretch: &Stretch) -> CheckError {
    CheckError::Stretch {
        stretch: index,
        request: stretch.request,
        group: stretch.group,
        source_allocation: stretch.source,
        destination_allocation: stretch.destination,
    }
}

/// The part of a draft that is still to be looked at.
struct Rest<'a> {
    stretches: &'a [Stretch],
    pieces: &'a [Piece],
    stretch: usize,
    piece: usize,
    /// Of the stretches looked at.
    bytes: Vec<u64>,
}

impl Rest<'_> {
    fn request(&mut self, request: usize, mut walk: Walk<'_>) -> Result<(), CheckError> {
        while let Some((stretch, later)) = self.stretches.split_first() {
            if stretch.request != request {
                break;
            }
            if !walk.enter(stretch) {
                return Err(stretch_error(self.stretch, stretch));
            }
            let Some((mut pieces, rest)) = self.pieces.split_at_checked(stretch.pieces) else {
                break;
            };
            let mut bytes = 0_u64;
            loop {
                let done = walk.sweep(stretch, pieces);
                // They are all of one length.
                let swept = pieces.first().map_or(0, |piece| piece.len);
                let count = u64::try_from(done).unwrap_or(u64::MAX);
                bytes = bytes.saturating_add(swept.saturating_mul(count));
                self.piece = self.piece.saturating_add(done);
                let Some((piece, more)) = pieces.get(done..).and_then(<[Piece]>::split_first)
                else {
                    break;
                };
                walk.piece(stretch, piece)
                    .map_err(|problem| CheckError::Piece {
                        piece: self.piece,
                        request,
                        group: stretch.group,
                        source_offset: piece.source_offset,
                        destination_offset: piece.destination_offset,
                        len: piece.len,
                        problem,
                    })?;
                self.piece = self.piece.saturating_add(1);
                bytes = bytes.saturating_add(piece.len);
                pieces = more;
            }
            self.bytes.push(bytes);
            (self.stretches, self.pieces) = (later, rest);
            self.stretch = self.stretch.saturating_add(1);
        }
        match walk.missing() {
            Some((group, position)) => Err(CheckError::Missing {
                request,
                group,
                position,
            }),
            None => Ok(()),
        }
    }
}
