//! The descriptor list that vLLM 0.33's Mooncake connector computes, as raw triples.
//!
//! A reference to measure and compare against: how many descriptors stock vLLM needs for a request,
//! and which bytes it writes. It is never a plan and no engine takes it, on purpose: stock vLLM
//! copies padding, writes some bytes twice, and pairs lists that carry no positions by their ends.
//! A [`Triple`] therefore converts to nothing of this crate, names no allocation, and was never checked.
//!
//! The rules below were derived from recorded descriptor lists (`fixtures/vllm-0.33`), and reproduce
//! them one for one:
//!
//! - Regions pair by layer name and occurrence ([`Regions::registered`] also promotes packed rows).
//! - A request whose decode side lists no block in any group is a release: nothing to copy.
//! - Unequal group counts refuse the request. So does a group in which P has fewer blocks than D.
//! - In a state group, id 0 is dropped from both lists first.
//! - P keeps the last blocks of its list, as many as D offers.
//! - In other groups every id becomes `ratio` kernel blocks. The ratio is the producer's for both
//!   sides: the wire carries none.
//! - Pairs that advance by one on both sides form a run. A shared region strings its groups' pairs
//!   together first, so a run may cross from one group into the next.
//! - One triple per run where a block fills its stride on both sides, else one per block.
//! - Order: request, region, run.

mod error;
mod region;
mod regions;

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use serde::Deserialize;

pub use error::{DescriptorError, PrepareError, Refusal, RegionError};
pub use region::Region;
pub use regions::Regions;

/// What vLLM does with the ids of a transfer group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// Ids count pages of tokens; each stands for `ratio` kernel blocks. Nulls are kept.
    Paged,
    /// Ids count whole states; id 0 is a placeholder and dropped.
    State,
}

/// One request as the connector sees it: block ids of each transfer group on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Request {
    #[serde(rename = "req_id")]
    id: String,
    #[serde(rename = "producer_block_ids")]
    producer: Vec<Vec<u64>>,
    #[serde(rename = "consumer_block_ids")]
    consumer: Vec<Vec<u64>>,
}

impl Request {
    /// A request by D's id, with logical block ids by transfer group: P's full tables, and the blocks D offers.
    pub fn new(id: String, producer: Vec<Vec<u64>>, consumer: Vec<Vec<u64>>) -> Self {
        Self {
            id,
            producer,
            consumer,
        }
    }

    /// D's request id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// One write as vLLM hands it to its engine, with offsets in place of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Triple {
    source: u64,
    destination: u64,
    len: u64,
}

impl Triple {
    /// Bytes from the start of P's storage.
    pub const fn source(self) -> u64 {
        self.source
    }

    /// Bytes from the start of D's storage.
    pub const fn destination(self) -> u64 {
        self.destination
    }

    /// Bytes, as vLLM counts them: padding included.
    #[expect(clippy::len_without_is_empty, reason = "a length, not a container")]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Source, destination and length as little-endian words: the form whose SHA-256 the bench file records.
    pub fn to_le_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (to, word) in bytes
            .chunks_exact_mut(8)
            .zip([self.source, self.destination, self.len])
        {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// What vLLM computes for a batch of requests of one peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptors {
    triples: Vec<Triple>,
    refused: Vec<(String, Refusal)>,
}

impl Descriptors {
    /// The writes in vLLM's order: by request, region, run.
    pub fn triples(&self) -> &[Triple] {
        &self.triples
    }

    /// Ids of the requests vLLM fails, each with its reason. The others are unharmed.
    pub fn refused(&self) -> &[(String, Refusal)] {
        &self.refused
    }
}

/// The pairs (P's block, D's block) of one group.
type Pairs = Vec<(u64, u64)>;

/// vLLM's descriptors for `requests`: `groups` by transfer group, `ratio` P's kernel blocks per logical block.
pub fn descriptors(
    regions: &Regions,
    groups: &[GroupKind],
    ratio: NonZeroU64,
    requests: &[Request],
) -> Result<Descriptors, DescriptorError> {
    let mut found = Descriptors::default();
    for request in requests {
        if request.consumer.iter().all(Vec::is_empty) {
            continue;
        }
        match align(request, groups)? {
            Ok(tables) => {
                let tables = expand(tables, groups, ratio)?;
                lower(regions, &tables, &mut found.triples)?;
            }
            Err(refusal) => found.refused.push((request.id.clone(), refusal)),
        }
    }
    Ok(found)
}

/// Pairs the ends of both sides' lists, group by group; the inner error fails this request alone.
fn align(
    request: &Request,
    groups: &[GroupKind],
) -> Result<Result<Vec<Pairs>, Refusal>, DescriptorError> {
    let (producer, consumer) = (&request.producer, &request.consumer);
    if producer.len() != consumer.len() {
        return Ok(Err(Refusal::GroupCount));
    }
    if producer.len() != groups.len() {
        return Err(DescriptorError::Groups {
            request: request.id.clone(),
            found: producer.len(),
            expected: groups.len(),
        });
    }
    let mut tables = Vec::with_capacity(groups.len());
    for ((source, destination), kind) in producer.iter().zip(consumer).zip(groups) {
        let live = |id: &u64| *kind == GroupKind::Paged || *id != 0;
        let source: Vec<u64> = source.iter().copied().filter(live).collect();
        let destination: Vec<u64> = destination.iter().copied().filter(live).collect();
        let Some(skipped) = source.len().checked_sub(destination.len()) else {
            return Ok(Err(Refusal::FewerBlocks));
        };
        tables.push(source.into_iter().skip(skipped).zip(destination).collect());
    }
    Ok(Ok(tables))
}

/// Turns logical ids into kernel blocks, except in state groups.
fn expand(
    tables: Vec<Pairs>,
    groups: &[GroupKind],
    ratio: NonZeroU64,
) -> Result<Vec<Pairs>, DescriptorError> {
    let kernel = |id: u64, step: u64| {
        id.checked_mul(ratio.get())
            .and_then(|first| first.checked_add(step))
            .ok_or(DescriptorError::KernelBlock {
                block: id,
                ratio: ratio.get(),
            })
    };
    tables
        .into_iter()
        .zip(groups)
        .map(|(pairs, kind)| match kind {
            GroupKind::State => Ok(pairs),
            GroupKind::Paged => pairs
                .into_iter()
                .flat_map(|(p, d)| {
                    (0..ratio.get()).map(move |step| Ok((kernel(p, step)?, kernel(d, step)?)))
                })
                .collect(),
        })
        .collect()
}

/// Blocks that follow each other on both sides.
#[derive(Debug, Clone, Copy)]
struct BlockRun {
    source: u64,
    destination: u64,
    count: u64,
}

impl BlockRun {
    fn is_followed_by(&self, source: u64, destination: u64) -> bool {
        self.source.checked_add(self.count) == Some(source)
            && self.destination.checked_add(self.count) == Some(destination)
    }
}

/// Groups pairs into runs, in their order.
fn runs(pairs: impl Iterator<Item = (u64, u64)>) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for (source, destination) in pairs {
        match runs.last_mut() {
            Some(run) if run.is_followed_by(source, destination) => {
                run.count = run.count.saturating_add(1);
            }
            _ => runs.push(BlockRun {
                source,
                destination,
                count: 1,
            }),
        }
    }
    runs
}

/// Appends one request's triples, region by region.
fn lower(
    regions: &Regions,
    tables: &[Pairs],
    triples: &mut Vec<Triple>,
) -> Result<(), DescriptorError> {
    for (local, remote) in regions.pairs() {
        let mut members = Vec::new();
        for &group in local.groups() {
            let table = tables.get(group).ok_or_else(|| DescriptorError::Region {
                layer: local.layer_name().into(),
                group,
                groups: tables.len(),
            })?;
            members.push(table);
        }
        let overflow = |block| DescriptorError::Offset {
            layer: local.layer_name().into(),
            block,
        };
        for run in runs(members.into_iter().flatten().copied()) {
            let whole = local.fills_stride() && remote.fills_stride();
            let (pieces, blocks) = if whole {
                (1, run.count)
            } else {
                (run.count, 1)
            };
            for piece in 0..pieces {
                let triple = run
                    .source
                    .checked_add(piece)
                    .zip(run.destination.checked_add(piece))
                    .and_then(|(source, destination)| {
                        Some(Triple {
                            source: local.offset_of(source)?,
                            destination: remote.offset_of(destination)?,
                            len: local.page().checked_mul(blocks)?,
                        })
                    });
                triples.push(triple.ok_or_else(|| overflow(run.source))?);
            }
        }
    }
    Ok(())
}
