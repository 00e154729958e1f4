//! The rules of recurring jobs: which occurrence follows.

use super::clock::Now;
use super::effects::Effects;
use super::job::{Handle, Place};
use super::overdue::View;
use super::recurring::rule::{Next, Occurrence, ZoneOf};
use super::state::store::Status;
use super::Queue;

impl Queue {
    /// The occurrence that follows one that ends now.
    pub(in crate::queue) fn next_occurrence(
        &self,
        handle: Handle,
        now: Now,
        out: &mut Effects,
    ) -> Option<Next> {
        let job = self.jobs().job(handle);
        let recurring = job.recurring()?;
        let occurrence = recurring.occurrence;
        let (zone, unknown) = recurring.rule.zone(out.zone_of(), occurrence);
        out.miss_zone(unknown);
        recurring.rule.next(job.id(), occurrence, now.ms(), &*zone)
    }
}

impl View<'_> {
    /// The next instants at which a job will be due, at most `count`. `None` if there is no such job; empty if it has
    /// no rule.
    pub fn next_instants(self, id: &[u8], count: usize, zone_of: ZoneOf) -> Option<Vec<u64>> {
        let View { queue, jobs, at } = self;
        let hashed = jobs.hashed(id);
        let Some(handle) = jobs.find(hashed) else {
            return queue.done().find(hashed).map(|_| Vec::new());
        };
        let job = jobs.job(handle);
        let mut instants = Vec::new();
        let Some(recurring) = job.recurring() else {
            return Some(instants);
        };
        let Status { place, due, .. } = job.status();
        let (mut occurrence, mut from) = (recurring.occurrence, at.now.ms());
        let waits = place == Place::Scheduled && !occurrence.delivered && due > at.now.ms();
        if waits {
            instants.push(due);
            from = due;
        }
        let (zone, _) = recurring.rule.zone(zone_of, occurrence);
        while instants.len() < count {
            let Some(next) = recurring.rule.next(id, occurrence, from, &*zone) else {
                break;
            };
            instants.push(next.due);
            from = next.due;
            occurrence = Occurrence {
                at: next.occurrence,
                runs: occurrence.runs + 1,
                delivered: false,
                offset_s: next.offset_s,
            };
        }
        Some(instants)
    }
}
