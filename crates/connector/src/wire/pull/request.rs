//! The requests of a pull from bytes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::decode::REQUESTS;
use super::{PullRequest, RefusedRequest, RequestFault};
use crate::id::{RequestId, TransferId};
use crate::wire::blocks::BlockLists;
use crate::wire::error::{DecodeError, Place};
use crate::wire::limits::Limits;
use crate::wire::reader::Reader;
use crate::wire::region::TransferGroup;

/// The value of `req_blocks`.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) served: Vec<PullRequest>,
    pub(super) refused: Vec<RefusedRequest>,
}

pub(super) fn requests(reader: &mut Reader<'_>, limits: &Limits) -> Result<Requests, DecodeError> {
    let at = Place::key(REQUESTS);
    let count = reader.map(at)?;
    let limit = limits.requests;
    if count > limit {
        return Err(DecodeError::TooMany { at, count, limit });
    }
    let mut seen = BTreeSet::new();
    let mut requests = Requests::default();
    for index in 0..count {
        let at = at.at(index);
        let name = reader.text(at)?;
        let id = RequestId::new(name).map_err(|error| DecodeError::Id { at, error })?;
        if !seen.insert(name) {
            return Err(DecodeError::Twice { index, id });
        }
        match request(at, reader, limits)? {
            Ok((transfer, blocks)) => requests.served.push(PullRequest {
                request: id,
                transfer,
                blocks,
            }),
            Err(fault) => requests.refused.push(RefusedRequest { request: id, fault }),
        }
    }
    Ok(requests)
}

type Request = Result<(TransferId, BlockLists), RequestFault>;

/// The value of one request, read to its end whatever is wrong with it.
fn request(at: Place, reader: &mut Reader<'_>, limits: &Limits) -> Result<Request, DecodeError> {
    let found = reader.array(at)?;
    if found != 2 {
        let expected = 2;
        return Err(DecodeError::Size {
            at,
            expected,
            found,
        });
    }
    let transfer = TransferId::new(reader.text(at)?);
    let mut fault = transfer.as_ref().err().copied().map(RequestFault::from);
    let mut blocks = BlockLists::release();
    let groups = reader.array(at)?;
    if groups > limits.groups {
        fault = fault.or(Some(RequestFault::Groups {
            count: groups,
            limit: limits.groups,
        }));
    }
    let mut total = 0_usize;
    for group in 0..groups {
        let at = at.at(group);
        let count = reader.array(at)?;
        total = total.saturating_add(count);
        if fault.is_none() && total <= limits.blocks {
            blocks.reserve(count);
        }
        for position in 0..count {
            let found = reader.int(at.at(position))?;
            if fault.is_some() || total > limits.blocks {
                continue;
            }
            match u32::try_from(found) {
                Ok(id) => blocks.push_id(id),
                Err(_) => {
                    fault = Some(RequestFault::Block {
                        group: TransferGroup::new(u32::try_from(group).unwrap_or(u32::MAX)),
                        position,
                        found,
                    });
                }
            }
        }
        if fault.is_none() {
            blocks.end_group();
        }
    }
    if total > limits.blocks {
        fault = fault.or(Some(RequestFault::Blocks {
            count: total,
            limit: limits.blocks,
        }));
    }
    Ok(match (fault, transfer) {
        (None, Ok(transfer)) => Ok((transfer, blocks)),
        (Some(fault), _) => Err(fault),
        (None, Err(error)) => Err(error.into()),
    })
}
