//! Sets of ids of one pool.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

const WORDS: usize = 64;
const IDS_PER_PAGE: u32 = 4096;
/// Pages that are found by index: those of pools as they are. Others are
/// searched for.
const INDEXED: usize = 1024;

type Page = Box<[u64; WORDS]>;

/// Ids as bits, in pages that exist where ids do: memory follows the ids that
/// are in use (512 bytes for each page of 4,096 that holds one, and up to 8 KiB
/// of index), not the pool's capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    low: Vec<Option<Page>>,
    high: BTreeMap<usize, Page>,
}

/// Page, word and bit of an id.
fn place(id: u32) -> Option<(usize, usize, u64)> {
    let page = usize::try_from(id.checked_div(IDS_PER_PAGE)?).ok()?;
    let within = id.checked_rem(IDS_PER_PAGE)?;
    let word = usize::try_from(within.checked_div(u64::BITS)?).ok()?;
    let bit = 1_u64.checked_shl(within.checked_rem(u64::BITS)?)?;
    Some((page, word, bit))
}

impl IdSet {
    fn page(&self, page: usize) -> Option<&Page> {
        if page < INDEXED {
            self.low.get(page)?.as_ref()
        } else {
            self.high.get(&page)
        }
    }

    fn page_mut(&mut self, page: usize) -> Option<&mut Page> {
        let new = || Box::new([0; WORDS]);
        if page >= INDEXED {
            return Some(self.high.entry(page).or_insert_with(new));
        }
        if page >= self.low.len() {
            self.low.resize_with(page.saturating_add(1), || None);
        }
        Some(self.low.get_mut(page)?.get_or_insert_with(new))
    }

    /// Whether the id was new.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let Some((page, word, bit)) = place(id) else {
            return false;
        };
        let Some(word) = self.page_mut(page).and_then(|words| words.get_mut(word)) else {
            return false;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds all ids of another set.
    pub(crate) fn insert_all(&mut self, other: &Self) {
        let low = other
            .low
            .iter()
            .enumerate()
            .filter_map(|(at, page)| Some((at, page.as_ref()?)));
        let high = other.high.iter().map(|(at, page)| (*at, page));
        for (at, page) in low.chain(high) {
            if let Some(words) = self.page_mut(at) {
                for (word, more) in words.iter_mut().zip(page.iter()) {
                    *word |= more;
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, id: u32) {
        if let Some((page, word, bit)) = place(id)
            && let Some(word) = self.page_mut(page).and_then(|words| words.get_mut(word))
        {
            *word &= !bit;
        }
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        place(id).is_some_and(|(page, word, bit)| {
            self.page(page)
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
        let mut all = IdSet::default();
        all.insert(7);
        all.insert_all(&set);
        assert!(ids.iter().all(|id| all.contains(*id)) && all.contains(7) && !all.contains(8));
    }
}
