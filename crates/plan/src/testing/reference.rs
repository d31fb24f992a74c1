//! The plain check: sort all copies, sweep over them and over what is demanded.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use super::demand::{Demand, Move, Want, sorted};
use super::plain::{Owner, Place, Plain};
use crate::{Contract, Draft};

/// What is wrong with a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Stretches and pieces don't add up.
    Count,
    /// A piece of no bytes.
    Empty,
    /// A piece that leaves an allocation, or is in none.
    Outside,
    /// Two pieces that write the same byte.
    Overlap,
    /// A byte that must be written and is not.
    Missing,
    /// A byte that is written and must not be.
    Surplus,
    /// A byte from the wrong place.
    WrongSource,
    /// A piece under the wrong request or group.
    WrongLabel,
    /// The wrong report of unfilled blocks.
    WrongUnfilled,
}

/// Bytes that follow each other on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    destination: Place,
    source: Place,
    len: u64,
    request: usize,
    group: u32,
}

impl Interval {
    fn follows(&self, last: &Self) -> bool {
        let next = |place: Place| (place.0, place.1.saturating_add(last.len));
        self.request == last.request
            && self.destination == next(last.destination)
            && self.source == next(last.source)
    }
}

/// Sorts intervals and joins those that follow each other for one request: of
/// several groups, if wanted, under the first one's.
fn joined(mut all: Vec<Interval>, over_groups: bool) -> Vec<Interval> {
    all.sort_unstable();
    let mut joined: Vec<Interval> = Vec::new();
    for next in all {
        match joined.last_mut() {
            Some(last)
                if (over_groups || last.group == next.group)
                    && last.len > 0
                    && next.len > 0
                    && next.follows(last) =>
            {
                last.len = last.len.saturating_add(next.len);
            }
            _ => joined.push(next),
        }
    }
    joined
}

/// What a draft writes, from where and for whom, however it is cut and ordered:
/// a piece may run on into the next group, so a group counts where bytes begin.
/// `None` if stretches and pieces don't add up.
#[must_use]
pub fn written(draft: &Draft) -> Option<Vec<Interval>> {
    intervals(draft).map(|all| joined(all, true))
}

fn intervals(draft: &Draft) -> Option<Vec<Interval>> {
    let mut pieces = draft.pieces.iter();
    let mut all = Vec::new();
    for stretch in &draft.stretches {
        for _ in 0..stretch.pieces {
            let piece = pieces.next()?;
            all.push(Interval {
                destination: (stretch.destination.get(), piece.destination_offset),
                source: (stretch.source.get(), piece.source_offset),
                len: piece.len,
                request: stretch.request,
                group: stretch.group.get(),
            });
        }
    }
    pieces.next().is_none().then_some(all)
}

/// Decides whether a draft is right, with no regard to how it is cut and
/// ordered. It shares no code with planning and with the check.
#[derive(Clone, Debug)]
pub struct Reference<'a> {
    source: &'a Plain,
    destination: &'a Plain,
    demand: &'a Demand,
    demanded: Vec<Interval>,
    dead: Option<Dead>,
}

impl<'a> Reference<'a> {
    /// Judges drafts of these demands.
    #[must_use]
    pub fn new(
        source: &'a Plain,
        destination: &'a Plain,
        demand: &'a Demand,
        contract: Contract,
    ) -> Self {
        let interval = |want: &Want| Interval {
            destination: want.destination,
            source: want.source,
            len: 1,
            request: want.request,
            group: want.group,
        };
        Self {
            source,
            destination,
            demand,
            demanded: joined(demand.wants.iter().map(interval).collect(), false),
            dead: match contract {
                Contract::PayloadOnly => None,
                Contract::BridgeDead { max_gap } => {
                    Some(Dead::new(destination, demand, max_gap.get()))
                }
            },
        }
    }

    /// Whether a byte of the destination may receive stale bytes for somebody.
    #[must_use]
    pub fn may_change(&self, place: Place) -> bool {
        let requests: BTreeSet<usize> = self.demanded.iter().map(|want| want.request).collect();
        self.dead.as_ref().is_some_and(|dead| {
            let mut requests = requests.into_iter();
            requests.any(|request| dead.is_dead(place, request))
        })
    }

    /// Judges a draft.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, draft: &Draft) -> Result<(), Fault> {
        let pieces = intervals(draft).ok_or(Fault::Count)?;
        for piece in &pieces {
            if piece.len == 0 {
                return Err(Fault::Empty);
            }
            inside(self.source, piece.source, piece.len)?;
            inside(self.destination, piece.destination, piece.len)?;
        }
        let pieces = joined(pieces, true);
        let mut free = (0, 0);
        for piece in &pieces {
            if piece.destination < free {
                return Err(Fault::Overlap);
            }
            free = (piece.destination.0, piece.destination.1 + piece.len);
        }
        let mut wants = self.demanded.iter().copied();
        let mut want = wants.next();
        for piece in &pieces {
            let mut done = 0;
            while done < piece.len {
                let at = (piece.destination.0, piece.destination.1 + done);
                let next = want.ok_or(Fault::Surplus)?;
                if next.destination < at {
                    return Err(Fault::Missing);
                }
                if next.destination == at {
                    let len = next.len.min(piece.len - done);
                    if next.source != (piece.source.0, piece.source.1 + done) {
                        return Err(Fault::WrongSource);
                    }
                    let is_label = next.group == piece.group || done > 0;
                    if next.request != piece.request || !is_label {
                        return Err(Fault::WrongLabel);
                    }
                    done += len;
                    want = if len == next.len {
                        wants.next()
                    } else {
                        Some(skip(next, len))
                    };
                } else {
                    self.gap(piece, done, next.destination)?;
                    done = next.destination.1 - piece.destination.1;
                }
            }
        }
        if want.is_some() {
            return Err(Fault::Missing);
        }
        if sorted(&draft.unfilled) != self.demand.unfilled {
            return Err(Fault::WrongUnfilled);
        }
        Ok(())
    }

    /// Bytes between demanded ones within one piece.
    fn gap(&self, piece: &Interval, done: u64, next: Place) -> Result<(), Fault> {
        let dead = self.dead.as_ref().ok_or(Fault::Surplus)?;
        let start = piece.destination.1 + done;
        let within = done > 0
            && next.0 == piece.destination.0
            && next.1 < piece.destination.1 + piece.len
            && next.1 - start <= dead.max_gap
            && (start..next.1).all(|byte| dead.is_dead((next.0, byte), piece.request));
        if within { Ok(()) } else { Err(Fault::Surplus) }
    }
}

fn skip(interval: Interval, len: u64) -> Interval {
    Interval {
        destination: (interval.destination.0, interval.destination.1 + len),
        source: (interval.source.0, interval.source.1 + len),
        len: interval.len - len,
        ..interval
    }
}

fn inside(side: &Plain, place: Place, len: u64) -> Result<(), Fault> {
    let end = u128::from(place.1) + u128::from(len);
    match side.allocations.get(&place.0) {
        Some(allocation) if end <= u128::from(*allocation) => Ok(()),
        _ => Err(Fault::Outside),
    }
}

/// Which bytes belong to nobody, byte by byte.
#[derive(Clone, Debug)]
struct Dead {
    owners: BTreeMap<Place, Vec<Owner>>,
    /// The group of every block that is written, by request, pool and id.
    written: BTreeMap<(usize, u32, u32), u32>,
    max_gap: u64,
}

impl Dead {
    fn new(destination: &Plain, demand: &Demand, max_gap: u64) -> Self {
        let block = |moved: &Move| {
            let pool = destination.groups[&moved.group].pool.id;
            ((moved.request, pool, moved.destination), moved.group)
        };
        Self {
            owners: destination.owners(),
            written: demand.moves.iter().map(block).collect(),
            max_gap,
        }
    }

    /// Whether every block that the byte is of is the request's, for another
    /// group than the byte is of.
    fn is_dead(&self, place: Place, request: usize) -> bool {
        let owners = self.owners.get(&place);
        owners.into_iter().flatten().all(|(group, pool, id)| {
            let owner = self.written.get(&(request, *pool, *id));
            owner.is_some_and(|owner| owner != group)
        })
    }
}
