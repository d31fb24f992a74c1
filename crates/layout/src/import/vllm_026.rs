//! vLLM 0.26: one allocation per layer slot, state given as two tensors.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;

use super::error::{ImportError, agree};
use super::gdn::{self, State};
use super::parse;
use super::place::ReportPlace;
use super::vllm_cache::{Storage, cache};
use super::vllm_spec::{Spec, numbers};
use crate::axis::Axis;
use crate::layout::CacheLayout;
use crate::raw::{RawContent, RawDim, RawField, RawGroup, RawLayer, RawLayout, RawSplit};

pub(super) const FORMAT: &str = "vllm-gpu-capture/1";

#[derive(Deserialize)]
struct Report {
    format: String,
    #[serde(default)]
    vllm_version: String,
    #[serde(default)]
    model: String,
    num_blocks: u32,
    storages: Vec<Storage>,
    groups: Vec<Group>,
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Group {
    layer_names: Vec<String>,
    /// The spec as it prints.
    spec: String,
}

#[derive(Deserialize)]
struct Layer {
    name: String,
    tensors: Vec<Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    storage: u32,
    storage_offset_bytes: u64,
    shape: Vec<u64>,
    /// Elements of this tensor.
    stride: Vec<u64>,
    dtype: String,
    element_size: u64,
}

/// Reads a capture of vLLM 0.26's cache on a GPU, format
/// `vllm-gpu-capture/1`.
///
/// One pool of `num_blocks` ids with null id 0; groups numbered as they stand.
/// An attention layer is one tensor of axes page, head, token and content, the
/// field `kv`. A layer of a gated delta net is two tensors, the fields `conv`
/// and `recurrent`, whose stride is that of the page they share.
///
/// The capture is of one rank of one. Its content tag says that GPU kernels
/// order the state; the model's revision is not in it.
///
/// # Errors
/// Another format, an unknown spec or state, numbers that contradict each
/// other, and everything [`CacheLayout::new`] refuses.
pub fn vllm_026(json: &str) -> Result<CacheLayout, ImportError> {
    let report: Report = parse(FORMAT, json)?;
    if report.format != FORMAT {
        return Err(ImportError::UnknownFormat {
            found: report.format,
            known: &[FORMAT],
        });
    }
    let layers: BTreeMap<&str, &Layer> = report
        .layers
        .iter()
        .map(|layer| (layer.name.as_str(), layer))
        .collect();
    let groups = (0_u32..)
        .zip(&report.groups)
        .map(|(id, group)| self::group(id, group, &layers, report.num_blocks))
        .collect::<Result<Vec<_>, _>>()?;
    let stateful = groups.iter().any(|group| group.kind == "gdn_state");
    let raw = RawLayout {
        content: RawContent {
            model_revision: String::new(),
            state_order: if stateful { "vllm-gpu" } else { "" }.to_string(),
        },
        groups,
        model: report.model,
        ..cache(&report.vllm_version, &report.storages, report.num_blocks)
    };
    Ok(CacheLayout::new(&raw)?)
}

fn group(
    id: u32,
    group: &Group,
    layers: &BTreeMap<&str, &Layer>,
    blocks: u32,
) -> Result<RawGroup, ImportError> {
    let place = ReportPlace::Group(id);
    let unknown = |kind: &str| ImportError::UnknownKind {
        place: place.clone(),
        kind: kind.into(),
    };
    let spec = Spec::parse(&group.spec).ok_or_else(|| unknown(&group.spec))?;
    let (kind, windowed) = match spec.class {
        "FullAttentionSpec" => ("full_attention", false),
        "SlidingWindowSpec" => ("sliding_window", true),
        "MLAAttentionSpec" => ("mla", false),
        "SlidingWindowMLASpec" => ("sliding_window_mla", true),
        "MambaSpec" => ("gdn_state", false),
        other => return Err(unknown(other)),
    };
    let tokens = spec
        .number("block_size")
        .ok_or_else(|| ImportError::missing(&place, "block size"))?;
    let mut pages = None;
    let mut raw_layers = Vec::new();
    for name in &group.layer_names {
        let place = ReportPlace::Layer {
            group: id,
            layer: name.clone(),
        };
        let layer = layers
            .get(name.as_str())
            .ok_or_else(|| ImportError::missing(&place, "tensors in the report"))?;
        let fields = match (kind, layer.tensors.as_slice()) {
            ("gdn_state", [conv, recurrent]) => {
                Vec::from(state(&place, &spec, [conv, recurrent], blocks)?)
            }
            ("gdn_state", _) => return Err(ImportError::missing(place, "pair of states")),
            (_, [tensor]) => {
                let (field, own) = attention(&place, &spec, kind, tensor, blocks)?;
                agree(&place, "pages per block", &own, pages.get_or_insert(own))?;
                Vec::from([field])
            }
            _ => return Err(ImportError::missing(place, "single tensor")),
        };
        raw_layers.push(RawLayer {
            name: name.clone(),
            fields,
        });
    }
    Ok(RawGroup {
        id,
        kind: kind.into(),
        window: spec.number("sliding_window").filter(|_| windowed),
        tokens_per_block: tokens,
        pages_per_block: pages.unwrap_or(1),
        pool: 0,
        layers: raw_layers,
    })
}

impl Tensor {
    /// Pages, bytes from page to page, and the axes inside a page.
    fn page<const N: usize>(
        &self,
        place: &ReportPlace,
        axes: [Axis; N],
    ) -> Result<(u64, u64, [RawDim; N]), ImportError> {
        let size = gdn::element(place, &self.dtype)?;
        agree(place, "element size", &self.element_size, &size)?;
        let bytes = |elements: u64| {
            elements
                .checked_mul(size)
                .ok_or_else(|| ImportError::too_large(place, "stride"))
        };
        let (Some((pages, extents)), Some((page, strides))) =
            (self.shape.split_first(), self.stride.split_first())
        else {
            return Err(ImportError::missing(place, "axes"));
        };
        agree(place, "axes", &extents.len(), &N)?;
        agree(place, "axes", &strides.len(), &N)?;
        let mut dims = axes.map(|axis| RawDim {
            axis,
            extent: 1,
            stride: size,
        });
        for (dim, (extent, stride)) in dims.iter_mut().zip(extents.iter().zip(strides)) {
            dim.extent = *extent;
            dim.stride = bytes(*stride)?;
        }
        Ok((*pages, bytes(*page)?, dims))
    }

    fn field(
        &self,
        name: &str,
        page_stride: u64,
        dims: impl Into<Vec<RawDim>>,
        split: Option<RawSplit>,
    ) -> RawField {
        let mut dims = dims.into();
        dims.sort_by_key(|dim| core::cmp::Reverse(dim.stride));
        RawField {
            name: name.into(),
            dtype: self.dtype.clone(),
            allocation: self.storage,
            offset: self.storage_offset_bytes,
            page_stride,
            dims,
            split,
        }
    }
}

fn attention(
    place: &ReportPlace,
    spec: &Spec<'_>,
    kind: &str,
    tensor: &Tensor,
    blocks: u32,
) -> Result<(RawField, u32), ImportError> {
    let number = |key: &'static str| {
        spec.number::<u64>(key)
            .ok_or_else(|| ImportError::missing(place, key))
    };
    let (all, stride, dims) = tensor.page(place, [Axis::Head, Axis::Token, Axis::Content])?;
    let [head, token, content] = dims;
    let pages = all
        .checked_div(u64::from(blocks))
        .filter(|_| all.is_multiple_of(u64::from(blocks)))
        .and_then(|pages| u32::try_from(pages).ok())
        .ok_or_else(|| ImportError::Mismatch {
            place: place.into(),
            what: "pages",
            found: all.to_string(),
            expected: format!("a multiple of {blocks} blocks"),
        })?;
    let tokens = token.extent.checked_mul(u64::from(pages));
    agree(
        place,
        "tokens per block",
        &tokens,
        &Some(number("block_size")?),
    )?;
    agree(place, "heads", &head.extent, &number("num_kv_heads")?)?;
    let latent = matches!(kind, "mla" | "sliding_window_mla");
    let split = if latent {
        None
    } else {
        let width = number("head_size")?.checked_add(number("head_size_v")?);
        agree(place, "content", &Some(content.extent), &width)?;
        Some(RawSplit {
            axis: Axis::Head,
            parts: Vec::from([head.extent]),
            replicas: 1,
        })
    };
    Ok((tensor.field("kv", stride, dims, split), pages))
}

fn state(
    place: &ReportPlace,
    spec: &Spec<'_>,
    tensors: [&Tensor; 2],
    blocks: u32,
) -> Result<[RawField; 2], ImportError> {
    let kind = spec.get("mamba_type").unwrap_or_default();
    if !kind.ends_with("GDN_ATTN") {
        return Err(ImportError::UnknownState {
            place: place.into(),
            state: kind.into(),
        });
    }
    let stated = spec.tuple("shapes").unwrap_or_default();
    let shapes: Vec<_> = stated.into_iter().filter_map(numbers).collect();
    let dtypes = spec.tuple("dtypes").unwrap_or_default();
    let ([conv, recurrent], [_, _]) = (shapes.as_slice(), dtypes.as_slice()) else {
        return Err(ImportError::missing(place, "pair of states"));
    };
    for (tensor, (shape, dtype)) in tensors.iter().zip(shapes.iter().zip(dtypes)) {
        let found = tensor.shape.get(1..).unwrap_or_default();
        agree(place, "shape of a slot", found, shape.as_slice())?;
        let name = dtype.strip_prefix("torch.").unwrap_or(dtype);
        agree(place, "dtype", tensor.dtype.as_str(), name)?;
        let slots = tensor.shape.first().copied();
        agree(place, "slots", &slots, &Some(u64::from(blocks)))?;
    }
    let state = State {
        conv,
        recurrent,
        key_dim: None,
        value_dim: None,
    };
    // Channels outnumber taps.
    let channels = conv.iter().copied().max().unwrap_or(0);
    let conv = state.conv(place, state.channels(place, channels)?)?;
    let recurrent = state.recurrent(place)?;
    let [first, second] = tensors;
    let (_, stride, dims) = first.page(place, conv.axes.map(|(axis, _)| axis))?;
    let conv = first.field("conv", stride, dims, Some(conv.split));
    let (_, stride, dims) = second.page(place, recurrent.axes.map(|(axis, _)| axis))?;
    let recurrent = second.field("recurrent", stride, dims, Some(recurrent.split));
    Ok([conv, recurrent])
}
