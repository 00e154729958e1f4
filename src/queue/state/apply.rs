//! Carrying out effects: the only code that changes a queue.
//!
//! [`Queue::apply`] takes effects from anywhere, a forged payload included, and refuses what does not
//! fit. What a master has decided goes through [`Queue::commit_job`] to the same [`Queue::change`].

use super::purged::BURIED_WITH_EACH;
use super::rate::RateWindow;
use super::recurring::check_round;
use super::rows;
use super::schedule::Standing;
use super::store::{Course, Id, NewJob};
use super::successor::check_successors;
use super::Queue;
use crate::queue::effect::{Change, Death, Effect, FOREVER};
use crate::queue::error::QueueError;
use crate::queue::job::{
    Failure, Handle, Life, Place, Terms, ID_MAX, INSTANT_MAX, REASON_MAX, SEQ_MAX, TOKEN_MAX,
};
use crate::queue::recurring::rule::Compiled;
use crate::queue::settings::{check_terms, Settings};
use crate::storage::skiplist::Way;
use std::sync::Arc;

pub(super) const fn malformed(what: &'static str) -> QueueError {
    QueueError::Malformed(what)
}

pub(super) fn check_instant(instant: u64) -> Result<(), QueueError> {
    if instant > INSTANT_MAX {
        return Err(malformed("an instant past the last"));
    }
    Ok(())
}

pub(super) fn check_id(id: &[u8]) -> Result<(), QueueError> {
    if !(1..=ID_MAX).contains(&id.len()) {
        return Err(malformed("an id of an impossible length"));
    }
    Ok(())
}

fn check_failure(failure: Failure<'_>) -> Result<(), QueueError> {
    check_instant(failure.at)?;
    if failure
        .reason
        .is_some_and(|reason| reason.len() > REASON_MAX)
    {
        return Err(malformed("a reason longer than any that is kept"));
    }
    Ok(())
}

pub(super) const CONTRADICTION: &str = "a stored job that contradicts itself or another";

/// Whether a job as it stands may stand so, but for its terms and for other jobs.
pub(super) fn check_stored(job: &NewJob<'_>) -> Result<(), QueueError> {
    let life = &job.life;
    check_id(job.id)?;
    for instant in [job.due, life.expires, life.at, life.lease_ms] {
        check_instant(instant)?;
    }
    if job.seq > SEQ_MAX || life.death > SEQ_MAX || life.token > TOKEN_MAX {
        return Err(malformed("a number that leaves no room to count on"));
    }
    job.failure.map_or(Ok(()), check_failure)?;
    if let Some((rule, round)) = &job.recurring {
        check_round(round)?;
        if matches!(job.place, Place::Dead | Place::Successor)
            || rule.ttl_ms == 0 && life.expires != 0
        {
            return Err(malformed(CONTRADICTION));
        }
    }
    let fits = match job.place {
        Place::Scheduled => life.at == 0 && life.death == 0,
        Place::Reserved => life.token != 0 && life.death == 0,
        Place::Dead => true,
        Place::Successor => {
            let fresh = Life {
                expires: life.expires,
                ..Life::default()
            };
            *life == fresh && job.failure.is_none()
        }
    };
    if !fits {
        return Err(malformed(CONTRADICTION));
    }
    Ok(())
}

/// Where a job is, and on which lists by which keys.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) course: Course,
    pub(super) priority: i32,
    /// After its due the occurrence of a recurring job is skipped; 0 is never.
    pub(super) grace_ms: u64,
}

/// When a job that is not reserved goes by itself, or its occurrence does; 0 is never.
pub(super) fn end_of(due: u64, expires: u64, grace_ms: u64) -> u64 {
    if grace_ms == 0 {
        return expires;
    }
    let skipped = (due + grace_ms).min(INSTANT_MAX);
    match expires {
        0 => skipped,
        expires => skipped.min(expires),
    }
}

impl Position {
    pub(super) fn standing(self) -> Standing {
        Standing {
            priority: self.priority,
            due: self.course.due,
        }
    }

    fn end(self) -> u64 {
        end_of(self.course.due, self.course.life.expires, self.grace_ms)
    }

    /// How the job stands afterwards; `death` is its place in the order of dying, if it died.
    fn changed(mut self, change: Change, death: u64) -> Self {
        let Course {
            place,
            due: job_due,
            life,
        } = &mut self.course;
        match change {
            Change::Reserved {
                token,
                deadline,
                lease_ms,
            } => {
                life.attempts = life.attempts.saturating_add(1);
                (life.token, life.at, life.lease_ms) = (token, deadline, lease_ms);
                *place = Place::Reserved;
                self.grace_ms = 0;
            }
            Change::Touched { deadline, lease_ms } => {
                (life.at, life.lease_ms) = (deadline, lease_ms);
            }
            Change::TimedOut => {
                life.at = 0;
                *place = Place::Scheduled;
            }
            Change::Nacked {
                due,
                priority,
                attempts,
            } => {
                (life.attempts, life.token, life.at, life.lease_ms) = (attempts, 0, 0, 0);
                (*job_due, *place, self.priority) = (due, Place::Scheduled, priority);
            }
            Change::Died { at, cause } => {
                (life.at, life.death) = (at, death);
                if let Death::Nacked { priority } = cause {
                    (life.token, life.lease_ms) = (0, 0);
                    self.priority = priority;
                }
                *place = Place::Dead;
            }
            Change::Rescheduled { due } => {
                (life.token, life.lease_ms) = (0, 0);
                *job_due = due;
            }
            Change::Kicked { due } => {
                *life = Life {
                    expires: life.expires,
                    ..Life::default()
                };
                (*job_due, *place) = (due, Place::Scheduled);
            }
            Change::Prioritized { priority } => self.priority = priority,
            Change::Removed { .. } | Change::Succeeded { .. } | Change::SuccessorExpired => {}
        }
        self
    }
}

impl Queue {
    /// Carries out one effect, or changes nothing.
    pub fn apply(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        if self.jobs.is_unindexed() && effect.looks_for_jobs() {
            self.index()?;
        }
        match *effect {
            Effect::Added {
                id,
                payload,
                due,
                expires,
                ref terms,
            } => self.apply_added(id, payload, due, expires, terms)?,
            Effect::Job { id, change } => {
                let handle = self.expect(id)?;
                self.check_change(handle, change)?;
                self.change(handle, change);
            }
            Effect::Failed {
                id,
                change,
                failure,
            } => {
                let handle = self.expect(id)?;
                self.check_change(handle, change)?;
                check_failure(failure)?;
                if !matches!(change, Change::Nacked { .. } | Change::Died { .. }) {
                    return Err(malformed("a failure by what is none"));
                }
                self.change(handle, change);
                self.jobs.set_failure(handle, failure);
            }
            Effect::Followed {
                id,
                payload,
                due,
                expires,
                ref terms,
            } => self.apply_followed(id, payload, (due, expires), terms)?,
            Effect::Recurs {
                id,
                payload,
                ref terms,
                ref rule,
                first,
            } => self.apply_recurs(id, payload, terms, rule, first)?,
            Effect::Renewed {
                id,
                payload,
                ref terms,
                ref rule,
            } => self.apply_renewed(id, payload, terms, rule)?,
            Effect::Recurred {
                id,
                ended,
                next,
                failure,
            } => {
                let handle = self.expect(id)?;
                failure.map_or(Ok(()), check_failure)?;
                self.check_recurred(handle, ended, next)?;
                self.recur(handle, ended, next, failure);
            }
            Effect::Rules { .. } => return Err(malformed("a rule without a job")),
            Effect::Kept => self.kept = true,
            Effect::Configured(ref settings) => {
                settings.check()?;
                let max_bytes = self.settings.max_bytes;
                self.configure(Settings {
                    max_bytes,
                    ..settings.clone()
                });
            }
            Effect::Bounded { max_bytes } => self.configure(Settings {
                max_bytes,
                ..(*self.settings).clone()
            }),
            Effect::Paused { until } => {
                if until != FOREVER {
                    check_instant(until)?;
                }
                self.kept = true;
                self.paused_until = until;
            }
            Effect::Resumed => self.paused_until = 0,
            Effect::Remembered { id, until } => {
                check_id(id)?;
                check_instant(until)?;
                self.remember(id, until)?;
            }
            Effect::ForgotId { id } => {
                self.memory.forget(id);
            }
            Effect::Forgot { until } => self.memory.forget_until(until),
            Effect::Purged { state, cut } => {
                check_instant(cut)?;
                self.apply_purge(state, cut);
            }
            Effect::PurgedLeases { cut } => {
                check_instant(cut)?;
                self.apply_purge_of_leases(cut);
            }
            Effect::Trimmed { count } => {
                let dead = self.dead.len();
                let count = usize::try_from(count).ok().filter(|&count| count <= dead);
                self.apply_trim(count.ok_or(malformed("more dead jobs than there are"))?);
            }
            Effect::Stored { .. } => self.apply_stored(effect)?,
            Effect::Rows { rows } => self.apply_rows(rows)?,
            Effect::Floors { seq, death, token } => {
                if seq > SEQ_MAX || death > SEQ_MAX || token > TOKEN_MAX {
                    return Err(malformed("a number that leaves no room to count on"));
                }
                self.seq = self.seq.max(seq);
                self.deaths = self.deaths.max(death);
                self.token = self.token.max(token);
            }
            Effect::Dropped | Effect::Minted { .. } => {}
        }
        Ok(())
    }

    pub(super) fn expect(&self, id: &[u8]) -> Result<Handle, QueueError> {
        let handle = self.find(self.jobs.hashed(id));
        handle.ok_or(malformed("an effect on a job that is not there"))
    }

    fn apply_added(
        &mut self,
        id: &[u8],
        payload: &[u8],
        due: u64,
        expires: u64,
        terms: &Terms<'_>,
    ) -> Result<(), QueueError> {
        check_id(id)?;
        check_instant(due)?;
        check_instant(expires)?;
        check_terms(terms)?;
        let old = self.find(self.jobs.hashed(id));
        if old.is_none() && !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        let job = NewJob::scheduled(id, payload, (due, expires), terms);
        self.put(old, job, self.jobs.hashed(id), None);
        Ok(())
    }

    /// Puts a job, the last in the order of adding, in the place of an old one of its id. The way to its
    /// place may be known.
    pub(super) fn put(
        &mut self,
        old: Option<Handle>,
        mut job: NewJob<'_>,
        id: Id<'_>,
        way: Option<&Way<u64>>,
    ) {
        if let Some(old) = old {
            self.remove(old);
        }
        if self.seq >= SEQ_MAX {
            self.number_anew();
        }
        self.seq += 1;
        job.seq = self.seq;
        self.insert(&job, id, way);
    }

    fn apply_stored(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        let Effect::Stored {
            id,
            payload,
            seq,
            due,
            place,
            life,
            ref terms,
        } = *effect
        else {
            return Ok(());
        };
        let job = NewJob {
            id,
            payload,
            seq,
            due,
            place,
            terms,
            life,
            failure: None,
            recurring: None,
        };
        check_terms(job.terms)?;
        check_stored(&job)?;
        if place == Place::Successor {
            return Err(malformed(CONTRADICTION));
        }
        if self.find(self.jobs.hashed(job.id)).is_some() {
            return Err(malformed(CONTRADICTION));
        }
        if !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.restore(job);
        Ok(())
    }

    fn apply_rows(&mut self, bytes: &[u8]) -> Result<(), QueueError> {
        let all = rows::read(bytes)?;
        all.terms.iter().try_for_each(check_terms)?;
        let of_rule = |rule| Compiled::of(rule).map(drop);
        all.rules.iter().try_for_each(of_rule)?;
        let jobs = || all.jobs();
        jobs().try_for_each(|job| check_stored(&job))?;
        check_successors(jobs())?;
        if !self.jobs.is_unindexed() {
            let others = jobs().filter(|job| job.place != Place::Successor);
            self.check_distinct(others.map(|job| job.id))?;
        }
        if !self.jobs.has_room_for(all.rows.len()) {
            return Err(QueueError::TooManyJobs);
        }
        let mut last = None;
        for job in jobs() {
            let is_successor = job.place == Place::Successor;
            let handle = self.restore(job);
            match last.filter(|_| is_successor) {
                Some(before) => self.set_successor(before, handle),
                None => last = Some(handle),
            }
        }
        Ok(())
    }

    /// Whether these ids are new, and no two of them the same.
    fn check_distinct<'a>(&self, ids: impl Iterator<Item = &'a [u8]>) -> Result<(), QueueError> {
        let mut ids: Vec<&[u8]> = ids.collect();
        // All are looked for before the first comes, so that their places in the index are on their way
        // from memory at the same time, not one after the other.
        let known = ids
            .iter()
            .any(|id| self.find(self.jobs.hashed(id)).is_some());
        ids.sort_unstable();
        if known || !ids.is_sorted_by(|a, b| a < b) {
            return Err(malformed(CONTRADICTION));
        }
        Ok(())
    }

    fn restore(&mut self, job: NewJob<'_>) -> Handle {
        self.seq = self.seq.max(job.seq);
        self.deaths = self.deaths.max(job.life.death);
        self.token = self.token.max(job.life.token);
        self.insert(&job, self.jobs.hashed(job.id), None)
    }

    #[inline]
    pub(super) fn insert(
        &mut self,
        job: &NewJob<'_>,
        id: Id<'_>,
        way: Option<&Way<u64>>,
    ) -> Handle {
        debug_assert!(id == self.jobs.hashed(job.id));
        let at = Position {
            course: Course {
                place: job.place,
                due: job.due,
                life: job.life,
            },
            priority: job.terms.priority,
            grace_ms: job.grace_ms(),
        };
        self.bury_namesake(id);
        let handle = self.jobs.insert(job, id);
        self.link(handle, at, way);
        handle
    }

    pub(super) fn position(&self, handle: Handle) -> Position {
        let job = self.jobs.job(handle);
        Position {
            course: job.course(),
            priority: job.terms().priority,
            grace_ms: job.grace_ms(),
        }
    }

    /// Whether the change is one that the job's place allows, with numbers within bounds.
    pub(super) fn check_change(&self, handle: Handle, change: Change) -> Result<(), QueueError> {
        let place = self.jobs.job(handle).place();
        let fits = match change {
            Change::Reserved {
                token,
                deadline,
                lease_ms,
            } => {
                place == Place::Scheduled
                    && (1..=TOKEN_MAX).contains(&token)
                    && deadline.max(lease_ms) <= INSTANT_MAX
            }
            Change::Touched { deadline, lease_ms } => {
                place == Place::Reserved && deadline.max(lease_ms) <= INSTANT_MAX
            }
            Change::TimedOut => place == Place::Reserved,
            Change::Nacked { due, .. } => place != Place::Dead && due <= INSTANT_MAX,
            Change::Died { at, .. } => {
                let is_followed = self.jobs.successor(handle).is_some();
                let recurs = self.jobs.job(handle).recurring().is_some();
                place != Place::Dead && at <= INSTANT_MAX && !is_followed && !recurs
            }
            Change::Rescheduled { due } => place == Place::Scheduled && due <= INSTANT_MAX,
            Change::Kicked { due } => place == Place::Dead && due <= INSTANT_MAX,
            Change::Removed { remember, .. } => remember <= INSTANT_MAX,
            Change::Prioritized { .. } => place == Place::Scheduled,
            Change::Succeeded { remember, .. } => {
                remember <= INSTANT_MAX && self.jobs.successor(handle).is_some()
            }
            Change::SuccessorExpired => self.jobs.successor(handle).is_some(),
        };
        if fits {
            Ok(())
        } else {
            Err(malformed("an effect that the job's state does not allow"))
        }
    }

    #[inline]
    pub(super) fn change(&mut self, handle: Handle, change: Change) {
        if let Change::Removed { remember, .. } = change {
            self.remember_job(handle, remember);
            return self.remove(handle);
        }
        match change {
            Change::Succeeded { remember, .. } => return self.succeed(handle, remember),
            Change::SuccessorExpired => return self.remove_successor(handle),
            Change::Died { .. } => self.count_death(),
            _ => {}
        }
        let before = self.position(handle);
        self.unlink(handle, before);
        let after = before.changed(change, self.deaths);
        self.token = self.token.max(after.course.life.token);
        if after.priority != before.priority {
            self.jobs.set_priority(handle, after.priority);
        }
        self.jobs.set_course(handle, after.course);
        if let Change::Reserved { .. } = change {
            self.note_delivered(handle);
        }
        self.link(handle, after, None);
        match change {
            Change::TimedOut => {
                let failure = Failure::of_lease(before.course.life.at);
                self.jobs.set_failure(handle, failure);
            }
            Change::Died {
                at,
                cause: Death::TimedOut,
            } => self.jobs.set_failure(handle, Failure::of_lease(at)),
            _ => {}
        }
    }

    /// With its successor.
    pub(super) fn remove(&mut self, handle: Handle) {
        self.remove_successor(handle);
        self.unlink(handle, self.position(handle));
        for ghosts in &mut self.ghosts {
            ghosts.freed(handle);
        }
        self.jobs.remove(handle);
    }

    /// Puts a job into the lists that its position names.
    #[inline]
    pub(super) fn link(&mut self, handle: Handle, at: Position, way: Option<&Way<u64>>) {
        for ghosts in &mut self.ghosts {
            ghosts.linked(handle);
        }
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let Course { place, life, .. } = at.course;
        match place {
            Place::Scheduled => self.schedule.insert(at.standing(), handle, way, seq),
            Place::Reserved => self.reserved.insert(life.at, handle, seq),
            Place::Dead => self
                .dead
                .insert(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => {}
        }
        if at.end() != 0 && place != Place::Reserved {
            self.expiring.insert(at.end(), handle, seq);
        }
        if self.jobs.is_followed(handle) {
            self.followed.insert(handle, at.course);
        }
        if self.is_haunted() {
            self.bury(BURIED_WITH_EACH);
        }
    }

    /// Takes a job out of the lists that its position names.
    #[inline]
    pub(super) fn unlink(&mut self, handle: Handle, at: Position) {
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let Course { place, life, .. } = at.course;
        let there = match place {
            Place::Scheduled => self.schedule.remove(at.standing(), handle, seq),
            Place::Reserved => self.reserved.remove(life.at, handle, seq),
            Place::Dead => self
                .dead
                .remove(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => true,
        };
        debug_assert!(there, "job {handle} is not where its fields say");
        if at.end() != 0 && place != Place::Reserved {
            self.expiring.remove(at.end(), handle, seq);
        }
        if self.jobs.is_followed(handle) {
            self.followed.remove(handle, at.course);
        }
    }

    pub(super) fn remember_job(&mut self, handle: Handle, until: u64) {
        if until != 0 {
            let id = self.jobs.job(handle).id().to_vec();
            let remembered = self.remember(&id, until);
            debug_assert!(remembered.is_ok());
        }
    }

    fn remember(&mut self, id: &[u8], until: u64) -> Result<(), QueueError> {
        if !self.memory.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.memory.remember(id, until);
        Ok(())
    }

    fn configure(&mut self, settings: Settings) {
        self.kept = true;
        if settings.dedupe_ms == 0 && self.memory.len() > 0 {
            self.set_memory_aside();
        }
        if settings.rate != self.settings.rate {
            self.rate = settings.rate.map(|rate| Box::new(RateWindow::new(rate)));
        }
        self.settings = Arc::new(settings);
    }
}
