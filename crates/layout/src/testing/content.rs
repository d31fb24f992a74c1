//! What a generated layout holds, before it is stored anywhere.

use arbitrary::{Result, Unstructured};
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use crate::axis::Axis;
use crate::dtype::DType;
use crate::raw::RawSplit;

pub(super) struct Content {
    pub(super) groups: Vec<ContentGroup>,
}

pub(super) struct ContentGroup {
    pub(super) id: u32,
    pub(super) kind: &'static str,
    pub(super) window: Option<u32>,
    pub(super) tokens_per_block: u32,
    pub(super) paging: Paging,
    pub(super) layers: Vec<ContentLayer>,
}

/// How the fields of a group may be cut into kernel pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// Any number of pages that divides the tokens: orders are of a block.
    Free {
        /// Rows of every field's block.
        tokens: u64,
    },
    /// This number on every side: orders are of a page.
    Fixed(u32),
}

pub(super) struct ContentLayer {
    pub(super) name: String,
    pub(super) fields: Vec<ContentField>,
}

pub(super) struct ContentField {
    pub(super) name: &'static str,
    pub(super) dtype: DType,
    pub(super) order: Vec<(Axis, u64)>,
    pub(super) split: Option<RawSplit>,
}

const DTYPES: [DType; 9] = [
    DType::U8,
    DType::BF16,
    DType::F32,
    DType::I64,
    DType::I8,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F16,
    DType::I32,
];

const KINDS: [&str; 5] = [
    "full_attention",
    "gdn_state",
    "sliding_window",
    "mla",
    "sliding_window_mla",
];

impl Content {
    pub(super) fn new(bytes: &mut Unstructured<'_>) -> Result<Self> {
        let mut groups = Vec::new();
        for number in 0..bytes.int_in_range(1..=3_u32)? {
            groups.push(ContentGroup::new(number, bytes)?);
        }
        Ok(Self { groups })
    }

    /// Adds layers as a draft model has them.
    pub(super) fn add_draft_layers(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        for group in &mut self.groups {
            if bytes.ratio(1_u8, 3)? {
                let layer = group.layer(format!("draft.{}", group.id), bytes)?;
                group.layers.push(layer);
            }
        }
        Ok(())
    }
}

impl ContentGroup {
    fn new(number: u32, bytes: &mut Unstructured<'_>) -> Result<Self> {
        let kind = *bytes.choose(&KINDS)?;
        let state = kind == "gdn_state";
        let paging = if state {
            Paging::Fixed(1)
        } else if bytes.ratio(1_u8, 3)? {
            Paging::Fixed(bytes.int_in_range(1..=3)?)
        } else {
            let tokens = *bytes.choose(&[1, 2, 3, 4, 6])?;
            Paging::Free { tokens }
        };
        let window = if kind.starts_with("sliding") {
            Some(bytes.int_in_range(1..=20)?)
        } else {
            None
        };
        let mut group = Self {
            // Neither dense nor in the order of the list.
            id: (number * 5 + 3) % 7,
            kind,
            window,
            tokens_per_block: bytes.int_in_range(1..=16)?,
            paging,
            layers: Vec::new(),
        };
        for layer in 0..bytes.int_in_range(1..=3_u32)? {
            let layer = group.layer(format!("layer.{layer}"), bytes)?;
            group.layers.push(layer);
        }
        Ok(group)
    }

    fn layer(&self, name: String, bytes: &mut Unstructured<'_>) -> Result<ContentLayer> {
        let names: &[&'static str] = match self.kind {
            "gdn_state" => &["conv", "recurrent"],
            "mla" | "sliding_window_mla" => &["latent", "scale"],
            _ => &["k", "v"],
        };
        let count = bytes.int_in_range(1..=names.len())?;
        let mut fields = Vec::new();
        for name in names.iter().take(count) {
            fields.push(self.field(name, bytes)?);
        }
        if bytes.ratio(1_u8, 2)? {
            fields.reverse();
        }
        Ok(ContentLayer { name, fields })
    }

    fn field(&self, name: &'static str, bytes: &mut Unstructured<'_>) -> Result<ContentField> {
        let dtype = *bytes.choose(&DTYPES)?;
        let heads = bytes.int_in_range(1..=2)?;
        let content = bytes.int_in_range(1..=3)?;
        let tokens = match self.paging {
            Paging::Free { tokens } => tokens,
            Paging::Fixed(_) => bytes.int_in_range(1..=3)?,
        };
        let (order, cut) = match name {
            "conv" => {
                let parts = vec![heads, heads, content];
                let channels = heads * 2 + content;
                let order = vec![
                    (Axis::Tap, bytes.int_in_range(1..=3)?),
                    (Axis::Channel, channels),
                ];
                (order, Some((Axis::Channel, parts)))
            }
            "recurrent" => (
                vec![(Axis::Head, heads), (Axis::Value, 2), (Axis::Key, content)],
                Some((Axis::Head, vec![heads])),
            ),
            "k" | "v" => {
                let order = if bytes.ratio(1_u8, 2)? {
                    vec![
                        (Axis::Token, tokens),
                        (Axis::Head, heads),
                        (Axis::Content, content),
                    ]
                } else {
                    vec![
                        (Axis::Head, heads),
                        (Axis::Token, tokens),
                        (Axis::Content, content),
                    ]
                };
                (order, Some((Axis::Head, vec![heads])))
            }
            _ if self.paging == Paging::Fixed(1) && bytes.ratio(1_u8, 2)? => {
                (vec![(Axis::Byte, tokens * content)], None)
            }
            _ => (vec![(Axis::Token, tokens), (Axis::Content, content)], None),
        };
        let split = match cut {
            Some((axis, parts)) if bytes.ratio(1_u8, 2)? => Some(RawSplit {
                axis,
                parts,
                replicas: 1,
            }),
            _ => None,
        };
        Ok(ContentField {
            name,
            dtype,
            order,
            split,
        })
    }

    /// The kind as a manifest has it.
    pub(super) fn kind(&self) -> String {
        self.kind.to_string()
    }
}
