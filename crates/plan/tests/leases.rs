//! A lease ends once, and only with its own transfer.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::{
    Leases, Options, Pairing, Plan, RawRequest, RawSlots, RawTables, Request, RequestError,
};

fn side(tokens_per_block: u32) -> CacheLayout {
    let kv = FieldSpec::new("kv", "uint8")
        .page_stride(64)
        .dim(Axis::Token, 16, 4)
        .dim(Axis::Content, 4, 1);
    LayoutBuilder::new()
        .allocation(0, 640)
        .pool(0, 10, Some(0))
        .group(GroupSpec::new(0, "mla", tokens_per_block, 0).layer("l", [kv]))
        .build()
        .unwrap()
}

fn request(pairing: &Pairing<'_>, destination: u64) -> Request {
    let slots = |id| RawSlots {
        first_block: None,
        entries: vec![Some(id)],
    };
    let raw = RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(16),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots(1),
            destination: slots(destination),
        }],
    };
    Request::new(&raw, pairing).unwrap()
}

fn plan(pairing: &Pairing<'_>, destination: u64) -> Plan {
    pairing
        .plan(&[request(pairing, destination)], &Options::default())
        .unwrap()
        .plan
}

#[test]
fn a_block_is_leased_once_at_a_time() {
    let side = side(16);
    let pairing = Pairing::new(&side, &side).unwrap();
    let (first, second) = (plan(&pairing, 7), plan(&pairing, 7));
    let mut leases = Leases::default();
    let lease = leases.add(&first).unwrap();
    let conflict = leases.add(&second).unwrap_err();
    assert_eq!(
        (conflict.id, conflict.group, conflict.owner),
        (7, GroupId::new(0), GroupId::new(0))
    );
    assert_eq!(
        conflict.to_string(),
        "destination block 7 of group 0 is already leased for group 0"
    );
    leases.release(lease);
    assert!(leases.is_empty());
    assert!(leases.add(&second).is_ok());
}

#[test]
fn a_lease_of_other_books_frees_nothing() {
    let side = side(16);
    let pairing = Pairing::new(&side, &side).unwrap();
    let mut others = Leases::default();
    let _earlier = others.add(&plan(&pairing, 3)).unwrap();
    let foreign = others.add(&plan(&pairing, 7)).unwrap();
    let mut leases = Leases::default();
    let own = leases.add(&plan(&pairing, 7)).unwrap();
    leases.release(foreign);
    assert!(!leases.is_empty());
    leases.release(own);
    assert!(leases.is_empty());
}

#[test]
fn a_request_of_other_layouts_is_refused_by_itself() {
    let (side, other) = (side(16), side(8));
    let (pairing, foreign) = (
        Pairing::new(&side, &side).unwrap(),
        Pairing::new(&other, &other).unwrap(),
    );
    let requests = [request(&foreign, 4), request(&pairing, 5)];
    let batch = pairing.plan(&requests, &Options::default()).unwrap();
    assert_eq!(batch.refused.len(), 1);
    assert_eq!(batch.refused[0].error, RequestError::Foreign);
    assert_eq!(batch.plan.bytes(), 64);
}
