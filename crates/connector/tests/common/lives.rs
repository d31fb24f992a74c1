//! Many requests at one time on one machine, whole lives of them.

use std::sync::Arc;

use mooncake_pd_connector::{
    Answer, AttemptId, BlockTables, Consumer, Decode, DecodeCommand, DecodeEvent, DecodeLimits,
    Dialect, Generation, Load, Prefill, PrefillCommand, PrefillEvent, PrefillLimits, Pull,
    PullNumber, Quiescence, RequestId, Resolved, Source, Span, Time, TokenCount, TransferId,
    Verdict, Want,
};

use super::{hand_off, layout, peer, request, tables, transfer};

/// Blocks of each request in each of two groups.
pub(crate) const BLOCKS: u32 = 8;
/// Prompt elements of each request.
const COMPUTED: u32 = 16 * BLOCKS;

/// Names of 36 characters, as UUIDs are.
pub(crate) fn names(index: u64) -> (RequestId, TransferId) {
    let name = format!("{index:036x}");
    (request(&name), transfer(&name))
}

/// Tables of `count` requests without a common block.
pub(crate) fn distinct(count: u32) -> Vec<Arc<BlockTables>> {
    let list = |from: u32| (from..from + BLOCKS).collect::<Vec<u32>>();
    let both = |index: u32| {
        let from = 1 + index * 2 * BLOCKS;
        tables(&[&list(from), &list(from + BLOCKS)])
    };
    (0..count).map(both).collect()
}

/// Blocks of a pool for that many requests.
const fn pool(requests: u32) -> u32 {
    1 + requests * 2 * BLOCKS
}

/// Numbers from 0, in no order.
struct Shuffle(u64);

impl Shuffle {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A prefill rank, pulled from by four decode ranks.
pub(crate) struct PrefillLives {
    pub(crate) machine: Prefill,
    now: Time,
    pulls: u64,
    attempts: Vec<AttemptId>,
    shuffle: Shuffle,
}

impl PrefillLives {
    /// Events of one life.
    pub(crate) const EVENTS: u32 = 4;

    pub(crate) fn new(requests: u32) -> Self {
        let limits = PrefillLimits::default();
        Self {
            machine: Prefill::new(peer("p", 1), layout(pool(requests)), limits, 7),
            now: Time::ZERO,
            pulls: 0,
            attempts: Vec::new(),
            shuffle: Shuffle(1),
        }
    }

    fn take(&mut self, event: PrefillEvent) {
        self.now = self.now.after(Span::from_micros(100));
        self.machine.handle(self.now, event).unwrap();
        while let Some(command) = self.machine.poll() {
            if let PrefillCommand::Transfer { attempt, .. } = command {
                self.attempts.push(attempt);
            }
        }
    }

    /// Started, and a pull waits for it.
    pub(crate) fn ask(
        &mut self,
        (request, transfer): (RequestId, TransferId),
        tables: &Arc<BlockTables>,
    ) {
        self.take(PrefillEvent::Started {
            request,
            transfer: transfer.clone(),
        });
        let from = peer(["d0", "d1", "d2", "d3"][self.shuffle.below(4)], 1);
        let number = PullNumber::new(self.pulls);
        self.pulls += 1;
        self.take(PrefillEvent::Pulled(Pull {
            from,
            to: Generation::new(1),
            number,
            floor: PullNumber::new(self.pulls.saturating_sub(60_000)),
            transfer,
            consumer: Consumer::ALONE,
            want: Want::Cache {
                tables: Arc::clone(tables),
                expects: Some(TokenCount::new(COMPUTED)),
            },
        }));
    }

    /// Computed: it is being transferred.
    pub(crate) fn compute(
        &mut self,
        (request, transfer): (RequestId, TransferId),
        tables: &Arc<BlockTables>,
    ) {
        self.take(PrefillEvent::Finished {
            request,
            transfer,
            hand_off: hand_off(COMPUTED),
            tables: Arc::clone(tables),
        });
    }

    /// One of those under way, whichever, is over.
    pub(crate) fn end(&mut self) {
        let at = self.shuffle.below(self.attempts.len());
        let attempt = self.attempts.swap_remove(at);
        self.take(PrefillEvent::Settled {
            attempt,
            result: Ok(()),
            proof: Quiescence::witnessed(),
        });
    }
}

/// A decode rank that loads from one prefill rank.
pub(crate) struct DecodeLives {
    pub(crate) machine: Decode,
    now: Time,
    source: Source,
    /// Pulls that are not answered, and the tables of their loads.
    open: Vec<(PullNumber, usize)>,
    free: Vec<usize>,
    /// Tables of the latest load.
    loading: usize,
    shuffle: Shuffle,
}

impl DecodeLives {
    /// Events of one life.
    pub(crate) const EVENTS: u32 = 2;

    pub(crate) fn new(requests: u32) -> Self {
        let limits = DecodeLimits::default();
        let layout = layout(pool(requests));
        let source = Source {
            engine: peer("p", 1).engine,
            bootstrap: "host:8998".into(),
        };
        let mut this = Self {
            machine: Decode::new(peer("d", 1), Consumer::ALONE, layout, limits, 7),
            now: Time::ZERO,
            source: source.clone(),
            open: Vec::new(),
            free: (0..usize::try_from(requests).unwrap()).rev().collect(),
            loading: 0,
            shuffle: Shuffle(1),
        };
        // The first one looks prefill up.
        this.begin(names(u64::MAX), &distinct(requests.min(1)));
        let result = Ok(Resolved::new(Generation::new(1), 1, Dialect::Own).unwrap());
        this.take(DecodeEvent::Resolved { source, result });
        this.end();
        this
    }

    fn take(&mut self, event: DecodeEvent) {
        self.now = self.now.after(Span::from_micros(100));
        self.machine.handle(self.now, event).unwrap();
        while let Some(command) = self.machine.poll() {
            if let DecodeCommand::Pull { pull, .. } = command {
                self.open.push((pull.number, self.loading));
            }
        }
    }

    /// A load into the tables that are free.
    pub(crate) fn begin(
        &mut self,
        (request, transfer): (RequestId, TransferId),
        tables: &[Arc<BlockTables>],
    ) {
        let slot = self.free.pop().unwrap();
        self.loading = slot;
        let load = Load {
            request,
            transfer,
            source: self.source.clone(),
            expects: TokenCount::new(COMPUTED),
            tables: Arc::clone(&tables[slot]),
        };
        self.take(DecodeEvent::Load(load));
    }

    /// One of those under way, whichever, is answered.
    pub(crate) fn end(&mut self) {
        let at = self.shuffle.below(self.open.len());
        let (number, slot) = self.open.swap_remove(at);
        self.free.push(slot);
        let answer = Answer {
            from: peer("p", 1),
            to: peer("d", 1),
            number,
            verdict: Verdict::Delivered {
                hand_off: Some(hand_off(COMPUTED)),
            },
            quiescent: true,
        };
        self.take(DecodeEvent::Answered {
            source: self.source.clone(),
            sender: 0,
            answer,
        });
    }
}
