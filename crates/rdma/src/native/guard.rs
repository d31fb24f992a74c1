//! Ranges registered with an engine.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mooncake_pd_layout::ByteSpan;

use crate::address::Address;
use crate::batch::Descriptor;
use crate::capabilities::RegistrationLimits;
use crate::engine::Memory;
use crate::error::{EngineCode, RegisterError, Side, SubmitError, UnregisterError, Violation};

/// An engine's registration calls.
pub(crate) trait Port: Debug + Send + Sync + 'static {
    /// Memory it registers; clones share it.
    type Memory: Memory + Clone + Debug + Send + Sync + 'static;

    /// The engine's name.
    const NAME: &'static str;

    /// Code of an overlap.
    const OVERLAP: EngineCode;

    /// Whether it takes memory of a device.
    fn reaches_devices(&self) -> bool;

    /// Registers the bytes of some memory, which the guard keeps until they are
    /// unregistered.
    fn register(&self, memory: &Self::Memory, span: ByteSpan) -> Result<(), EngineCode>;

    /// Unregisters the range that starts there.
    fn unregister(&self, start: Address) -> Result<(), EngineCode>;
}

/// One registered range. Registrations and transfers share it; it is
/// unregistered when the last of them lets go.
#[derive(Debug)]
pub(crate) struct Guard<P: Port> {
    start: Address,
    end: u64,
    memory: P::Memory,
    table: Arc<Table>,
    port: Arc<P>,
    done: bool,
}

impl<P: Port> Guard<P> {
    /// Unregisters the range if nobody else shares it; otherwise the last one
    /// to let go does.
    pub(crate) fn end(self: Arc<Self>) -> Result<(), UnregisterError> {
        let address = self.start;
        match Arc::into_inner(self) {
            Some(mut guard) => guard
                .unregister()
                .map_err(|code| UnregisterError::Refused { address, code }),
            None => Err(UnregisterError::InFlight { address }),
        }
    }

    fn unregister(&mut self) -> Result<(), EngineCode> {
        if self.done {
            return Ok(());
        }
        self.done = true;
        let ended = self.port.unregister(self.start);
        match ended {
            Ok(()) => self.table.remove(self.start),
            // The engine may still hand it to its card: the bytes stay, and so
            // does the entry, so that nothing is registered over them.
            Err(_) => std::mem::forget(self.memory.clone()),
        }
        ended
    }
}

impl<P: Port> Drop for Guard<P> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.unregister();
    }
}

/// Addresses `start..end` of every range, by start.
#[derive(Debug, Default)]
struct Table {
    taken: Mutex<BTreeMap<u64, u64>>,
}

impl Table {
    fn remove(&self, start: Address) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.remove(&start.get());
    }
}

/// Every range that one engine has registered: disjoint.
#[derive(Debug)]
pub(crate) struct Registry<P: Port> {
    port: Arc<P>,
    table: Arc<Table>,
    limits: RegistrationLimits,
    guards: Mutex<BTreeMap<u64, Weak<Guard<P>>>>,
}

impl<P: Port> Registry<P> {
    pub(crate) fn new(port: Arc<P>, limits: RegistrationLimits) -> Self {
        Self {
            port,
            table: Arc::default(),
            limits,
            guards: Mutex::default(),
        }
    }

    /// Registers the bytes `span` of some memory.
    pub(crate) fn register(
        &self,
        memory: &P::Memory,
        span: ByteSpan,
    ) -> Result<Arc<Guard<P>>, RegisterError> {
        let outside = RegisterError::OutsideMemory {
            start: span.start().get(),
            end: span.end(),
            len: memory.len().get(),
        };
        if span.end() > memory.len().get() {
            return Err(outside);
        }
        let start = memory.base().offset(span.start()).map_err(|_| outside)?;
        let end = start.end(span.len()).map_err(|_| outside)?.get();
        let location = memory.location();
        if location.is_device() && !self.port.reaches_devices() {
            return Err(RegisterError::Unreachable {
                location,
                engine: P::NAME,
            });
        }
        self.claim(start.get(), end)?;
        if let Err(code) = self.port.register(memory, span) {
            self.table.remove(start);
            let start = start.get();
            return Err(RegisterError::Refused { start, end, code });
        }
        let guard = Arc::new(Guard {
            start,
            end,
            memory: memory.clone(),
            table: Arc::clone(&self.table),
            port: Arc::clone(&self.port),
            done: false,
        });
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        guards.retain(|_, guard| guard.strong_count() > 0);
        guards.insert(start.get(), Arc::downgrade(&guard));
        Ok(guard)
    }

    /// Takes the addresses before the engine is asked, which can last, so that
    /// nobody else takes them meanwhile.
    fn claim(&self, start: u64, end: u64) -> Result<(), RegisterError> {
        let len = end.saturating_sub(start);
        if let Some(limit) = self.limits.piece().filter(|limit| len > limit.get()) {
            let limit = limit.get();
            return Err(RegisterError::TooLong { len, limit });
        }
        let mut taken = (self.table.taken)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let regions = u64::try_from(taken.len()).unwrap_or(u64::MAX);
        let limit = self.limits.max_regions();
        if regions >= u64::from(limit) {
            return Err(RegisterError::TooMany { regions, limit });
        }
        // Ranges are disjoint, so of those that start before our end only the
        // last can reach over our start.
        if let Some((&other_start, &other_end)) = taken.range(..end).next_back()
            && other_end > start
        {
            return Err(RegisterError::Overlap {
                start,
                end,
                other_start,
                other_end,
                code: P::OVERLAP,
            });
        }
        taken.insert(start, end);
        Ok(())
    }

    /// The ranges that descriptors start and end in on this side, each held
    /// until a transfer over them has ended.
    pub(crate) fn hold(
        &self,
        descriptors: &[Descriptor],
    ) -> Result<Vec<Arc<Guard<P>>>, SubmitError> {
        let guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held: Vec<Arc<Guard<P>>> = Vec::new();
        for (index, descriptor) in descriptors.iter().enumerate() {
            let (address, len) = (descriptor.local.get(), descriptor.len.get());
            let covers = |guard: &Arc<Guard<P>>| (guard.start.get()..guard.end).contains(&address);
            let side = Side::Local;
            let refused = |violation| SubmitError::Descriptor { index, violation };
            let last = held.last().filter(|guard| covers(guard));
            let end = if let Some(guard) = last {
                guard.end
            } else {
                let guard = guards
                    .range(..=address)
                    .next_back()
                    .and_then(|(_, guard)| guard.upgrade())
                    .filter(covers)
                    .ok_or(refused(Violation::Unregistered { side, address }))?;
                let end = guard.end;
                held.push(guard);
                end
            };
            if address.checked_add(len).is_none_or(|last| last > end) {
                return Err(refused(Violation::CrossesRegion {
                    side,
                    address,
                    len,
                    region_end: end,
                }));
            }
        }
        drop(guards);
        held.sort_unstable_by_key(|guard| guard.start);
        held.dedup_by_key(|guard| guard.start);
        Ok(held)
    }

    /// The engine's calls.
    pub(crate) fn port(&self) -> &Arc<P> {
        &self.port
    }
}
