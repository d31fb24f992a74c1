//! The tiny model: its layouts, and memory laid out so.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::vec::Vec;

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};
use mooncake_pd_plan::Pairing;

use crate::{BlockTables, GroupTable};

/// Tokens in an attention block.
pub(super) const ATTENTION_TOKENS: u32 = 2;
/// Tokens for which one entry of a state table stands.
pub(super) const STATE_TOKENS: u32 = 4;
/// Blocks of a prefill engine, null included.
pub(super) const PREFILL_BLOCKS: u32 = 26;
/// Blocks of a decode engine, null included.
pub(super) const DECODE_BLOCKS: u32 = 22;
/// Bytes of a block: two tokens, or a state and its padding.
const STRIDE: usize = 24;

/// Both layouts and their pairing.
pub(super) struct Model {
    pub(super) prefill: Arc<CacheLayout>,
    pub(super) decode: Arc<CacheLayout>,
    pub(super) pairing: Pairing<'static>,
}

/// The model that all schedules share: attention and a GDN state overlaid on one
/// storage, drawing from one pool, with padding.
pub(super) fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| {
        let layout = |blocks: u32| {
            let stride = STRIDE as u64;
            let kv = FieldSpec::new("kv", "uint8")
                .page_stride(stride)
                .dim(Axis::Token, u64::from(ATTENTION_TOKENS), 8)
                .dim(Axis::Content, 8, 1);
            let state =
                FieldSpec::new("state", "uint8")
                    .page_stride(stride)
                    .dim(Axis::Content, 8, 1);
            let attention = GroupSpec::new(0, "full_attention", ATTENTION_TOKENS, 0);
            let gdn = GroupSpec::new(1, "gdn_state", STATE_TOKENS, 0);
            LayoutBuilder::new()
                .allocation(0, u64::from(blocks) * stride)
                .pool(0, blocks, Some(0))
                .group(attention.layer("attention", [kv]))
                .group(gdn.layer("gdn", [state]))
                .build()
                .expect("a valid layout")
        };
        let sides: &'static (CacheLayout, CacheLayout) = std::boxed::Box::leak(
            std::boxed::Box::new((layout(PREFILL_BLOCKS), layout(DECODE_BLOCKS))),
        );
        Model {
            prefill: Arc::new(sides.0.clone()),
            decode: Arc::new(sides.1.clone()),
            pairing: Pairing::new(&sides.0, &sides.1).expect("a pair"),
        }
    })
}

/// One rank's memory; it outlives its engine while transfers still read it.
#[derive(Clone, Debug)]
pub(super) struct Memory(Rc<RefCell<Vec<u8>>>);

impl Memory {
    pub(super) fn new(blocks: u32, fill: u8) -> Self {
        Self(Rc::new(RefCell::new(
            std::vec![fill; blocks as usize * STRIDE],
        )))
    }

    fn write(&self, at: usize, value: u64) {
        self.0.borrow_mut()[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn read(&self, at: usize) -> u64 {
        let bytes = &self.0.borrow()[at..at + 8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }

    pub(super) fn write_token(&self, block: u32, slot: u32, value: u64) {
        self.write(block as usize * STRIDE + slot as usize * 8, value);
    }

    pub(super) fn token(&self, block: u32, slot: u32) -> u64 {
        self.read(block as usize * STRIDE + slot as usize * 8)
    }

    pub(super) fn write_state(&self, block: u32, value: u64) {
        self.write(block as usize * STRIDE, value);
    }

    pub(super) fn state(&self, block: u32) -> u64 {
        self.read(block as usize * STRIDE)
    }

    /// One descriptor's bytes, read now.
    pub(super) fn copy(&self, source: usize, to: &Self, destination: usize, len: usize) {
        let bytes = self.0.borrow()[source..source + len].to_vec();
        to.0.borrow_mut()[destination..destination + len].copy_from_slice(&bytes);
    }
}

/// Blocks of an engine: how many requests use each.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    free: Vec<u32>,
    users: Vec<u32>,
}

impl Pool {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            free: (1..blocks).collect(),
            users: std::vec![0; blocks as usize],
        }
    }

    /// Takes `count` blocks, or none. The oldest free ones come first, so that a block
    /// that was let go too early is soon used again when few are free.
    pub(super) fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        if self.free.len() < count {
            return None;
        }
        let taken: Vec<u32> = self.free.drain(..count).collect();
        for block in &taken {
            self.users[*block as usize] += 1;
        }
        Some(taken)
    }

    pub(super) fn share(&mut self, block: u32) {
        self.users[block as usize] += 1;
    }

    /// Lets one use of a block go; whether it is free now.
    pub(super) fn give_back(&mut self, block: u32) -> bool {
        let users = &mut self.users[block as usize];
        *users -= 1;
        if *users == 0 {
            self.free.insert(0, block);
            return true;
        }
        false
    }

    pub(super) fn in_use(&self) -> usize {
        self.users.iter().filter(|users| **users > 0).count()
    }
}

/// Tables of both groups.
pub(super) fn tables(
    first_block: Option<u64>,
    attention: Vec<Option<u32>>,
    first_state: Option<u64>,
    state: Vec<Option<u32>>,
) -> Arc<BlockTables> {
    let group = |id, first_block, entries| GroupTable {
        group: GroupId::new(id),
        first_block,
        entries,
    };
    let groups = [
        group(0, first_block, attention),
        group(1, first_state, state),
    ];
    Arc::new(BlockTables::new(groups).expect("two groups"))
}
