//! One session machine alone, and events of any kind in any order, drawn from
//! bytes: also such as no engine, peer or network would send.

mod decode;
mod prefill;

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mooncake_pd_layout::testing::arbitrary::{Result, Unstructured};
use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupId, GroupSpec, LayoutBuilder};

pub use decode::check_decode_events;
pub use prefill::check_prefill_events;

use crate::{
    BlockTables, Consumer, EngineId, Generation, GroupTable, HandOff, HandOffPoint, Peer,
    PullNumber, Span, Time, TokenCount, TransferId,
};

/// Most events of one sequence: shorter in time than a peer is remembered.
const MAX_EVENTS: usize = 300;

/// The first byte chooses the machine.
pub fn check_event_bytes(bytes: &[u8]) {
    match bytes.split_first() {
        Some((first, rest)) if first % 2 == 1 => check_decode_events(rest),
        Some((_, rest)) => check_prefill_events(rest),
        None => {}
    }
}

/// Two groups of one pool of eight blocks, the first of them null.
fn layout() -> Arc<CacheLayout> {
    let mut builder = LayoutBuilder::new().pool(0, 8, Some(0));
    for (id, kind) in [(0, "full_attention"), (1, "gdn_state")] {
        let field = FieldSpec::new("kv", "uint8").at(id, 0).page_stride(8);
        let group = GroupSpec::new(id, kind, 16, 0);
        let name = format!("layers.{id}");
        builder = builder
            .allocation(id, 64)
            .group(group.layer(&name, [field.dim(Axis::Byte, 8, 1)]));
    }
    Arc::new(builder.build().expect("a valid layout"))
}

/// Bytes as the parts of events.
struct Draw<'a>(Unstructured<'a>);

impl Draw<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        let drawn: Result<u64> = self.0.int_in_range(0..=end - 1);
        drawn.expect("bytes never run out")
    }

    /// True once in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        // No bytes at all make no rare things.
        self.below(times) == times - 1
    }

    /// Mostly forward, seldom back.
    fn step(&mut self, now: &mut Time) {
        let micros = now.as_micros();
        let step = match self.below(12) {
            0..=6 => 0,
            7 => 1,
            8 => 100_000,
            9 => 1_000_000,
            10 => 8_000_000,
            _ => {
                *now = Time::from_micros(micros.saturating_sub(2_000_000));
                return;
            }
        };
        *now = now.after(Span::from_micros(step));
    }

    fn transfer(&mut self) -> TransferId {
        let name = format!("t{}", self.below(5));
        TransferId::new(&name).expect("a short name")
    }

    fn peer(&mut self, prefix: char, engines: u64) -> Peer {
        let name = format!("{prefix}{}", self.below(engines));
        Peer {
            engine: EngineId::new(&name).expect("a short name"),
            generation: self.generation(),
        }
    }

    /// Mostly 1.
    fn generation(&mut self) -> Generation {
        Generation::new(match self.below(8) {
            0..=4 => 1,
            5..=6 => 2,
            _ => self.below(4),
        })
    }

    fn number(&mut self) -> PullNumber {
        PullNumber::new(match self.below(40) {
            39 => u64::MAX - self.below(2),
            38 => 70_000,
            _ => self.below(10),
        })
    }

    fn consumer(&mut self) -> Consumer {
        let drawn = match self.below(8) {
            6 => Consumer::new(0, 2),
            7 => Consumer::new(1, 2),
            _ => None,
        };
        drawn.unwrap_or(Consumer::ALONE)
    }

    /// Mostly 32.
    fn tokens(&mut self) -> TokenCount {
        TokenCount::new(if self.once_in(8) { 31 } else { 32 })
    }

    fn hand_off(&mut self) -> HandOff {
        let computed = self.tokens();
        let prompt = TokenCount::new(33);
        HandOff::new(HandOffPoint::Recompute, prompt, computed, None, None).expect("fits")
    }

    /// Up to five blocks, seldom one twice, out of the pool or of a third group.
    fn tables(&mut self) -> Arc<BlockTables> {
        let groups = if self.once_in(16) { self.below(4) } else { 2 };
        let mut next = self.below(8);
        let mut tables = Vec::new();
        for group in 0..groups {
            let mut entries = Vec::new();
            for _ in 0..self.below(4) {
                entries.push(match self.below(16) {
                    0 => None,
                    1 => Some(0),
                    2 => Some(self.below(10) as u32),
                    _ => {
                        next += 1;
                        Some((next % 8) as u32)
                    }
                });
            }
            tables.push(GroupTable {
                group: GroupId::new(group as u32),
                first_block: None,
                entries,
            });
        }
        Arc::new(BlockTables::new(tables).expect("small tables"))
    }
}

/// Live ids of tables: what a lease holds.
fn blocks(tables: &BlockTables) -> Vec<u32> {
    let entries = tables.groups().iter().flat_map(|table| &table.entries);
    entries
        .filter_map(|entry| entry.filter(|id| *id != 0))
        .collect()
}
