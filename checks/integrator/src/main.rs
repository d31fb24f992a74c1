//! What an engine's integrator writes, on layout and plan alone.

use std::error::Error;

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder, LayoutError};
use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};

/// Bytes of K, or of V, of one block: 16 tokens of 2 heads of 64 bfloat16 values.
const PAYLOAD: u64 = 16 * 2 * 64 * 2;

/// One layer of full attention, K and V each in an allocation of its own.
fn layout(blocks: u32, page_stride: u64) -> Result<CacheLayout, LayoutError> {
    let field = |name, allocation| {
        FieldSpec::new(name, "bfloat16")
            .at(allocation, 0)
            .page_stride(page_stride)
            .dim(Axis::Token, 16, 256)
            .dim(Axis::Head, 2, 128)
            .dim(Axis::Content, 64, 2)
    };
    let len = u64::from(blocks) * page_stride;
    LayoutBuilder::new()
        .allocation(0, len)
        .allocation(1, len)
        .pool(0, blocks, Some(0))
        .group(
            GroupSpec::new(0, "full_attention", 16, 0)
                .layer("layers.0", [field("k", 0), field("v", 1)]),
        )
        .build()
}

/// Block tables as the engines' schedulers hand them over.
fn request(source: &[u64], destination: &[u64]) -> RawRequest {
    let slots = |ids: &[u64]| RawSlots {
        first_block: Some(0),
        entries: ids.iter().copied().map(Some).collect(),
    };
    RawRequest {
        id: "chat-1".to_owned(),
        computed_tokens: Some(40),
        tail_aligned: false,
        groups: vec![RawTables {
            group: 0,
            source: slots(source),
            destination: slots(destination),
        }],
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let prefill = layout(64, PAYLOAD)?;
    // The decoding engine has fewer blocks and pads each to 4352 bytes.
    let decode = layout(48, PAYLOAD + 256)?;
    let pairing = Pairing::new(&prefill, &decode)?;
    let request = Request::new(&request(&[7, 8, 31], &[5, 40, 41]), &pairing)?;
    let batch = pairing.plan(&[request], &Options::default())?;
    if let Some(refused) = batch.refused.into_iter().next() {
        return Err(refused.error.into());
    }

    // 40 tokens are three blocks; padding lies between any two at the destination.
    assert_eq!(batch.plan.descriptors(), 6);
    assert_eq!(batch.plan.bytes(), 6 * PAYLOAD);
    assert!(batch.plan.unfilled().is_empty());
    for copy in batch.plan.copies() {
        println!(
            "allocation {} + {} -> allocation {} + {}, {} bytes",
            copy.source(),
            copy.source_offset().get(),
            copy.destination(),
            copy.destination_offset().get(),
            copy.len().get()
        );
    }
    Ok(())
}
