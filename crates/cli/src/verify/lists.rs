//! Block lists, and which entries of the two sides belong together.

use super::layout::GroupFacts;
use crate::number::count;

/// A block list of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Position of the first entry; absent where the list is known to end
    /// with the computed tokens.
    pub first: Option<u64>,
    /// Ids; `None` is a position without a block.
    pub entries: Vec<Option<u64>>,
}

/// The lists of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLists {
    /// The group.
    pub group: u32,
    /// The sender's list.
    pub source: List,
    /// The receiver's list.
    pub destination: List,
}

/// The lists of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Its name in messages.
    pub id: String,
    /// Tokens in the cache; absent: both lists end at one position.
    pub tokens: Option<u64>,
    /// By group.
    pub groups: Vec<GroupLists>,
}

/// Positions at which both sides have a block, as (position, source id,
/// destination id).
pub(super) fn pairs(
    lists: &GroupLists,
    tokens: Option<u64>,
    source: &GroupFacts,
    destination: &GroupFacts,
) -> Vec<(u64, u64, u64)> {
    let longest = count(lists.source.entries.len()).max(count(lists.destination.entries.len()));
    let end = |facts: &GroupFacts| match tokens {
        Some(tokens) => tokens.div_ceil(facts.tokens_per_block.max(1)),
        None => longest,
    };
    let ends = (end(source), end(destination));
    let oldest = match (tokens, destination.window) {
        (Some(tokens), Some(window)) => tokens
            .saturating_sub(window)
            .checked_div(destination.tokens_per_block)
            .unwrap_or(0),
        _ => 0,
    };
    let from = ids(&lists.source, ends.0, source.null);
    let to = ids(&lists.destination, ends.1, destination.null);
    let mut out = Vec::new();
    let mut ahead = from.iter().peekable();
    for &(position, destination_id) in &to {
        while ahead.next_if(|&&(at, _)| at < position).is_some() {}
        if let Some(&&(at, source_id)) = ahead.peek()
            && at == position
            && position >= oldest
            && (!destination.state || position.checked_add(1) == Some(ends.1))
        {
            out.push((position, source_id, destination_id));
        }
    }
    out
}

/// The live ids of a list with their positions before `end`.
fn ids(list: &List, end: u64, null: Option<u64>) -> Vec<(u64, u64)> {
    let first = list
        .first
        .unwrap_or_else(|| end.saturating_sub(count(list.entries.len())));
    (first..end)
        .zip(&list.entries)
        .filter_map(|(position, id)| id.map(|id| (position, id)))
        .filter(|&(_, id)| null != Some(id))
        .collect()
}
