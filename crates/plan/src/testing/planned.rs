//! What has to hold for every plan.

use std::vec::Vec;

use super::case::Case;
use super::demand::{Demand, Move, sorted};
use super::memory::{Descriptor, Memory};
use super::plain::Plain;
use super::reference::Reference;
use super::refusal::{Ownership, invalid};
use super::uncoalesced::uncoalesced;
use crate::{
    Batch, Contract, Leases, Options, Owner, Pairing, Plan, RawRequest, Request, RequestError,
    Section, Side,
};

/// Makes a [`Case`] of any bytes and holds its plan to [`check_plan`].
///
/// # Panics
/// Something does not hold.
pub fn check_plan_bytes(data: &[u8]) {
    check_plan(&Case::new(data));
}

/// A case with everything that is needed to judge its plans.
pub(super) struct Setting<'a> {
    pub(super) case: &'a Case,
    pub(super) pairing: Pairing<'a>,
    pub(super) source: &'a Plain,
    pub(super) destination: &'a Plain,
    pub(super) leases: Leases,
    /// What they were given for.
    earlier: Option<Plan>,
    /// The naive counterpart of `leases`.
    pub(super) ownership: Ownership<'a>,
    /// The requests of the batch that are valid by themselves.
    pub(super) valid: Vec<(&'a RawRequest, Request)>,
}

impl<'a> Setting<'a> {
    /// Parses all requests, each refused for the right reason or accepted, and
    /// leases the blocks of the first ones.
    pub(super) fn new(case: &'a Case, (source, destination): &'a (Plain, Plain)) -> Self {
        let pairing = Pairing::new(&case.source, &case.destination).expect("pairs are compatible");
        let mut setting = Self {
            case,
            pairing,
            source,
            destination,
            leases: Leases::default(),
            earlier: None,
            ownership: Ownership::new(source, destination),
            valid: Vec::new(),
        };
        let leased: Vec<Request> = setting
            .parse(&case.leased)
            .into_iter()
            .map(|(_, request)| request)
            .collect();
        let earlier = setting.plan(&leased, &Options::default());
        let _lease = setting
            .leases
            .add(&earlier.plan)
            .expect("nothing is leased");
        setting.earlier = Some(earlier.plan);
        for (raw, _) in setting.parse(&case.leased) {
            setting.ownership.admit(raw);
        }
        setting.ownership.lease();
        setting.valid = setting.parse(&case.requests);
        setting
    }

    fn parse(&self, all: &'a [RawRequest]) -> Vec<(&'a RawRequest, Request)> {
        let mut valid = Vec::new();
        for raw in all {
            let reasons = invalid(raw, self.source, self.destination);
            match Request::new(raw, &self.pairing) {
                Ok(request) => {
                    assert!(reasons.is_empty(), "{raw:?} was accepted: {reasons:?}");
                    valid.push((raw, request));
                }
                Err(error) => assert!(reasons.contains(&error), "{error:?} not in {reasons:?}"),
            }
        }
        valid
    }

    pub(super) fn plan(&self, requests: &[Request], options: &Options<'_>) -> Batch {
        self.pairing
            .plan(requests, options)
            .expect("the planner is never at fault")
    }

    pub(super) fn options(&self) -> Options<'_> {
        Options {
            contract: self.case.contract,
            leases: Some(&self.leases),
            ..Options::default()
        }
    }

    fn source_memory(&self) -> Memory {
        Memory::new(Side::Source, self.source)
    }

    fn destination_memory(&self) -> Memory {
        Memory::new(Side::Destination, self.destination)
    }

    fn run<T: Into<Descriptor>>(&self, copies: impl Iterator<Item = T>) -> Memory {
        self.destination_memory()
            .after(&self.source_memory(), copies)
    }
}

/// Holds a case to everything that is promised of plans.
///
/// - A request is refused for a reason that a recomputation from its lists
///   finds as well, or admitted where that finds none; the plan of the others
///   is what it is without it.
/// - The planned memory is that of copying every demanded byte by itself; every
///   other byte keeps its canary. Under [`Contract::BridgeDead`] bytes that
///   belong to nobody may differ.
/// - Copying every row of every kernel page by itself gives the same memory.
/// - Planning one request after another, under the leases of the earlier, gives
///   the same memory; so does cutting every request in two.
/// - Descriptors, bytes, sections and unfilled blocks agree with the copies and
///   with the recomputation.
/// - Bridging never takes more descriptors than not bridging.
///
/// # Panics
/// Something does not hold.
pub fn check_plan(case: &Case) {
    let plain = case.plain();
    let setting = Setting::new(case, &plain);
    let all: Vec<Request> = setting.valid.iter().map(|(_, r)| r.clone()).collect();
    let batch = setting.plan(&all, &setting.options());
    let admitted = check_refusals(&setting, &batch);
    let raws: Vec<&RawRequest> = admitted.iter().map(|at| setting.valid[*at].0).collect();
    let requests: Vec<Request> = admitted.iter().map(|at| all[*at].clone()).collect();
    let again = setting.plan(&requests, &setting.options());
    assert_eq!(again.plan, batch.plan, "refused requests change the others");

    let demand = Demand::new(setting.source, setting.destination, &raws);
    let expected = setting
        .destination_memory()
        .after_bytes(&setting.source_memory(), &demand);
    check_memory(&setting, &batch.plan, &demand, &expected);
    check_counts(&batch.plan, &demand);
    let by_page = uncoalesced(&case.source, &case.destination, &demand.moves);
    assert_eq!(setting.run(by_page.into_iter()), expected, "rows of pages");
    check_one_by_one(&setting, &batch, &all, &expected);
    check_cut(&setting, &raws, &batch.plan, &expected);

    let exact = Options {
        contract: Contract::PayloadOnly,
        ..setting.options()
    };
    let exact = setting.plan(&all, &exact);
    assert!(
        batch.plan.descriptors() <= exact.plan.descriptors(),
        "bridging takes more descriptors"
    );
}

/// Indices of the admitted requests.
fn check_refusals(setting: &Setting<'_>, batch: &Batch) -> Vec<usize> {
    let mut ownership = setting.ownership.clone();
    let mut admitted = Vec::new();
    for (index, (raw, _)) in setting.valid.iter().enumerate() {
        let reasons = ownership.admit(raw);
        match batch.refused.iter().find(|refused| refused.index == index) {
            None => {
                assert!(reasons.is_empty(), "{raw:?} was admitted: {reasons:?}");
                admitted.push(index);
            }
            Some(refused) => {
                assert_eq!(refused.id, raw.id);
                let error = &refused.error;
                assert!(reasons.contains(error), "{error:?} not in {reasons:?}");
            }
        }
    }
    assert_eq!(admitted.len() + batch.refused.len(), setting.valid.len());
    admitted
}

fn check_memory(setting: &Setting<'_>, plan: &Plan, demand: &Demand, expected: &Memory) {
    let planned = setting.run(plan.copies());
    match setting.case.contract {
        Contract::PayloadOnly => assert_eq!(&planned, expected, "planned memory"),
        contract @ Contract::BridgeDead { .. } => {
            let reference = Reference::new(setting.source, setting.destination, demand, contract);
            for place in planned.differences(expected) {
                assert!(reference.may_change(place), "{place:?} is not dead");
            }
        }
    }
}

fn check_counts(plan: &Plan, demand: &Demand) {
    let copies: Vec<_> = plan.copies().collect();
    let count = u64::try_from(copies.len()).expect("few copies");
    let bytes: u64 = copies.iter().map(|copy| copy.len().get()).sum();
    let wanted = u64::try_from(demand.wants.len()).expect("few bytes");
    assert_eq!(plan.descriptors(), count);
    assert_eq!(plan.bytes(), bytes);
    assert_eq!(plan.payload_bytes(), wanted);
    if plan.contract() == Contract::PayloadOnly {
        assert_eq!(bytes, wanted);
    }
    let sections = plan.sections();
    assert_eq!(sections.iter().map(Section::copies).sum::<u64>(), count);
    assert_eq!(sections.iter().map(Section::bytes).sum::<u64>(), bytes);
    let moves: Vec<Move> = sections
        .iter()
        .flat_map(|section| {
            section.pairs().iter().map(|pair| Move {
                request: section.request(),
                group: section.group().get(),
                position: pair.position(),
                source: pair.source(),
                destination: pair.destination(),
            })
        })
        .collect();
    assert_eq!(moves, demand.moves);
    assert_eq!(sorted(plan.unfilled()), demand.unfilled);
}

/// Each request alone, under the leases of the earlier.
fn check_one_by_one(setting: &Setting<'_>, batch: &Batch, all: &[Request], expected: &Memory) {
    let mut leases = Leases::default();
    if let Some(plan) = &setting.earlier {
        let _lease = leases.add(plan).expect("nothing is leased");
    }
    let mut memory = setting.destination_memory();
    for (index, request) in all.iter().enumerate() {
        let options = Options {
            leases: Some(&leases),
            ..Options::default()
        };
        let refused = batch.refused.iter().find(|refused| refused.index == index);
        if let Some(refused) = refused
            && on_source(&refused.error)
        {
            // What others read at the same time is known within a batch only.
            continue;
        }
        let alone = setting.plan(std::slice::from_ref(request), &options);
        let error = alone.refused.first().map(|refused| refused.error.clone());
        match refused.map(|refused| refused.error.clone()) {
            Some(RequestError::DestinationTaken {
                id,
                group,
                owner: Owner::EarlierRequest,
            }) => {
                let owner = Owner::Lease;
                let expected = RequestError::DestinationTaken { id, group, owner };
                assert_eq!(error, Some(expected));
            }
            expected => assert_eq!(error, expected),
        }
        memory = memory.after(&setting.source_memory(), alone.plan.copies());
        let _lease = leases.add(&alone.plan).expect("planned under these leases");
    }
    assert_eq!(&memory, expected, "one request after another");
}

const fn on_source(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::SourceTaken { .. }
            | RequestError::SharedBytes {
                side: Side::Source,
                ..
            }
    )
}

/// Each request in two, one for the even entries that the destination lists and
/// one for the odd ones, and one for its first half and one for its second.
fn check_cut(setting: &Setting<'_>, raws: &[&RawRequest], whole: &Plan, expected: &Memory) {
    let halves: [fn(usize, usize) -> bool; 2] = [|at, _| at % 2 == 0, |at, len| at < len / 2];
    for first in halves {
        let mut parts = Vec::new();
        for raw in raws {
            for part in [true, false] {
                let mut raw = RawRequest::clone(raw);
                for list in raw.groups.iter_mut().map(|tables| &mut tables.destination) {
                    let len = list.entries.len();
                    for (at, entry) in list.entries.iter_mut().enumerate() {
                        if first(at, len) != part {
                            *entry = None;
                        }
                    }
                }
                parts
                    .push(Request::new(&raw, &setting.pairing).expect("a part of a valid request"));
            }
        }
        let options = Options {
            contract: Contract::PayloadOnly,
            ..setting.options()
        };
        let batch = setting.plan(&parts, &options);
        assert_eq!(batch.refused, [], "parts of admitted requests");
        let memory = setting.run(batch.plan.copies());
        assert_eq!(&memory, expected, "requests in two");
        let mut unfilled = batch.plan.unfilled().to_vec();
        for entry in &mut unfilled {
            entry.request /= 2;
        }
        assert_eq!(sorted(&unfilled), sorted(whole.unfilled()));
    }
}
