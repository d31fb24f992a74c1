//! What has to hold for the check.

use std::vec::Vec;

use mooncake_pd_layout::testing::arbitrary::{Result, Unstructured};

use super::case::Case;
use super::demand::{Demand, sorted};
use super::mutation::Mutation;
use super::planned::Setting;
use super::reference::{Interval, Reference, written};
use crate::{CheckError, Contract, Draft, RawRequest, Request, Unfilled};

/// Mutations that are tried of one case when it is made of bytes.
const TRIED: usize = 32;

/// Makes a [`Case`] of any bytes and holds the check of its draft, of some of
/// its mutations and of combinations of them to [`Judge`].
///
/// # Panics
/// Something does not hold.
pub fn check_check_bytes(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let case = Case::draw(&mut bytes).expect("bytes never run out");
    with_judge(&case, |judge| {
        let all = Mutation::singles(judge.draft(), &case.strides());
        some(judge, &all, &mut bytes).expect("bytes never run out");
    });
}

fn some(judge: &Judge<'_>, all: &[Mutation], bytes: &mut Unstructured<'_>) -> Result<()> {
    let pick = |number: usize| all[number % all.len()];
    let start: usize = bytes.arbitrary()?;
    // A step that has no factor in common with most lengths reaches everywhere.
    for number in 0..all.len().min(TRIED) {
        judge.single(pick(start.wrapping_add(number.wrapping_mul(7919))));
    }
    for _ in 0..4 {
        let mut draft = judge.draft().clone();
        for _ in 0..bytes.int_in_range(2..=4_u8)? {
            draft = pick(bytes.arbitrary()?).apply(&draft);
        }
        judge.agree(&draft);
    }
    Ok(())
}

/// Every single mutation of a case's draft.
///
/// # Panics
/// Something does not hold.
pub fn check_every_mutation(case: &Case) {
    with_judge(case, |judge| {
        for mutation in Mutation::singles(judge.draft(), &case.strides()) {
            judge.single(mutation);
        }
    });
}

/// The check and the reference side by side.
///
/// The reference asks what is written, from where and for whom. The check asks
/// the same and besides that pieces are whole contiguous parts of blocks in
/// their canonical order; and it bridges a gap only where it would be dead for
/// every block of the pool. So whatever the check accepts the reference
/// accepts, and what the reference accepts and the check refuses writes exactly
/// what the planner's draft writes, cut or ordered in another way.
#[derive(Debug)]
pub struct Judge<'a> {
    reference: Reference<'a>,
    check: Check<'a>,
    draft: Draft,
    written: Option<Vec<Interval>>,
    unfilled: Vec<Unfilled>,
    contract: Contract,
}

struct Check<'a>(std::boxed::Box<dyn Fn(Draft) -> std::result::Result<(), CheckError> + 'a>);

impl std::fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Check")
    }
}

fn with_judge(case: &Case, then: impl FnOnce(&Judge<'_>)) {
    let plain = case.plain();
    let setting = Setting::new(case, &plain);
    let mut ownership = setting.ownership.clone();
    let (raws, requests): (Vec<&RawRequest>, Vec<&Request>) = setting
        .valid
        .iter()
        .filter(|(raw, _)| ownership.admit(raw).is_empty())
        .map(|(raw, request)| (*raw, request))
        .unzip();
    let demand = Demand::new(setting.source, setting.destination, &raws);
    let contract = case.contract;
    let draft = setting.pairing.draft(&requests, contract);
    let judge = Judge {
        reference: Reference::new(setting.source, setting.destination, &demand, contract),
        check: Check(std::boxed::Box::new(|draft| {
            let checked = setting.pairing.check(draft, &requests, &setting.options());
            checked.map(|_| ())
        })),
        written: written(&draft),
        unfilled: sorted(&draft.unfilled),
        draft,
        contract,
    };
    judge.agree(&judge.draft);
    then(&judge);
}

impl Judge<'_> {
    /// The draft that the planner made.
    #[must_use]
    pub const fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Whether a draft writes what the planner's writes and reports the same.
    fn is_same(&self, draft: &Draft) -> bool {
        written(draft) == self.written && sorted(&draft.unfilled) == self.unfilled
    }

    /// Both judge a draft as they must.
    ///
    /// # Panics
    /// They don't.
    pub fn agree(&self, draft: &Draft) {
        let reference = self.reference.check(draft);
        let check = (self.check.0)(draft.clone());
        let same = self.is_same(draft);
        if same {
            assert_eq!(reference, Ok(()), "{draft:?}");
        }
        if self.contract == Contract::PayloadOnly && !same {
            assert!(reference.is_err(), "{draft:?}");
        }
        if *draft == self.draft {
            assert_eq!(check, Ok(()));
        }
        if check.is_ok() {
            assert_eq!(reference, Ok(()), "accepted by the check: {draft:?}");
        }
    }

    /// Both refuse a single mutation, unless it changes nothing of what is
    /// written and reported. Where gaps may be bridged, one that only writes more
    /// dead bytes is refused by the check alone, for which a piece ends with
    /// demanded bytes.
    ///
    /// # Panics
    /// They don't.
    pub fn single(&self, mutation: Mutation) {
        let draft = mutation.apply(&self.draft);
        self.agree(&draft);
        if !self.is_same(&draft) {
            let (reference, check) = (self.reference.check(&draft), (self.check.0)(draft));
            assert!(check.is_err(), "{mutation:?}: {reference:?} {check:?}");
            if self.contract == Contract::PayloadOnly {
                assert!(reference.is_err(), "{mutation:?}: {check:?}");
            }
        }
    }
}
