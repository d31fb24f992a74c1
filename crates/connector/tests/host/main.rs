//! The hosts: the scheduler's half of a connector.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "numbers of a test are small, and a panic is a failed test"
)]

mod decode;
mod prefill;
mod random;
mod whole;

use std::sync::Arc;

use mooncake_pd_connector::{
    Accounting, BlockTables, Computed, DecodeHost, DecodeOutcome, EngineId, Flavour, GroupTable,
    HandOff, HandOffPoint, Holdback, HostLimits, PrefillHost, PromptInput, Ranks, RequestId,
    Source, TokenCount, TransferId,
};
use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};

fn tokens(count: u32) -> TokenCount {
    TokenCount::new(count)
}

fn ids(count: u32) -> PromptInput {
    PromptInput::TokenIds(tokens(count))
}

fn request(name: &str) -> RequestId {
    RequestId::new(name).unwrap()
}

fn transfer(name: &str) -> TransferId {
    TransferId::new(name).unwrap()
}

fn source() -> Source {
    Source {
        engine: EngineId::new("p").unwrap(),
        bootstrap: Arc::from("http://p:8998"),
    }
}

/// Attention of 4 tokens per block and a GDN state; block 0 is null.
fn layout() -> Arc<CacheLayout> {
    let kv = FieldSpec::new("kv", "uint8")
        .page_stride(64)
        .dim(Axis::Token, 4, 8)
        .dim(Axis::Content, 8, 1);
    let state = FieldSpec::new("state", "uint8")
        .page_stride(64)
        .dim(Axis::Content, 8, 1);
    let layout = LayoutBuilder::new()
        .allocation(0, 64 * 64)
        .pool(0, 64, Some(0))
        .group(GroupSpec::new(0, "full_attention", 4, 0).layer("a", [kv]))
        .group(GroupSpec::new(1, "gdn_state", 4, 0).layer("g", [state]))
        .build();
    Arc::new(layout.unwrap())
}

/// Blocks of attention, and the state's block behind placeholders.
fn tables(attention: &[u32], state: &[u32]) -> Arc<BlockTables> {
    let group = |id, entries: &[u32]| GroupTable {
        group: GroupId::new(id),
        first_block: Some(0),
        entries: entries.iter().copied().map(Some).collect(),
    };
    Arc::new(BlockTables::new([group(0, attention), group(1, state)]).unwrap())
}

fn blocks() -> Arc<BlockTables> {
    tables(&[10, 11, 12], &[0, 0, 14])
}

fn gdn(point: HandOffPoint) -> Accounting {
    Accounting {
        holdback: Holdback::of(&layout()),
        flavour: Flavour::Own,
        point,
    }
}

fn limits() -> HostLimits {
    HostLimits {
        live: 3,
        orders: 100,
    }
}

fn prefill_host(ranks: u16) -> PrefillHost {
    let ranks = Ranks::new(ranks).unwrap();
    PrefillHost::new(gdn(HandOffPoint::Recompute), layout(), ranks, limits(), 1)
}

fn decode_host(ranks: u16) -> DecodeHost {
    let ranks = Ranks::new(ranks).unwrap();
    DecodeHost::new(gdn(HandOffPoint::Recompute), ranks, limits(), 1)
}

fn computed(count: u32) -> Computed {
    Computed {
        computed: tokens(count),
        state: Some(tokens(count)),
        first_token: None,
        tables: blocks(),
    }
}

/// What a rank says that loaded `count` of `prompt` elements.
fn loaded(prompt: u32, count: u32) -> DecodeOutcome {
    let (prompt, count) = (tokens(prompt), tokens(count));
    let hand_off = HandOff::new(HandOffPoint::Recompute, prompt, count, Some(count), None);
    DecodeOutcome::Loaded {
        computed: count,
        hand_off: Some(hand_off.unwrap()),
    }
}

#[test]
fn a_model_is_recognised_by_its_layout() {
    assert_eq!(Holdback::of(&layout()), Holdback::plain().gdn());
    let mla = GroupSpec::new(0, "mla", 4, 0).layer(
        "a",
        [FieldSpec::new("kv", "uint8")
            .page_stride(64)
            .dim(Axis::Content, 8, 1)],
    );
    let layout = LayoutBuilder::new()
        .allocation(0, 640)
        .pool(0, 10, None)
        .group(mla)
        .build();
    assert_eq!(Holdback::of(&layout.unwrap()), Holdback::plain());
}

#[test]
fn an_engine_has_at_least_one_rank() {
    assert_eq!((Ranks::new(0), Ranks::new(1)), (None, Some(Ranks::ONE)));
    assert_eq!(Ranks::new(1024).map(Ranks::get), Some(1024));
    assert_eq!(Ranks::new(1025), None);
}
