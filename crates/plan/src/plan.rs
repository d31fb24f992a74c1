//! Checked plans.

use alloc::string::String;
use alloc::vec::Vec;

use crate::admission::{Admission, Claim};
use crate::check::{Against, CheckError, Proof, prove};
use crate::contract::{BoundsGrade, Contract};
use crate::copy::Copy;
use crate::draft::{Draft, Piece, Stretch};
use crate::leases::Leases;
use crate::lower::Lowering;
use crate::pairing::Pairing;
use crate::request::{Request, RequestError, Tokens};
use crate::section::Section;
use crate::select::{Unfilled, select};

/// How a batch is planned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Which bytes may be written besides payload.
    pub contract: Contract,
    /// Destination blocks of transfers that are still under way.
    pub leases: Option<&'a Leases>,
    /// What is known about the destination's registered memory.
    pub bounds: BoundsGrade,
}

/// A set of byte copies that is proved to be the right one.
///
/// Only the check makes a plan. What it proves is written in
/// [the crate's documentation](crate#what-a-plan-proves).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) requests: Vec<(String, Tokens)>,
    pub(crate) sections: Vec<Section>,
    stretches: Vec<Stretch>,
    pieces: Vec<Piece>,
    unfilled: Vec<Unfilled>,
    claims: Vec<Claim>,
    contract: Contract,
    bounds: BoundsGrade,
}

impl Plan {
    /// The copies. No two write the same byte, so any order is right.
    pub fn copies(&self) -> impl Iterator<Item = Copy> + '_ {
        let mut pieces = self.pieces.iter();
        self.stretches.iter().flat_map(move |stretch| {
            let all = pieces.as_slice();
            let (these, rest) = all.split_at_checked(stretch.pieces).unwrap_or((all, &[]));
            pieces = rest.iter();
            // The check proved that each of them is a copy.
            these.iter().filter_map(|piece| Copy::new(stretch, piece))
        })
    }

    /// How many copies there are.
    #[must_use]
    pub fn descriptors(&self) -> u64 {
        u64::try_from(self.pieces.len()).unwrap_or(u64::MAX)
    }

    /// Bytes of all copies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sections
            .iter()
            .map(|section| section.bytes)
            .fold(0, u64::saturating_add)
    }

    /// Payload bytes of all copies: without bridged gaps.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.sections
            .iter()
            .map(Section::payload_bytes)
            .fold(0, u64::saturating_add)
    }

    /// Blocks the destination listed that receive nothing, and why.
    #[must_use]
    pub fn unfilled(&self) -> &[Unfilled] {
        &self.unfilled
    }

    /// What moves, by request and group.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Which bytes it may write besides payload.
    #[must_use]
    pub const fn contract(&self) -> Contract {
        self.contract
    }

    /// How far the destination's bounds are proved.
    #[must_use]
    pub const fn bounds(&self) -> BoundsGrade {
        self.bounds
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.claims.iter().copied()
    }
}

/// A request of a batch that was not planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its index in the batch.
    pub index: usize,
    /// Its name.
    pub id: String,
    /// Why.
    pub error: RequestError,
}

/// The plan of a batch and the requests that are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Copies of all admitted requests. Indices in it count admitted requests
    /// only.
    pub plan: Plan,
    /// Requests that were refused; the others are not touched by that.
    pub refused: Vec<Refused>,
}

impl Pairing<'_> {
    /// Plans the requests of one peer as one batch.
    ///
    /// A request that may not own its blocks is refused by itself.
    ///
    /// # Errors
    /// The check found the planner at fault; nothing may be moved then.
    pub fn plan(&self, requests: &[Request], options: &Options<'_>) -> Result<Batch, CheckError> {
        let mut admission = Admission::new(self, options.leases);
        let (mut admitted, mut refused, mut claims) = (Vec::new(), Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            match admission.admit(request, &mut claims) {
                Ok(()) => admitted.push(request),
                Err(error) => refused.push(Refused {
                    index,
                    id: request.id().into(),
                    error,
                }),
            }
        }
        let draft = self.draft(&admitted, options.contract);
        let plan = self.check(draft, &admitted, options)?;
        Ok(Batch { plan, refused })
    }

    /// Lowers requests to copies that nothing is proved about.
    #[must_use]
    pub fn draft(&self, requests: &[&Request], contract: Contract) -> Draft {
        let mut draft = Draft::default();
        let mut lowering = Lowering::new(self.destination(), contract);
        for (index, request) in requests.iter().enumerate() {
            lowering.next_request();
            for tables in request.tables() {
                let Some(group) = self.group(tables.group()) else {
                    continue;
                };
                let unfilled = &mut draft.unfilled;
                let pairs = select(
                    group.destination,
                    request.tokens(),
                    tables,
                    |position, destination, reason| {
                        unfilled.push(Unfilled {
                            request: index,
                            group: tables.group(),
                            position,
                            destination,
                            reason,
                        });
                    },
                );
                lowering.lower(index, group, &pairs, &mut draft);
            }
        }
        draft
    }

    /// Proves a draft for these requests.
    ///
    /// # Errors
    /// The first thing in it that is not as it must be.
    pub fn check(
        &self,
        draft: Draft,
        requests: &[&Request],
        options: &Options<'_>,
    ) -> Result<Plan, CheckError> {
        let Proof { claims, bytes } = prove(
            &draft,
            &Against {
                pairing: self,
                requests,
                leases: options.leases,
                contract: options.contract,
            },
        )?;
        let sections = self.sections(&draft, &bytes, requests);
        Ok(Plan {
            requests: requests
                .iter()
                .map(|r| (r.id().into(), r.tokens()))
                .collect(),
            sections,
            stretches: draft.stretches,
            pieces: draft.pieces,
            unfilled: draft.unfilled,
            claims,
            contract: options.contract,
            bounds: options.bounds,
        })
    }

    /// `bytes` are those of the draft's stretches.
    fn sections(&self, draft: &Draft, bytes: &[u64], requests: &[&Request]) -> Vec<Section> {
        let mut sections = Vec::new();
        let mut stretches = draft.stretches.iter().zip(bytes).peekable();
        for (index, request) in requests.iter().enumerate() {
            for tables in request.tables() {
                let Some(group) = self.group(tables.group()) else {
                    continue;
                };
                let (mut copies, mut bytes) = (0_u64, 0_u64);
                while let Some((stretch, more)) =
                    stretches.next_if(|(s, _)| s.request == index && s.group == tables.group())
                {
                    let pieces = u64::try_from(stretch.pieces).unwrap_or(u64::MAX);
                    copies = copies.saturating_add(pieces);
                    bytes = bytes.saturating_add(*more);
                }
                sections.push(Section {
                    request: index,
                    group: tables.group(),
                    kind: group.destination.kind(),
                    tokens_per_block: group.destination.tokens_per_block(),
                    layers: group
                        .destination
                        .layers()
                        .len()
                        .saturating_sub(group.local.len()),
                    local: group.local.iter().map(|layer| (*layer).clone()).collect(),
                    payload: group.payload,
                    pairs: select(group.destination, request.tokens(), tables, |_, _, _| ()),
                    copies,
                    bytes,
                });
            }
        }
        sections
    }
}
