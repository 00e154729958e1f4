//! Carrying out effects: the only code that changes a queue.
//!
//! [`Queue::apply`] takes effects from anywhere, a forged payload included, and refuses what does not
//! fit. What a master has decided goes through [`Queue::commit_job`] to the same [`Queue::change`].

use super::bounds::{check_failure, check_group, check_id, check_instant, malformed};
use super::fits::check_change;
use super::jobs::Jobs;
use super::moves::Known;
use super::parts::Parts;
use super::position::Position;
use super::rate::RateWindow;
use super::store::NewJob;
use super::Queue;
use crate::queue::after::{Link, Moment, OnDead};
use crate::queue::effect::{Came, Change, Effect, Forgotten, How, FOREVER};
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, SEQ_MAX, TOKEN_MAX};
use crate::queue::settings::{check_terms, GroupSettings, Settings};
use std::sync::Arc;

impl Queue {
    /// Carries out one effect, or changes nothing.
    pub fn apply(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        self.end_restoring(effect)?;
        let applied = self.apply_alone(effect);
        if let Some(flows) = self.parts.flows.as_mut().filter(|flows| flows.has_line()) {
            flows.shorten_line(&self.jobs);
            self.parts.drop_flows(&self.jobs);
        }
        applied
    }

    fn apply_alone(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        match *effect {
            Effect::Came(ref came) => self.apply_came(came),
            Effect::CameTogether {
                group,
                due,
                expires,
                ref terms,
                ref jobs,
            } => self.apply_came_together(group, (due, expires), terms, jobs),
            Effect::Rows { rows } => self.apply_rows(rows),
            Effect::Noted { id, note } => self.jobs.apply_noted(id, note),
            Effect::Failed { id, attempt, kept } => self.jobs.apply_failed(id, attempt, kept),
            Effect::Done(ref of_done) => self.apply_done(of_done),
            Effect::Job { id, change } => {
                let (handle, before) = self.jobs.expect_for(id, change)?;
                self.change(handle, before, change);
                Ok(())
            }
            Effect::Recurred {
                id,
                ended,
                next,
                failure,
            } => {
                let handle = self.jobs.expect(id)?;
                failure.map_or(Ok(()), check_failure)?;
                self.parts.check_recurred(&self.jobs, handle, ended, next)?;
                self.recur(handle, ended, next, failure);
                Ok(())
            }
            Effect::Purged(purge) => self.parts.apply_purge(&mut self.jobs, purge),
            Effect::Waits { id, ref after } => self.parts.apply_waits(&mut self.jobs, id, after),
            Effect::Over {
                id,
                outcome,
                at,
                value,
            } => self.parts.apply_over(&self.jobs, id, outcome, at, value),
            Effect::Stepped { count, .. } => self.parts.apply_stepped(&mut self.jobs, count),
            Effect::End {
                id,
                outcome,
                at,
                value,
            } => self.parts.restore_end(&self.jobs, id, outcome, at, value),
            Effect::Links {
                id,
                on_dead,
                is_timed,
                of_group,
                latest,
                ref links,
            } => self.apply_links(id, (on_dead, is_timed, of_group, latest), links),
            Effect::Configured(ref settings) => self.apply_configured(settings),
            Effect::Group { name, own } => self.apply_group(name, own),
            Effect::Paused { until } => self.apply_paused(until),
            Effect::Remembered { id, until } => self.parts.apply_remembered(&self.jobs, id, until),
            Effect::Forgot(what) => {
                self.parts.forget(&self.jobs, what);
                Ok(())
            }
            Effect::Floors { seq, death, token } => self.jobs.raise_to(seq, death, token),
            // The key is carried off, and the number raised, by who applies them.
            Effect::Dropped | Effect::Minted { .. } => Ok(()),
        }
    }

    fn apply_links(
        &mut self,
        id: &[u8],
        record: (OnDead, bool, bool, Moment),
        links: &[Link<'_>],
    ) -> Result<(), QueueError> {
        let limits = &self.settings.group_limits;
        self.parts
            .restore_links(&self.jobs, id, record, (links, limits))
    }

    /// Finishes what a snapshot left to do, if this effect needs it.
    fn end_restoring(&mut self, effect: &Effect<'_>) -> Result<(), QueueError> {
        if self.jobs.is_unindexed() && effect.needs_index() {
            if effect.is_kept_flow() || matches!(effect, Effect::Noted { .. }) {
                // In a snapshot, these effects come after all rows.
                self.parts.check_turns(&self.jobs, true)?;
            }
            self.parts.index(&mut self.jobs)?;
        }
        if let Some(flows) = self.parts.flows.as_mut().filter(|_| !effect.is_kept_flow()) {
            flows.end_restoring();
            // A master reports each job that it unblocks for this reason.
            let unblocks = matches!(
                effect,
                Effect::Job {
                    change: Change::Unblocked { .. },
                    ..
                }
            );
            if !effect.stands_in_snapshots() && !unblocks {
                self.free_stuck();
            }
        }
        Ok(())
    }

    /// A job that came. Its id, group and terms are checked here.
    fn apply_came(&mut self, came: &Came<'_>) -> Result<(), QueueError> {
        check_id(came.id)?;
        came.group.map_or(Ok(()), check_group)?;
        check_terms(&came.terms)?;
        match came.how {
            How::New { due, expires } => self.apply_new(came, (due, expires)),
            How::Behind { due, expires } => self.apply_behind(came, (due, expires)),
            How::After {
                due,
                expires,
                ref after,
            } => self.apply_after(came, (due, expires), after),
            How::Recurs { ref rule, first } => self.apply_recurs(came, rule, first),
            How::Renewed { ref rule } => self.apply_renewed(came, rule),
        }
    }

    fn apply_group(&mut self, name: &[u8], own: GroupSettings) -> Result<(), QueueError> {
        check_group(name)?;
        own.check()?;
        self.kept |= own.any();
        let own = (self.parts.group_settings(&self.jobs, name), own);
        let limits = &self.settings.group_limits;
        self.parts.set_own(name, own, limits, &self.jobs);
        Ok(())
    }

    fn apply_paused(&mut self, until: u64) -> Result<(), QueueError> {
        if until != FOREVER {
            check_instant(until)?;
        }
        self.kept |= until != 0;
        self.paused_until = until;
        Ok(())
    }

    fn apply_new(&mut self, came: &Came<'_>, instants: (u64, u64)) -> Result<(), QueueError> {
        check_instant(instants.0)?;
        check_instant(instants.1)?;
        let id = self.jobs.hashed(came.id);
        let old = self.jobs.find(id);
        if old.is_none() && !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.put(old, &mut NewJob::of(came, instants), id, Known::default());
        Ok(())
    }

    fn apply_configured(&mut self, settings: &Settings) -> Result<(), QueueError> {
        settings.check()?;
        let settings = settings.clone();
        self.kept = true;
        if settings.dedupe_ms == 0 && self.parts.dedupe.len() > 0 {
            self.parts.set_dedupe_aside(&self.jobs);
        }
        if settings.rate != self.settings.rate {
            let window = settings
                .rate
                .map(|_| Box::new(RateWindow::new(self.jobs.numbers.token)));
            self.parts.cold.make().rate = window;
        }
        let limits = settings.group_limits;
        self.keeps_done = settings.done_limits.any();
        self.parts.note_done(settings.done_limits);
        let settings = match settings == *Settings::unconfigured() {
            true => Settings::unconfigured(),
            false => Arc::new(settings),
        };
        let before = std::mem::replace(&mut self.settings, settings).group_limits;
        if limits.rate != before.rate {
            self.parts.set_group_rates_aside(limits.rate, &self.jobs);
        }
        if limits != before {
            self.parts.regroup(&limits, &self.jobs);
        }
        Ok(())
    }
}

impl Parts {
    fn apply_remembered(&mut self, jobs: &Jobs, id: &[u8], until: u64) -> Result<(), QueueError> {
        check_id(id)?;
        check_instant(until)?;
        self.remember(jobs, id, until)
    }

    fn forget(&mut self, jobs: &Jobs, what: Forgotten<'_>) {
        if let Forgotten::Pause(name) = what {
            let number = self.groups().and_then(|it| it.named(name, jobs));
            let number = number.into_iter();
            return number.for_each(|number| self.end_pause(jobs, number));
        }
        match (what, self.dedupe.made()) {
            (Forgotten::Id(id), Some(dedupe)) => {
                dedupe.forget(jobs.hashed(id), &**jobs.hasher());
            }
            (Forgotten::Until(until), Some(dedupe)) => {
                dedupe.forget_until(until, &**jobs.hasher());
            }
            // None are remembered.
            (Forgotten::Id(_) | Forgotten::Until(_) | Forgotten::Pause(_), _) => {}
        }
    }

    pub(super) fn remember(
        &mut self,
        jobs: &Jobs,
        id: &[u8],
        until: u64,
    ) -> Result<(), QueueError> {
        if !self.dedupe.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        let id = jobs.hashed(id);
        self.dedupe.make().remember(id, until, &**jobs.hasher());
        Ok(())
    }
}

impl Jobs {
    pub(super) fn expect(&self, id: &[u8]) -> Result<Handle, QueueError> {
        let handle = self.find(self.hashed(id));
        handle.ok_or(malformed("an effect on a job that is not there"))
    }

    /// The job, and where it stands, if this change fits it.
    fn expect_for(&self, id: &[u8], change: Change<'_>) -> Result<(Handle, Position), QueueError> {
        let handle = self.expect(id)?;
        let job = self.job(handle);
        check_change(job, change)?;
        Ok((handle, self.position_of(job)))
    }

    fn raise_to(&mut self, seq: u64, death: u64, token: u64) -> Result<(), QueueError> {
        if seq > SEQ_MAX || death > SEQ_MAX || token > TOKEN_MAX {
            return Err(malformed("a number that leaves no room to count on"));
        }
        self.numbers.raise_to(seq, death, token);
        Ok(())
    }
}
