//! Requests as the walker takes them.

use mooncake_pd_plan::{RawRequest, RawSlots};

use crate::verify::{GroupLists, List, Lists};

/// The numbers of a request, and nothing of what the planner makes of them.
#[must_use]
pub fn lists(request: &RawRequest) -> Lists {
    Lists {
        id: request.id.clone(),
        tokens: request.computed_tokens,
        groups: request
            .groups
            .iter()
            .map(|tables| GroupLists {
                group: tables.group,
                source: list(&tables.source),
                destination: list(&tables.destination),
            })
            .collect(),
    }
}

fn list(slots: &RawSlots) -> List {
    List {
        first: slots.first_block,
        entries: slots.entries.clone(),
    }
}
