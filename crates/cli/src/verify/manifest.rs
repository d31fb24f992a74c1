//! Views of our own manifest, `mooncake-pd-layout/1`.

use std::collections::BTreeMap;

use super::error::WalkError;
use super::json::Object;
use super::layout::{GroupFacts, Layout};
use super::view::View;

pub(super) fn read(file: &Object<'_>) -> Result<Layout, WalkError> {
    let mut pools = BTreeMap::new();
    for pool in file.objects("pools")? {
        let facts = (pool.number("capacity")?, pool.number_if("null_id")?);
        pools.insert(pool.number("id")?, facts);
    }
    let mut layout = Layout::default();
    for group in file.objects("groups")? {
        let id = group.id("id")?;
        let pool = group.number("pool")?;
        let &(capacity, null) = pools.get(&pool).ok_or_else(|| WalkError::Missing {
            place: group.place().to_owned(),
            key: pool.to_string(),
            wanted: "pool",
        })?;
        let pages_per_block = group.number_or("pages_per_block", 1)?;
        layout.groups.insert(
            id,
            GroupFacts {
                tokens_per_block: group.number("tokens_per_block")?,
                state: group.text("kind")? == "gdn_state",
                window: group.number_if("window")?,
                null,
            },
        );
        for layer in group.objects("layers")? {
            let name = layer.text("name")?;
            for field in layer.objects("fields")? {
                let pages =
                    capacity
                        .checked_mul(pages_per_block)
                        .ok_or_else(|| WalkError::Overflow {
                            place: field.place().to_owned(),
                            what: "the page count",
                        })?;
                let mut shape = vec![pages];
                let mut strides = vec![field.number("page_stride")?];
                for dim in field.objects("dims")? {
                    shape.push(dim.number("extent")?);
                    strides.push(dim.number("stride")?);
                }
                layout.views.push(View {
                    group: id,
                    layer: name.to_owned(),
                    name: field.text("name")?.to_owned(),
                    allocation: field.id("allocation")?,
                    offset: field.number("offset")?,
                    element: element(&field)?,
                    shape,
                    strides,
                    pages_per_block,
                });
            }
        }
    }
    Ok(layout)
}

/// Bytes of an element, from the bits in its type's name.
fn element(field: &Object<'_>) -> Result<u64, WalkError> {
    let name = field.text("dtype")?;
    let digits: String = name
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    match (name, digits.as_str()) {
        ("bool", _) | (_, "8") => Ok(1),
        (_, "16") => Ok(2),
        (_, "32") => Ok(4),
        (_, "64") => Ok(8),
        _ => Err(WalkError::Missing {
            place: field.place().to_owned(),
            key: name.to_owned(),
            wanted: "element type",
        }),
    }
}
