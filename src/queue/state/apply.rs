//! Carrying out effects: the only code that changes a queue.
//!
//! [`Queue::apply`] takes effects from anywhere, a forged payload included, and refuses what does not
//! fit. What a master has decided goes through [`Queue::commit_job`] to the same [`Queue::change`].

use super::groups::check_name;
use super::position::Fate;
use super::rate::RateWindow;
use super::store::{Job, NewJob};
use super::Queue;
use crate::queue::effect::{Change, Coming, Effect, FOREVER};
use crate::queue::error::QueueError;
use crate::queue::job::{
    Failure, Handle, Place, Terms, ID_MAX, INSTANT_MAX, REASON_MAX, SEQ_MAX, TOKEN_MAX,
};
use crate::queue::settings::{check_terms, Settings};
use crate::storage::broken::must;
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

pub(super) fn check_failure(failure: Failure<'_>) -> Result<(), QueueError> {
    check_instant(failure.at)?;
    if failure
        .reason
        .is_some_and(|reason| reason.len() > REASON_MAX)
    {
        return Err(malformed("a reason longer than any that is kept"));
    }
    Ok(())
}

impl Queue {
    /// Carries out one effect, or changes nothing.
    pub fn apply(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        self.end_restoring(effect)?;
        let applied = self.apply_alone(effect);
        if self.flows.as_ref().is_some_and(|flows| flows.has_line()) {
            self.shorten_line();
        }
        applied
    }

    fn apply_alone(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Added {
                id,
                payload,
                due,
                expires,
                ref terms,
            } => self.apply_added((id, None), payload, (due, expires), terms),
            Effect::Followed {
                id,
                payload,
                due,
                expires,
                ref terms,
            } => self.apply_followed((id, None), payload, (due, expires), terms),
            Effect::Recurs {
                id,
                payload,
                ref terms,
                ref rule,
                first,
            } => self.apply_recurs((id, None), payload, terms, rule, first),
            Effect::Renewed {
                id,
                payload,
                ref terms,
                ref rule,
            } => self.apply_renewed((id, None), payload, terms, rule),
            Effect::Grouped { .. } => self.apply_grouped(effect),
            ref effect if effect.is_of_flows() => self.apply_to_flows(effect),
            Effect::Rows { rows } => self.apply_rows(rows),
            Effect::Noted { id, note } => self.apply_noted(id, note),
            Effect::Done(ref of_done) => self.apply_done(of_done),
            Effect::AddedTogether { .. } => self.apply_added_together(effect),
            Effect::Job { .. } | Effect::Failed { .. } | Effect::Recurred { .. } => {
                self.apply_to_job(effect)
            }
            _ => self.apply_to_queue(effect),
        }
    }

    /// Finishes what a snapshot left to do, if this effect needs it.
    fn end_restoring(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        if self.jobs.is_unindexed() && effect.looks_for_jobs() {
            if effect.is_kept_flow() || matches!(effect, Effect::Noted { .. }) {
                // In a snapshot, these effects come after all rows.
                self.check_told_turns(true)?;
            }
            self.index()?;
        }
        if self.flows.is_some() && !effect.is_kept_flow() {
            self.end_restoring_flows();
            // A master reports each job that it unblocks for this reason.
            if !effect.stands_in_snapshots() && !matches!(effect, Effect::Unblocked { .. }) {
                self.free_stuck();
            }
        }
        Ok(())
    }

    /// Adds a job with a group.
    fn apply_grouped(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        let Effect::Grouped {
            group,
            id,
            payload,
            ref terms,
            ref coming,
        } = *effect
        else {
            return Ok(());
        };
        check_name(group)?;
        let named = (id, Some(group));
        match *coming {
            Coming::Added { due, expires } => {
                self.apply_added(named, payload, (due, expires), terms)
            }
            Coming::Followed { due, expires } => {
                self.apply_followed(named, payload, (due, expires), terms)
            }
            Coming::Recurs { ref rule, first } => {
                self.apply_recurs(named, payload, terms, rule, first)
            }
            Coming::Renewed { ref rule } => self.apply_renewed(named, payload, terms, rule),
        }
    }

    /// Effects on a job that exists.
    fn apply_to_job(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Job { id, change } => {
                let handle = self.expect(id)?;
                Self::check_change(self.jobs.job(handle), change)?;
                self.change(handle, change);
            }
            Effect::Failed {
                id,
                change,
                failure,
            } => {
                let handle = self.expect(id)?;
                Self::check_change(self.jobs.job(handle), change)?;
                check_failure(failure)?;
                if !matches!(change, Change::Nacked { .. } | Change::Died { .. }) {
                    return Err(malformed("a failure by what is none"));
                }
                self.fail(handle, change, failure);
            }
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
            _ => return Err(malformed("an effect that is on no job")),
        }
        Ok(())
    }

    /// Effects on settings, the dedupe window and numbers, and those that remove many jobs.
    fn apply_to_queue(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Kept => self.kept = true,
            Effect::Configured(_) | Effect::Bounded { .. } | Effect::GroupLimits(_) => {
                self.apply_settings(effect)?;
            }
            Effect::Paused { until } => {
                if until != FOREVER {
                    check_instant(until)?;
                }
                self.kept = true;
                self.paused_until = until;
            }
            Effect::Resumed => self.paused_until = 0,
            Effect::Remembered { .. } | Effect::ForgotId { .. } | Effect::Forgot { .. } => {
                self.apply_to_window(effect)?;
            }
            Effect::Purged { .. }
            | Effect::PurgedLeases { .. }
            | Effect::PurgedOverdue { .. }
            | Effect::Trimmed { .. } => self.apply_removal(effect)?,
            Effect::Floors { seq, death, token } => {
                if seq > SEQ_MAX || death > SEQ_MAX || token > TOKEN_MAX {
                    return Err(malformed("a number that leaves no room to count on"));
                }
                self.seq = self.seq.max(seq);
                self.deaths = self.deaths.max(death);
                self.token = self.token.max(token);
            }
            Effect::Dropped | Effect::Minted { .. } => {}
            // Listed by name, so that no new effect is overlooked.
            Effect::Added { .. }
            | Effect::Followed { .. }
            | Effect::Recurs { .. }
            | Effect::Renewed { .. }
            | Effect::Recurred { .. }
            | Effect::Grouped { .. }
            | Effect::Rows { .. }
            | Effect::Done(_)
            | Effect::Job { .. }
            | Effect::Noted { .. }
            | Effect::AddedTogether { .. }
            | Effect::Failed { .. }
            | Effect::AddedAfter { .. }
            | Effect::Waits { .. }
            | Effect::Over { .. }
            | Effect::Emptied { .. }
            | Effect::Stepped { .. }
            | Effect::Unblocked { .. }
            | Effect::End { .. }
            | Effect::Links { .. } => return Err(malformed("an effect on a job")),
        }
        Ok(())
    }

    /// Effects on the dedupe window.
    fn apply_to_window(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Remembered { id, until } => {
                check_id(id)?;
                check_instant(until)?;
                self.remember(id, until)?;
            }
            Effect::ForgotId { id } => {
                let id = self.jobs.hashed(id);
                if let Some(dedupe) = self.dedupe.made() {
                    dedupe.forget(id, &**self.jobs.hasher());
                }
            }
            Effect::Forgot { until } => {
                if let Some(dedupe) = self.dedupe.made() {
                    dedupe.forget_until(until, &**self.jobs.hasher());
                }
            }
            _ => return Err(malformed("an effect on no id")),
        }
        Ok(())
    }

    /// Effects that remove many jobs at once.
    fn apply_removal(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Purged { state, cut } => {
                check_instant(cut)?;
                self.apply_purge(state, cut);
            }
            Effect::PurgedLeases { cut } => {
                check_instant(cut)?;
                self.apply_purge_of_leases(cut);
            }
            Effect::PurgedOverdue { dead, cut } => {
                check_instant(cut)?;
                let fate = if dead { Fate::Dies } else { Fate::Back };
                self.apply_purge_of_overdue(fate, cut);
            }
            Effect::Trimmed { count } => {
                let dead = self.dead.len();
                let count = usize::try_from(count).ok().filter(|&count| count <= dead);
                self.apply_trim(count.ok_or(malformed("more dead jobs than there are"))?);
            }
            _ => return Err(malformed("an effect that removes nothing")),
        }
        Ok(())
    }

    /// Each effect leaves the other settings as they are.
    fn apply_settings(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        let old = &*self.settings;
        let new = match *effect {
            Effect::Configured(ref settings) => {
                settings.check()?;
                Settings {
                    max_bytes: old.max_bytes,
                    group_limits: old.group_limits,
                    done_limits: old.done_limits,
                    ..settings.clone()
                }
            }
            Effect::Bounded { max_bytes } => Settings {
                max_bytes,
                ..old.clone()
            },
            Effect::GroupLimits(group_limits) => {
                group_limits.check()?;
                Settings {
                    group_limits,
                    ..old.clone()
                }
            }
            _ => return Err(malformed("an effect that sets nothing")),
        };
        self.configure(new);
        Ok(())
    }

    pub(super) fn expect(&self, id: &[u8]) -> Result<Handle, QueueError> {
        let handle = self.find(self.jobs.hashed(id));
        handle.ok_or(malformed("an effect on a job that is not there"))
    }

    fn apply_added(
        &mut self,
        (id, group): (&[u8], Option<&[u8]>),
        payload: &[u8],
        (due, expires): (u64, u64),
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
        let mut job = NewJob {
            group,
            ..NewJob::scheduled(id, payload, (due, expires), terms)
        };
        self.put(old, &mut job, self.jobs.hashed(id), None);
        Ok(())
    }

    /// Whether the change is one that the job's place allows, with numbers within bounds.
    #[inline]
    pub(super) fn check_change(job: Job<'_>, change: Change) -> Result<(), QueueError> {
        let place = job.place();
        let is_live = !matches!(place, Place::Dead | Place::Blocked);
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
            Change::Nacked { due, .. } => is_live && due <= INSTANT_MAX,
            Change::Died { at, .. } => {
                let ends_otherwise = job.is_followed() || job.recurring().is_some();
                is_live && at <= INSTANT_MAX && !ends_otherwise
            }
            Change::Rescheduled { due } => place == Place::Scheduled && due <= INSTANT_MAX,
            Change::Kicked { due } => place == Place::Dead && due <= INSTANT_MAX,
            Change::Removed { remember, .. } => remember <= INSTANT_MAX,
            Change::Prioritized { .. } => place == Place::Scheduled,
            Change::Succeeded { remember, .. } => remember <= INSTANT_MAX && job.is_followed(),
            Change::SuccessorExpired => job.is_followed(),
        };
        if fits {
            Ok(())
        } else {
            Err(malformed("an effect that the job's state does not allow"))
        }
    }

    pub(super) fn remember_job(&mut self, handle: Handle, until: u64) {
        if until != 0 {
            let id = self.jobs.job(handle).id().to_vec();
            let remembered = self.remember(&id, until);
            must(remembered.is_ok(), "no room to remember an id");
        }
    }

    fn remember(&mut self, id: &[u8], until: u64) -> Result<(), QueueError> {
        if !self.dedupe.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        let id = self.jobs.hashed(id);
        self.dedupe
            .make()
            .remember(id, until, &**self.jobs.hasher());
        Ok(())
    }

    pub(super) fn configure(&mut self, settings: Settings) {
        self.kept = true;
        if settings.dedupe_ms == 0 && self.dedupe.len() > 0 {
            self.set_dedupe_aside();
        }
        if settings.rate != self.settings.rate {
            let window = settings.rate.map(|_| Box::new(RateWindow::new(self.token)));
            self.cold.make().rate = window;
        }
        let limits = settings.group_limits;
        let before = std::mem::replace(&mut self.settings, Arc::new(settings)).group_limits;
        if limits.rate != before.rate {
            self.set_group_rates_aside();
        }
        if limits != before {
            self.regroup();
        }
    }
}
