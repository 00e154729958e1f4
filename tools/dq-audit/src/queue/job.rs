//! A job as far as its history is judged.

use std::rc::Rc;

use dq::queue::job::{Place, Terms};
use dq::queue::recurring::rule::{Next, Occurrence, Rule};
use dq::queue::state::NewJob;

#[derive(Clone, Debug)]
pub struct Job {
    /// In the order of adding.
    pub seq: u64,
    pub due: u64,
    /// 0 is never.
    pub expires: u64,
    pub place: Place,
    /// Of the latest delivery, while it is current; 0 is none.
    pub token: u64,
    /// Reserved: the lease's end. Dead: since when.
    pub at: u64,
    /// In the order of dying.
    pub death: u64,
    /// When the last lease should have ended that did so by itself.
    pub lease_ended: u64,
    pub attempts: u32,
    pub max_attempts: u32,
    /// A renewed rule may allow fewer attempts than there were: then there is one more.
    pub renewed_at: u32,
    pub group: Option<Rc<[u8]>>,
    /// What a delivery counts in a window.
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
    /// One that nobody has had yet.
    pub fn new((due, expires): (u64, u64), terms: &Terms<'_>, group: Option<&[u8]>) -> Self {
        Job {
            seq: 0,
            due,
            expires,
            place: Place::Scheduled,
            token: 0,
            at: 0,
            death: 0,
            lease_ended: 0,
            attempts: 0,
            max_attempts: terms.max_attempts,
            renewed_at: 0,
            group: group.map(Rc::from),
            cost: 1,
            recurring: None,
            successor: None,
        }
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

    /// Its lease was over by then, and it did not go with that.
    pub fn is_overdue(&self, cut: u64) -> bool {
        let has_expired = self.expires != 0 && self.expires <= self.at;
        let is_over = self.place == Place::Reserved && self.at <= cut;
        is_over && !has_expired && self.recurring.is_none()
    }

    /// Deliveries that it may have had at most; 0 is without limit.
    pub fn attempts_allowed(&self) -> u32 {
        match self.max_attempts {
            0 => 0,
            max => max.max(self.renewed_at.saturating_add(1)),
        }
    }

    /// Since when it may be skipped, for GRACE.
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
