//! A batch of requests between two layouts, planned.

use std::fmt;

use mooncake_pd_plan::{Options, Pairing, Plan, RawRequest, Request, RequestError};
use serde::Serialize;

use crate::failure::{Exit, Failure};

/// A request that is not part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Its index in the file.
    pub request: usize,
    /// Its name.
    pub id: String,
    /// Why, for machines.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

impl Refusal {
    fn new(request: usize, id: &str, error: &RequestError) -> Self {
        Self {
            request,
            id: id.to_owned(),
            reason: error.name(),
            message: error.to_string(),
        }
    }
}

/// In a line, with the name made harmless: it comes from a peer.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "refused: request {} ({}): {}",
            self.request,
            self.id.escape_debug(),
            self.message
        )
    }
}

/// A plan, and which requests are in it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Indices in the file of the requests that it is for.
    pub admitted: Vec<usize>,
    /// The others, in the order of the file.
    pub refused: Vec<Refusal>,
}

impl Planned {
    /// Success unless every request there is was refused.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.admitted.is_empty() && !self.refused.is_empty() {
            Exit::Invalid
        } else {
            Exit::Ok
        }
    }
}

/// Requests that fit the layouts, those that don't, and how to plan them.
#[derive(Debug)]
pub struct Batch<'a> {
    pairing: &'a Pairing<'a>,
    options: Options<'a>,
    requests: Vec<Request>,
    indices: Vec<usize>,
    refused: Vec<Refusal>,
}

impl<'a> Batch<'a> {
    /// Checks each request against the layouts.
    #[must_use]
    pub fn new(pairing: &'a Pairing<'a>, raw: &[RawRequest], options: Options<'a>) -> Self {
        let mut batch = Self {
            pairing,
            options,
            requests: Vec::new(),
            indices: Vec::new(),
            refused: Vec::new(),
        };
        for (index, raw) in raw.iter().enumerate() {
            match Request::new(raw, pairing) {
                Ok(request) => {
                    batch.requests.push(request);
                    batch.indices.push(index);
                }
                Err(error) => batch.refused.push(Refusal::new(index, &raw.id, &error)),
            }
        }
        batch
    }

    /// Plans them.
    ///
    /// # Errors
    /// The plan's check failed.
    pub fn plan(&self) -> Result<Planned, Failure> {
        let batch = self.pairing.plan(&self.requests, &self.options)?;
        let mut refused = self.refused.clone();
        let mut admitted = Vec::new();
        let mut out = batch.refused.into_iter().peekable();
        for (at, &index) in self.indices.iter().enumerate() {
            match out.next_if(|refused| refused.index == at) {
                None => admitted.push(index),
                Some(one) => refused.push(Refusal::new(index, &one.id, &one.error)),
            }
        }
        refused.sort_by_key(|refusal| refusal.request);
        Ok(Planned {
            plan: batch.plan,
            admitted,
            refused,
        })
    }
}
