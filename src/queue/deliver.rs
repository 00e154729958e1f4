//! The rules of deliveries: POP.

use super::after::JobResult;
use super::budget::{DELIVERED_BYTES, OUT_OF_TURN, STEPS_OF_GROUP};
use super::clock::{Mint, Now};
use super::effect::Change;
use super::effects::Effects;
use super::end::Cause;
use super::job::{Handle, Place, TermsShown};
use super::note::Notes;
use super::state::store::{Job, Status};
use super::Queue;

/// What POP asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pop<'a> {
    /// How many jobs, at most.
    pub count: u64,
    /// Only the job with this id.
    pub id: Option<&'a [u8]>,
    /// How long its leases are.
    pub lease: LeaseLength,
    /// Removes the job at delivery.
    pub noack: bool,
    /// What each delivery carries beside the job.
    pub with: Wanted,
    /// The client that gets them; 0 if it has no number.
    pub client: u64,
}

/// How long the lease of a delivery is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseLength {
    /// The job's TTR.
    #[default]
    OfJob,
    /// As the client asked, whatever the job's TTR.
    Asked(u64),
    /// `lease_ms` for jobs whose TTR is the server's default, `ttr_ms`; the others keep their own.
    InPlaceOf {
        /// The server's default.
        ttr_ms: u64,
        /// The length that replaces it.
        lease_ms: u64,
    },
}

impl LeaseLength {
    fn of(self, job_ttr_ms: u64) -> u64 {
        match self {
            LeaseLength::OfJob => job_ttr_ms,
            LeaseLength::Asked(ms) => ms,
            LeaseLength::InPlaceOf { ttr_ms, lease_ms } if ttr_ms == job_ttr_ms => lease_ms,
            LeaseLength::InPlaceOf { .. } => job_ttr_ms,
        }
    }
}

/// A worker's right to a job: the token that names this delivery, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Larger than the token of any earlier delivery.
    pub token: u64,
    /// Unix-ms.
    pub deadline_ms: u64,
}

/// One delivered job.
#[allow(missing_docs, reason = "called as in POP's reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    /// Including this delivery.
    pub attempts: u32,
    /// `None` if the job was removed at delivery.
    pub lease: Option<Lease>,
    /// The instant for which it was due; of a recurring job, the instant of its occurrence.
    pub due: u64,
    /// Only if [`Pop::with`] asks for any.
    pub extras: Option<&'a Extras<'a>>,
}

/// Which extras are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The job's terms.
    pub terms: bool,
    /// How the jobs that it was after ended.
    pub results: bool,
    /// Its steps.
    pub steps: bool,
}

impl Wanted {
    /// Whether any extra is asked for. Runs with each delivery.
    #[inline]
    fn any(self) -> bool {
        self.terms | self.results | self.steps
    }

    /// Shows a job with the extras that were asked for.
    #[cold]
    #[inline(never)]
    fn show_extras(
        self,
        (handle, plain): (Handle, Delivery<'_>),
        queue: &Queue,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> usize {
        let (jobs, parts) = (queue.jobs(), queue.parts());
        let extras = Extras {
            terms: (self.terms).then(|| jobs.job(handle).terms().shown(plain.attempts)),
            results: (self.results).then(|| parts.results_of(jobs, handle).collect()),
            steps: self.steps.then(|| jobs.notes(handle)),
        };
        deliver(Delivery {
            extras: Some(&extras),
            ..plain
        });
        plain.payload.len() + extras.steps_len()
    }
}

/// The extras of a delivery; `None` for what was not asked for.
#[allow(missing_docs, reason = "as in [`Wanted`]")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extras<'a> {
    pub terms: Option<TermsShown>,
    pub results: Option<Vec<JobResult<'a>>>,
    /// The job's notes, of which only the steps are shown.
    pub steps: Option<Notes<'a>>,
}

impl Extras<'_> {
    /// The bytes of the steps.
    pub fn steps_len(&self) -> usize {
        self.steps.map_or(0, |steps| steps.counted() as usize)
    }
}

impl Pop<'_> {
    /// Shows a job to its consumer; returns the length of its payload, and of the steps that were asked for.
    fn show(
        &self,
        queue: &Queue,
        (handle, job): (Handle, Job<'_>),
        lease: Option<Lease>,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> usize {
        let Status { due, life, .. } = job.status();
        let payload = job.payload();
        let attempts = life.attempts.saturating_add(1);
        let plain = Delivery {
            id: job.id(),
            payload,
            attempts,
            due: job.recurring().map_or(due, |it| it.occurrence.at),
            lease,
            extras: None,
        };
        if self.with.any() {
            return self.with.show_extras((handle, plain), queue, deliver);
        }
        deliver(plain);
        payload.len()
    }
}

impl Queue {
    /// Delivers up to `count` ready jobs in ready order, fewer if they are large; returns how many. `deliver` sees
    /// each job before anything else happens to it.
    pub fn pop(
        &mut self,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        mut deliver: impl FnMut(Delivery<'_>),
    ) -> u64 {
        self.expire_for_pop(pop, now, out);
        let mut budget = OUT_OF_TURN;
        self.take(pop, now, mint, out, &mut budget, &mut deliver)
    }

    /// Expires first what a POP must not miss, and what it must not deliver.
    #[inline(always)]
    pub fn expire_for_pop(&mut self, pop: &Pop<'_>, now: Now, out: &mut Effects) {
        self.expire_for(
            self.serving().most_deliverable(pop.count, pop.noack, now),
            Place::Scheduled,
            now,
            out,
        );
        if let Some(id) = pop.id {
            self.expire_job(id, now, out);
        }
    }

    /// As [`Queue::pop`], for a caller that has expired what is overdue. If more is overdue than one command
    /// expires, jobs with an expired TTL may come first: each is removed and takes its steps of the budget. At 0 this ends.
    pub fn take(
        &mut self,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        budget: &mut usize,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> u64 {
        let (mut delivered, mut bytes) = (0, 0);
        while delivered < pop.count && bytes < DELIVERED_BYTES {
            self.serving_mut()
                .update_groups_before(pop.id, pop.noack, now);
            if self.serving().is_held(pop.noack, now) {
                break;
            }
            let Some((handle, true)) = self.next_to_go(pop, now, Some(out), budget) else {
                break;
            };
            if pop.id.is_none() {
                self.serving_mut().note_in_turn(handle);
            }
            bytes += self.deliver(handle, pop, now, mint, out, deliver);
            delivered += 1;
            self.jobs().prefetch_following();
        }
        delivered
    }

    /// The job that is delivered next if the queue itself holds nothing back, and whether its weight fits RATE. To be called
    /// once groups are updated (`update_groups_before`). Jobs whose TTL is overdue are removed first, if there is an `out`;
    /// each takes its steps of the budget, and at 0 this finds none.
    #[inline(always)]
    pub(super) fn next_to_go(
        &mut self,
        pop: &Pop<'_>,
        now: Now,
        mut out: Option<&mut Effects>,
        budget: &mut usize,
    ) -> Option<(Handle, bool)> {
        while *budget > 0 {
            let handle = match self.serving().next(pop.id, pop.noack, now) {
                // While a pass has not updated all groups, the first ready jobs may tell of one that may be served.
                None if self.parts().is_passing() && pop.id.is_none() => {
                    self.serving_mut().search_ready(pop.noack, now);
                    self.serving().next(pop.id, pop.noack, now)
                }
                found => found,
            }?;
            let expired = match &mut out {
                Some(out) if self.jobs().has_overdue_ttl(now) => {
                    self.remove_if_expired(handle, now, out)
                }
                _ => None,
            };
            if let Some(took) = expired {
                *budget = budget.saturating_sub(took);
            } else if self.serving().fits_rates(handle, now) {
                return Some((handle, true));
            } else if pop.id.is_some() || !self.serving_mut().pass_over(handle, now) {
                return Some((handle, false));
            } else {
                *budget = budget.saturating_sub(STEPS_OF_GROUP);
            }
            self.serving_mut()
                .update_groups_before(pop.id, pop.noack, now);
        }
        None
    }

    /// Returns the length of the payload, and of the steps that were asked for.
    fn deliver(
        &mut self,
        handle: Handle,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> usize {
        let job = self.jobs().job(handle);
        if !pop.noack {
            let lease_ms = pop.lease.of(job.terms().ttr_ms);
            let (token, deadline) = (
                mint.next_token(now, self.jobs().token_floor()),
                now.after_capped(lease_ms),
            );
            let lease = Lease {
                token,
                deadline_ms: deadline,
            };
            let len = pop.show(self, (handle, job), Some(lease), deliver);
            let change = Change::Reserved {
                token,
                deadline,
                lease_ms,
            };
            self.deliver_to(pop.client);
            self.commit_job(handle, change, now, out);
            return len;
        }
        let len = pop.show(self, (handle, job), None, deliver);
        self.end(handle, Cause::Popped, now.ms(), now, out);
        len
    }
}
