//! Sets of ids of one pool.

use alloc::boxed::Box;
use alloc::vec::Vec;

const WORDS: usize = 64;
const IDS_PER_PAGE: u32 = 4096;

/// Ids as bits, in pages that exist where ids do: memory follows the ids that
/// are in use, not the pool's capacity (8 bytes for every 4,096 ids below the
/// largest, and 512 bytes for each page that holds one).
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    pages: Vec<Option<Box<[u64; WORDS]>>>,
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
    /// Whether the id was new.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        let Some((page, word, bit)) = place(id) else {
            return false;
        };
        if page >= self.pages.len() {
            self.pages.resize_with(page.saturating_add(1), || None);
        }
        let Some(page) = self.pages.get_mut(page) else {
            return false;
        };
        let words = page.get_or_insert_with(|| Box::new([0; WORDS]));
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(crate) fn remove(&mut self, id: u32) {
        if let Some((page, word, bit)) = place(id)
            && let Some(Some(words)) = self.pages.get_mut(page)
            && let Some(word) = words.get_mut(word)
        {
            *word &= !bit;
        }
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        place(id).is_some_and(|(page, word, bit)| {
            self.pages
                .get(page)
                .and_then(|page| page.as_deref())
                .and_then(|words| words.get(word))
                .is_some_and(|word| word & bit != 0)
        })
    }
}
