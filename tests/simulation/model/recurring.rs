//! "A rule makes a job come again", paragraph by paragraph.

use super::{after, Fault, Job, Model, Phase, LAST};
use crate::op::{AddOp, Reply, RuleOp};
use dq::queue::add::Condition;
use dq::queue::clock::When;

#[derive(Clone, Debug)]
pub struct Recurring {
    pub rule: RuleOp,
    pub ttl: Option<u64>,
    /// The instant of the current occurrence.
    pub occurrence: u64,
    /// How many occurrences have ended.
    pub runs: u64,
    /// Whether the current occurrence was delivered.
    pub delivered: bool,
}

impl RuleOp {
    /// "EVERY's grid begins at the first occurrence"; that of these expressions in 1970.
    fn next(&self, occurrence: u64, after: u64) -> Option<u64> {
        let begins = if self.text.is_some() { 0 } else { occurrence };
        let mut next = begins + (after - begins) / self.ms * self.ms;
        while next <= after {
            next += self.ms;
        }
        let last = if self.until == 0 { LAST } else { self.until };
        (next <= last).then_some(next)
    }

    fn is_same(&self, other: &RuleOp) -> bool {
        (self.text, self.ms) == (other.text, other.ms)
    }

    /// The contract does not say which hash it is, so the module's own is used.
    fn due(&self, id: &[u8], occurrence: u64, add: &AddOp) -> u64 {
        let rule = crate::master::recur(self, add).rule;
        (occurrence + rule.jitter_of(id, occurrence)).min(LAST)
    }
}

/// "The first is at DELAY or AT, else at the rule's first instant after now": occurrence and due.
pub fn first(add: &AddOp, rule: &RuleOp, id: &[u8], now: u64) -> Result<(u64, u64), Reply> {
    let out_of_range = Reply::Error("ERR value is not an integer or out of range");
    let unbounded = RuleOp {
        until: 0,
        ..rule.clone()
    };
    let by_rule = match rule.text {
        Some(_) => unbounded.next(0, now / 1000).ok_or(Reply::Error(
            "ERR CRON expression matches no time before 2109",
        )),
        None => after(now, rule.ms).ok_or(out_of_range.clone()),
    };
    let given = match add.when {
        None => None,
        Some(When::Delay(ms)) => Some(after(now, ms)),
        Some(When::At(at)) => Some((at <= LAST).then_some(at)),
    };
    match given {
        Some(instant) => {
            if rule.text.is_some() {
                by_rule?;
            }
            let instant = instant.ok_or(out_of_range)?;
            Ok((instant, instant))
        }
        None => {
            let occurrence = by_rule?;
            Ok((occurrence, rule.due(id, occurrence, add)))
        }
    }
}

impl Model {
    pub fn recurs(&self) -> bool {
        self.jobs.iter().any(|job| job.recur.is_some())
    }

    /// "an occurrence that nobody has been delivered by its due + GRACE is skipped at that instant"
    pub(super) fn skipped_at(&self, job: &Job) -> Option<u64> {
        let recur = job.recur.as_ref()?;
        let waits = job.phase == Phase::Waiting && !recur.delivered && recur.rule.grace != 0;
        let applies = waits && !self.has(Fault::GraceForgotten);
        applies.then(|| (job.due + recur.rule.grace).min(LAST))
    }

    /// What follows the occurrence that ended as number `runs`: the next occurrence and its due time.
    fn follows_at(&self, recur: &Recurring, id: &[u8], now: u64) -> Option<(u64, u64)> {
        let Recurring {
            rule,
            runs,
            occurrence,
            ttl,
            ..
        } = recur;
        if rule.times != 0 && runs + 1 >= rule.times {
            return None;
        }
        let from = if self.has(Fault::MissedRunsRepeat) {
            *occurrence
        } else {
            now.max(*occurrence)
        };
        let grid = if self.has(Fault::GridFromEnd) {
            from
        } else {
            *occurrence
        };
        let next = rule.next(grid, from)?;
        let add = AddOp {
            ttl: *ttl,
            ..AddOp::like(id)
        };
        Some((next, rule.due(id, next, &add)))
    }

    /// "each such end counts in runs and TIMES ... Then the job is due at the rule's first instant after both now
    /// and the occurrence: attempts 0, token ended, order of adding as before."
    pub(super) fn occurrence_ends(&mut self, index: usize) {
        let job = &self.jobs[index];
        let Some(recur) = &job.recur else { return };
        let Some((occurrence, due)) = self.follows_at(recur, &job.id, self.now) else {
            self.jobs.remove(index);
            return;
        };
        let job = &mut self.jobs[index];
        job.due = due;
        job.notes = job.notes.of_next_occurrence(self.fault);
        job.attempts = 0;
        job.token = None;
        job.phase = Phase::Waiting;
        if let Some(recur) = &mut job.recur {
            job.expires = recur.ttl.map(|ttl| (due + ttl).min(LAST));
            (recur.occurrence, recur.delivered) = (occurrence, false);
            recur.runs += 1;
        }
    }

    /// "A dead occurrence stays in the dead list as a job of its own, `<id>@<occurrence>`"
    pub(super) fn occurrence_dies(&mut self, index: usize, since: u64) {
        let job = &mut self.jobs[index];
        let occurrence = job
            .recur
            .take()
            .inspect(|recur| job.recur = Some(recur.clone()));
        let occurrence = occurrence.map_or(0, |recur| recur.occurrence);
        let id = [&job.id[..], format!("@{occurrence}").as_bytes()].concat();
        let mut dead = Job {
            id: id.clone(),
            expires: None,
            token: None,
            phase: Phase::Dead {
                since,
                order: self.deaths,
            },
            recur: None,
            ..job.clone()
        };
        job.failure = None;
        self.occurrence_ends(index);
        let taken = self.find(&id).is_some() || self.find_done(&id).is_some();
        if id.len() > 1024 || taken {
            self.totals.deleted += 1;
        } else {
            self.adds += 1;
            dead.seq = self.adds;
            self.jobs.push(dead);
        }
        self.trim_dead();
    }

    /// "REPLACE or XX by the same rule, without DELAY or AT"
    pub(super) fn renews(&self, there: Option<usize>, add: &AddOp) -> Option<usize> {
        let replaces = matches!(add.condition, Condition::Existing | Condition::Replace);
        let rule = add
            .rule
            .as_ref()
            .filter(|_| replaces && add.when.is_none())?;
        let is_same = |at: &usize| {
            let recur = self.jobs[*at].recur.as_ref();
            recur.is_some_and(|recur| recur.rule.is_same(rule))
        };
        there
            .filter(is_same)
            .filter(|_| !self.has(Fault::RenewalBeginsAfresh))
    }

    /// "payload and options are the new ones; due, occurrence, runs, order of adding, attempts, lease and token
    /// stay, GRACE and TTL are reckoned from the due that stays"
    pub(super) fn renew(&mut self, at: usize, add: &AddOp, new: Job) {
        self.totals.added += 1;
        self.totals.deleted += 1;
        // "where its only job is replaced it begins anew"
        if !matches!(self.jobs[at].phase, Phase::Dead { .. }) {
            let job = self.jobs.remove(at);
            self.begins(&new.group);
            self.jobs.insert(at, job);
        }
        let job = &mut self.jobs[at];
        job.group = new.group;
        let kept = job.notes.said.keep();
        job.notes.said = new.notes.said;
        if self.fault == Fault::KeepOutlivesRenewal {
            job.notes.said = job.notes.said.clone().keeping(kept);
        }
        (job.payload, job.priority, job.ttr) = (new.payload, new.priority, new.ttr);
        (job.max_attempts, job.backoff) = (new.max_attempts, new.backoff);
        // "TTL counts from the due the occurrence began with", which one that waits for a signal does not show.
        let began = match (job.due, job.expires, &job.recur) {
            (LAST, Some(expires), Some(recur)) if expires < LAST => {
                expires - recur.ttl.unwrap_or(0)
            }
            (LAST, _, Some(recur)) => recur.occurrence,
            (due, ..) => due,
        };
        job.expires = add.ttl.map(|ttl| (began + ttl).min(LAST));
        if let (Some(recur), Some(rule)) = (&mut job.recur, &add.rule) {
            (recur.rule, recur.ttl) = (rule.clone(), add.ttl);
        }
    }

    /// The instants as DQ.NEXT replies with them.
    pub fn next_instants(&self, job: &Job, count: usize, now: u64) -> Vec<u64> {
        let mut instants = Vec::new();
        let Some(mut recur) = job.recur.clone() else {
            return instants;
        };
        let mut at = now;
        if job.phase == Phase::Waiting && !recur.delivered && job.due > now {
            instants.push(job.due);
            at = job.due;
        }
        while instants.len() < count {
            let Some((occurrence, due)) = self.follows_at(&recur, &job.id, at) else {
                break;
            };
            instants.push(due);
            at = due;
            recur.occurrence = occurrence;
            recur.runs += 1;
        }
        instants
    }
}
