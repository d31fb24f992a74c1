//! Layouts and requests of cases, and what became of them.

use mooncake_pd_layout::{Axis, ByteLen, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::testing::{Case, check_every_mutation, check_plan};
use mooncake_pd_plan::{
    Batch, Contract, Options, Pairing, RawRequest, RawSlots, RawTables, Request, Unfilled,
    UnfilledReason,
};

/// A block of bytes in a row of `stride`, at the start of allocation 0.
pub(crate) fn bytes(name: &str, offset: u64, stride: u64, len: u64) -> FieldSpec {
    FieldSpec::new(name, "uint8")
        .at(0, offset)
        .page_stride(stride)
        .dim(Axis::Byte, len, 1)
}

/// One group per kind, each with an allocation of its own and pages of 8 bytes
/// in rows of 10.
pub(crate) fn layout(blocks: u32, kinds: &[&str]) -> CacheLayout {
    let mut builder = LayoutBuilder::new().pool(0, blocks, Some(0));
    for (id, kind) in (0_u32..).zip(kinds) {
        builder = builder.allocation(id, u64::from(blocks) * 10);
        let field = bytes("kv", 0, 10, 8).at(id, 0);
        let mut group = GroupSpec::new(id, kind, 16, 0);
        if kind.starts_with("sliding") {
            group = group.window(32);
        }
        builder = builder.group(group.layer(&format!("layer.{id}"), [field]));
    }
    builder.build().unwrap()
}

pub(crate) fn list(ids: &[u64]) -> RawSlots {
    RawSlots {
        first_block: None,
        entries: ids.iter().copied().map(Some).collect(),
    }
}

pub(crate) fn at(first_block: u64, ids: &[u64]) -> RawSlots {
    RawSlots {
        first_block: Some(first_block),
        ..list(ids)
    }
}

pub(crate) fn request(computed_tokens: u64, groups: Vec<(RawSlots, RawSlots)>) -> RawRequest {
    let tables = |(group, (source, destination))| RawTables {
        group,
        source,
        destination,
    };
    RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(computed_tokens),
        tail_aligned: false,
        groups: (0..).zip(groups).map(tables).collect(),
    }
}

/// Blocks that move, by group: source and destination.
pub(crate) type Moves = Vec<(u32, u32, u32)>;

/// Plans a batch, which passes everything that is promised of plans.
pub(crate) fn planned(
    source: &CacheLayout,
    destination: &CacheLayout,
    requests: &[RawRequest],
) -> Batch {
    for contract in [
        Contract::PayloadOnly,
        Contract::BridgeDead {
            max_gap: ByteLen::new(1 << 20).unwrap(),
        },
    ] {
        let case = Case {
            source: source.clone(),
            destination: destination.clone(),
            leased: Vec::new(),
            requests: requests.to_vec(),
            contract,
        };
        check_plan(&case);
        check_every_mutation(&case);
    }
    let pairing = Pairing::new(source, destination).unwrap();
    let requests: Vec<Request> = requests
        .iter()
        .map(|raw| Request::new(raw, &pairing).unwrap())
        .collect();
    pairing.plan(&requests, &Options::default()).unwrap()
}

pub(crate) fn moves(batch: &Batch) -> Moves {
    let sections = batch.plan.sections().iter();
    sections
        .flat_map(|section| {
            let group = section.group().get();
            let pairs = section.pairs().iter();
            pairs.map(move |pair| (group, pair.source(), pair.destination()))
        })
        .collect()
}

/// Reasons by destination block.
pub(crate) fn unfilled(batch: &Batch) -> Vec<(u32, UnfilledReason)> {
    let entry = |entry: &Unfilled| (entry.destination, entry.reason);
    batch.plan.unfilled().iter().map(entry).collect()
}

/// One request of one group with pages on both sides.
pub(crate) fn attention(tokens: u64, source: RawSlots, destination: RawSlots) -> Batch {
    let side = layout(200, &["full_attention"]);
    planned(
        &side,
        &side,
        &[request(tokens, vec![(source, destination)])],
    )
}
