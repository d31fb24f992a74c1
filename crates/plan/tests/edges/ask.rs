//! Fields, requests and what becomes of them.

use mooncake_pd_layout::{
    AllocationId, Axis, ByteLen, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder,
};
use mooncake_pd_plan::{
    Contract, Draft, Options, Pairing, Piece, Plan, RawRequest, RawSlots, RawTables, Request,
    Stretch,
};

/// `len` bytes at an offset of an allocation, in rows of `stride`.
pub(crate) fn bytes(allocation: u32, offset: u64, stride: u64, len: u64) -> FieldSpec {
    FieldSpec::new("kv", "uint8")
        .at(allocation, offset)
        .page_stride(stride)
        .dim(Axis::Byte, len, 1)
}

/// A group of blocks of 16 tokens without any layer.
pub(crate) fn group(id: u32, pool: u32) -> GroupSpec {
    GroupSpec::new(id, "full_attention", 16, pool)
}

/// Groups over one pool of `blocks` and two allocations of 1,000 bytes.
pub(crate) fn side(blocks: u32, groups: impl IntoIterator<Item = GroupSpec>) -> CacheLayout {
    let builder = LayoutBuilder::new()
        .allocation(0, 1_000)
        .allocation(1, 1_000)
        .pool(0, blocks, None);
    groups
        .into_iter()
        .fold(builder, LayoutBuilder::group)
        .build()
        .unwrap()
}

pub(crate) fn list(ids: &[u64]) -> RawSlots {
    RawSlots {
        first_block: None,
        entries: ids.iter().copied().map(Some).collect(),
    }
}

/// A request for groups from 0, each with its blocks at the source and at the
/// destination.
pub(crate) fn raw(tokens: u64, groups: &[(&[u64], &[u64])]) -> RawRequest {
    let tables = |(group, (source, destination)): (u32, &(&[u64], &[u64]))| RawTables {
        group,
        source: list(source),
        destination: list(destination),
    };
    RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(tokens),
        tail_aligned: false,
        groups: (0..).zip(groups).map(tables).collect(),
    }
}

pub(crate) fn request(pairing: &Pairing<'_>, tokens: u64, groups: &[(&[u64], &[u64])]) -> Request {
    Request::new(&raw(tokens, groups), pairing).unwrap()
}

pub(crate) fn bridge(max_gap: u64) -> Contract {
    Contract::BridgeDead {
        max_gap: ByteLen::new(max_gap).unwrap(),
    }
}

pub(crate) fn under(contract: Contract) -> Options<'static> {
    Options {
        contract,
        ..Options::default()
    }
}

/// The plan of one request without placeholders.
pub(crate) fn plan(
    source: &CacheLayout,
    destination: &CacheLayout,
    contract: Contract,
    tokens: u64,
    groups: &[(&[u64], &[u64])],
) -> Plan {
    let pairing = Pairing::new(source, destination).unwrap();
    let batch = pairing
        .plan(&[request(&pairing, tokens, groups)], &under(contract))
        .unwrap();
    assert_eq!(batch.refused, []);
    batch.plan
}

/// Source offset, destination offset and length of a copy.
pub(crate) type Moved = (u64, u64, u64);

pub(crate) fn copies(plan: &Plan) -> Vec<Moved> {
    plan.copies()
        .map(|copy| {
            let (from, to) = (copy.source_offset().get(), copy.destination_offset().get());
            (from, to, copy.len().get())
        })
        .collect()
}

pub(crate) fn piece((source_offset, destination_offset, len): Moved) -> Piece {
    Piece {
        source_offset,
        destination_offset,
        len,
    }
}

/// A draft of request 0 in allocation 0 of both sides, by group.
pub(crate) fn draft(groups: &[(u32, &[Moved])]) -> Draft {
    let mut draft = Draft::default();
    for (group, pieces) in groups {
        draft.stretches.push(Stretch {
            request: 0,
            group: GroupId::new(*group),
            source: AllocationId::new(0),
            destination: AllocationId::new(0),
            pieces: pieces.len(),
        });
        draft.pieces.extend(pieces.iter().copied().map(piece));
    }
    draft
}
