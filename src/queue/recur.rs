//! Recurring jobs decided: how an occurrence ends, and what follows.

use super::clock::Now;
use super::effect::Ended;
use super::effects::Effects;
use super::job::{Failure, Handle, Place, INSTANT_MAX};
use super::recurring::rule::{Pattern, Round, ZoneOf};
use super::state::store::Course;
use super::Queue;

impl Queue {
    pub(in crate::queue) fn recurs(&self, handle: Handle) -> bool {
        self.jobs().recurring_len() > 0 && self.jobs().job(handle).recurring().is_some()
    }

    /// Whether a job there has that very pattern, so that this rule takes its place and nothing else.
    pub(in crate::queue) fn has_pattern(&self, handle: Handle, pattern: &Pattern<'_>) -> bool {
        let recurring = self.jobs().job(handle).recurring();
        recurring.is_some_and(|it| it.rule.rule.pattern == *pattern)
    }

    /// When GRACE ends the occurrence that nobody has had.
    pub(in crate::queue) fn skipped_at(&self, handle: Handle) -> Option<u64> {
        let job = self.jobs().job(handle);
        let grace_ms = job.grace_ms();
        (grace_ms != 0).then(|| (job.due() + grace_ms).min(INSTANT_MAX))
    }

    /// The occurrence of a job with a rule ends now.
    pub(in crate::queue) fn end_occurrence(
        &mut self,
        handle: Handle,
        ended: Ended,
        failure: Option<Failure<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        let job = self.jobs().job(handle);
        let next = job.recurring().and_then(|recurring| {
            let round = recurring.round;
            let (zone, unknown) = recurring.rule.zone(out.zone_of(), round);
            out.miss_zone(unknown);
            recurring.rule.next(job.id(), round, now.ms(), &*zone)
        });
        self.commit_recurred(handle, (ended, next), failure, now, out);
    }

    /// The same where it dies: by NACK, which gives it a priority, or by its lease's end. Where it is, as a dead
    /// job, if it is kept.
    pub(in crate::queue) fn bury_occurrence(
        &mut self,
        handle: Handle,
        nacked: Option<i32>,
        at: u64,
        failure: Option<Failure<'_>>,
        (now, out): (Now, &mut Effects),
    ) -> Option<Place> {
        let kept = self.has_room_for_dead(handle);
        let ended = match nacked {
            Some(priority) => Ended::Nacked { at, priority, kept },
            None => Ended::TimedOut { at, kept },
        };
        self.end_occurrence(handle, ended, failure, now, out);
        self.trim_dead_after(at, 1, now, out);
        kept.then_some(Place::Dead)
    }

    /// The next instants at which a job will be due, so many at most: `None` where there is no job, and none
    /// where it has no rule.
    pub fn next_instants(
        &self,
        id: &[u8],
        count: usize,
        now: Now,
        zone_of: ZoneOf,
    ) -> Option<Vec<u64>> {
        let handle = self.find(self.jobs().hashed(id))?;
        let job = self.jobs().job(handle);
        let mut instants = Vec::new();
        let Some(recurring) = job.recurring() else {
            return Some(instants);
        };
        let Course { place, due, .. } = job.course();
        let (mut round, mut at) = (recurring.round, now.ms());
        let waits = place == Place::Scheduled && !round.delivered && due > now.ms();
        if waits {
            instants.push(due);
            at = due;
        }
        let (zone, _) = recurring.rule.zone(zone_of, round);
        while instants.len() < count {
            let Some(next) = recurring.rule.next(id, round, at, &*zone) else {
                break;
            };
            instants.push(next.due);
            at = next.due;
            round = Round {
                occurrence: next.occurrence,
                runs: round.runs + 1,
                delivered: false,
                offset_s: next.offset_s,
            };
        }
        Some(instants)
    }
}
