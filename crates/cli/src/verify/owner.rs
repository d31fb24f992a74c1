//! Whose byte a byte is.

use super::layout::Layout;
use crate::number::count;

/// The views that a byte of an allocation belongs to, each as group, layer,
/// tensor and block; empty for padding.
#[must_use]
pub fn owners(layout: &Layout, allocation: u32, offset: u64) -> Vec<String> {
    let mut out = Vec::new();
    for view in layout.views.iter().filter(|v| v.allocation == allocation) {
        let (Some(within), Some(&stride), Some(&pages)) = (
            offset.checked_sub(view.offset),
            view.strides.first(),
            view.shape.first(),
        ) else {
            continue;
        };
        let Some(page) = within.checked_div(stride).filter(|&page| page < pages) else {
            continue;
        };
        let mut spans = Vec::new();
        // A page that can't be walked owns nothing.
        if view.page(page, &mut spans).is_err() {
            continue;
        }
        let inside = spans.iter().any(|span| {
            offset
                .checked_sub(span.offset)
                .is_some_and(|at| at < span.len)
        });
        if inside {
            let block = page.checked_div(view.pages_per_block).unwrap_or(page);
            out.push(format!("{} block {block}", view.place()));
        }
        if count(out.len()) >= 4 {
            break;
        }
    }
    out
}
