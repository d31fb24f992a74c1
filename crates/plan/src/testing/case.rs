//! Cases from bytes: two layouts, a batch of requests, leases and a contract.

use std::collections::BTreeMap;
use std::format;
use std::vec::Vec;

use mooncake_pd_layout::raw::{RawGroup, RawLayout};
use mooncake_pd_layout::testing::arbitrary::{Result, Unstructured};
use mooncake_pd_layout::testing::pair;
use mooncake_pd_layout::{ByteLen, CacheLayout};

use super::plain::Plain;
use crate::{Contract, RawRequest, RawSlots, RawTables};

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The side that has the bytes.
    pub source: CacheLayout,
    /// The side that wants them.
    pub destination: CacheLayout,
    /// Requests whose transfers are still under way when the batch is planned.
    pub leased: Vec<RawRequest>,
    /// The batch.
    pub requests: Vec<RawRequest>,
    /// What the batch may write besides payload.
    pub contract: Contract,
}

impl Case {
    /// A compatible pair of layouts with up to three requests: with
    /// placeholders, look-ahead, prefixes, windows and tails, most of them
    /// valid. No bytes at all make the smallest case.
    ///
    /// # Panics
    /// The generator is wrong.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::draw(&mut Unstructured::new(bytes)).expect("bytes never run out")
    }

    pub(super) fn draw(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let contract = match bytes.int_in_range(0..=5_u8)? {
            0..=2 => None,
            3 => Some(1 << 20),
            _ => Some(bytes.int_in_range(1..=40)?),
        };
        // Requests first: they would be the poorer for it if layouts took all
        // the bytes.
        let mut asked = Vec::new();
        for _ in 0..=bytes.int_in_range(0..=2_u8)? {
            asked.push(Asked::draw(bytes)?);
        }
        let leased = if bytes.ratio(1_u8, 3)? {
            asked.len() / 2
        } else {
            0
        };
        let (source, destination) = pair(bytes)?;
        let mut free = (Free::new(&source), Free::new(&destination));
        let mut requests = Vec::new();
        for (number, asked) in asked.iter().enumerate() {
            requests.push(asked.request(number, &source, &destination, &mut free));
        }
        let batch = requests.split_off(leased);
        let valid = |raw: &RawLayout| CacheLayout::new(raw).expect("generated layouts are valid");
        Ok(Self {
            source: valid(&source),
            destination: valid(&destination),
            leased: requests,
            requests: batch,
            contract: match contract.map(ByteLen::new) {
                Some(Ok(max_gap)) => Contract::BridgeDead { max_gap },
                _ => Contract::PayloadOnly,
            },
        })
    }

    /// Both sides byte by byte.
    #[must_use]
    pub fn plain(&self) -> (Plain, Plain) {
        let plain = |layout: &CacheLayout| Plain::new(&layout.to_raw());
        (plain(&self.source), plain(&self.destination))
    }

    /// Strides of all pages and blocks.
    #[must_use]
    pub fn strides(&self) -> Vec<u64> {
        let groups = self.source.groups().iter().chain(self.destination.groups());
        let fields = groups.flat_map(|group| group.fields().map(|(_, field)| field));
        let both = |field: &mooncake_pd_layout::Field| {
            [field.page_stride().get(), field.block_stride().get()]
        };
        let mut all: Vec<u64> = fields.flat_map(both).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Ids of each pool that no request has yet.
struct Free(BTreeMap<u32, Vec<u64>>);

impl Free {
    fn new(raw: &RawLayout) -> Self {
        let live = |pool: &mooncake_pd_layout::raw::RawPool| {
            let reserved = |id: u32| pool.reserved.iter().any(|[a, b]| *a <= id && id < *b);
            let ids = 0..pool.capacity;
            let ids = ids.filter(|id| pool.null_id != Some(*id) && !reserved(*id));
            (pool.id, ids.map(u64::from).collect())
        };
        Self(raw.pools.iter().map(live).collect())
    }
}

/// A request before it has blocks: what is drawn for it, whatever the layouts.
struct Asked {
    /// Tokens; none for tail alignment.
    tokens: Option<u64>,
    lists: Vec<(List, List)>,
    reversed: bool,
}

struct List {
    len: usize,
    first_block: Option<u64>,
    picks: [u8; 6],
}

impl List {
    fn draw(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let len = bytes.int_in_range(0..=5)?;
        let first_block = match bytes.int_in_range(0..=15_u8)? {
            0..=8 => None,
            9..=11 => Some(0),
            12 => Some(1),
            13 => Some(2),
            14 => Some(bytes.int_in_range(0..=8)?),
            _ if bytes.ratio(1_u8, 8)? => Some(u64::MAX - 2),
            _ => Some(1),
        };
        Ok(Self {
            len,
            first_block,
            picks: bytes.arbitrary()?,
        })
    }

    /// The list with ids for its entries.
    fn slots(&self, group: &RawGroup, free: &mut Free, tail_aligned: bool) -> RawSlots {
        let free = free.0.entry(group.pool).or_default();
        let mut last = None;
        let entries = self.picks.iter().take(self.len).map(|pick| {
            let entry = match pick {
                // Rare: an id that is taken, reserved, null or does not exist.
                254..=255 => Some(u64::from(*pick) % 7),
                252..=253 => last,
                251 => Some(u64::MAX - 3),
                200..=250 => None,
                _ if free.is_empty() => None,
                // Mostly in order: blocks that follow each other.
                0..=149 => Some(free.remove(0)),
                _ => Some(free.remove(usize::from(*pick) % free.len())),
            };
            last = entry.or(last);
            entry
        });
        RawSlots {
            entries: entries.collect(),
            first_block: self.first_block.filter(|_| !tail_aligned),
        }
    }
}

impl Asked {
    fn draw(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let tokens = if bytes.ratio(1_u8, 6)? {
            None
        } else {
            Some(bytes.int_in_range(0..=48)?)
        };
        let mut lists = Vec::new();
        for _ in 0..3 {
            lists.push((List::draw(bytes)?, List::draw(bytes)?));
        }
        Ok(Self {
            tokens,
            lists,
            reversed: bytes.ratio(1_u8, 4)?,
        })
    }

    fn request(
        &self,
        number: usize,
        source: &RawLayout,
        destination: &RawLayout,
        free: &mut (Free, Free),
    ) -> RawRequest {
        let tail_aligned = self.tokens.is_none();
        let mut groups = Vec::new();
        for (group, (from, to)) in source.groups.iter().zip(&self.lists) {
            let others = &mut destination.groups.iter();
            let other = others.find(|other| other.id == group.id);
            let other = other.expect("both sides have the same groups");
            groups.push(RawTables {
                group: group.id,
                source: from.slots(group, &mut free.0, tail_aligned),
                destination: to.slots(other, &mut free.1, tail_aligned),
            });
        }
        if self.reversed {
            groups.reverse();
        }
        RawRequest {
            id: format!("r{number}"),
            computed_tokens: self.tokens,
            tail_aligned,
            groups,
        }
    }
}
