//! Block ids of one request.

use alloc::vec::Vec;
use core::fmt;

/// Block ids per transfer group, in the order of the groups; ids are 0..2^32 and of logical
/// blocks, as their owner numbers them.
///
/// A list without groups releases the blocks of prefill, nothing is wanted. Otherwise a group
/// may be empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BlockLists {
    ids: Vec<u32>,
    /// One past the last id of each group.
    ends: Vec<usize>,
}

impl BlockLists {
    /// No groups at all.
    #[must_use]
    pub const fn release() -> Self {
        Self {
            ids: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Whether this only releases.
    #[must_use]
    pub fn is_release(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a group after the last one.
    pub fn push_group(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.end_group();
    }

    pub(super) fn reserve(&mut self, ids: usize) {
        self.ids.reserve(ids);
    }

    pub(super) fn push_id(&mut self, id: u32) {
        self.ids.push(id);
    }

    pub(super) fn end_group(&mut self) {
        self.ends.push(self.ids.len());
    }

    /// The ids of each group.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let group = self.ids.get(start..end).unwrap_or_default();
            start = end;
            group
        })
    }

    /// All ids, group after group.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

impl<'a> FromIterator<&'a [u32]> for BlockLists {
    fn from_iter<T: IntoIterator<Item = &'a [u32]>>(groups: T) -> Self {
        let mut lists = Self::release();
        for group in groups {
            lists.push_group(group);
        }
        lists
    }
}

impl fmt::Debug for BlockLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.groups()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::BlockLists;
    use alloc::format;
    use alloc::vec::Vec;

    #[test]
    fn groups_keep_their_ids_and_an_empty_group_is_no_release() {
        let groups: [&[u32]; 4] = [&[], &[1], &[u32::MAX, 0], &[]];
        let lists: BlockLists = groups.into_iter().collect();
        assert_eq!(lists.groups().collect::<Vec<_>>(), groups);
        assert_eq!(lists.ids(), [1, u32::MAX, 0]);
        assert_eq!(format!("{lists:?}"), "[[], [1], [4294967295, 0], []]");
        assert!(!lists.is_release());
        let mut empty = BlockLists::release();
        empty.push_group(&[]);
        assert!(!empty.is_release());
        assert_ne!(empty, BlockLists::release());
        assert!(BlockLists::release().is_release());
    }
}
