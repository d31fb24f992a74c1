//! vLLM 0.33: one strided view per layer into one allocation.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::error::{ImportError, agree};
use super::gdn;
use super::parse;
use super::place::ReportPlace;
use super::vllm_033_report::{Config, Group, Layer, Report, Spec};
use super::vllm_cache::cache;
use crate::axis::Axis;
use crate::layout::CacheLayout;
use crate::raw::{RawContent, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawShard, RawSplit};

pub(super) const FORMAT: &str = "vllm-kv-layout/1";

/// Axes of a view behind its pages.
const AXES: [Axis; 3] = [Axis::Head, Axis::Token, Axis::Content];

/// Reads a report of vLLM 0.33's cache, format `vllm-kv-layout/1`.
///
/// One pool of `num_blocks` ids with null id 0 serves all groups. The groups
/// are those whose `enable_kv_transfer` is set, numbered in their order. An
/// attention layer is one field `kv` of axes head, token and content (key and
/// value of a token follow each other), in the order of the view's strides. A
/// layer of a gated delta net is a page of raw bytes: fields `conv` and, right
/// behind it, `recurrent`; the rest of the page is padding.
///
/// Key-value heads and both states are cut by tensor parallelism, latents are
/// on every rank. Where there are more ranks than heads, consecutive ranks
/// share one. The content tag names the architecture, and for models with
/// state whether CPU or GPU kernels order it: the GPU backends of one engine
/// share their decode kernels and so their state.
///
/// # Errors
/// Another format, an unknown kind of cache or state, numbers that contradict
/// each other, and everything [`CacheLayout::new`] refuses.
pub fn vllm_033(json: &str) -> Result<CacheLayout, ImportError> {
    let report: Report = parse(FORMAT, json)?;
    if report.format != FORMAT {
        return Err(ImportError::UnknownFormat {
            found: report.format,
            known: &[FORMAT],
        });
    }
    let mut by_group: BTreeMap<u32, Vec<&Layer>> = BTreeMap::new();
    for layer in &report.layers {
        by_group.entry(layer.group).or_default().push(layer);
    }
    let mut groups = Vec::new();
    for (id, group) in (0_u32..).zip(
        report
            .groups
            .iter()
            .filter(|group| group.enable_kv_transfer),
    ) {
        let layers = by_group.remove(&group.index).unwrap_or_default();
        groups.push(self::group(&report, id, group, &layers)?);
    }
    let stateful = groups.iter().any(|group| group.kind == "gdn_state");
    let raw = RawLayout {
        content: RawContent {
            model_revision: report.config.arch.clone(),
            state_order: state_order(&report.config, stateful),
        },
        shard: RawShard {
            tp_rank: report.config.tp_rank,
            tp_size: report.config.tp_size,
            ..RawShard::default()
        },
        groups,
        model: report.model,
        ..cache(&report.vllm_version, &report.storages, report.num_blocks)
    };
    Ok(CacheLayout::new(&raw)?)
}

fn state_order(config: &Config, stateful: bool) -> String {
    if !stateful {
        String::new()
    } else if config.attn_backend.starts_with("CPU") {
        "vllm-cpu".to_string()
    } else {
        "vllm-gpu".to_string()
    }
}

fn group(
    report: &Report,
    id: u32,
    group: &Group,
    layers: &[&Layer],
) -> Result<RawGroup, ImportError> {
    let place = ReportPlace::Group(group.index);
    let kind = kind(&place, &group.kind)?;
    agree(&place, "layers", &layers.len(), &group.layer_names.len())?;
    let mut window = None;
    let mut pages = None;
    let mut raw_layers = Vec::new();
    for layer in layers {
        let place = ReportPlace::Layer {
            group: group.index,
            layer: layer.name.clone(),
        };
        let spec = report
            .specs
            .get(layer.spec)
            .ok_or_else(|| ImportError::missing(&place, "spec in the report"))?;
        agree(&place, "kind", &spec.kind, &group.kind)?;
        agree(&place, "block size", &spec.block_size, &group.block_size)?;
        let expected = *window.get_or_insert(spec.sliding_window);
        agree(&place, "window", &spec.sliding_window, &expected)?;
        let view = View::new(&place, layer)?;
        let own = view.pages_per_block(report, group)?;
        agree(&place, "pages per block", &own, pages.get_or_insert(own))?;
        let fields = if kind == "gdn_state" {
            Vec::from(view.state(spec, &report.config)?)
        } else {
            Vec::from([view.attention(spec, kind, &report.config)?])
        };
        raw_layers.push(RawLayer {
            name: layer.name.clone(),
            fields,
        });
    }
    Ok(RawGroup {
        id,
        kind: kind.to_string(),
        window: window.flatten(),
        tokens_per_block: group.block_size,
        pages_per_block: pages.unwrap_or(1),
        pool: 0,
        layers: raw_layers,
    })
}

fn kind(place: &ReportPlace, kind: &str) -> Result<&'static str, ImportError> {
    Ok(match kind {
        "full_attention" => "full_attention",
        "sliding_window" => "sliding_window",
        "mla_attention" => "mla",
        "sliding_window_mla" => "sliding_window_mla",
        "mamba" => "gdn_state",
        _ => {
            return Err(ImportError::UnknownKind {
                place: place.into(),
                kind: kind.into(),
            });
        }
    })
}

/// One layer's view, its strides in bytes.
pub(super) struct View<'a> {
    pub(super) place: &'a ReportPlace,
    pub(super) layer: &'a Layer,
    pages: u64,
    pub(super) page_stride: u64,
    /// Head, token, content.
    pub(super) dims: [RawDim; 3],
}

impl<'a> View<'a> {
    fn new(place: &'a ReportPlace, layer: &'a Layer) -> Result<Self, ImportError> {
        let four = |what, numbers: &[u64]| {
            <[u64; 4]>::try_from(numbers).map_err(|_| ImportError::Mismatch {
                place: place.into(),
                what,
                found: format!("{numbers:?}"),
                expected: "4 numbers: page, head, token, content".into(),
            })
        };
        let size = gdn::element(place, &layer.dtype)?;
        agree(place, "element size", &layer.element_size, &size)?;
        let bytes = |elements: u64| {
            elements
                .checked_mul(size)
                .ok_or_else(|| ImportError::too_large(place, "stride"))
        };
        let [pages, extents @ ..] = four("shape", &layer.shape)?;
        let [page, strides @ ..] = four("stride", &layer.stride)?;
        let mut dims = [RawDim {
            axis: Axis::Head,
            extent: 1,
            stride: size,
        }; 3];
        for (dim, ((axis, extent), stride)) in dims
            .iter_mut()
            .zip(AXES.into_iter().zip(extents).zip(strides))
        {
            *dim = RawDim {
                axis,
                extent,
                stride: bytes(stride)?,
            };
        }
        Ok(Self {
            place,
            layer,
            pages,
            page_stride: bytes(page)?,
            dims,
        })
    }

    /// The kernel's pages per block, if the view counts kernel pages.
    fn pages_per_block(&self, report: &Report, group: &Group) -> Result<u32, ImportError> {
        let blocks = u64::from(report.num_blocks);
        if self.pages == blocks {
            return Ok(1);
        }
        let ratio = group.block_size.checked_div(group.kernel_block_size);
        let rest = group.block_size.checked_rem(group.kernel_block_size);
        let (Some(ratio), Some(0)) = (ratio, rest) else {
            return Err(ImportError::Mismatch {
                place: self.place.into(),
                what: "kernel block size",
                found: group.kernel_block_size.to_string(),
                expected: format!("a divisor of {}", group.block_size),
            });
        };
        let pages = blocks.checked_mul(u64::from(ratio));
        agree(self.place, "pages", &Some(self.pages), &pages)?;
        Ok(ratio)
    }

    fn attention(&self, spec: &Spec, kind: &str, config: &Config) -> Result<RawField, ImportError> {
        let [head, ..] = self.dims;
        if let Some(heads) = spec.num_kv_heads {
            agree(self.place, "heads", &head.extent, &heads)?;
        }
        let latent = matches!(kind, "mla" | "sliding_window_mla");
        let split = if latent {
            None
        } else {
            Some(self.heads(head.extent, config)?)
        };
        let mut dims = Vec::from(self.dims);
        dims.sort_by_key(|dim| core::cmp::Reverse(dim.stride));
        Ok(RawField {
            name: "kv".to_string(),
            dtype: self.dtype(spec),
            allocation: self.layer.storage,
            offset: self.layer.storage_offset_bytes,
            page_stride: self.page_stride,
            dims,
            split,
        })
    }

    /// The spec's dtype where the view has it, else the view's: quantised
    /// caches may be viewed as bytes.
    fn dtype(&self, spec: &Spec) -> String {
        spec.dtype
            .as_ref()
            .filter(|name| gdn::element(self.place, name) == Ok(self.layer.element_size))
            .unwrap_or(&self.layer.dtype)
            .clone()
    }

    fn heads(&self, local: u64, config: &Config) -> Result<RawSplit, ImportError> {
        let split = |replicas| RawSplit {
            axis: Axis::Head,
            parts: Vec::from([local]),
            replicas,
        };
        let (Some(total), true) = (config.num_key_value_heads, config.tp_size > 1) else {
            return Ok(split(1));
        };
        let held = local
            .checked_mul(u64::from(config.tp_size))
            .ok_or_else(|| ImportError::too_large(self.place, "heads of all ranks"))?;
        held.checked_div(total)
            .filter(|_| held.is_multiple_of(total))
            .and_then(|replicas| u32::try_from(replicas).ok())
            .map(split)
            .ok_or_else(|| ImportError::Mismatch {
                place: self.place.into(),
                what: "heads of all ranks",
                found: held.to_string(),
                expected: format!("a multiple of {total}"),
            })
    }
}
