//! What `mooncake-pd transfer` says.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mooncake_pd_layout::CacheLayout;
use serde::Serialize;

use crate::batch::{Planned, Refusal};
use crate::contract::ContractReport;
use crate::failure::Exit;
use crate::number::count;
use crate::remote::{Kinds, MemoryKind};
use crate::sides::Moved;
use crate::skipped;
use crate::table::{Table, number};
use crate::verify::{Layout, Mismatch, Outcome, Side, owners};

/// The engine of one process.
const IN_PROCESS: &str = "in-process";

/// One group of all requests.
#[derive(Clone, Debug, Default, Serialize)]
struct GroupReport {
    group: u32,
    kind: &'static str,
    blocks: u64,
    descriptors: u64,
    bytes: u64,
    padding_skipped: u64,
}

/// A wrong byte.
#[derive(Clone, Debug, Serialize)]
struct MismatchReport {
    side: &'static str,
    allocation: u32,
    offset: u64,
    expected: u8,
    found: u8,
    demanded: bool,
    owners: Vec<String>,
}

impl MismatchReport {
    fn new(mismatch: &Mismatch, destination: &Layout) -> Self {
        let (side, owners) = match mismatch.side {
            Side::Prefill => ("source", Vec::new()),
            Side::Decode => (
                "destination",
                owners(destination, mismatch.allocation, mismatch.offset),
            ),
        };
        Self {
            side,
            allocation: mismatch.allocation,
            offset: mismatch.offset,
            expected: mismatch.expected,
            found: mismatch.found,
            demanded: mismatch.row.is_some(),
            owners,
        }
    }
}

impl fmt::Display for MismatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match (self.side, self.demanded) {
            ("source", _) => "the source must not change",
            (_, true) => "demanded",
            (_, false) => "must not change",
        };
        write!(
            f,
            "{} allocation {} byte {}: expected {:#04x}, found {:#04x} ({why}",
            self.side, self.allocation, self.offset, self.expected, self.found
        )?;
        if !self.owners.is_empty() {
            write!(f, "; of {}", self.owners.join(" or "))?;
        }
        writeln!(f, ")")
    }
}

/// One transfer, for people or as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(skip)]
    exit: Exit,
    name: String,
    engine: &'static str,
    memory: String,
    verdict: &'static str,
    contract: ContractReport,
    groups: Vec<GroupReport>,
    blocks: u64,
    descriptors: u64,
    bytes: u64,
    padding_skipped: u64,
    unfilled: u64,
    refused: Vec<Refusal>,
    plan_ns: u64,
    /// Absent if nothing was to move.
    transfer_ns: Option<u64>,
    gigabytes_per_second: Option<f64>,
    ns_per_descriptor: Option<f64>,
    verified_bytes: u64,
    wrong_bytes: u64,
    mismatches: Vec<MismatchReport>,
}

impl Report {
    pub(super) fn new(
        name: &str,
        destination: &CacheLayout,
        raw: &Layout,
        planned: &Planned,
        plan_took: Duration,
        run: Option<(Moved, &Outcome)>,
    ) -> Self {
        let groups = groups(destination, planned);
        let total =
            |of: fn(&GroupReport) -> u64| groups.iter().map(of).fold(0_u64, u64::saturating_add);
        let moved = run.map(|(moved, _)| moved).unwrap_or_default();
        let outcome = run.map(|(_, outcome)| outcome.clone()).unwrap_or_default();
        let exit = if outcome.passed() {
            planned.exit()
        } else {
            Exit::Unverified
        };
        let seconds = moved.took.as_secs_f64();
        Self {
            exit,
            name: name.to_owned(),
            engine: IN_PROCESS,
            memory: MemoryKind::Host.to_string(),
            verdict: verdict(exit),
            contract: planned.plan.contract().into(),
            blocks: total(|group| group.blocks),
            descriptors: moved.descriptors,
            bytes: moved.bytes,
            padding_skipped: total(|group| group.padding_skipped),
            groups,
            unfilled: count(planned.plan.unfilled().len()),
            refused: planned.refused.clone(),
            plan_ns: nanoseconds(plan_took),
            transfer_ns: (moved.bytes > 0).then(|| nanoseconds(moved.took)),
            gigabytes_per_second: (moved.bytes > 0 && seconds > 0.0)
                .then(|| approximate(moved.bytes) / seconds / 1e9),
            ns_per_descriptor: (moved.descriptors > 0)
                .then(|| seconds * 1e9 / approximate(moved.descriptors)),
            verified_bytes: outcome.bytes,
            wrong_bytes: outcome.wrong,
            mismatches: outcome
                .first
                .iter()
                .map(|mismatch| MismatchReport::new(mismatch, raw))
                .collect(),
        }
    }

    /// The same transfer, done between two processes.
    pub(super) fn between(mut self, kinds: Kinds) -> Self {
        self.engine = kinds.engine.name();
        self.memory = kinds.memory.to_string();
        self
    }

    /// How a command with this transfer ends.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    fn table(&self) -> Table {
        let heading = [
            "group",
            "kind",
            "blocks",
            "descriptors",
            "bytes",
            "padding skipped",
        ];
        let mut table = Table::new(2, &heading);
        let cells = |name: String, kind: &str, numbers: [u64; 4]| {
            [name, kind.to_owned()]
                .into_iter()
                .chain(numbers.map(number))
        };
        for group in &self.groups {
            let numbers = [
                group.blocks,
                group.descriptors,
                group.bytes,
                group.padding_skipped,
            ];
            table.row(cells(group.group.to_string(), group.kind, numbers));
        }
        let totals = [
            self.blocks,
            self.descriptors,
            self.bytes,
            self.padding_skipped,
        ];
        table.row(cells("total".to_owned(), "", totals));
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        if self.engine != IN_PROCESS {
            let (engine, memory) = (self.engine, &self.memory);
            writeln!(f, "between two processes, engine {engine}, memory {memory}")?;
        }
        write!(f, "{}", self.table())?;
        if self.unfilled > 0 {
            let unfilled = number(self.unfilled);
            writeln!(f, "{unfilled} listed blocks have nothing to be filled with")?;
        }
        if self.exit == Exit::Invalid {
            return writeln!(f, "every request was refused, nothing was moved");
        }
        write!(f, "planned in {:.3} ms, ", milliseconds(self.plan_ns))?;
        match (
            self.transfer_ns,
            self.gigabytes_per_second,
            self.ns_per_descriptor,
        ) {
            (Some(took), Some(rate), Some(each)) => {
                let (took, each) = (milliseconds(took), each / 1e3);
                write!(
                    f,
                    "moved in {took:.3} ms ({rate:.2} GB/s, {each:.2} us each)"
                )?;
            }
            _ => write!(f, "nothing to move")?,
        }
        let verified = number(self.verified_bytes);
        let verdict = self.verdict;
        writeln!(f, ", {verified} bytes of both sides verified: {verdict}")?;
        if self.wrong_bytes > 0 {
            writeln!(f, "{} wrong bytes", number(self.wrong_bytes))?;
        }
        self.mismatches
            .iter()
            .try_for_each(|mismatch| mismatch.fmt(f))
    }
}

/// All transfers of one command.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Reports {
    verdict: &'static str,
    transfers: Vec<Report>,
}

impl Default for Reports {
    fn default() -> Self {
        Self {
            verdict: verdict(Exit::Ok),
            transfers: Vec::new(),
        }
    }
}

impl Reports {
    pub(super) fn push(&mut self, report: Report) {
        self.transfers.push(report);
        self.verdict = verdict(self.exit());
    }

    /// A failed verification first, then a refused batch.
    pub(super) fn exit(&self) -> Exit {
        let ends = |exit| self.transfers.iter().any(|report| report.exit() == exit);
        [Exit::Unverified, Exit::Invalid]
            .into_iter()
            .find(|&exit| ends(exit))
            .unwrap_or(Exit::Ok)
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = &Refusal> {
        self.transfers.iter().flat_map(|report| &report.refused)
    }
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, report) in self.transfers.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            report.fmt(f)?;
        }
        Ok(())
    }
}

const fn verdict(exit: Exit) -> &'static str {
    match exit {
        Exit::Ok => "ok",
        Exit::Invalid => "refused",
        Exit::Unverified | Exit::Usage | Exit::Incompatible | Exit::Internal => "failed",
    }
}

fn groups(destination: &CacheLayout, planned: &Planned) -> Vec<GroupReport> {
    let mut groups: BTreeMap<u32, GroupReport> = BTreeMap::new();
    for section in planned.plan.sections() {
        let row = groups.entry(section.group().get()).or_default();
        row.group = section.group().get();
        row.kind = section.kind().name();
        let blocks = count(section.pairs().len());
        row.blocks = row.blocks.saturating_add(blocks);
        row.descriptors = row.descriptors.saturating_add(section.copies());
        row.bytes = row.bytes.saturating_add(section.bytes());
        let spanned = destination
            .group(section.group())
            .map_or(0, skipped::per_block)
            .saturating_mul(blocks);
        let bridged = section.bytes().saturating_sub(section.payload_bytes());
        row.padding_skipped = row
            .padding_skipped
            .saturating_add(spanned.saturating_sub(bridged));
    }
    groups.into_values().collect()
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    approximate(nanoseconds) / 1e6
}

/// A number for a rate, where the last digits don't matter.
fn approximate(value: u64) -> f64 {
    // Two halves, each of which a double holds exactly.
    let high = u32::try_from(value >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}
