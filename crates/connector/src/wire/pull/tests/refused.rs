//! Messages of which nothing is taken.

use alloc::string::{String, ToString};

use super::{decode, message, minimal, one_region, with};
use crate::wire::{DecodeError, Limits, Pull};

fn error(message: &[u8]) -> String {
    decode(message).unwrap_err().to_string()
}

#[test]
fn other_types_are_refused() {
    for (key, value, text) in [
        (
            "remote_port",
            &[0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0][..],
            "remote_port is a float, not an integer",
        ),
        (
            "remote_port",
            &[0xc3],
            "remote_port is a bool, not an integer",
        ),
        (
            "remote_port",
            &[0xa1, b'1'],
            "remote_port is a text, not an integer",
        ),
        (
            "remote_port",
            &[0xd4, 1, 1],
            "remote_port is an extension, not an integer",
        ),
        (
            "registered_layer_names",
            &[0xc0],
            "registered_layer_names is nil, not a list",
        ),
        (
            "registered_layer_names",
            &[0x91, 0xc0],
            "registered_layer_names[0] is nil, not a text",
        ),
        (
            "remote_hostname",
            &[0xc4, 1, b'h'],
            "remote_hostname is bytes, not a text",
        ),
        ("req_blocks", &[0xc0], "req_blocks is nil, not a map"),
        ("req_blocks", &[0x91, 1], "req_blocks is a list, not a map"),
        (
            "req_blocks",
            &[0x81, 0xa1, b'a', 0x92, 0xa1, b't', 0x91, 0x91, 0xc0],
            "req_blocks[0][0][0] is nil, not an integer",
        ),
        ("block_lens", &[0x80], "block_lens is a map, not a list"),
    ] {
        assert_eq!(error(&with(key, value)), text);
    }
    assert_eq!(error(&[0x90]), "the message is a list, not a map");
    assert_eq!(error(&[0x81, 5, 1]), "a key is an integer, not a text");
}

#[test]
fn what_must_be_there_is_missed() {
    for (at, (key, _)) in minimal().iter().enumerate() {
        let mut entries = minimal();
        entries.remove(at);
        assert_eq!(
            error(&message(&entries)),
            alloc::format!("there is no {key}")
        );
    }
}

#[test]
fn a_tuple_of_another_size_is_refused() {
    let three = [0x81, 0xa1, b'a', 0x93, 0xa1, b't', 0x90, 1];
    assert_eq!(
        error(&with("req_blocks", &three)),
        "req_blocks[0] has 3 entries, not 2"
    );
    let one = [0x81, 0xa1, b'a', 0x91, 0xa1, b't'];
    assert_eq!(
        error(&with("req_blocks", &one)),
        "req_blocks[0] has 1 entries, not 2"
    );
}

#[test]
fn no_part_of_a_message_is_one_and_nothing_follows_it() {
    let whole = message(&minimal());
    for len in 0..whole.len() {
        let cut = decode(&whole[..len]).unwrap_err();
        assert!(
            matches!(
                cut,
                DecodeError::Truncated { .. } | DecodeError::Count { .. }
            ),
            "{cut}"
        );
    }
    assert_eq!(
        error(&[&whole[..], &[1]].concat()),
        alloc::format!("1 bytes follow the message's {}", whole.len())
    );
}

#[test]
fn numbers_outside_of_what_they_count_are_refused() {
    for (key, value, text) in [
        (
            "remote_port",
            &[0][..],
            "remote_port is 0, outside 1..=65535",
        ),
        (
            "remote_port",
            &[0xce, 0, 1, 0, 0],
            "remote_port is 65536, outside 1..=65535",
        ),
        (
            "remote_port",
            &[0xff],
            "remote_port is -1, outside 1..=65535",
        ),
        (
            "remote_tp_size",
            &[0],
            "remote_tp_size is 0, outside 1..=4096",
        ),
        (
            "remote_tp_size",
            &[0xcd, 0x10, 1],
            "remote_tp_size is 4097, outside 1..=4096",
        ),
        (
            "remote_tp_rank",
            &[1],
            "tensor-parallel rank 1 is outside 0..1",
        ),
        (
            "remote_pp_size",
            &[0],
            "remote_pp_size is 0, outside 1..=4096",
        ),
        (
            "remote_hostname",
            &[0xa3, b'a', b' ', b'b'],
            "remote_hostname: \"a b\" in \"a b\" is no part of a host name",
        ),
        (
            "remote_hostname",
            &[0xa1, 0xff],
            "remote_hostname is not UTF-8",
        ),
        (
            "layout_id",
            &[2],
            "layout_id 2 is neither 0 nor odd and below 2^63",
        ),
        (
            "layout_id",
            &[0xff],
            "layout_id -1 is neither 0 nor odd and below 2^63",
        ),
        (
            "layout_id",
            &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            "layout_id 18446744073709551615 is neither 0 nor odd and below 2^63",
        ),
        (
            "block_lens",
            &[0x91, 0],
            "block_lens[0] is 0, outside 1..=4611686018427387903",
        ),
        (
            "registered_layer_names",
            &[0x91, 0xa0],
            "registered_layer_names[0] has 0 bytes, outside 1..=512",
        ),
        (
            "registered_group_indices",
            &[0x91, 0xfe],
            "registered_group_indices[0] is -2, outside 0..=255",
        ),
        (
            "registered_row_offsets",
            &[0x91, 0xfe],
            "registered_row_offsets[0] is -2, outside 0..=4611686018427387903",
        ),
        (
            "registered_shared_group_ids",
            &[0x91, 0x91, 0xff],
            "registered_shared_group_ids[0][0] is -1, outside 0..=255",
        ),
        (
            "registered_layer_indices",
            &[0x91, 0xff],
            "registered_layer_indices[0] is -1, outside 0..=4294967295",
        ),
        (
            "req_blocks",
            &[0x81, 0xa0, 0x92, 0xa1, b't', 0x90],
            "req_blocks[0]: request id of 0 bytes is outside 1..=256",
        ),
    ] {
        assert_eq!(error(&with(key, value)), text);
    }
}

#[test]
fn lists_of_regions_are_of_one_length() {
    let whole = one_region();
    for key in whole
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| key.contains("lens") || key.starts_with("reg"))
    {
        let mut entries = one_region();
        entries.retain(|(name, _)| *name != key);
        entries.push((key, [0x90].into()));
        let text = alloc::format!("kv_caches_base_addr has 1 entries, {key} has 0");
        assert_eq!(error(&message(&entries)), text);
    }
    for key in ["registered_shared_group_ids", "registered_row_offsets"] {
        let entry = if key.contains("row") { 0 } else { 0x90 };
        let mut entries = one_region();
        entries.push((key, [0x92, entry, entry].into()));
        let text = alloc::format!("kv_caches_base_addr has 1 entries, {key} has 2");
        assert_eq!(error(&message(&entries)), text);
    }
}

#[test]
fn groups_of_a_region_agree() {
    for (group, listed, text) in [
        (
            2,
            &[0x91, 0x91, 1][..],
            "region 0: group 2 lists groups [1]",
        ),
        (
            2,
            &[0x91, 0x92, 2, 1],
            "region 0: group 2 lists groups [2, 1]",
        ),
        (0xff, &[0x91, 0x90], "region 0: group -1 lists no groups"),
        (0xff, &[0x90], "region 0: group -1 lists no groups"),
        (
            0xff,
            &[0x91, 0x92, 1, 1],
            "region 0: group -1 lists group 1 twice",
        ),
    ] {
        let mut entries = one_region();
        entries.push(("registered_group_indices", [0x91, group].into()));
        entries.push(("registered_shared_group_ids", listed.into()));
        assert_eq!(error(&message(&entries)), text);
    }
}

#[test]
fn c64_counts_beyond_the_message_and_beyond_the_limits_are_refused() {
    let huge = [0xdd, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        error(&with("kv_caches_base_addr", &huge)),
        "kv_caches_base_addr announces 4294967295 entries, 0 bytes are left"
    );
    assert_eq!(
        error(&[0x82, 0xa0, 1, 0xa0]),
        "the message announces 2 entries, 3 bytes are left"
    );
    let names = [0x91, 0xdb, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(
        decode(&with("registered_layer_names", &names)),
        Err(DecodeError::Count { .. })
    ));
    let map = [0xdf, 0x00, 0x00, 0x10, 0x01];
    let map = [&map[..], &alloc::vec![0; 20_000]].concat();
    assert_eq!(
        error(&with("req_blocks", &map)),
        "4097 entries of req_blocks are more than 4096"
    );

    let limits = Limits {
        message_bytes: 10,
        ..Limits::default()
    };
    let long = Pull::decode(&[0x80; 11], &limits).unwrap_err();
    assert_eq!(long.to_string(), "a message of 11 bytes is more than 10");
    let limits = Limits {
        regions: 0,
        ..Limits::default()
    };
    let regions = Pull::decode(&message(&one_region()), &limits).unwrap_err();
    assert_eq!(
        regions.to_string(),
        "1 entries of kv_caches_base_addr are more than 0"
    );
}
