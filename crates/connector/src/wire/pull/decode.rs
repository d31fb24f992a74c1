//! Pulls from bytes.

use alloc::vec::Vec;
use core::num::{NonZeroU16, NonZeroU32};

use mooncake_pd_layout::{ByteLen, LayerId, Offset};

use super::request::{Requests, requests};
use super::{LayoutId, Pull, ReceivedPull};
use crate::wire::error::{DecodeError, Place};
use crate::wire::host::Host;
use crate::wire::limits::Limits;
use crate::wire::puller::Puller;
use crate::wire::reader::Reader;
use crate::wire::region::{
    PeerAddress, PeerLayout, Region, RegionError, RegionGroups, TransferGroup,
};

/// One less than the first number that is no length or offset in bytes.
const MAX_BYTES: u64 = mooncake_pd_layout::BYTE_LIMIT - 1;

pub(super) const HOST: &str = "remote_hostname";
pub(super) const PORT: &str = "remote_port";
pub(super) const TP_SIZE: &str = "remote_tp_size";
pub(super) const TP_RANK: &str = "remote_tp_rank";
pub(super) const REQUESTS: &str = "req_blocks";
pub(super) const BASES: &str = "kv_caches_base_addr";
pub(super) const BLOCK_LENS: &str = "block_lens";
pub(super) const KV_BLOCK_LENS: &str = "kv_block_lens";
pub(super) const NAMES: &str = "registered_layer_names";
pub(super) const INDICES: &str = "registered_layer_indices";
pub(super) const GROUPS: &str = "registered_group_indices";
pub(super) const SHARED: &str = "registered_shared_group_ids";
pub(super) const ROW_OFFSETS: &str = "registered_row_offsets";
pub(super) const PP_SIZE: &str = "remote_pp_size";
pub(super) const LAYOUT_ID: &str = "layout_id";

impl Pull {
    /// Reads one, as both releases of stock prefill do: keys in any order, unknown keys skipped,
    /// defaults written or left out, of a repeated key the last value. A request that is wrong by
    /// itself doesn't fail the others.
    ///
    /// Stock takes more in four points: it takes any numbers and texts; lists of regions that
    /// differ in length it refuses later; it reads a request that stands there twice as the
    /// last one, which hides from the sender which blocks are written; and it ignores row offsets
    /// and shared groups whose number differs from that of the names, where we take none at all.
    pub fn decode(message: &[u8], limits: &Limits) -> Result<ReceivedPull, DecodeError> {
        let mut reader = Reader::new(message, limits.message_bytes)?;
        let mut draft = Draft::default();
        for _ in 0..reader.map(Place::MESSAGE)? {
            let key = reader.key()?;
            draft.value(key, &mut reader, limits)?;
        }
        reader.end()?;
        draft.finish()
    }
}

/// The values read so far.
#[derive(Default)]
struct Draft<'a> {
    host: Option<Host>,
    port: Option<NonZeroU16>,
    tp_size: Option<NonZeroU32>,
    tp_rank: Option<u32>,
    pp_size: Option<NonZeroU32>,
    requests: Option<Requests>,
    bases: Option<Vec<u64>>,
    block_lens: Option<Vec<ByteLen>>,
    kv_block_lens: Option<Vec<ByteLen>>,
    names: Vec<&'a str>,
    indices: Vec<u32>,
    groups: Vec<Option<u32>>,
    shared: Shared,
    row_offsets: Vec<Option<Offset>>,
    layout_id: Option<LayoutId>,
}

/// The groups of each region, one after another.
#[derive(Default)]
struct Shared {
    groups: Vec<u32>,
    ends: Vec<usize>,
}

impl<'a> Draft<'a> {
    fn value(
        &mut self,
        key: &[u8],
        reader: &mut Reader<'a>,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let key = core::str::from_utf8(key).unwrap_or_default();
        let ranks = u64::from(limits.ranks);
        let size = (1, ranks);
        match key {
            HOST => self.host = Some(Host::new(reader.text(Place::key(HOST))?)?),
            PORT => {
                let range = (1, u64::from(u16::MAX));
                let port: u16 = reader.number(Place::key(PORT), range)?;
                self.port = NonZeroU16::new(port);
            }
            TP_SIZE => self.tp_size = NonZeroU32::new(reader.number(Place::key(TP_SIZE), size)?),
            TP_RANK => {
                let range = (0, ranks.saturating_sub(1));
                self.tp_rank = Some(reader.number(Place::key(TP_RANK), range)?);
            }
            PP_SIZE => self.pp_size = NonZeroU32::new(reader.number(Place::key(PP_SIZE), size)?),
            REQUESTS => self.requests = Some(requests(reader, limits)?),
            BASES => {
                let all = (0, u64::MAX);
                self.bases = Some(list(BASES, reader, limits, |at, r| r.number(at, all))?);
            }
            BLOCK_LENS => self.block_lens = Some(list(BLOCK_LENS, reader, limits, byte_len)?),
            KV_BLOCK_LENS => {
                self.kv_block_lens = Some(list(KV_BLOCK_LENS, reader, limits, byte_len)?);
            }
            NAMES => {
                let limit = limits.name_bytes;
                self.names = list(NAMES, reader, limits, |at, r| name(at, r, limit))?;
            }
            INDICES => self.indices = list(INDICES, reader, limits, index)?,
            GROUPS => {
                let high = most_groups(limits);
                let group = |at, r: &mut Reader<'_>| or_none(at, r, high);
                self.groups = list(GROUPS, reader, limits, group)?;
            }
            SHARED => self.shared = shared(reader, limits)?,
            ROW_OFFSETS => {
                let offset = |at, r: &mut Reader<'_>| {
                    let offset: Option<u64> = or_none(at, r, MAX_BYTES)?;
                    Ok(offset.and_then(|offset| Offset::new(offset).ok()))
                };
                self.row_offsets = list(ROW_OFFSETS, reader, limits, offset)?;
            }
            LAYOUT_ID => self.layout_id = layout_id(reader)?,
            _ => reader.skip(Place::key("an unknown key"))?,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ReceivedPull, DecodeError> {
        let missing = |key| DecodeError::Missing { key };
        let puller = Puller::new(
            self.host.take().ok_or(missing(HOST))?,
            self.port.ok_or(missing(PORT))?,
            (
                self.tp_size.ok_or(missing(TP_SIZE))?,
                self.tp_rank.ok_or(missing(TP_RANK))?,
            ),
            self.pp_size.unwrap_or(NonZeroU32::MIN),
        )?;
        let requests = self.requests.take().ok_or(missing(REQUESTS))?;
        let layout_id = self.layout_id;
        let pull = Pull {
            puller,
            requests: requests.served,
            layout: self.layout()?,
            layout_id,
        };
        Ok(ReceivedPull {
            pull,
            refused: requests.refused,
        })
    }

    fn layout(self) -> Result<Option<PeerLayout>, DecodeError> {
        let missing = |key| DecodeError::Missing { key };
        let bases = self.bases.ok_or(missing(BASES))?;
        let block_lens = self.block_lens.ok_or(missing(BLOCK_LENS))?;
        let kv_block_lens = self.kv_block_lens.ok_or(missing(KV_BLOCK_LENS))?;
        let count = bases.len();
        for (other, other_len, optional) in [
            (BLOCK_LENS, block_lens.len(), false),
            (KV_BLOCK_LENS, kv_block_lens.len(), false),
            (NAMES, self.names.len(), false),
            (INDICES, self.indices.len(), false),
            (GROUPS, self.groups.len(), false),
            (SHARED, self.shared.ends.len(), true),
            (ROW_OFFSETS, self.row_offsets.len(), true),
        ] {
            if other_len != count && !(optional && other_len == 0) {
                return Err(DecodeError::Lengths {
                    one: BASES,
                    one_len: count,
                    other,
                    other_len,
                });
            }
        }
        let regions = bases.iter().zip(block_lens).zip(kv_block_lens);
        let regions = regions.zip(self.names.iter().zip(&self.indices));
        let regions = regions.zip(&self.groups).enumerate();
        let regions = regions.map(|(at, (((lens, kv_block_len), layer), group))| {
            let (base, block_len) = lens;
            let region = region_groups(*group, self.shared.of(at)).and_then(|groups| {
                Region::new(
                    PeerAddress::new(*base),
                    (block_len, kv_block_len),
                    (LayerId::new(layer.0), *layer.1),
                    groups,
                    self.row_offsets.get(at).copied().flatten(),
                )
            });
            region.map_err(|error| DecodeError::Region { index: at, error })
        });
        let mut all = Vec::with_capacity(count);
        for region in regions {
            all.push(region?);
        }
        Ok(PeerLayout::new(all))
    }
}

impl Shared {
    /// The groups of one region; none if the peer doesn't say.
    fn of(&self, region: usize) -> &[u32] {
        let before = region.checked_sub(1).and_then(|last| self.ends.get(last));
        let start = before.copied().unwrap_or(0);
        let end = self.ends.get(region).copied().unwrap_or(0);
        self.groups.get(start..end).unwrap_or_default()
    }
}

fn region_groups(group: Option<u32>, listed: &[u32]) -> Result<RegionGroups, RegionError> {
    match group {
        None => {
            let groups = listed.iter().copied().map(TransferGroup::new);
            Ok(RegionGroups::Shared(groups.collect()))
        }
        Some(group) if listed.is_empty() || listed == [group] => {
            Ok(RegionGroups::One(TransferGroup::new(group)))
        }
        Some(group) => Err(RegionError::Listed {
            group,
            listed: listed.to_vec(),
        }),
    }
}

/// A list with an entry per region.
fn list<'a, T>(
    key: &'static str,
    reader: &mut Reader<'a>,
    limits: &Limits,
    entry: impl Fn(Place, &mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let at = Place::key(key);
    let count = reader.bounded(at, limits.regions)?;
    let mut entries = Vec::with_capacity(count);
    for position in 0..count {
        entries.push(entry(at.at(position), reader)?);
    }
    Ok(entries)
}

fn byte_len(at: Place, reader: &mut Reader<'_>) -> Result<ByteLen, DecodeError> {
    let (low, high) = (1, MAX_BYTES);
    let bytes: u64 = reader.number(at, (low, high))?;
    ByteLen::new(bytes).map_err(|_| DecodeError::Range {
        at,
        found: bytes.into(),
        low,
        high,
    })
}

fn index(at: Place, reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    reader.number(at, (0, u64::from(u32::MAX)))
}

fn name<'a>(at: Place, reader: &mut Reader<'a>, limit: usize) -> Result<&'a str, DecodeError> {
    let name = reader.text(at)?;
    let len = name.len();
    if len == 0 || len > limit {
        return Err(DecodeError::LayerName { at, len, limit });
    }
    Ok(name)
}

/// A number, or -1 for none.
fn or_none<T: TryFrom<u64>>(
    at: Place,
    reader: &mut Reader<'_>,
    high: u64,
) -> Result<Option<T>, DecodeError> {
    match reader.int(at)? {
        -1 => Ok(None),
        found => u64::try_from(found)
            .ok()
            .filter(|number| *number <= high)
            .and_then(|number| T::try_from(number).ok())
            .map(Some)
            .ok_or(DecodeError::Range {
                at,
                found,
                low: 0,
                high,
            }),
    }
}

/// The last position that a group may have.
fn most_groups(limits: &Limits) -> u64 {
    u64::try_from(limits.groups.saturating_sub(1)).unwrap_or(u64::MAX)
}

fn shared(reader: &mut Reader<'_>, limits: &Limits) -> Result<Shared, DecodeError> {
    let at = Place::key(SHARED);
    let count = reader.bounded(at, limits.regions)?;
    let mut shared = Shared {
        groups: Vec::new(),
        ends: Vec::with_capacity(count),
    };
    let high = most_groups(limits);
    for region in 0..count {
        let at = at.at(region);
        for position in 0..reader.bounded(at, limits.groups)? {
            shared
                .groups
                .push(reader.number(at.at(position), (0, high))?);
        }
        shared.ends.push(shared.groups.len());
    }
    Ok(shared)
}

pub(in crate::wire) fn layout_id(reader: &mut Reader<'_>) -> Result<Option<LayoutId>, DecodeError> {
    match reader.int(Place::key(LAYOUT_ID))? {
        0 => Ok(None),
        found => u64::try_from(found)
            .ok()
            .and_then(LayoutId::new)
            .map(Some)
            .ok_or(DecodeError::LayoutId { found }),
    }
}
