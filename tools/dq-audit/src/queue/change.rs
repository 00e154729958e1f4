//! Judges what happens to one job.

use redis_dq::queue::effect::{Change, DeathCause, EndCause, RemovalCause};
use redis_dq::queue::job::Place;

use super::check::{
    begun, check_acked, check_current, check_death, check_expired, check_over,
    check_timed_out_expired, end_lease, Begun,
};
use super::job::Job;
use super::rates::Counted;
use super::Ledger;
use crate::judge::Judge;
use crate::rule::Rule;

impl Ledger {
    pub(super) fn change(&mut self, id: &[u8], change: Change<'_>, judge: &mut Judge) {
        if let Change::Unblocked { .. } = change {
            // Nothing of a blocked job is known.
            return;
        }
        let Some((id, mut job)) = self.remove(id) else {
            if let Change::Reserved { token, .. } = change {
                self.take_token(id, token, judge);
            }
            return self.is_unknown(id, "something happened to a job that does not exist", judge);
        };
        check_over(&id, &job, judge);
        if let Change::Succeeded { end, .. } = change {
            return self.succeed(id, job, end, judge);
        }
        self.happens(&id, &mut job, change, judge);
        if !matches!(change, Change::Removed { .. }) {
            self.put(id, job);
        }
    }

    /// Changes a job that is out of the queue's lists meanwhile.
    fn happens(&mut self, id: &[u8], job: &mut Job, change: Change<'_>, judge: &mut Judge) {
        match change {
            Change::Reserved {
                token,
                deadline,
                lease_ms,
            } => self.reserve(id, job, (token, deadline, lease_ms), judge),
            Change::Touched { deadline, lease_ms } => {
                self.rates.touch(job.group.as_ref(), job.token);
                touch(id, job, deadline, lease_ms, judge);
            }
            Change::TimedOut => {
                end_lease(id, job, judge);
                if job.is_exhausted() {
                    judge.fault(Rule::AttemptsEnd, id, "continues after its last attempt");
                }
                job.lease_ended = job.at;
                (job.at, job.place) = (0, Place::Scheduled);
            }
            Change::Nacked { due, attempts, .. } => nack(id, job, due, attempts, judge),
            Change::Died { at, cause } => self.die(id, job, at, cause, judge),
            Change::Rescheduled { due } => {
                check_waits(id, job, "rescheduled", judge);
                (job.due, job.token) = (due, 0);
            }
            Change::Prioritized { .. } => check_waits(id, job, "given another priority", judge),
            Change::Kicked { due } => kick(id, job, due, judge),
            Change::Removed { cause, .. } => self.go(id, job, cause, judge),
            Change::SuccessorExpired => expire_successor(id, job, judge),
            Change::Succeeded { .. } | Change::Unblocked { .. } => {}
        }
    }

    fn reserve(
        &mut self,
        id: &[u8],
        job: &mut Job,
        (token, deadline, lease_ms): (u64, u64, u64),
        judge: &mut Judge,
    ) {
        judge.tally.deliveries += 1;
        let Begun { earliest, latest } = begun(deadline, lease_ms, Some(token));
        judge.clock_within(earliest, latest);
        match job.place {
            Place::Reserved => {
                judge.fault(Rule::OneLease, id, "delivered while another lease was live")
            }
            Place::Dead => judge.fault(
                Rule::NothingFromNowhere,
                id,
                "delivered although it is dead",
            ),
            Place::Scheduled | Place::Successor | Place::Blocked => {}
        }
        if job.due > latest {
            let early = job.due - latest;
            judge.fault(
                Rule::NeverEarly,
                id,
                format!("delivered {early} ms before it was due"),
            );
        }
        if job.lease_ended > latest {
            let early = job.lease_ended - latest;
            let text = format!("delivered {early} ms before the previous lease had ended");
            judge.fault(Rule::OneLease, id, text);
        }
        if job.expires != 0 && job.expires <= earliest {
            judge.fault(Rule::NothingFromNowhere, id, "delivered after its TTL");
        }
        self.take_token(id, token, judge);
        job.attempts = job.attempts.saturating_add(1);
        let allowed = job.attempts_allowed();
        if allowed != 0 && job.attempts > allowed {
            let text = format!("delivered {} times of {allowed}", job.attempts);
            judge.fault(Rule::AttemptsEnd, id, text);
        }
        self.check_turn(id, job, false, judge);
        if judge.judges_rates {
            let new = Counted::of(job, token, Begun { earliest, latest });
            let over = self.rates.deliver(job.group.as_ref(), new);
            if let Some(setting) = over {
                let text = format!("delivered beside more than {setting} allows");
                judge.fault(Rule::WithinMax, id, text);
            }
        }
        (job.token, job.at, job.place) = (token, deadline, Place::Reserved);
        if let Some(recurring) = &mut job.recurring {
            recurring.occurrence.delivered = true;
        }
    }

    fn take_token(&mut self, id: &[u8], token: u64, judge: &mut Judge) {
        if token <= self.token {
            let text = format!("token {token} after {}", self.token);
            judge.fault(Rule::TokensGrow, id, text);
        }
        self.token = self.token.max(token);
    }

    /// The job is about to be delivered, and on no list.
    pub(super) fn check_turn(&self, id: &[u8], job: &Job, noack: bool, judge: &mut Judge) {
        if !noack && self.max_reserved != 0 && self.reserved >= self.max_reserved {
            let text = format!("delivered beside {} others, MAXRESERVED", self.reserved);
            judge.fault(Rule::WithinMax, id, text);
        }
        let Some(group) = self.groups.of(job) else {
            return;
        };
        let own = job.group.as_ref().and_then(|name| self.own.get(&**name));
        let own = own.and_then(|own| own.max_reserved);
        let max = own.unwrap_or(self.limits.max_reserved);
        if !noack && max != 0 && group.reserved >= max {
            let text = format!("delivered beside {} others of its group", group.reserved);
            judge.fault(Rule::WithinMax, id, text);
        }
        if self.limits.is_fifo && !group.is_its_turn(job) {
            judge.fault(Rule::InTurn, id, "delivered before others of its group");
        }
    }

    fn die(&mut self, id: &[u8], job: &mut Job, at: u64, cause: DeathCause<'_>, judge: &mut Judge) {
        match cause {
            DeathCause::TimedOut => {
                end_lease(id, job, judge);
                check_death(id, job, at, judge);
            }
            DeathCause::Nacked { .. } => {
                judge.clock_within(at, at);
                check_current(id, job, "failed", judge);
                job.token = 0;
            }
        }
        self.deaths += 1;
        (job.at, job.death, job.place) = (at, self.deaths, Place::Dead);
    }

    /// Judges whether a job may be removed by this cause.
    fn go(&mut self, id: &[u8], job: &Job, cause: RemovalCause, judge: &mut Judge) {
        match cause {
            RemovalCause::Acked => check_acked(id, job, judge),
            RemovalCause::Popped => self.check_popped(id, job, judge),
            RemovalCause::Deleted => {}
            RemovalCause::Expired => check_expired(id, job, judge),
            RemovalCause::TimedOutExpired => check_timed_out_expired(id, job, judge),
        }
    }

    pub(super) fn check_popped(&self, id: &[u8], job: &Job, judge: &mut Judge) {
        judge.tally.deliveries += 1;
        if job.place != Place::Scheduled {
            let text = "taken while a lease was live, or although it is dead";
            judge.fault(Rule::OneLease, id, text);
        }
        judge.claim(job.due, Rule::NeverEarly, id, "delivered though it is due");
        self.check_turn(id, job, true, judge);
    }

    fn succeed(&mut self, id: Box<[u8]>, mut job: Job, end: EndCause, judge: &mut Judge) {
        match end {
            EndCause::Acked => check_acked(&id, &job, judge),
            EndCause::Popped => self.check_popped(&id, &job, judge),
            EndCause::TimedOut => {
                end_lease(&id, &job, judge);
                check_death(&id, &job, job.at, judge);
            }
            EndCause::Nacked => check_current(&id, &job, "failed", judge),
        }
        match job.successor.take() {
            None => judge.fault(Rule::NothingFromNowhere, &id, "a successor that never came"),
            Some(mut next) => {
                next.place = Place::Scheduled;
                self.put(id, *next);
            }
        }
    }
}

fn touch(id: &[u8], job: &mut Job, deadline: u64, lease_ms: u64, judge: &mut Judge) {
    let Begun { earliest, latest } = begun(deadline, lease_ms, None);
    judge.clock_within(earliest, latest);
    if job.place != Place::Reserved {
        judge.fault(Rule::StaleNeverActs, id, "touched without a lease");
    } else if job.at <= earliest {
        judge.fault(
            Rule::StaleNeverActs,
            id,
            "touched after its lease had ended",
        );
    }
    job.at = deadline;
}

fn check_waits(id: &[u8], job: &Job, what: &str, judge: &mut Judge) {
    if job.place != Place::Scheduled {
        let text = format!("{what} although it is reserved or dead");
        judge.fault(Rule::StaleNeverActs, id, text);
    }
}

fn nack(id: &[u8], job: &mut Job, due: u64, attempts: u32, judge: &mut Judge) {
    check_current(id, job, "given back", judge);
    let is_counted = attempts == job.attempts;
    if !is_counted && attempts.saturating_add(1) != job.attempts {
        let text = format!("{attempts} attempts after {}", job.attempts);
        judge.fault(Rule::AttemptsCount, id, text);
    }
    if is_counted && job.is_exhausted() {
        judge.fault(Rule::AttemptsEnd, id, "given back after its last attempt");
    }
    (job.due, job.attempts, job.token, job.at) = (due, attempts, 0, 0);
    (job.place, job.lease_ended) = (Place::Scheduled, 0);
}

fn kick(id: &[u8], job: &mut Job, due: u64, judge: &mut Judge) {
    judge.clock_within(due, due);
    if job.place != Place::Dead {
        judge.fault(
            Rule::NothingFromNowhere,
            id,
            "kicked although it is not dead",
        );
    }
    (job.due, job.attempts, job.token, job.at) = (due, 0, 0, 0);
    (job.place, job.lease_ended, job.death) = (Place::Scheduled, 0, 0);
}

fn expire_successor(id: &[u8], job: &mut Job, judge: &mut Judge) {
    let expires = job.successor.take().map(|next| next.expires);
    match expires {
        None | Some(0) => {
            let text = "a successor expired that is not there, or has no TTL";
            judge.fault(Rule::NothingLost, id, text);
        }
        Some(expires) => {
            let text = "its successor is gone by its TTL, which ends";
            judge.claim(expires, Rule::NothingLost, id, text);
        }
    }
}
