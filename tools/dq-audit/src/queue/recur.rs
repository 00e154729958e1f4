//! Occurrences of a rule.

use redis_dq::queue::effect::OccurrenceCause;
use redis_dq::queue::job::{Place, Terms, INSTANT_MAX};
use redis_dq::queue::recurring::rule::{Next, Pattern, Rule as Recurrence};

use super::check::{
    check_acked, check_current, check_death, check_expired, check_over, check_timed_out_expired,
    end_lease,
};
use super::job::{Job, Recurring};
use super::Ledger;
use crate::judge::Judge;
use crate::rule::Rule;

impl Ledger {
    /// The rule was renewed; what there is of an occurrence stays.
    pub(super) fn renew(
        &mut self,
        id: &[u8],
        terms: &Terms<'_>,
        rule: &Recurrence<'_>,
        group: Option<&[u8]>,
        judge: &mut Judge,
    ) {
        let Some((id, mut job)) = self.remove(id) else {
            return self.is_unknown(id, "a rule renewed for a job that does not exist", judge);
        };
        match &mut job.recurring {
            None => judge.fault(
                Rule::NothingFromNowhere,
                &id,
                "a rule renewed for a job without one",
            ),
            Some(recurring) => recurring.rule = rule.clone().into_owned(),
        }
        job.expires = rule.expires_after(job.due);
        job.renewed_at = job.attempts;
        job.say(terms, group);
        self.put(id, job);
    }

    pub(super) fn recur(
        &mut self,
        id: &[u8],
        ended: OccurrenceCause,
        next: Option<Next>,
        judge: &mut Judge,
    ) {
        let Some((id, mut job)) = self.remove(id) else {
            return self.is_unknown(
                id,
                "an occurrence ended for a job that does not exist",
                judge,
            );
        };
        check_over(&id, &job, judge);
        self.check_end(&id, &job, ended, judge);
        let Some(mut recurring) = job.recurring.take() else {
            return judge.fault(
                Rule::NothingFromNowhere,
                &id,
                "an occurrence without a rule",
            );
        };
        let dead = ended
            .death()
            .map(|at| self.dead_of(&id, &job, &recurring, at));
        check_next(&id, &recurring, next, judge);
        if let Some(next) = next {
            recurring.occurrence.at = next.occurrence;
            recurring.occurrence.runs += 1;
            recurring.occurrence.delivered = false;
            (job.due, job.expires) = (next.due, next.expires);
            (job.token, job.at, job.attempts, job.renewed_at) = (0, 0, 0, 0);
            (job.place, job.lease_ended) = (Place::Scheduled, 0);
            job.recurring = Some(recurring);
            self.put(id, job);
        }
        if let Some((id, dead)) = dead {
            self.remove(&id);
            self.put(id, dead);
        }
    }

    fn check_end(&self, id: &[u8], job: &Job, ended: OccurrenceCause, judge: &mut Judge) {
        match ended {
            OccurrenceCause::Acked => check_acked(id, job, judge),
            OccurrenceCause::Popped => self.check_popped(id, job, judge),
            OccurrenceCause::Missed => match job.skipped_at() {
                None => judge.fault(
                    Rule::NothingLost,
                    id,
                    "skipped without GRACE, or although it was delivered",
                ),
                Some(at) => judge.claim(
                    at,
                    Rule::NothingLost,
                    id,
                    "skipped by its GRACE, which ends",
                ),
            },
            OccurrenceCause::Expired => check_expired(id, job, judge),
            OccurrenceCause::TimedOutExpired => check_timed_out_expired(id, job, judge),
            OccurrenceCause::TimedOut { at, .. } => {
                end_lease(id, job, judge);
                check_death(id, job, at, judge);
            }
            OccurrenceCause::Nacked { at, .. } => {
                judge.clock_within(at, at);
                check_current(id, job, "failed", judge);
            }
        }
    }

    /// A dead occurrence stays as a separate job.
    fn dead_of(
        &mut self,
        id: &[u8],
        job: &Job,
        recurring: &Recurring,
        at: u64,
    ) -> (Box<[u8]>, Job) {
        let name = format!("@{}", recurring.occurrence.at);
        self.seq += 1;
        self.deaths += 1;
        let dead = Job {
            seq: self.seq,
            place: Place::Dead,
            at,
            death: self.deaths,
            expires: 0,
            token: 0,
            lease_ended: 0,
            successor: None,
            ..job.clone()
        };
        ([id, name.as_bytes()].concat().into(), dead)
    }
}

fn check_next(id: &[u8], recurring: &Recurring, next: Option<Next>, judge: &mut Judge) {
    let Recurring { rule, occurrence } = recurring;
    let is_last = rule.times != 0 && occurrence.runs + 1 >= rule.times;
    let Some(next) = next else {
        let Pattern::Every { ms } = rule.pattern else {
            return;
        };
        let may_end = is_last || rule.until != 0 || occurrence.at + ms > INSTANT_MAX;
        if !may_end {
            judge.fault(Rule::NothingLost, id, "its rule ended, which has no end");
        }
        return;
    };
    let mut wrong = |text: String| judge.fault(Rule::OccurrencesGrow, id, text);
    let (before, after) = (occurrence.at, next.occurrence);
    if after <= before {
        wrong(format!("its occurrence {after} comes after {before}"));
    }
    if let Pattern::Every { ms } = rule.pattern {
        if after > before && !(after - before).is_multiple_of(ms) {
            wrong(format!("{after} does not match its rule, {before} does"));
        }
    }
    if is_last || (rule.until != 0 && after > rule.until) {
        wrong("another occurrence after the last".into());
    }
    let due = (after.saturating_add(rule.jitter_of(id, after))).min(INSTANT_MAX);
    if next.due != due {
        wrong(format!("due at {}, its occurrence at {due}", next.due));
    }
}
