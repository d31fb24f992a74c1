//! Plain counters and histograms; an exporter is the embedder's business.

use crate::time::Span;

/// Spans by powers of two: bucket `i` counts those below 2^i microseconds that fit
/// no lower one, the last one all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; Self::BUCKETS],
    sum: u64,
}

impl Histogram {
    /// Number of buckets; the last but one ends at 2^31 microseconds, 36 minutes.
    pub const BUCKETS: usize = 33;

    pub(crate) fn record(&mut self, span: Span) {
        let micros = span.as_micros();
        let bucket =
            usize::try_from(u64::BITS.saturating_sub(micros.leading_zeros())).unwrap_or(usize::MAX);
        let last = Self::BUCKETS.saturating_sub(1);
        if let Some(count) = self.buckets.get_mut(bucket.min(last)) {
            *count = count.saturating_add(1);
        }
        self.sum = self.sum.saturating_add(micros);
    }

    /// Each bucket's upper end, which it does not contain, in microseconds (none
    /// for the last), and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let ends = (0_u32..).map(|exponent| (exponent < 32).then(|| 1_u64 << exponent));
        ends.zip(self.buckets)
    }

    /// Spans recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their sum in microseconds.
    #[must_use]
    pub const fn sum_micros(&self) -> u64 {
        self.sum
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [0; Self::BUCKETS],
            sum: 0,
        }
    }
}

/// What a prefill rank has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefillMetrics {
    /// Requests that its engine named.
    pub started: u64,
    /// Requests that ended with all consumers served.
    pub delivered: u64,
    /// Requests that ended otherwise.
    pub failed: u64,
    /// Pulls that came in.
    pub pulls: u64,
    /// Pulls that were refused.
    pub refused: u64,
    /// Messages that the network or the peer repeated.
    pub repeated: u64,
    /// Cancels that came in.
    pub cancels: u64,
    /// Completions of transfers that nobody knows.
    pub unknown_completions: u64,
    /// Transfers that the engine was told to drain.
    pub drains: u64,
    /// Events whose time lay before an earlier one's.
    pub clock_regressions: u64,
    /// From the end of computing to the last byte.
    pub served_after: Histogram,
    /// From a pull to the start of its transfer.
    pub waited: Histogram,
    /// From a transfer's start to its end.
    pub transferred: Histogram,
}

/// What a decode rank has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeMetrics {
    /// Loads that its engine asked for.
    pub started: u64,
    /// Loads that ended with the cache in place.
    pub loaded: u64,
    /// Loads that ended otherwise.
    pub failed: u64,
    /// Releases that its engine asked for.
    pub releases: u64,
    /// Answers to pulls that nobody knows.
    pub unknown_answers: u64,
    /// Cancels sent, repetitions included.
    pub cancels: u64,
    /// Peers fenced off, repetitions included.
    pub fences: u64,
    /// Loads that followed a peer to its next incarnation.
    pub followed: u64,
    /// Events whose time lay before an earlier one's.
    pub clock_regressions: u64,
    /// From a load's start to its end.
    pub took: Histogram,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::Histogram;
    use crate::time::Span;

    /// Index and upper end of the bucket that one span falls in.
    fn bucket(micros: u64) -> (usize, Option<u64>) {
        let mut histogram = Histogram::default();
        histogram.record(Span::from_micros(micros));
        assert_eq!((histogram.count(), histogram.sum_micros()), (1, micros));
        let filled = histogram.buckets().enumerate();
        let mut filled = filled.filter(|(_, (_, count))| *count > 0);
        let (index, (end, count)) = filled.next().unwrap();
        assert_eq!((count, filled.next()), (1, None));
        (index, end)
    }

    #[test]
    fn each_span_falls_below_its_buckets_end_and_not_below_the_one_before() {
        assert_eq!(bucket(0), (0, Some(1)));
        for exponent in 0..31 {
            let (from, index) = (1_u64 << exponent, usize::try_from(exponent).unwrap());
            assert_eq!(bucket(from), (index + 1, Some(2 * from)));
            assert_eq!(bucket(2 * from - 1), (index + 1, Some(2 * from)));
        }
        for micros in [1 << 31, 1 << 32, u64::MAX] {
            assert_eq!(bucket(micros), (32, None));
        }
    }

    #[test]
    fn buckets_end_at_powers_of_two_and_the_last_nowhere() {
        let mut histogram = Histogram::default();
        let ends: Vec<_> = histogram.buckets().map(|(end, _)| end).collect();
        assert_eq!(ends.len(), Histogram::BUCKETS);
        let expected = (0..32).map(|exponent| Some(1 << exponent)).chain([None]);
        assert!(expected.eq(ends));
        // A sum that does not fit stays at its largest.
        histogram.record(Span::from_micros(u64::MAX));
        histogram.record(Span::from_micros(2));
        assert_eq!((histogram.count(), histogram.sum_micros()), (2, u64::MAX));
    }
}
