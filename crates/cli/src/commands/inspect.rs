//! `mooncake-pd inspect`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mooncake_pd_layout::{CacheLayout, Group, PoolId, WindowTokens};
use serde::Serialize;

use crate::args::InspectArgs;
use crate::failure::{Exit, Failure};
use crate::input::Input;
use crate::loaded::Loaded;
use crate::number::count;
use crate::output::Output;
use crate::skipped;
use crate::table::{Table, number};

#[derive(Serialize)]
struct AllocationReport {
    id: u32,
    len: u64,
}

#[derive(Serialize)]
struct PoolReport {
    id: u32,
    capacity: u32,
    null_id: Option<u32>,
    reserved: Vec<[u32; 2]>,
}

#[derive(Serialize)]
struct GroupReport {
    id: u32,
    kind: &'static str,
    window: Option<u32>,
    pool: u32,
    tokens_per_block: u32,
    pages_per_block: u32,
    layers: usize,
    fields: usize,
    payload_per_block: u64,
    block_strides: Vec<u64>,
    padding_per_block: u64,
}

/// Bytes of one block that several groups use in turn.
#[derive(Serialize)]
struct OverlayReport {
    groups: Vec<u32>,
    bytes_per_block: u64,
}

#[derive(Serialize)]
struct Report {
    engine: String,
    model: String,
    fingerprint: String,
    tp: [u32; 2],
    pp: [u32; 2],
    allocations: Vec<AllocationReport>,
    pools: Vec<PoolReport>,
    arbitrated: Vec<[u32; 2]>,
    groups: Vec<GroupReport>,
    overlays: Vec<OverlayReport>,
}

/// Describes a layout, or prints it as a manifest.
///
/// # Errors
/// The layout can't be read.
pub fn inspect(args: &InspectArgs, json: bool) -> Result<Output, Failure> {
    let text = Input::default().text(&args.layout)?;
    let loaded = Loaded::new(&args.layout, text, args.side.into())?;
    let layout = loaded.layout();
    if args.manifest {
        let manifest = layout.to_json().map_err(|error| Failure::Encode {
            file: loaded.name().to_owned(),
            error,
        })?;
        return Ok(Output::text(format!("{manifest}\n"), Exit::Ok));
    }
    let report = report(layout);
    if json {
        return Output::json("mooncake-pd-inspect/1", &report, Exit::Ok);
    }
    Ok(Output::text(report.to_string(), Exit::Ok))
}

fn report(layout: &CacheLayout) -> Report {
    let shard = layout.shard();
    Report {
        engine: layout.engine().to_owned(),
        model: layout.model().to_owned(),
        fingerprint: layout.fingerprint().to_string(),
        tp: [shard.tp_rank(), shard.tp_size()],
        pp: [shard.pp_rank(), shard.pp_size()],
        allocations: layout
            .allocations()
            .iter()
            .map(|allocation| AllocationReport {
                id: allocation.id().get(),
                len: allocation.len().get(),
            })
            .collect(),
        pools: layout
            .pools()
            .iter()
            .map(|pool| PoolReport {
                id: pool.id().get(),
                capacity: pool.capacity(),
                null_id: pool.null_id(),
                reserved: pool
                    .reserved()
                    .iter()
                    .map(|range| [range.start, range.end])
                    .collect(),
            })
            .collect(),
        arbitrated: layout
            .arbitrated()
            .iter()
            .map(|(a, b)| [a.get(), b.get()])
            .collect(),
        groups: layout.groups().iter().map(group).collect(),
        overlays: overlays(layout),
    }
}

fn group(group: &Group) -> GroupReport {
    let strides: BTreeSet<u64> = group
        .fields()
        .map(|(_, field)| field.block_stride().get())
        .collect();
    GroupReport {
        id: group.id().get(),
        kind: group.kind().name(),
        window: group.kind().window().map(WindowTokens::get),
        pool: group.pool().get(),
        tokens_per_block: group.tokens_per_block().get(),
        pages_per_block: group.expansion().pages_per_block().get(),
        layers: group.layers().len(),
        fields: group.fields().count(),
        payload_per_block: group.fields().fold(0_u64, |sum, (_, field)| {
            sum.saturating_add(field.payload_len().get())
        }),
        block_strides: strides.into_iter().collect(),
        padding_per_block: skipped::per_block(group),
    }
}

/// Which groups of a pool use the same bytes of a block, by the extents of
/// their fields.
fn overlays(layout: &CacheLayout) -> Vec<OverlayReport> {
    let mut extents: BTreeMap<PoolId, Vec<(u32, u64, u64, u32)>> = BTreeMap::new();
    for group in layout.groups() {
        for (_, field) in group.fields() {
            let Some(start) = field.block_offset(1) else {
                continue;
            };
            let end = start.get().saturating_add(field.span().get());
            extents.entry(group.pool()).or_default().push((
                field.allocation().get(),
                start.get(),
                end,
                group.id().get(),
            ));
        }
    }
    let mut shared: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for mut extents in extents.into_values() {
        extents.sort_unstable();
        let mut cluster: Option<(u32, u64, u64, BTreeSet<u32>)> = None;
        for (allocation, start, end, group) in extents {
            if let Some((last, _, reach, groups)) = &mut cluster
                && *last == allocation
                && start < *reach
            {
                *reach = end.max(*reach);
                groups.insert(group);
                continue;
            }
            let next = (allocation, start, end, BTreeSet::from([group]));
            if let Some(done) = cluster.replace(next) {
                count_cluster(done, &mut shared);
            }
        }
        if let Some(done) = cluster {
            count_cluster(done, &mut shared);
        }
    }
    shared
        .into_iter()
        .map(|(groups, bytes_per_block)| OverlayReport {
            groups,
            bytes_per_block,
        })
        .collect()
}

fn count_cluster(
    (_, start, end, groups): (u32, u64, u64, BTreeSet<u32>),
    shared: &mut BTreeMap<Vec<u32>, u64>,
) {
    if groups.len() > 1 {
        let bytes = shared.entry(groups.into_iter().collect()).or_default();
        *bytes = bytes.saturating_add(end.saturating_sub(start));
    }
}

fn joined<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tp_rank, tp_size] = self.tp;
        let [pp_rank, pp_size] = self.pp;
        writeln!(f, "{} of {}", named(&self.model), named(&self.engine))?;
        writeln!(f, "fingerprint {}", self.fingerprint)?;
        writeln!(
            f,
            "TP rank {tp_rank} of {tp_size}, PP rank {pp_rank} of {pp_size}"
        )?;
        let total = self
            .allocations
            .iter()
            .fold(0_u64, |sum, allocation| sum.saturating_add(allocation.len));
        let allocations = number(count(self.allocations.len()));
        writeln!(f, "allocations: {allocations} of {} bytes", number(total))?;
        for pool in &self.pools {
            write!(f, "pool {}: {} ids", pool.id, number(pool.capacity.into()))?;
            if let Some(null) = pool.null_id {
                write!(f, ", null id {null}")?;
            }
            for [first, end] in &pool.reserved {
                write!(f, ", reserved {first}..{end}")?;
            }
            writeln!(f)?;
        }
        for [a, b] in &self.arbitrated {
            writeln!(
                f,
                "pools {a} and {b} share bytes, the engine's allocator keeps them apart"
            )?;
        }
        write!(f, "{}", groups(self))?;
        if self.overlays.is_empty() {
            writeln!(f, "no groups share bytes of a block")?;
        }
        for overlay in &self.overlays {
            writeln!(
                f,
                "groups {} share {} bytes of each block",
                joined(&overlay.groups),
                number(overlay.bytes_per_block)
            )?;
        }
        Ok(())
    }
}

fn named(name: &str) -> &str {
    if name.is_empty() { "unnamed" } else { name }
}

fn groups(report: &Report) -> Table {
    let mut table = Table::new(
        2,
        &[
            "group", "kind", "pool", "tokens", "pages", "layers", "fields", "payload", "padding",
            "stride",
        ],
    );
    for group in &report.groups {
        let kind = match group.window {
            Some(window) => format!("{}({window})", group.kind),
            None => group.kind.to_owned(),
        };
        let numbers = [
            group.pool.into(),
            group.tokens_per_block.into(),
            group.pages_per_block.into(),
            count(group.layers),
            count(group.fields),
            group.payload_per_block,
            group.padding_per_block,
        ];
        let strides = joined(group.block_strides.iter().map(|&stride| number(stride)));
        table.row(
            [group.id.to_string(), kind]
                .into_iter()
                .chain(numbers.map(number))
                .chain([strides]),
        );
    }
    table
}
