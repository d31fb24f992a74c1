//! SGLang 0.5.23: lists of buffers, one item per id.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::error::{ImportError, agree};
use super::place::ReportPlace;
use super::sglang_field::{Tensor, payload};
use super::sglang_report::{Buffer, Report, Side as Reported, View};
use super::{Side, parse};
use crate::layout::CacheLayout;
use crate::raw::{
    self, RawAllocation, RawContent, RawField, RawGroup, RawLayer, RawLayout, RawPool, RawShard,
};

pub(super) const FORMAT: &str = "sglang-pd-layout-facts/1";

/// Tokens of one ring page of a compressor state of ratio 128.
const RING_TOKENS: u32 = 128;

/// Reads one side of a report of SGLang 0.5.23, format
/// `sglang-pd-layout-facts/1`.
///
/// Every component of the transfer is a group with a pool of its own: `kv` is
/// group 0, the state components are 1, 2, ... in the order of `state_types`.
/// `dsa` index keys are addressed by the page ids of `kv` and are fields of its
/// group, so that an id is claimed once. `aux`, the row of sampled tokens and
/// the like, is no cache and left out, as are buffers of zero length.
///
/// A pool has as many ids as the shortest of its buffers has items. The ids
/// below the first that its allocator hands out are reserved; there is no null
/// id. A layer is named `layer.<layer_id>`, its fields by the buffers' roles. A
/// field's payload is the whole item, which is what SGLang moves: padding that
/// the engine keeps inside an item belongs to it.
///
/// With unified memory all pools see one allocation. They are declared
/// [arbitrated](CacheLayout::arbitrated), fields come from the views of the
/// envelope, and ids whose bytes begin below the reserved floor are reserved.
///
/// The report is that of one rank of one: it does not say which part of a
/// split it holds. The content tag is the class of the pool and the names of
/// its page formats; the report does not name the model.
///
/// # Errors
/// Another format, an unknown component or role, state that is not a gated
/// delta net's, numbers that contradict each other, heads divided among ranks,
/// and everything [`CacheLayout::new`] refuses.
pub fn sglang(json: &str, side: Side) -> Result<CacheLayout, ImportError> {
    let report: Report = parse(FORMAT, json)?;
    if report.schema != FORMAT {
        return Err(ImportError::UnknownFormat {
            found: report.schema,
            known: &[FORMAT],
        });
    }
    let reported = match side {
        Side::Prefill => &report.prefill,
        Side::Decode => &report.decode,
    };
    let args = &reported.kv_args;
    if let (Some(own), Some(all)) = (args.kv_head_num, args.total_kv_head_num) {
        agree(ReportPlace::KvArgs, "heads of all ranks", &all, &own)?;
    }
    let mut components = components(reported)?;
    let mut pools = Vec::new();
    let mut groups = Vec::new();
    for (id, component) in &mut components {
        component.buffers.sort_by_key(|buffer| buffer.layer_id);
        if component.buffers.is_empty() {
            continue;
        }
        groups.push(component.group(*id, &report, reported)?);
        pools.push(component.pool(*id, &report, reported)?);
    }
    let stateful = groups.iter().any(|group| group.kind == "gdn_state");
    let raw = RawLayout {
        format: raw::FORMAT.to_string(),
        engine: format!("SGLang {}", report.sglang),
        content: RawContent {
            model_revision: match &args.kv_layout {
                Some(layout) => format!("{} {layout}", reported.pool_class),
                None => reported.pool_class.clone(),
            },
            state_order: if stateful { "sglang" } else { "" }.to_string(),
        },
        shard: RawShard::default(),
        allocations: reported
            .allocations
            .iter()
            .map(|allocation| RawAllocation {
                id: allocation.id,
                len: allocation.nbytes,
            })
            .collect(),
        arbitrated: arbitrated(&report, reported, &components),
        pools,
        groups,
        model: report.name.clone(),
    };
    Ok(CacheLayout::new(&raw)?)
}

/// One component and the buffers addressed by its ids.
struct Component<'a> {
    name: &'a str,
    buffers: Vec<&'a Buffer>,
}

/// Components that hold cache, by group id.
fn components(side: &Reported) -> Result<BTreeMap<u32, Component<'_>>, ImportError> {
    let mut ids = BTreeMap::from([("kv", 0)]);
    for (id, name) in (1_u32..).zip(&side.kv_args.state_types) {
        let id = if name == "dsa" { 0 } else { id };
        if ids.insert(name, id).is_some() {
            return Err(ImportError::Mismatch {
                place: ReportPlace::Component(name.clone()),
                what: "number of state types of that name",
                found: "2".into(),
                expected: "1".into(),
            });
        }
    }
    let mut components = BTreeMap::new();
    for (name, id) in &ids {
        if *name != "dsa" {
            let buffers = Vec::new();
            components.insert(*id, Component { name, buffers });
        }
    }
    for buffer in &side.buffers {
        if buffer.component == "aux" || buffer.nbytes == 0 {
            continue;
        }
        ids.get(buffer.component.as_str())
            .and_then(|id| components.get_mut(id))
            .ok_or_else(|| ImportError::UnknownKind {
                place: ReportPlace::Buffers,
                kind: buffer.component.clone(),
            })?
            .buffers
            .push(buffer);
    }
    Ok(components)
}

/// Pairs of pools that share one memory by design.
fn arbitrated(
    report: &Report,
    side: &Reported,
    components: &BTreeMap<u32, Component<'_>>,
) -> Vec<[u32; 2]> {
    if report.reserved_floor_bytes.is_none() {
        return Vec::new();
    }
    let pool = |name: &str| {
        let mut found = components
            .iter()
            .filter(|(_, component)| component.name == name);
        found.next().map(|(id, _)| *id)
    };
    side.overlapping_buffers
        .iter()
        .filter_map(|pair| Some([pool(&pair.a.0)?, pool(&pair.b.0)?]))
        .filter(|[a, b]| a != b)
        .collect()
}

impl Component<'_> {
    fn place(&self) -> ReportPlace {
        ReportPlace::Component(self.name.to_string())
    }

    fn pool(&self, id: u32, report: &Report, side: &Reported) -> Result<RawPool, ImportError> {
        let items = self.buffers.iter().map(|buffer| buffer.items).min();
        let capacity = u32::try_from(items.unwrap_or(0))
            .map_err(|_| ImportError::too_large(self.place(), "number of items"))?;
        let spaces = &report.index_spaces;
        let space = match self.name {
            "kv" => spaces.full.as_ref(),
            "swa" => spaces.swa.as_ref(),
            "mamba" => spaces.mamba.as_ref(),
            _ => None,
        };
        let first = match (report.reserved_floor_bytes, self.name) {
            (Some(floor), _) => self
                .buffers
                .first()
                .and_then(|envelope| floor.checked_next_multiple_of(envelope.item_len))
                .zip(self.buffers.first())
                .and_then(|(end, envelope)| end.checked_div(envelope.item_len))
                .and_then(|first| u32::try_from(first).ok()),
            (None, "c128_state") => side.reserved_req_row.and_then(|row| row.checked_add(1)),
            (None, _) => space.and_then(|space| space.first_allocatable),
        };
        let first =
            first.ok_or_else(|| ImportError::missing(self.place(), "first allocatable id"))?;
        Ok(RawPool {
            id,
            capacity,
            null_id: None,
            reserved: (first > 0).then_some([0, first]).into_iter().collect(),
        })
    }

    fn group(&self, id: u32, report: &Report, side: &Reported) -> Result<RawGroup, ImportError> {
        let tensors = self.tensors(report)?;
        let latent = |role: &str| !matches!(role, "k" | "v");
        let latents = tensors
            .iter()
            .filter(|(_, field)| latent(&field.name))
            .count();
        if latents != 0 && latents != tensors.len() && self.name != "mamba" {
            return Err(ImportError::Mismatch {
                place: self.place(),
                what: "number of fields that are neither keys nor values",
                found: latents.to_string(),
                expected: format!("0 or {}", tensors.len()),
            });
        }
        let (kind, window, tokens) = match (self.name, latents) {
            ("kv", 0) => ("full_attention", None, report.page_size),
            ("kv", _) => ("mla", None, report.page_size),
            ("swa", 0) => ("sliding_window", report.config.window, report.page_size),
            ("swa", _) => ("sliding_window_mla", report.config.window, report.page_size),
            ("c128_state", _) => ("sliding_window_mla", Some(RING_TOKENS), RING_TOKENS),
            ("mamba", _) if report.config.linear_layers.is_empty() => {
                return Err(ImportError::UnknownState {
                    place: self.place(),
                    state: side.pool_class.clone(),
                });
            }
            ("mamba", _) => ("gdn_state", None, report.page_size),
            _ => {
                return Err(ImportError::UnknownKind {
                    place: self.place(),
                    kind: self.name.into(),
                });
            }
        };
        let mut layers: Vec<RawLayer> = Vec::new();
        for (layer, field) in tensors {
            let name = format!("layer.{layer}");
            match layers.last_mut() {
                Some(last) if last.name == name => last.fields.push(field),
                _ => layers.push(RawLayer {
                    name,
                    fields: Vec::from([field]),
                }),
            }
        }
        Ok(RawGroup {
            id,
            kind: kind.into(),
            window,
            tokens_per_block: tokens,
            pages_per_block: 1,
            pool: id,
            layers,
        })
    }

    /// Fields with the layers they belong to, in the order of layers.
    fn tensors(&self, report: &Report) -> Result<Vec<(u64, RawField)>, ImportError> {
        if report.reserved_floor_bytes.is_some() {
            return self.views(report);
        }
        let mut recurrent = BTreeMap::new();
        for buffer in self
            .buffers
            .iter()
            .filter(|buffer| buffer.role == "temporal")
        {
            recurrent.insert(buffer.layer_id, buffer.shape.get(1..).unwrap_or_default());
        }
        let mut fields = Vec::new();
        for buffer in &self.buffers {
            let place = ReportPlace::Buffer {
                role: buffer.role.clone(),
                component: self.name.to_string(),
            };
            let layer = buffer
                .layer_id
                .ok_or_else(|| ImportError::missing(&place, "layer id"))?;
            let room = buffer.items.checked_mul(buffer.item_len);
            if room.is_none_or(|room| room > buffer.nbytes) {
                return Err(ImportError::Mismatch {
                    place,
                    what: "bytes",
                    found: buffer.nbytes.to_string(),
                    expected: format!("{} items of {} bytes", buffer.items, buffer.item_len),
                });
            }
            let tensor = Tensor::of_buffer(&place, buffer);
            let shape = recurrent.get(&buffer.layer_id).copied().unwrap_or_default();
            let field = self.field(&tensor, shape, report)?;
            agree(
                &place,
                "payload",
                &payload(&place, &field)?,
                &buffer.item_len,
            )?;
            fields.push((layer, field));
        }
        Ok(fields)
    }

    /// Fields of an envelope: together they are the whole item.
    fn views(&self, report: &Report) -> Result<Vec<(u64, RawField)>, ImportError> {
        let [envelope] = *self.buffers else {
            return Err(ImportError::missing(self.place(), "single envelope"));
        };
        let sub_pool = if self.name == "kv" { "full" } else { self.name };
        let mut views: Vec<&View> = report
            .envelope_views
            .iter()
            .filter(|view| view.sub_pool == sub_pool)
            .collect();
        views.sort_by_key(|view| view.layer_id);
        let mut recurrent = BTreeMap::new();
        for view in views.iter().filter(|view| view.role == "temporal") {
            recurrent.insert(view.layer_id, view.shape.get(1..).unwrap_or_default());
        }
        let mut fields = Vec::new();
        let mut total = Some(0_u64);
        for view in views {
            let place = ReportPlace::View {
                role: view.role.clone(),
                layer: view.layer_id,
            };
            let tensor = Tensor::of_view(&place, view, envelope)?;
            let shape = recurrent.get(&view.layer_id).copied().unwrap_or_default();
            let field = self.field(&tensor, shape, report)?;
            let bytes = payload(&place, &field)?;
            total = total.and_then(|total| total.checked_add(bytes));
            fields.push((view.layer_id, field));
        }
        agree(
            self.place(),
            "payload of all views",
            &total,
            &Some(envelope.item_len),
        )?;
        Ok(fields)
    }

    fn field(
        &self,
        tensor: &Tensor<'_>,
        recurrent: &[u64],
        report: &Report,
    ) -> Result<RawField, ImportError> {
        if self.name == "mamba" {
            return tensor.state(recurrent, &report.config);
        }
        match tensor.role {
            "k"
            | "v"
            | "latent"
            | "c4_latent"
            | "c128_latent"
            | "index_k"
            | "swa_latent"
            | "compress_state"
            | "indexer_compress_state" => tensor.page(u64::from(report.page_size)),
            role => Err(ImportError::UnknownKind {
                place: tensor.place.into(),
                kind: role.into(),
            }),
        }
    }
}
