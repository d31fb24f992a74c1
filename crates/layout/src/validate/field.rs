//! The checks of a field against what it lies in.

use alloc::boxed::Box;

use crate::error::LayoutError;
use crate::field::Field;
use crate::field_error::FieldError;
use crate::layout::CacheLayout;
use crate::place::{FieldPlace, Place};
use crate::pool::Pool;
use crate::raw::RawField;
use crate::units::PagesPerBlock;

pub(super) fn field(
    raw: &RawField,
    pages: PagesPerBlock,
    pool: &Pool,
    layout: &CacheLayout,
    place: impl Fn() -> Box<FieldPlace>,
) -> Result<Field, LayoutError> {
    let wrong = |error: FieldError| LayoutError::Field {
        place: place(),
        error,
    };
    let field = Field::new(raw, pages).map_err(wrong)?;
    let tp_size = layout.shard.tp_size;
    if let Some(split) = &raw.split
        && tp_size.checked_rem(split.replicas) != Some(0)
    {
        return Err(wrong(FieldError::SplitReplicas {
            replicas: split.replicas,
            tp_size,
        }));
    }
    let allocation = layout
        .allocation(field.allocation())
        .ok_or_else(|| LayoutError::Unknown {
            place: Place::Field(place()),
            target: Place::Allocation(field.allocation()),
        })?;
    let last = pool.capacity.saturating_sub(1);
    let end = field
        .block_offset(last)
        .and_then(|start| start.checked_add(field.span().get()))
        .ok_or_else(|| {
            wrong(FieldError::TooLarge {
                what: "end of the last block",
            })
        })?;
    if end.get() > allocation.len.get() {
        return Err(LayoutError::OutsideAllocation {
            place: place(),
            end: end.get(),
            allocation: allocation.id,
            len: allocation.len.get(),
        });
    }
    Ok(field)
}

#[cfg(test)]
mod tests {
    use crate::raw::RawShard;
    use crate::{Axis, CacheLayout, FieldError, FieldSpec, GroupSpec, LayoutBuilder, LayoutError};

    #[test]
    fn replicas_of_a_share_divide_the_ranks() {
        let with = |replicas| {
            let field = FieldSpec::new("kv", "uint8")
                .at(0, 0)
                .page_stride(8)
                .dim(Axis::Head, 2, 4)
                .dim(Axis::Content, 4, 1)
                .split(Axis::Head, &[2]);
            let mut raw = LayoutBuilder::new()
                .allocation(0, 80)
                .pool(0, 10, Some(0))
                .shard(RawShard {
                    tp_size: 8,
                    ..RawShard::default()
                })
                .group(GroupSpec::new(0, "full_attention", 16, 0).layer("l", [field]))
                .into_raw();
            for group in &mut raw.groups {
                for field in group.layers.iter_mut().flat_map(|layer| &mut layer.fields) {
                    if let Some(split) = &mut field.split {
                        split.replicas = replicas;
                    }
                }
            }
            CacheLayout::new(&raw)
        };
        assert!(with(4).is_ok());
        for refused in [0, 3, 16] {
            let error = with(refused).unwrap_err();
            assert!(
                matches!(
                    error,
                    LayoutError::Field {
                        error: FieldError::SplitReplicas { tp_size: 8, .. },
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
}
