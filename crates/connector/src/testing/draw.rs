//! Messages from bytes, for quickcheck and for fuzzing alike.

use std::format;
use std::string::String;
use std::vec::Vec;

use core::num::{NonZeroU16, NonZeroU32};

use mooncake_pd_layout::testing::arbitrary::{Result, Unstructured};
use mooncake_pd_layout::{ByteLen, LayerId, Offset};

use crate::wire::{
    Answer, BlockLists, Host, LayoutId, PeerAddress, PeerLayout, Progress, Pull, PullRequest,
    Puller, Region, RegionGroups, TransferGroup,
};
use crate::{RequestId, TransferId};

/// A pull of what a peer may send, with numbers at the borders of their encodings.
///
/// # Errors
/// None: bytes never run out.
///
/// # Panics
/// The generator is wrong.
pub fn draw_pull(bytes: &mut Unstructured<'_>) -> Result<Pull> {
    let tp_size = bytes.int_in_range(1..=4096_u32)?;
    let size = |size| NonZeroU32::new(size).expect("at least 1");
    let hosts = ["127.0.0.1", "::1", "node-1.example", "h"];
    let puller = Puller::new(
        Host::new(bytes.choose(&hosts)?).expect("a host"),
        NonZeroU16::new(bytes.int_in_range(1..=u16::MAX)?).expect("at least 1"),
        (size(tp_size), bytes.int_in_range(0..=tp_size - 1)?),
        size(bytes.int_in_range(1..=3)?),
    );
    let mut requests = Vec::new();
    for number in 0..bytes.int_in_range(0..=20_u8)? {
        requests.push(PullRequest {
            request: RequestId::new(&name(bytes, number)?).expect("a name"),
            transfer: TransferId::new(&name(bytes, number)?).expect("a name"),
            blocks: blocks(bytes)?,
        });
    }
    let mut regions = Vec::new();
    for number in 0..bytes.int_in_range(0..=20_u8)? {
        regions.push(region(bytes, number)?);
    }
    let layout_id = LayoutId::new(number(bytes, 1 << 63)? | 1);
    let layout_id = layout_id.filter(|_| number(bytes, 2) != Ok(0));
    let puller = puller.expect("a rank below the size");
    let layout = PeerLayout::new(regions);
    Ok(Pull::new(puller, requests, layout, layout_id).expect("requests have numbers"))
}

/// An answer of what a peer may send.
///
/// # Errors
/// None: bytes never run out.
///
/// # Panics
/// The generator is wrong.
pub fn draw_answer(bytes: &mut Unstructured<'_>) -> Result<Answer> {
    let message = match bytes.int_in_range(0..=2_u8)? {
        0 => None,
        1 => Some(String::new()),
        _ => Some("m".repeat(bytes.int_in_range(1..=70_000)?)),
    };
    let kind = bytes.int_in_range(0..=7_u8)?;
    let mut names = [Vec::new(), Vec::new()];
    for names in &mut names {
        for number in 0..bytes.int_in_range(0..=20_u8)? {
            names.push(RequestId::new(&name(bytes, number)?).expect("a name"));
        }
    }
    let [ok, failed] = names;
    Ok(match kind {
        0 => Answer::Error { message },
        1 => Answer::LayoutMiss { message },
        _ => Answer::Progress(Progress {
            last: kind.is_multiple_of(2),
            ok,
            failed,
            message,
            layout_id: LayoutId::new(number(bytes, 1 << 63)?),
        }),
    })
}

/// A number below `limit`, near a power of two.
fn number(bytes: &mut Unstructured<'_>, limit: u64) -> Result<u64> {
    let bits = bytes.int_in_range(0..=63_u32)?;
    let near = (1_u64 << bits).wrapping_add(bytes.int_in_range(0..=2)?) - 1;
    Ok(near % limit)
}

fn name(bytes: &mut Unstructured<'_>, number: u8) -> Result<String> {
    let fill = match bytes.int_in_range(0..=3_u8)? {
        0 => 0,
        1 => 29,
        2 => 30,
        _ => bytes.int_in_range(0..=200)?,
    };
    let fill = "\u{e9}".repeat(fill / 2) + &"x".repeat(fill % 2);
    Ok(format!("{number}-{fill}"))
}

fn blocks(bytes: &mut Unstructured<'_>) -> Result<BlockLists> {
    let mut lists = BlockLists::release();
    for _ in 0..bytes.int_in_range(0..=18_u8)? {
        let mut group = Vec::new();
        for _ in 0..bytes.int_in_range(0..=17_u8)? {
            let id = number(bytes, 1 << 32)?;
            group.push(u32::try_from(id).expect("below 2^32"));
        }
        lists.push_group(&group);
    }
    Ok(lists)
}

fn region(bytes: &mut Unstructured<'_>, layer: u8) -> Result<Region> {
    let block_len = number(bytes, 1 << 62)?.max(1);
    let kv_block_len = number(bytes, block_len)?.max(1);
    let len = |len| ByteLen::new(len).expect("at least 1");
    let groups = match bytes.int_in_range(0..=20_u32)? {
        shared @ 18.. => {
            RegionGroups::Shared((0..shared - 15).rev().map(TransferGroup::new).collect())
        }
        one => RegionGroups::One(TransferGroup::new(one)),
    };
    let row_offset = Offset::new(number(bytes, 1 << 62)?).ok();
    let row_offset = row_offset.filter(|_| layer.is_multiple_of(2));
    let base = PeerAddress::new(number(bytes, u64::MAX)?);
    let name = LayerId::new(&name(bytes, layer)?);
    let index = u32::try_from(number(bytes, 1 << 32)?).expect("below 2^32");
    let lens = (len(block_len), len(kv_block_len));
    let region = Region::new(base, lens, (name, index), groups, row_offset);
    Ok(region.expect("blocks don't overlap"))
}
