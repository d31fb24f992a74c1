//! What must hold at the end.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::decode::DecodeEngine;
use super::prefill::PrefillEngine;
use super::world::{Run, Violation, World};

impl World<'_> {
    pub(super) fn is_quiet(&self) -> bool {
        let prefill = |engine: &PrefillEngine| {
            engine.jobs.is_empty() && engine.open.is_empty() && engine.results.is_empty()
        };
        let decode = |engine: &DecodeEngine| {
            engine.jobs.is_empty() && engine.open.is_empty() && engine.results.is_empty()
        };
        self.prefills.iter().all(prefill) && self.decodes.iter().all(decode)
    }

    pub(super) fn unsettled(&self) -> String {
        let prefill = self.prefills.iter().flat_map(|engine| engine.jobs.iter());
        let decode = self.decodes.iter().flat_map(|engine| engine.jobs.iter());
        format!(
            "not settled: prefill {:?}, decode {:?}",
            prefill.collect::<Vec<_>>(),
            decode.collect::<Vec<_>>()
        )
    }

    /// Without a fault, nothing may fail.
    pub(super) fn check_calm(&self) -> Run {
        if self.calm && self.report.failed > 0 {
            return self.violation(format!(
                "{} loads failed without a fault",
                self.report.failed
            ));
        }
        Ok(())
    }

    /// After a long silence nothing is left.
    pub(super) fn check_empty(&mut self) -> Run {
        for engine in &mut self.prefills {
            if !engine.up {
                continue;
            }
            let blocks = engine.pool.in_use() + engine.host.live();
            for rank in &mut engine.ranks {
                let (records, leases) = (rank.machine.records(), rank.machine.leases());
                if (records, leases, blocks) != (0, 0, 0) {
                    let machine = &rank.machine;
                    return Err(Violation {
                        at: self.now,
                        what: format!(
                            "prefill keeps {records} records, {leases} leases, {blocks} blocks: {machine:?}"
                        ),
                    });
                }
            }
        }
        for engine in &mut self.decodes {
            let blocks = engine.pool.in_use() + engine.host.live();
            for rank in &mut engine.ranks {
                let (records, leases) = (rank.machine.records(), rank.machine.leases());
                if (records, leases, blocks) != (0, 0, 0) {
                    let machine = &rank.machine;
                    return Err(Violation {
                        at: self.now,
                        what: format!(
                            "decode keeps {records} records, {leases} leases, {blocks} blocks: {machine:?}"
                        ),
                    });
                }
            }
        }
        Ok(())
    }
}
