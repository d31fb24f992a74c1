//! Which pulls of a peer were seen.

use alloc::vec;
use alloc::vec::Vec;

use indexmap::IndexMap;

use crate::hash::Hash;
use crate::id::TransferId;
use crate::peer::{Generation, PullNumber};

/// Numbers that are told apart below the largest one seen. A pull that comes after
/// that many later ones is taken for over.
const REACH: u64 = 1 << 16;
/// Words of 64 bits that hold one bit for each.
const WORDS: usize = 1 << 10;

/// What a pull is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Never seen: it is recorded as seen now.
    New,
    /// Seen, and its transfer is under way or waits.
    UnderWay(TransferId),
    /// Seen or cancelled, and over.
    Over,
    /// Of an incarnation that was followed by another.
    Superseded,
    /// Its sender would be one too many, and can't be remembered.
    Full,
}

/// Pulls of one decode rank. Whatever the network repeats, reorders or delays, a
/// number is served at most once: those below `floor` are over, by the peer's own
/// word or because [`REACH`] is at its end, and of the others one bit each says
/// whether they were seen.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) generation: Generation,
    floor: u64,
    /// One bit for each number from `floor` on, at the number modulo [`REACH`].
    seen: Vec<u64>,
    live: IndexMap<PullNumber, TransferId, Hash>,
}

impl Window {
    pub(crate) fn new(generation: Generation, hash: Hash) -> Self {
        Self {
            generation,
            floor: 0,
            seen: Vec::new(),
            live: IndexMap::with_hasher(hash),
        }
    }

    /// Takes a number in. `floor` is the peer's oldest pull that is not over.
    pub(crate) fn admit(&mut self, number: PullNumber, floor: PullNumber) -> Admission {
        if let Some(transfer) = self.live.get(&number) {
            return Admission::UnderWay(transfer.clone());
        }
        let number = number.get();
        // A floor above the message's own number can't be meant.
        self.raise(floor.get().min(number));
        if number < self.floor || (self.reaches(number) && self.bit(number, None)) {
            return Admission::Over;
        }
        if self.seen.is_empty() {
            self.seen = vec![0; WORDS];
        }
        if !self.reaches(number) {
            self.raise(number.saturating_sub(REACH.saturating_sub(1)));
        }
        self.bit(number, Some(true));
        Admission::New
    }

    pub(crate) fn begin(&mut self, number: PullNumber, transfer: TransferId) {
        self.live.insert(number, transfer);
    }

    pub(crate) fn finish(&mut self, number: PullNumber) {
        self.live.swap_remove(&number);
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (PullNumber, &TransferId)> {
        self.live.iter().map(|(number, id)| (*number, id))
    }

    /// Pulls that are not over.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether a number that is not below the floor has a bit.
    const fn reaches(&self, number: u64) -> bool {
        number.saturating_sub(self.floor) < REACH
    }

    /// Gives up the bits below a number.
    fn raise(&mut self, floor: u64) {
        if floor <= self.floor {
            return;
        }
        if floor.saturating_sub(self.floor) >= REACH {
            self.seen.fill(0);
        } else if !self.seen.is_empty() {
            let mut number = self.floor;
            while number < floor {
                let whole = number.is_multiple_of(64) && floor.saturating_sub(number) >= 64;
                if whole && let Some(word) = self.seen.get_mut(word(number)) {
                    *word = 0;
                } else {
                    self.bit(number, Some(false));
                }
                number = number.saturating_add(if whole { 64 } else { 1 });
            }
        }
        self.floor = floor;
    }

    /// What a number's bit is, and sets it.
    fn bit(&mut self, number: u64, set: Option<bool>) -> bool {
        let Some(word) = self.seen.get_mut(word(number)) else {
            return false;
        };
        let mask = 1_u64 << (number & 63);
        let was = *word & mask != 0;
        match set {
            Some(true) => *word |= mask,
            Some(false) => *word &= !mask,
            None => {}
        }
        was
    }
}

/// Where a number's bit is.
fn word(number: u64) -> usize {
    let word = (number >> 6) & 0x3ff;
    usize::try_from(word).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Admission, REACH, Window};
    use crate::TransferId;
    use crate::hash::seeded;
    use crate::peer::{Generation, PullNumber};

    fn window() -> Window {
        Window::new(Generation::new(1), seeded(1))
    }

    fn admit(window: &mut Window, number: u64, floor: u64) -> Admission {
        window.admit(PullNumber::new(number), PullNumber::new(floor))
    }

    #[test]
    fn a_number_is_new_once_in_whatever_order_numbers_come() {
        let mut window = window();
        for number in [5, 3, 9, 4, REACH + 3, 2 * REACH, u64::MAX] {
            assert_eq!(admit(&mut window, number, 0), Admission::New, "{number}");
            assert_eq!(admit(&mut window, number, 0), Admission::Over, "{number}");
        }
        // Out of reach, though never seen.
        assert_eq!(admit(&mut window, 7, 0), Admission::Over);
    }

    #[test]
    fn what_the_peer_calls_over_is_over_also_when_it_never_came() {
        let mut window = window();
        assert_eq!(admit(&mut window, 100, 90), Admission::New);
        assert_eq!(admit(&mut window, 89, 0), Admission::Over);
        assert_eq!(admit(&mut window, 90, 0), Admission::New);
        // A floor above the number itself is not believed.
        assert_eq!(admit(&mut window, 101, u64::MAX), Admission::New);
        assert_eq!(admit(&mut window, 102, 0), Admission::New);
    }

    #[test]
    fn a_floor_that_rises_by_any_step_leaves_the_bits_above_it() {
        for step in [1, 2, 63, 64, 65, 129, REACH - 1] {
            let mut window = window();
            let above: Vec<u64> = [3, 64, 127, 128]
                .iter()
                .map(|more| step + 3 + more)
                .collect();
            for number in [3, step + 2].into_iter().chain(above.clone()) {
                admit(&mut window, number, 0);
            }
            let top = step + 3 + 300;
            assert_eq!(admit(&mut window, top, step + 3), Admission::New);
            for number in step + 3..top {
                let expected = if above.contains(&number) {
                    Admission::Over
                } else {
                    Admission::New
                };
                assert_eq!(
                    admit(&mut window, number, 0),
                    expected,
                    "step {step}, {number}"
                );
            }
        }
    }

    #[test]
    fn pulls_under_way_are_known_below_the_floor() {
        let mut window = window();
        let transfer = TransferId::new("t").unwrap();
        for number in [1, 2] {
            assert_eq!(admit(&mut window, number, 0), Admission::New);
            window.begin(PullNumber::new(number), transfer.clone());
        }
        assert_eq!(admit(&mut window, 3, 3), Admission::New);
        assert_eq!(window.len(), 2);
        assert_eq!(admit(&mut window, 1, 0), Admission::UnderWay(transfer));
        window.finish(PullNumber::new(1));
        assert_eq!(admit(&mut window, 1, 0), Admission::Over);
    }
}
