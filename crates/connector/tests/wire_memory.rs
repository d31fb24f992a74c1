//! Memory that decoding takes, whatever a message announces.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use allocation_counter::measure;
use mooncake_pd_connector::wire::{
    Answer, Directory, Limits, NixlHandOver, Pull, Register, Version,
};

/// Most bytes held at once while a message is read.
fn peak(read: impl FnOnce()) -> usize {
    usize::try_from(measure(read).bytes_max).unwrap()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0xa0 | u8::try_from(text.len()).unwrap()];
    bytes.extend(text.as_bytes());
    bytes
}

fn list(count: usize, entry: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xdd];
    bytes.extend(u32::try_from(count).unwrap().to_be_bytes());
    bytes.extend(entry.repeat(count));
    bytes
}

fn map(count: usize, entry: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![0xdf];
    bytes.extend(u32::try_from(count).unwrap().to_be_bytes());
    (0..count).for_each(|number| bytes.extend(entry(number)));
    bytes
}

/// A map of one key, whose value is as costly as can be.
fn message(key: &str, value: &[u8]) -> Vec<u8> {
    [&[0x81], &text(key)[..], value].concat()
}

/// One request; then `value` as its groups.
fn asked(groups: &[u8]) -> Vec<u8> {
    [&[0x81, 0xa1, b'a', 0x92, 0xa1, b't'], groups].concat()
}

/// Messages of small entries, most of them with more than the limits allow.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let many = 200_000;
    let request = |number: usize| {
        let name = format!("{number:x}");
        [&text(&name)[..], &[0x92, 0xa1, b't', 0x91, 0x91, 1]].concat()
    };
    let mut all = vec![
        (
            "a list that only announces",
            message("kv_caches_base_addr", &[0xdd, 0xff, 0xff, 0xff, 0xff]),
        ),
        (
            "a map that only announces",
            message("req_blocks", &[0xdf, 0xff, 0xff, 0xff, 0xff]),
        ),
        (
            "a text that only announces",
            message("remote_hostname", &[0xdb, 0xff, 0xff, 0xff, 0xff]),
        ),
        (
            "one-byte ids",
            message(
                "req_blocks",
                &asked(&[&[0x91], &list(many, &[1])[..]].concat()),
            ),
        ),
        (
            "empty groups",
            message("req_blocks", &asked(&list(many, &[0x90]))),
        ),
        (
            "empty groups within the limit",
            message("req_blocks", &asked(&list(256, &[0x90]))),
        ),
        ("small requests", message("req_blocks", &map(4096, request))),
        (
            "too many requests",
            message("req_blocks", &map(100_000, request)),
        ),
        ("names", message("ok_reqs", &list(4096, &[0xa1, b'a']))),
        (
            "too many names",
            message("ok_reqs", &list(many, &[0xa1, b'a'])),
        ),
        (
            "depth",
            message("new", &[&vec![0x91; many][..], &[1]].concat()),
        ),
        ("keys", map(many, |_| vec![0xa0, 1])),
    ];
    for (key, entry) in [
        ("kv_caches_base_addr", &[1][..]),
        ("block_lens", &[1]),
        ("registered_layer_names", &[0xa1, b'a']),
        ("registered_layer_indices", &[1]),
        ("registered_group_indices", &[1]),
        ("registered_shared_group_ids", &[0x90]),
        ("registered_shared_group_ids", &[0x91, 1]),
        ("registered_row_offsets", &[1]),
    ] {
        all.push((key, message(key, &list(16_384, entry))));
        all.push((key, message(key, &list(many, entry))));
    }
    all
}

#[test]
fn reading_takes_few_times_the_bytes_of_the_message() {
    let limits = Limits::default();
    for (what, message) in hostile() {
        let pull = peak(|| drop(Pull::decode(&message, &limits)));
        let answer = peak(|| drop(Answer::decode(&message, &limits)));
        // The small ones are all entries, so their bytes are the least there can be.
        let most = 9 * message.len() + 200 * limits.requests;
        assert!(
            pull.max(answer) <= most,
            "{what}: {} bytes take {pull} and {answer}",
            message.len()
        );
    }
}

#[test]
fn a_whole_pull_within_the_limits_takes_few_times_its_bytes() {
    let count = 16_384;
    let mut message = vec![0x8d];
    for (key, value) in [
        ("remote_hostname", text("h")),
        ("remote_port", vec![1]),
        ("remote_tp_size", vec![1]),
        ("remote_tp_rank", vec![0]),
        (
            "req_blocks",
            asked(&[&[0x91], &list(1_000_000, &[1])[..]].concat()),
        ),
        ("kv_caches_base_addr", list(count, &[1])),
        ("block_lens", list(count, &[1])),
        ("kv_block_lens", list(count, &[1])),
        ("registered_layer_names", list(count, &[0xa1, b'a'])),
        ("registered_layer_indices", list(count, &[1])),
        ("registered_group_indices", list(count, &[0xff])),
        ("registered_shared_group_ids", list(count, &[0x93, 1, 2, 3])),
        ("registered_row_offsets", list(count, &[1])),
    ] {
        message.extend(text(key));
        message.extend(value);
    }
    let limits = Limits::default();
    let mut read = None;
    let took = peak(|| read = Some(Pull::decode(&message, &limits)));
    let pull = read.unwrap().unwrap().pull;
    assert_eq!(pull.layout().unwrap().regions().len(), count);
    assert!(
        took <= 9 * message.len() + 200 * count,
        "{took} for {}",
        message.len()
    );
    assert!(pull.encode(Version::V033).unwrap().len() <= message.len());
}

#[test]
fn json_takes_a_bounded_amount_as_well() {
    let limits = Limits::default();
    let ranks: Vec<String> = (0..60_000).map(|rank| format!("\"{rank}\":{{}}")).collect();
    let ranks = ranks.join(",");
    let groups = "[1],".repeat(200_000);
    for text in [
        format!("{{\"0\":{{\"engine_id\":\"e\",\"worker_addr\":{{{ranks}}}}}}}"),
        format!("{{\"remote_block_ids\":[{groups}[]]}}"),
        format!("{{\"remote_block_ids\":[[{}1]]}}", "1,".repeat(400_000)),
        format!("{{\"x\":{}1", "[".repeat(900_000)),
        format!("{{\"engine_id\":\"{}\"", "\\n".repeat(400_000)),
    ] {
        let bytes = text.as_bytes();
        assert!(bytes.len() <= limits.json_bytes, "{}", bytes.len());
        let took = [
            peak(|| drop(Directory::decode(bytes, &limits))),
            peak(|| drop(Register::decode(bytes, &limits))),
            peak(|| drop(NixlHandOver::decode(bytes, &limits))),
        ];
        assert!(
            took.iter().all(|took| *took <= 48 * bytes.len()),
            "{took:?} for {}",
            bytes.len()
        );
    }
}
