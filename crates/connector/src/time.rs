//! Time as the embedder tells it.

use core::fmt;

/// Microseconds since a moment that the embedder chose, 0..2^64. Only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// Microseconds between two times, 0..2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The moment that times count from.
    pub const ZERO: Self = Self(0);

    /// A time in microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since [`Time::ZERO`].
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// A later time; the last one there is when it would lie beyond.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A number of microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A number of milliseconds; the longest span when it would be longer.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A number of seconds; the longest span when it would be longer.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Its microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Twice as long, at most `longest`.
    #[must_use]
    pub fn doubled(self, longest: Self) -> Self {
        Self(self.0.saturating_mul(2)).min(longest)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            micros if micros % 1_000_000 == 0 => write!(f, "{} s", micros / 1_000_000),
            micros if micros % 1_000 == 0 => write!(f, "{} ms", micros / 1_000),
            micros => write!(f, "{micros} us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, Time};
    use alloc::string::ToString;

    #[test]
    fn times_and_spans_saturate() {
        let last = Time::from_micros(u64::MAX);
        assert_eq!(last.after(Span::from_secs(1)), last);
        assert_eq!(Time::ZERO.since(last), Span::ZERO);
        assert_eq!(last.since(Time::from_micros(5)).as_micros(), u64::MAX - 5);
        assert_eq!(Span::from_secs(u64::MAX).as_micros(), u64::MAX);
        assert_eq!(
            Span::from_secs(3).doubled(Span::from_secs(5)),
            Span::from_secs(5)
        );
    }

    #[test]
    fn a_span_is_shown_in_its_largest_whole_unit() {
        assert_eq!(Span::from_secs(480).to_string(), "480 s");
        assert_eq!(Span::from_millis(1_500).to_string(), "1500 ms");
        assert_eq!(Span::from_micros(1_001).to_string(), "1001 us");
    }
}
