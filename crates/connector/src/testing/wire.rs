//! What has to hold for the codecs, whatever a peer sends.

use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use mooncake_pd_layout::testing::arbitrary::Unstructured;

use super::draw::{draw_answer, draw_pull};
use crate::wire::{
    Address, Answer, Bootstrap, DecodeError, Directory, Limits, NixlHandOver, Params, PeerLayout,
    Progress, Pull, Register, Version,
};

/// How many codecs the first byte of an input chooses from.
pub const WIRE_CODECS: u8 = 10;

/// Reads bytes as one of the messages and checks what was read: it is within the limits, is
/// written and read again as the same, and the written form is stable. The first byte chooses
/// the codec (modulo [`WIRE_CODECS`]) and, from 128 on, narrow limits; the codecs are, in order,
/// pull, answer, registration, directory, registry, parameters, NIXL's hand-over, addresses, and
/// a pull and an answer that are drawn from the bytes.
///
/// # Panics
/// Something does not hold.
pub fn check_wire_bytes(data: &[u8]) {
    let (&first, data) = data.split_first().unwrap_or((&0, &[]));
    let limits = if first < 128 {
        Limits::default()
    } else {
        Limits {
            message_bytes: 4096,
            json_bytes: 512,
            requests: 3,
            groups: 4,
            blocks: 8,
            regions: 5,
            name_bytes: 32,
            ranks: 4,
        }
    };
    match first % WIRE_CODECS {
        0 => pull(data, &limits),
        1 => answer(data, &limits),
        2 => register(data, &limits),
        3 => directory(data, &limits),
        4 => registry(data, limits),
        5 => params(data, &limits),
        6 => nixl(data, &limits),
        7 => addresses(data),
        8 => drawn_pull(data),
        _ => drawn_answer(data),
    }
}

fn pull(data: &[u8], limits: &Limits) {
    let received = match Pull::decode(data, limits) {
        Ok(received) => received,
        Err(error) => return failed(&error, data, limits),
    };
    let (pull, refused) = (&received.pull, &received.refused);
    assert!(pull.requests().len() + refused.len() <= limits.requests);
    let served = pull.requests().iter().map(|asked| &asked.request);
    let named: BTreeSet<_> = served
        .chain(refused.iter().map(|refused| &refused.request))
        .collect();
    assert_eq!(named.len(), pull.requests().len() + refused.len());
    for asked in pull.requests() {
        assert!(asked.blocks.groups().len() <= limits.groups);
        assert!(asked.blocks.ids().len() <= limits.blocks);
    }
    let regions = pull.layout().map_or(&[][..], PeerLayout::regions);
    assert!(regions.len() <= limits.regions);
    for region in regions {
        assert!(region.kv_block_len() <= region.block_len());
        for block in [0, 1, 1 << 32, u64::MAX] {
            if let Ok(start) = region.block(block) {
                let end = start.get().checked_add(region.kv_block_len().get());
                assert!(start >= region.base() && end.is_some());
            }
        }
    }
    assert!(
        refused
            .iter()
            .all(|refused| !refused.to_string().is_empty())
    );
    round(pull, limits);
}

/// A pull is read as what was written, and 0.32's form of it differs in the layout id alone.
fn round(pull: &Pull, limits: &Limits) {
    let limits = &wide(limits);
    let written = pull.encode(Version::V033).expect("0.33 says every pull");
    let again = Pull::decode(&written, limits).expect("what was written is a pull");
    assert_eq!(again.pull, *pull);
    assert_eq!(again.refused, []);
    assert_eq!(again.pull.encode(Version::V033).as_ref(), Ok(&written));
    truncations(&written, |part| Pull::decode(part, limits).err());
    match pull.encode(Version::V032) {
        Ok(older) => {
            let again = Pull::decode(&older, limits).expect("what was written is a pull");
            let (puller, requests) = (pull.puller().clone(), pull.requests().to_vec());
            let bare = Pull::new(puller, requests, pull.layout().cloned(), None);
            assert_eq!(again.pull, bare.expect("the same requests"));
            assert!(pull.layout_id().is_some() || older == written);
        }
        Err(error) => {
            assert!(
                pull.layout().is_none() && pull.layout_id().is_some(),
                "{error}"
            );
        }
    }
}

/// Written messages may be longer than read ones: defaults and lists are written out.
fn wide(limits: &Limits) -> Limits {
    Limits {
        message_bytes: usize::MAX,
        json_bytes: usize::MAX,
        ..*limits
    }
}

fn answer(data: &[u8], limits: &Limits) {
    match Answer::decode(data, limits) {
        Ok(answer) => round_answer(&answer, limits),
        Err(error) => failed(&error, data, limits),
    }
}

fn round_answer(answer: &Answer, limits: &Limits) {
    let limits = &wide(limits);
    let written = answer
        .encode(Version::V033)
        .expect("0.33 says every answer");
    assert_eq!(Answer::decode(&written, limits).as_ref(), Ok(answer));
    truncations(&written, |part| Answer::decode(part, limits).err());
    let older = answer.encode(Version::V032);
    match answer {
        Answer::LayoutMiss { .. } => assert!(older.is_err()),
        Answer::Progress(progress) => {
            let bare = Progress {
                layout_id: None,
                ..progress.clone()
            };
            assert!(bare.ok.len().max(bare.failed.len()) <= limits.requests);
            let older = older.expect("0.32 says it");
            assert_eq!(Answer::decode(&older, limits), Ok(Answer::Progress(bare)));
        }
        Answer::Error { .. } => assert_eq!(older, Ok(written)),
    }
}

/// An error says something, and a message within the limits isn't called too long.
fn failed(error: &DecodeError, data: &[u8], limits: &Limits) {
    assert!(!error.to_string().is_empty());
    let too_long = matches!(error, DecodeError::TooLong { .. });
    assert_eq!(too_long, data.len() > limits.message_bytes);
}

/// No message is the beginning of another.
fn truncations(written: &[u8], read: impl Fn(&[u8]) -> Option<DecodeError>) {
    let step = written.len() / 32 + 1;
    for len in (0..written.len()).step_by(step) {
        read(&written[..len]).expect("a part is no message");
    }
    let mut longer = written.to_vec();
    longer.push(0xc0);
    let error = read(&longer).expect("something follows");
    assert!(
        matches!(error, DecodeError::Trailing { left: 1, .. }),
        "{error}"
    );
}

fn register(data: &[u8], limits: &Limits) {
    match Register::decode(data, limits) {
        Ok(worker) => {
            let written = worker.encode().expect("names are JSON");
            let again = Register::decode(&written, &wide(limits));
            assert_eq!(again.as_ref(), Ok(&worker));
            let _ = worker.addr.address();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn directory(data: &[u8], limits: &Limits) {
    match Directory::decode(data, limits) {
        Ok(directory) => {
            let written = directory.encode().expect("names are JSON");
            let again = Directory::decode(&written, &wide(limits));
            assert_eq!(again.as_ref(), Ok(&directory));
            let again = again.expect("read").encode().expect("names are JSON");
            assert_eq!(again, written);
            for (_, entry) in directory.engines() {
                assert!(directory.engine(entry.engine()).is_some());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Each line is a body. What was accepted is accepted again, in any order with the others.
fn registry(data: &[u8], limits: Limits) {
    let mut bootstrap = Bootstrap::new(limits);
    let bodies: Vec<_> = data.split(|byte| *byte == b'\n').take(64).collect();
    let mut status = Vec::new();
    for body in &bodies {
        let reply = bootstrap.post(body).expect("replies are JSON");
        assert!([200, 400, 422].contains(&reply.status));
        let known: Result<serde_json::Value, _> = serde_json::from_slice(&reply.body);
        assert!(known.is_ok_and(|reply| reply.is_object()));
        status.push(reply.status);
    }
    let known = bootstrap.directory().clone();
    for (body, before) in bodies.iter().zip(status) {
        let reply = bootstrap.post(body).expect("replies are JSON");
        assert_eq!(reply.status, before);
    }
    assert_eq!(*bootstrap.directory(), known);
    let written = known.encode().expect("names are JSON");
    assert_eq!(Directory::decode(&written, &wide(&limits)), Ok(known));
}

fn params(data: &[u8], limits: &Limits) {
    match Params::decode(data, limits) {
        Ok(params) => {
            let written = params.encode().expect("names are JSON");
            assert_eq!(Params::decode(&written, &wide(limits)), Ok(params));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn nixl(data: &[u8], limits: &Limits) {
    match NixlHandOver::decode(data, limits) {
        Ok(found) => {
            let written = found.encode().expect("names and finite numbers are JSON");
            let again = NixlHandOver::decode(&written, &wide(limits));
            assert_eq!(again, Ok(found));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn addresses(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    for parse in [Address::worker, Address::bootstrap, Address::endpoint] {
        match parse(text) {
            Ok(address) => {
                assert_eq!(address.to_string(), text);
                let host = address.host();
                let scheme = address.scheme();
                let scheme =
                    scheme.map_or(String::new(), |scheme| format!("{}://", scheme.as_str()));
                let host = if host.as_str().contains(':') {
                    format!("[{host}]")
                } else {
                    host.to_string()
                };
                let full = format!("{scheme}{host}:{}", address.port());
                assert!(
                    full == text
                        || full.strip_suffix(":80") == Some(text)
                        || full.strip_suffix(":443") == Some(text)
                );
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn drawn_pull(data: &[u8]) {
    let pull = draw_pull(&mut Unstructured::new(data)).expect("bytes never run out");
    round(&pull, &Limits::default());
}

fn drawn_answer(data: &[u8]) {
    let answer = draw_answer(&mut Unstructured::new(data)).expect("bytes never run out");
    round_answer(&answer, &Limits::default());
}
