//! Sets of ids of one pool.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

const WORDS: usize = 64;
const IDS_PER_PAGE: u32 = 4096;

/// Ids as bits, in pages that exist where ids do: memory follows the ids that
/// are in use (512 bytes for each page of 4,096 that holds one), not the pool's
/// capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    pages: BTreeMap<u32, Box<[u64; WORDS]>>,
}

/// Page, word and bit of an id.
fn place(id: u32) -> Option<(u32, usize, u64)> {
    let page = id.checked_div(IDS_PER_PAGE)?;
    let within = id.checked_rem(IDS_PER_PAGE)?;
    let word = usize::try_from(within.checked_div(u64::BITS)?).ok()?;
    let bit = 1_u64.checked_shl(within.checked_rem(u64::BITS)?)?;
    Some((page, word, bit))
}

impl IdSet {
    /// Whether the id was new.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let Some((page, word, bit)) = place(id) else {
            return false;
        };
        let words = self
            .pages
            .entry(page)
            .or_insert_with(|| Box::new([0; WORDS]));
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(crate) fn remove(&mut self, id: u32) {
        if let Some((page, word, bit)) = place(id)
            && let Some(word) = self
                .pages
                .get_mut(&page)
                .and_then(|words| words.get_mut(word))
        {
            *word &= !bit;
        }
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        place(id).is_some_and(|(page, word, bit)| {
            self.pages
                .get(&page)
                .and_then(|words| words.get(word))
                .is_some_and(|word| word & bit != 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::IdSet;

    #[test]
    fn ids_of_one_page_word_or_bit_place_are_told_apart() {
        let ids = [
            0,
            1,
            63,
            64,
            4095,
            4096,
            4097,
            8191,
            u32::MAX - 64,
            u32::MAX,
        ];
        let mut set = IdSet::default();
        for (done, id) in ids.iter().enumerate() {
            for (other, known) in ids.iter().enumerate() {
                assert_eq!(
                    set.contains(*known),
                    other < done,
                    "{known} with {done} of {ids:?}"
                );
            }
            assert!(set.insert(*id));
            assert!(!set.insert(*id));
        }
        set.remove(64);
        assert!(!set.contains(64) && set.contains(0) && set.contains(63) && set.contains(4096));
        set.remove(5);
        assert!(set.insert(64));
    }
}
