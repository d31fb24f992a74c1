//! Where a schedule's decisions come from.

/// Decisions from a seed, or from bytes; after the last byte every decision is the
/// first one, which is always the harmless one.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: Option<&'a [u8]>,
    state: u64,
}

impl<'a> Choices<'a> {
    /// Endless decisions; equal seeds give equal ones.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self {
            bytes: None,
            state: seed,
        }
    }

    /// Decisions that a fuzzer makes.
    #[must_use]
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Some(bytes),
            state: 0,
        }
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u32) -> u32 {
        let Some(bytes) = &mut self.bytes else {
            // splitmix64
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = super::mix(self.state);
            let wide = u64::from(u32::try_from(mixed >> 32).unwrap_or(0)) * u64::from(end);
            return u32::try_from(wide >> 32).unwrap_or(0);
        };
        let mut value = 0;
        let mut range = end.saturating_sub(1);
        while range > 0 {
            let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
            *bytes = rest;
            value = (value << 8) | u32::from(*first);
            range >>= 8;
        }
        value % end.max(1)
    }

    /// Whether something happens that happens in `percent` of all cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) >= 100_u32.saturating_sub(percent)
    }

    /// A number of `from..to`.
    pub fn between(&mut self, from: u32, to: u32) -> u32 {
        from.saturating_add(self.below(to.saturating_sub(from).max(1)))
    }
}
