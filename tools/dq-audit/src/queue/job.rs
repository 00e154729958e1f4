//! A job, with what is needed to judge its history.

use std::rc::Rc;

use redis_dq::queue::job::{Place, Terms};
use redis_dq::queue::recurring::rule::{Next, Occurrence, Rule};
use redis_dq::queue::state::NewJob;

#[derive(Clone, Debug)]
pub struct Job {
    /// The job's place in the order of adding.
    pub seq: u64,
    pub due: u64,
    /// When its TTL ends; 0 is never.
    pub expires: u64,
    pub place: Place,
    /// The token of the latest delivery while it is valid; 0 is none.
    pub token: u64,
    /// Reserved: when the lease ends. Dead: since when.
    pub at: u64,
    /// The job's place in the order of dying.
    pub death: u64,
    /// When the last lease that expired should have ended.
    pub lease_ended: u64,
    pub attempts: u32,
    pub max_attempts: u32,
    /// The attempts made when the rule was renewed. The new rule may allow fewer: then there is one
    /// more.
    pub renewed_at: u32,
    pub group: Option<Rc<[u8]>>,
    /// What a delivery counts in RATE and GROUPRATE.
    pub cost: u32,
    pub recurring: Option<Box<Recurring>>,
    pub successor: Option<Box<Job>>,
}

#[derive(Clone, Debug)]
pub struct Recurring {
    pub rule: Rule<'static>,
    pub occurrence: Occurrence,
}

impl Job {
    /// A job that was never delivered.
    pub fn new((due, expires): (u64, u64), terms: &Terms<'_>, group: Option<&[u8]>) -> Self {
        let mut job = Job {
            seq: 0,
            due,
            expires,
            place: Place::Scheduled,
            token: 0,
            at: 0,
            death: 0,
            lease_ended: 0,
            attempts: 0,
            max_attempts: 0,
            renewed_at: 0,
            group: None,
            cost: 1,
            recurring: None,
            successor: None,
        };
        job.say(terms, group);
        job
    }

    /// What is said of it when it is added, and again when its rule is renewed.
    pub fn say(&mut self, terms: &Terms<'_>, group: Option<&[u8]>) {
        self.max_attempts = terms.max_attempts;
        self.group = group.map(Rc::from);
        self.cost = terms.rest.weight();
    }

    pub fn of_rule(first: Next, terms: &Terms<'_>, rule: &Rule<'_>, group: Option<&[u8]>) -> Self {
        let occurrence = Occurrence {
            at: first.occurrence,
            runs: 0,
            delivered: false,
            offset_s: first.offset_s,
        };
        Job {
            recurring: Some(Recurring::new(rule, occurrence)),
            ..Job::new((first.due, first.expires), terms, group)
        }
    }

    pub fn of_snapshot(stored: &NewJob<'_>) -> Self {
        let life = &stored.life;
        let recurring = stored.recurring.as_ref();
        Job {
            seq: stored.seq,
            place: stored.place,
            token: life.token,
            at: life.at,
            death: life.death,
            attempts: life.attempts,
            renewed_at: recurring.map_or(0, |_| life.attempts),
            recurring: recurring.map(|(rule, occurrence)| Recurring::new(rule, *occurrence)),
            ..Job::new((stored.due, life.expires), stored.terms, stored.group)
        }
    }

    pub fn is_exhausted(&self) -> bool {
        self.max_attempts != 0 && self.attempts >= self.max_attempts
    }

    /// Whether its lease has ended by `cut`, and the job still exists after that.
    pub fn is_overdue(&self, cut: u64) -> bool {
        let has_expired = self.expires != 0 && self.expires <= self.at;
        let is_over = self.place == Place::Reserved && self.at <= cut;
        is_over && !has_expired && self.recurring.is_none()
    }

    /// The most deliveries that it may have had; 0 is without limit.
    pub fn attempts_allowed(&self) -> u32 {
        match self.max_attempts {
            0 => 0,
            max => max.max(self.renewed_at.saturating_add(1)),
        }
    }

    /// From when on its occurrence may be skipped, because of GRACE.
    pub fn skipped_at(&self) -> Option<u64> {
        let recurring = self.recurring.as_ref()?;
        let grace_ms = recurring.rule.grace_ms;
        (grace_ms != 0 && !recurring.occurrence.delivered)
            .then(|| self.due.saturating_add(grace_ms))
    }
}

impl Recurring {
    fn new(rule: &Rule<'_>, occurrence: Occurrence) -> Box<Self> {
        let rule = rule.clone().into_owned();
        Box::new(Recurring { rule, occurrence })
    }
}
