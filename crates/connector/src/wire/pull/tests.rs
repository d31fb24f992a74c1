//! What stock's own decoder does with the same messages, and where we take less.

mod refused;

use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Pull, RequestFault};
use crate::id::RequestId;
use crate::wire::writer::Writer;
use crate::wire::{DecodeError, Limits, RegionGroups};

/// A message of texts and raw values.
fn message(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut to = Writer::default();
    to.map("", entries.len()).unwrap();
    let mut bytes = to.finish();
    for (key, value) in entries {
        bytes.extend(text(key));
        bytes.extend(value);
    }
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let mut to = Writer::default();
    to.text("", text).unwrap();
    to.finish()
}

/// `{"a": ("t", [[1]])}` and all other keys that must be there.
fn minimal() -> Vec<(&'static str, Vec<u8>)> {
    let requests = [&[0x81, 0xa1, b'a'][..], &tuple(&[1])].concat();
    let mut entries = [
        ("remote_hostname", text("h")),
        ("remote_port", [1].into()),
        ("remote_tp_size", [1].into()),
        ("remote_tp_rank", [0].into()),
        ("req_blocks", requests),
    ]
    .to_vec();
    for key in ["kv_caches_base_addr", "block_lens", "kv_block_lens"] {
        entries.push((key, [0x90].into()));
    }
    entries
}

/// `("t", [[id]])`
fn tuple(id: &[u8]) -> Vec<u8> {
    [&[0x92, 0xa1, b't', 0x91, 0x91], id].concat()
}

/// The minimal message with a value replaced or added.
fn with(key: &'static str, value: &[u8]) -> Vec<u8> {
    let mut entries = minimal();
    entries.retain(|(name, _)| *name != key);
    entries.push((key, value.into()));
    message(&entries)
}

/// One region.
fn one_region() -> Vec<(&'static str, Vec<u8>)> {
    let mut entries = minimal();
    entries.retain(|(key, _)| !key.contains("lens") && !key.contains("base"));
    entries.extend([
        (
            "kv_caches_base_addr",
            [&[0x91, 0xcf][..], &[0xff; 8]].concat(),
        ),
        ("block_lens", [0x91, 64].into()),
        ("kv_block_lens", [0x91, 60].into()),
        ("registered_layer_names", [&[0x91], &text("l")[..]].concat()),
        ("registered_layer_indices", [0x91, 3].into()),
        ("registered_group_indices", [0x91, 2].into()),
    ]);
    entries
}

fn decode(message: &[u8]) -> Result<super::ReceivedPull, DecodeError> {
    Pull::decode(message, &Limits::default())
}

fn error(message: &[u8]) -> alloc::string::String {
    decode(message).unwrap_err().to_string()
}

#[test]
fn a_minimal_message_is_a_pull() {
    let received = decode(&message(&minimal())).unwrap();
    assert_eq!(received.refused, []);
    let pull = received.pull;
    assert_eq!(pull.puller().host().as_str(), "h");
    assert_eq!(pull.puller().pp_size().get(), 1);
    assert_eq!((pull.layout(), pull.layout_id()), (None, None));
    let asked = pull.requests().first().unwrap();
    assert_eq!(
        (asked.request.as_str(), asked.transfer.as_str()),
        ("a", "t")
    );
    assert_eq!(asked.blocks.ids(), [1]);
}

#[test]
fn written_defaults_other_orders_and_unknown_keys_change_nothing() {
    let plain = decode(&message(&minimal()));
    let mut entries = minimal();
    for key in [
        "registered_layer_names",
        "registered_layer_indices",
        "registered_group_indices",
        "registered_shared_group_ids",
        "registered_row_offsets",
    ] {
        entries.push((key, [0x90].into()));
    }
    entries.extend([("remote_pp_size", [1].into()), ("layout_id", [0].into())]);
    assert_eq!(decode(&message(&entries)), plain);
    entries.reverse();
    assert_eq!(decode(&message(&entries)), plain);
    for unknown in [
        &[0xc0][..],
        &[0xc3],
        &[7],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xca, 0, 0, 0, 0],
        &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xa1, 0xff],
        &[0xd9, 1, b'x'],
        &[0xc4, 2, 1, 1],
        &[0xc5, 0, 1, 1],
        &[0xc6, 0, 0, 0, 1, 1],
        &[0xd4, 1, 1],
        &[0xd5, 1, 1, 1],
        &[0xd8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xc7, 1, 9, 9],
        &[0xc8, 0, 1, 9, 9],
        &[0xc9, 0, 0, 0, 1, 9, 9],
        &[0x81, 1, 0x92, 1, 0x80],
        &[0xdc, 0, 1, 1],
        &[0xde, 0, 1, 1, 1],
        &[0xdf, 0, 0, 0, 0],
        &[0xdd, 0, 0, 0, 0],
        &[0xcc, 1],
        &[0xd0, 1],
        &[0xd1, 0, 1],
        &[0xcd, 0, 1],
        &[0xd2, 0, 0, 0, 1],
        &[0xce, 0, 0, 0, 1],
        &[0xcf, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xe0],
        &[0xd6, 1, 1, 1, 1, 1],
        &[0xd7, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xc2],
        &[&alloc::vec![0x91; 100_000][..], &[1]].concat(),
    ] {
        assert_eq!(decode(&with("new", unknown)), plain);
    }
    assert_eq!(
        error(&with("new", &[0xc1])),
        "an unknown key is the byte 0xc1, not a value"
    );
}

#[test]
fn integers_and_lists_may_be_longer_than_needed() {
    for port in [
        &[1][..],
        &[0xcc, 1],
        &[0xcd, 0, 1],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 1],
    ] {
        assert!(decode(&with("remote_port", port)).is_ok());
    }
    assert!(decode(&with("block_lens", &[0xdc, 0, 0])).is_ok());
}

#[test]
fn of_a_repeated_key_the_last_value_counts() {
    let mut entries = minimal();
    entries.push(("remote_port", [2].into()));
    entries.push(("req_blocks", [0x80].into()));
    let pull = decode(&message(&entries)).unwrap().pull;
    assert_eq!(pull.puller().port().get(), 2);
    assert_eq!(pull.requests(), []);
}

#[test]
fn a_request_that_stands_twice_is_refused() {
    let twice = [
        &[0x82, 0xa1, b'a'][..],
        &tuple(&[1]),
        &[0xa1, b'a'],
        &tuple(&[2]),
    ]
    .concat();
    assert_eq!(
        error(&with("req_blocks", &twice)),
        "req_blocks[1] is a again"
    );
}

#[test]
fn a_pull_that_we_make_names_a_request_once() {
    let pull = decode(&message(&minimal())).unwrap().pull;
    let once = pull.requests().first().unwrap();
    let mut other = once.clone();
    other.request = RequestId::new("b").unwrap();
    let with = |requests| Pull::new(pull.puller().clone(), requests, None, None);
    with([once.clone(), other.clone()].to_vec()).unwrap();
    let error = with([once.clone(), other, once.clone()].to_vec()).unwrap_err();
    let text = "requests 0 and 2 of the pull are both a";
    assert_eq!(error.to_string(), text);
}

#[test]
fn c46_a_bad_request_fails_alone() {
    let mut asked = [0x85].to_vec();
    for (name, value) in [
        (b'a', tuple(&[1])),
        (b'b', tuple(&[0xff])),
        (b'c', tuple(&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0])),
        (b'd', [0x92, 0xa0, 0x91, 0x91, 1].into()),
        (b'e', [0x92, 0xa1, b'u', 0x90].into()),
    ] {
        asked.extend([0xa1, name]);
        asked.extend(value);
    }
    let received = decode(&with("req_blocks", &asked)).unwrap();
    let served = received.pull.requests().iter();
    let served: Vec<_> = served
        .map(|asked| (asked.request.as_str(), asked.blocks.is_release()))
        .collect();
    assert_eq!(served, [("a", false), ("e", true)]);
    let refused: Vec<_> = received.refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "request b: block id -1 at 0 in group 0 is outside 0..2^32",
            "request c: block id 4294967296 at 0 in group 0 is outside 0..2^32",
            "request d: transfer id of 0 bytes is outside 1..=256",
        ]
    );
}

#[test]
fn one_region_may_lie_at_the_last_address_and_leave_out_what_stock_added_later() {
    let pull = decode(&message(&one_region())).unwrap().pull;
    let region = pull.layout().unwrap().regions().first().unwrap().clone();
    assert_eq!(region.base().get(), u64::MAX);
    assert_eq!(
        (region.block_len().get(), region.kv_block_len().get()),
        (64, 60)
    );
    assert_eq!((region.layer().as_str(), region.layer_index()), ("l", 3));
    assert!(matches!(region.groups(), RegionGroups::One(group) if group.get() == 2));
    assert_eq!(region.row_offset(), None);
    // Nothing of it can be addressed.
    region.block(0).unwrap_err();
}

#[test]
fn c64_a_million_groups_fail_their_request_alone() {
    let mut asked = [
        0x82, 0xa1, b'a', 0x92, 0xa1, b't', 0xdd, 0, 0x0f, 0x42, 0x40,
    ]
    .to_vec();
    asked.resize(asked.len() + 1_000_000, 0x90);
    asked.extend([0xa1, b'b']);
    asked.extend(tuple(&[7]));
    let received = decode(&with("req_blocks", &asked)).unwrap();
    assert_eq!(received.pull.requests().len(), 1);
    let fault = received.refused.first().unwrap().fault;
    assert_eq!(
        fault,
        RequestFault::Groups {
            count: 1_000_000,
            limit: 256
        }
    );
}

#[test]
fn too_many_blocks_fail_their_request_alone() {
    let limits = Limits {
        blocks: 3,
        ..Limits::default()
    };
    let asked = [
        0x82, 0xa1, b'a', 0x92, 0xa1, b't', 0x92, 0x92, 1, 2, 0x92, 3, 4, 0xa1, b'b',
    ];
    let asked = [&asked[..], &[0x92, 0xa1, b't', 0x91, 0x93, 1, 2, 3]].concat();
    let received = Pull::decode(&with("req_blocks", &asked), &limits).unwrap();
    assert_eq!(received.pull.requests().len(), 1);
    let fault = received.refused.first().unwrap().fault;
    assert_eq!(fault, RequestFault::Blocks { count: 4, limit: 3 });
}
