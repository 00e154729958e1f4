//! Delivered jobs for a blocked client, copied out of the queue: the reply is written after the delivery.

use crate::queue::after::{JobResult, Outcome};
use crate::queue::deliver::{Delivery, Extras, Lease};
use crate::queue::job::TermsShown;
use crate::queue::note::Notes;
use crate::server::api::Ctx;
use std::sync::Arc;

/// One of them.
#[derive(Clone, Debug)]
pub struct OwnDelivery {
    /// The id, and behind it the payload.
    content: Vec<u8>,
    id_len: usize,
    pub attempts: u32,
    pub lease: Option<Lease>,
    pub due: u64,
    pub extras: Option<OwnExtras>,
}

impl OwnDelivery {
    pub fn of(delivery: Delivery<'_>) -> Self {
        let (id, payload) = (delivery.id, delivery.payload);
        let mut content = Vec::with_capacity(id.len() + payload.len());
        content.extend_from_slice(id);
        content.extend_from_slice(payload);
        OwnDelivery {
            content,
            id_len: id.len(),
            attempts: delivery.attempts,
            lease: delivery.lease,
            due: delivery.due,
            extras: delivery.extras.map(OwnExtras::of),
        }
    }

    /// Its id and its payload.
    pub fn content(&self) -> (&[u8], &[u8]) {
        self.content.split_at(self.id_len)
    }
}

/// What the client asked for beside the job.
#[derive(Clone, Debug)]
pub struct OwnExtras {
    terms: Option<TermsShown>,
    results: Option<Vec<OwnResult>>,
    /// As a string of notes.
    steps: Option<Vec<u8>>,
}

impl OwnExtras {
    pub fn of(extras: &Extras<'_>) -> Self {
        let own = |results: &Vec<JobResult<'_>>| results.iter().map(OwnResult::of).collect();
        OwnExtras {
            terms: extras.terms,
            results: extras.results.as_ref().map(own),
            steps: extras.steps.map(Notes::steps_as_string),
        }
    }

    pub fn shown(&self) -> Extras<'_> {
        let results = self.results.as_ref();
        Extras {
            terms: self.terms,
            results: results.map(|results| results.iter().map(OwnResult::shown).collect()),
            steps: self.steps.as_deref().map(Notes::of),
        }
    }

    pub fn steps_len(&self) -> usize {
        self.steps.as_ref().map_or(0, Vec::len)
    }
}

/// How a job ended that the delivered job was after.
#[derive(Clone, Debug)]
struct OwnResult {
    id: Vec<u8>,
    outcome: Option<Outcome>,
    value: Option<Vec<u8>>,
}

impl OwnResult {
    pub fn of(ended: &JobResult<'_>) -> Self {
        OwnResult {
            id: ended.id.to_vec(),
            outcome: ended.outcome,
            value: ended.value.map(<[u8]>::to_vec),
        }
    }

    pub fn shown(&self) -> JobResult<'_> {
        JobResult {
            id: &self.id,
            outcome: self.outcome,
            value: self.value.as_deref(),
        }
    }
}

/// Jobs for a blocked client.
pub struct DeliveredJobs {
    pub key: Arc<[u8]>,
    /// The reply is an array of jobs, not one job.
    pub many: bool,
    pub with_due: bool,
    pub jobs: Vec<OwnDelivery>,
    pub reply: ReplyJobs,
}

/// Writes the reply of a blocked client that got jobs.
pub type ReplyJobs = fn(Ctx<'_>, &DeliveredJobs);
