//! Names, block tables and a layout of two groups in one pool.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "shared by tests that need different parts"
)]

pub(crate) mod lives;

use std::sync::Arc;

use mooncake_pd_connector::{
    BlockTables, EngineId, Generation, GroupTable, HandOff, HandOffPoint, Peer, RequestId,
    TokenCount, TransferId,
};
use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};

/// Full attention and a recurrent state, pages of 8 bytes in rows of 10; null is 0.
pub(crate) fn layout(blocks: u32) -> Arc<CacheLayout> {
    let mut builder = LayoutBuilder::new().pool(0, blocks, Some(0));
    for (id, kind) in [(0, "full_attention"), (1, "gdn_state")] {
        let field = FieldSpec::new("kv", "uint8").at(id, 0).page_stride(10);
        let group = GroupSpec::new(id, kind, 16, 0);
        builder = builder
            .allocation(id, u64::from(blocks) * 10)
            .group(group.layer(&format!("layers.{id}"), [field.dim(Axis::Byte, 8, 1)]));
    }
    Arc::new(builder.build().unwrap())
}

/// Block tables of groups 0, 1, and so on.
pub(crate) fn tables(lists: &[&[u32]]) -> Arc<BlockTables> {
    let groups = (0_u32..).zip(lists).map(|(group, list)| GroupTable {
        group: GroupId::new(group),
        first_block: None,
        entries: list.iter().copied().map(Some).collect(),
    });
    Arc::new(BlockTables::new(groups).unwrap())
}

pub(crate) fn transfer(name: &str) -> TransferId {
    TransferId::new(name).unwrap()
}

pub(crate) fn request(name: &str) -> RequestId {
    RequestId::new(name).unwrap()
}

pub(crate) fn peer(name: &str, generation: u64) -> Peer {
    Peer {
        engine: EngineId::new(name).unwrap(),
        generation: Generation::new(generation),
    }
}

/// All but one of `computed + 1` elements.
pub(crate) fn hand_off(computed: u32) -> HandOff {
    let (prompt, computed) = (TokenCount::new(computed + 1), TokenCount::new(computed));
    HandOff::new(
        HandOffPoint::Recompute,
        prompt,
        computed,
        Some(computed),
        None,
    )
    .unwrap()
}
