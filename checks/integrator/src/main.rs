//! What an engine's integrator writes, on layout and plan alone.

use mooncake_pd_layout::{Axis, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder, LayoutError};

/// 16 tokens of 2 heads of 64 bfloat16 values, for K and for V.
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

fn main() -> Result<(), LayoutError> {
    let prefill = layout(64, 4096)?;
    let decode = layout(48, 4352)?;
    println!("{} {}", prefill.groups().len(), decode.groups().len());
    Ok(())
}
