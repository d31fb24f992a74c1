//! Pulls to bytes.

use alloc::vec::Vec;

use super::decode::{
    BASES, BLOCK_LENS, GROUPS, HOST, INDICES, KV_BLOCK_LENS, LAYOUT_ID, NAMES, PORT, PP_SIZE,
    REQUESTS, ROW_OFFSETS, SHARED, TP_RANK, TP_SIZE,
};
use super::{Pull, PullRequest};
use crate::wire::error::EncodeError;
use crate::wire::region::{PeerLayout, Region, RegionGroups};
use crate::wire::version::Version;
use crate::wire::writer::Writer;

impl Pull {
    /// Writes the bytes that a stock decode rank of this release writes. 0.32 has no layout ids:
    /// they are left out.
    ///
    /// # Errors
    /// The layout is left out, and the release knows no layout ids.
    pub fn encode(&self, version: Version) -> Result<Vec<u8>, EncodeError> {
        let layout_id = match version {
            Version::V032 if self.layout.is_none() && self.layout_id.is_some() => {
                let what = "pull without layout";
                return Err(EncodeError::Unknown { version, what });
            }
            Version::V032 => None,
            Version::V033 => self.layout_id,
        };
        let pp_size = Some(self.puller.pp_size().get()).filter(|size| *size != 1);
        let optional = [
            self.layout.as_ref().map_or(0, |_| 5),
            usize::from(pp_size.is_some()),
            usize::from(layout_id.is_some()),
        ];
        let mut to = Writer::default();
        to.map(
            "the pull",
            optional.into_iter().fold(8, usize::saturating_add),
        )?;
        to.text(HOST, HOST)?;
        to.text(HOST, self.puller.host().as_str())?;
        to.text(PORT, PORT)?;
        to.number(self.puller.port().get());
        to.text(TP_SIZE, TP_SIZE)?;
        to.number(self.puller.tp_size().get());
        to.text(TP_RANK, TP_RANK)?;
        to.number(self.puller.tp_rank());
        to.text(REQUESTS, REQUESTS)?;
        to.map(REQUESTS, self.requests.len())?;
        for asked in &self.requests {
            request(&mut to, asked)?;
        }
        layout(&mut to, self.layout.as_ref())?;
        if let Some(pp_size) = pp_size {
            to.text(PP_SIZE, PP_SIZE)?;
            to.number(pp_size);
        }
        if let Some(layout_id) = layout_id {
            to.text(LAYOUT_ID, LAYOUT_ID)?;
            to.number(layout_id.get());
        }
        Ok(to.finish())
    }
}

fn request(to: &mut Writer, asked: &PullRequest) -> Result<(), EncodeError> {
    to.text(REQUESTS, asked.request.as_str())?;
    to.array(REQUESTS, 2)?;
    to.text(REQUESTS, asked.transfer.as_str())?;
    to.array(REQUESTS, asked.blocks.groups().len())?;
    for group in asked.blocks.groups() {
        to.array(REQUESTS, group.len())?;
        for id in group {
            to.number(*id);
        }
    }
    Ok(())
}

fn layout(to: &mut Writer, layout: Option<&PeerLayout>) -> Result<(), EncodeError> {
    let regions = layout.map_or(&[][..], PeerLayout::regions);
    numbers(to, BASES, regions, |to, r| to.number(r.base().get()))?;
    numbers(to, BLOCK_LENS, regions, |to, r| {
        to.number(r.block_len().get());
    })?;
    numbers(to, KV_BLOCK_LENS, regions, |to, r| {
        to.number(r.kv_block_len().get());
    })?;
    if regions.is_empty() {
        return Ok(());
    }
    list(to, NAMES, regions, |to, r| {
        to.text(NAMES, r.layer().as_str())
    })?;
    numbers(to, INDICES, regions, |to, r| to.number(r.layer_index()))?;
    numbers(to, GROUPS, regions, |to, r| match r.groups() {
        RegionGroups::One(group) => to.number(group.get()),
        RegionGroups::Shared(_) => to.none(),
    })?;
    list(to, SHARED, regions, |to, r| {
        let groups = match r.groups() {
            RegionGroups::One(group) => core::slice::from_ref(group),
            RegionGroups::Shared(groups) => groups.as_slice(),
        };
        to.array(SHARED, groups.len())?;
        for group in groups {
            to.number(group.get());
        }
        Ok(())
    })?;
    numbers(to, ROW_OFFSETS, regions, |to, r| match r.row_offset() {
        Some(offset) => to.number(offset.get()),
        None => to.none(),
    })
}

fn numbers(
    to: &mut Writer,
    key: &'static str,
    regions: &[Region],
    entry: impl Fn(&mut Writer, &Region),
) -> Result<(), EncodeError> {
    list(to, key, regions, |to, region| {
        entry(to, region);
        Ok(())
    })
}

fn list(
    to: &mut Writer,
    key: &'static str,
    regions: &[Region],
    entry: impl Fn(&mut Writer, &Region) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    to.text(key, key)?;
    to.array(key, regions.len())?;
    regions.iter().try_for_each(|region| entry(to, region))
}
