//! What values say of themselves.

use mooncake_pd_layout::raw::RawContent;
use mooncake_pd_layout::{CacheLayout, Difference, LayoutBuilder};
use mooncake_pd_plan::{
    BoundsGrade, Contract, MAX_ENTRIES, Owner, Pairing, PairingError, RawRequest, Request, Side,
};

use crate::ask::{bridge, bytes, group, plan, raw, side};

#[test]
fn contracts_bounds_owners_and_sides_say_what_they_are() {
    let bridging = bridge(64);
    let texts: [(&dyn std::fmt::Display, &str); 9] = [
        (&Contract::PayloadOnly, "payload only"),
        (
            &bridging,
            "bridges dead gaps of up to 64 bytes with stale bytes",
        ),
        (&BoundsGrade::Proved, "proved"),
        (&BoundsGrade::PeerAsserted, "asserted by the peer"),
        (
            &Owner::SameRequest,
            "another position or group of the same request",
        ),
        (&Owner::EarlierRequest, "an earlier request of the batch"),
        (&Owner::Lease, "a transfer under way"),
        (&Side::Source, "source"),
        (&Side::Destination, "destination"),
    ];
    for (value, text) in texts {
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn requests_are_written_with_what_they_say_only() {
    let counted = raw(7, &[(&[1], &[2])]);
    let tail = RawRequest {
        computed_tokens: None,
        tail_aligned: true,
        ..counted.clone()
    };
    let groups = r#""groups":[{"group":0,"source":{"entries":[1]},"destination":{"entries":[2]}}]"#;
    for (request, head) in [
        (counted, r#""id":"r","computed_tokens":7"#),
        (tail, r#""id":"r","tail_aligned":true"#),
    ] {
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, format!("{{{head},{groups}}}"));
        let read: RawRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(read, request);
    }
}

/// A layout whose content has a revision, and a layer of its own if wanted.
fn tagged(revision: &str, order: &str, own: bool) -> CacheLayout {
    let mut spec = group(0, 0).layer("a", [bytes(0, 0, 10, 8)]);
    if own {
        spec = spec.layer("own", [bytes(0, 100, 10, 8)]);
    }
    LayoutBuilder::new()
        .allocation(0, 200)
        .pool(0, 10, None)
        .group(spec)
        .content(RawContent {
            model_revision: revision.to_owned(),
            state_order: order.to_owned(),
        })
        .build()
        .unwrap()
}

#[test]
fn differences_are_told_whether_they_do_harm_or_not() {
    let source = tagged("main", "cpu", false);
    let harmless = tagged("main", "cpu", true);
    let pairing = Pairing::new(&source, &harmless).unwrap();
    assert!(
        matches!(pairing.notes(), [Difference::DestinationLayer { .. }]),
        "{:?}",
        pairing.notes()
    );
    assert_eq!(Pairing::new(&source, &source).unwrap().notes(), []);

    let harmful = tagged("next", "gpu", true);
    let Err(PairingError::Incompatible(error)) = Pairing::new(&source, &harmful) else {
        panic!("paired");
    };
    let tag = |difference: &Difference| match difference {
        Difference::Content { tag, .. } => *tag,
        Difference::DestinationLayer { .. } => "layer",
        _ => "another",
    };
    let tags: Vec<&str> = error.differences().iter().map(tag).collect();
    assert_eq!(tags, ["model revision", "state order", "layer"]);
    let (text, all) = (error.to_string(), error.differences());
    assert_eq!(
        text,
        format!("the layouts are incompatible: {}; {}", all[0], all[1])
    );
}

#[test]
fn sections_count_layers_and_copies_are_never_empty() {
    let names = ["a", "b", "c"];
    let spec = (0..).zip(names).fold(group(0, 0), |spec, (at, name)| {
        spec.layer(name, [bytes(0, at * 100, 10, 8)])
    });
    let side = side(10, [spec]);
    let plan = plan(&side, &side, Contract::PayloadOnly, 16, &[(&[1], &[2])]);
    assert_eq!(plan.sections()[0].layers(), 3);
    let lens: Vec<_> = plan
        .copies()
        .map(|c| (c.len().get(), c.is_empty()))
        .collect();
    assert_eq!(lens, [(8, false); 3]);
}

#[test]
fn a_list_of_as_many_entries_as_allowed_is_looked_at() {
    let side = side(10, [group(0, 0).layer("a", [bytes(0, 0, 10, 8)])]);
    let pairing = Pairing::new(&side, &side).unwrap();
    let mut many = raw(16, &[(&[1], &[2])]);
    // The first entry is refused, so that no other is looked at.
    many.groups[0].source.entries = vec![Some(99); MAX_ENTRIES + 1];
    let name = |raw: &RawRequest| Request::new(raw, &pairing).unwrap_err().name();
    assert_eq!(name(&many), "too_long");
    many.groups[0].source.entries.pop();
    assert_eq!(name(&many), "entry");
}
