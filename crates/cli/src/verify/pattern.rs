//! Bytes that tell where they came from.

use super::layout::Side;
use crate::number::count;

/// The filling of one allocation: a function of side, allocation and word.
///
/// Source bytes have a clear high bit and destination bytes a set one, so
/// that a byte that was moved or was not can't look right by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    seed: u64,
    side: Side,
}

impl Pattern {
    /// The filling of that allocation.
    #[must_use]
    pub fn new(side: Side, allocation: u32) -> Self {
        let tag = match side {
            Side::Prefill => 1,
            Side::Decode => 2,
        };
        Self {
            seed: mix(u64::from(allocation).wrapping_mul(4).wrapping_add(tag)),
            side,
        }
    }

    /// Eight bytes, little-endian.
    fn word(self, at: u64) -> u64 {
        let word = mix(self.seed.wrapping_add(at));
        match self.side {
            Side::Prefill => word & 0x7f7f_7f7f_7f7f_7f7f,
            Side::Decode => word | 0x8080_8080_8080_8080,
        }
    }

    /// The byte at that offset.
    #[must_use]
    pub fn byte(self, offset: u64) -> u8 {
        let mut byte = [0];
        self.write(offset, &mut byte);
        let [byte] = byte;
        byte
    }

    /// Writes the filling of `offset..offset + out.len()`.
    pub fn write(self, offset: u64, out: &mut [u8]) {
        let skip = usize::try_from(offset & 7).unwrap_or(0);
        let mut word = offset >> 3;
        let head_len = if skip == 0 {
            0
        } else {
            8_usize.saturating_sub(skip).min(out.len())
        };
        let (head, body) = out.split_at_mut(head_len);
        if !head.is_empty() {
            let bytes = self.word(word).to_le_bytes();
            for (to, from) in head.iter_mut().zip(bytes.iter().skip(skip)) {
                *to = *from;
            }
            word = word.wrapping_add(1);
        }
        let (words, tail) = body.as_chunks_mut::<8>();
        for (at, chunk) in (word..).zip(words.iter_mut()) {
            *chunk = self.word(at).to_le_bytes();
        }
        word = word.wrapping_add(count(words.len()));
        for (to, from) in tail.iter_mut().zip(self.word(word).to_le_bytes()) {
            *to = from;
        }
    }
}

/// A bijection of 64-bit words in which every input bit moves every output bit.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ (word >> 32)
}
