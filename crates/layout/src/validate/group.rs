//! The checks of cache groups.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::field::field;
use super::pieces::Pieces;
use super::{at_most, not_empty, quantity};
use crate::error::LayoutError;
use crate::expansion::Expansion;
use crate::field::Field;
use crate::group::{Group, GroupKind, Layers, Page};
use crate::ids::{FieldId, GroupId, LayerId, PoolId};
use crate::layout::CacheLayout;
use crate::limits::MAX_FIELDS_PER_LAYER;
use crate::place::{FieldPlace, Place};
use crate::raw::RawGroup;
use crate::units::{PagesPerBlock, TokensPerBlock, WindowTokens};

fn kind(raw: &RawGroup) -> Result<GroupKind, LayoutError> {
    let group = GroupId::new(raw.id);
    let place = || Place::Group(group);
    let window = || match raw.window {
        Some(tokens) => WindowTokens::new(tokens).map(Some).map_err(quantity(place)),
        None => Ok(None),
    };
    let sliding = |make: fn(WindowTokens) -> GroupKind, kind| match window()? {
        Some(tokens) => Ok(make(tokens)),
        None => Err(LayoutError::NoWindow { group, kind }),
    };
    let plain = |kind: GroupKind| match raw.window {
        None => Ok(kind),
        Some(window) => Err(LayoutError::WindowOfKind {
            group,
            kind: kind.name(),
            window,
        }),
    };
    match raw.kind.as_str() {
        "full_attention" => plain(GroupKind::FullAttention),
        "mla" => plain(GroupKind::Mla),
        "gdn_state" => plain(GroupKind::GdnState),
        "sliding_window" => sliding(GroupKind::SlidingWindow, "sliding_window"),
        "sliding_window_mla" => sliding(GroupKind::SlidingWindowMla, "sliding_window_mla"),
        _ => Err(LayoutError::UnknownKind {
            group,
            kind: raw.kind.clone(),
        }),
    }
}

pub(super) fn group(
    raw: &RawGroup,
    layout: &CacheLayout,
    pieces: &mut Pieces,
) -> Result<Group, LayoutError> {
    let id = GroupId::new(raw.id);
    let place = || Place::Group(id);
    let kind = kind(raw)?;
    let pool = layout
        .pool(PoolId::new(raw.pool))
        .ok_or_else(|| LayoutError::Unknown {
            place: place(),
            target: Place::Pool(PoolId::new(raw.pool)),
        })?;
    let tokens_per_block = TokensPerBlock::new(raw.tokens_per_block).map_err(quantity(place))?;
    let pages = PagesPerBlock::new(raw.pages_per_block).map_err(quantity(place))?;
    if kind.is_state() && pages != PagesPerBlock::ONE {
        return Err(LayoutError::StatePages {
            group: id,
            pages: pages.get(),
        });
    }
    not_empty(place, "layers", !raw.layers.is_empty())?;
    let mut layers = Layers::default();
    for layer in &raw.layers {
        let name = LayerId::new(&layer.name);
        let place = || Place::Layer {
            group: id,
            layer: name.clone(),
        };
        // Fields are found by going through them: there must not be many.
        at_most(place, "fields", layer.fields.len(), MAX_FIELDS_PER_LAYER)?;
        not_empty(place, "fields", !layer.fields.is_empty())?;
        let mut names = BTreeSet::new();
        let mut fields: Vec<Field> = Vec::new();
        for field in &layer.fields {
            let place = || {
                Box::new(FieldPlace {
                    group: id,
                    layer: name.clone(),
                    field: FieldId::new(&field.name),
                })
            };
            if !names.insert(field.name.as_str()) {
                return Err(LayoutError::NameTwice {
                    what: "field",
                    name: field.name.clone(),
                    group: id,
                });
            }
            let field = self::field(field, pages, pool, layout, place)?;
            pieces.spend(&field)?;
            fields.push(field);
        }
        if layers.insert(name, Page { fields }).is_some() {
            return Err(LayoutError::NameTwice {
                what: "layer",
                name: layer.name.clone(),
                group: id,
            });
        }
    }
    Ok(Group {
        id,
        kind,
        tokens_per_block,
        expansion: Expansion::new(pages),
        pool: pool.id,
        layers,
    })
}
