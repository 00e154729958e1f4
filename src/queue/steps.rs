//! The rules of STEP and SIGNAL. What a job waits for is decided with NACK, in [`super::claim`].

use super::budget::EXPIRE_BUDGET;
use super::claim::Claim;
use super::clock::Now;
use super::effect::Change;
use super::effects::Effects;
use super::error::QueueError;
use super::event::Event;
use super::job::{Handle, Place, STEPS_MAX};
use super::note::{check_step_name, Note};
use super::Queue;
use std::collections::BTreeMap;

/// A step's name and value.
pub type Step<'a> = (&'a [u8], &'a [u8]);

impl Queue {
    /// Stores steps of a reserved job; false if the claim matches none. If a name comes twice, its last value counts.
    pub fn step<'a>(
        &mut self,
        id: &[u8],
        claim: Claim,
        steps: impl Iterator<Item = Step<'a>> + Clone,
        now: Now,
        out: &mut Effects,
    ) -> Result<bool, QueueError> {
        self.make_room_for(steps.clone(), now, out);
        let id = self.jobs().hashed(id);
        let Some(handle) = self.find_unexpired(id, now, out) else {
            return Ok(false);
        };
        let job = self.jobs().job(handle);
        if job.place() != Place::Reserved || !claim.fits(job.life().token) {
            return Ok(false);
        }
        let mut rest = steps.clone();
        if let (Some(only), None) = (rest.next(), rest.next()) {
            self.check_growth(handle, &[only])?;
            self.commit_noted(handle, note_of(only), out);
            return Ok(true);
        }
        let steps = last_of_each(steps);
        self.check_growth(handle, &steps)?;
        for step in steps {
            self.commit_noted(handle, note_of(step), out);
        }
        Ok(true)
    }

    /// Sets a step of a job that is neither dead nor done, unless it has a step of this name; returns whether it had
    /// none. `None` if there is no such job.
    pub fn signal(
        &mut self,
        id: &[u8],
        step: Step<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<bool>, QueueError> {
        let (name, _) = step;
        check_step_name(name)?;
        self.make_room_for(std::iter::once(step), now, out);
        let id = self.jobs().hashed(id);
        let Some(handle) = self.find_unexpired(id, now, out) else {
            return Ok(None);
        };
        let place = self.jobs().job(handle).place();
        if !matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked) {
            return Ok(None);
        }
        if self.jobs().step(handle, name).is_some() {
            return Ok(Some(false));
        }
        self.check_growth(handle, &[step])?;
        let is_awaited = self.jobs().notes(handle).awaits() == Some(name);
        self.commit_noted(handle, note_of(step), out);
        if is_awaited && place == Place::Scheduled && !self.jobs().is_ready(handle, now) {
            self.commit_job(handle, Change::Rescheduled { due: now.ms() }, now, out);
            out.raise(Event::Ready);
        }
        Ok(Some(true))
    }

    /// Carries out overdue expirations if MAXBYTES is set, as they may make room for the steps.
    fn make_room_for<'a>(
        &mut self,
        steps: impl Iterator<Item = Step<'a>>,
        now: Now,
        out: &mut Effects,
    ) {
        let limit = self.settings().max_bytes;
        if limit != 0 {
            self.expire_overdue(now, EXPIRE_BUDGET, out);
            let len: usize = steps.map(|(name, value)| name.len() + value.len()).sum();
            let is_full = |it: &Self| it.bytes() + len as u64 > limit;
            self.expire_for_room(is_full, now, out);
        }
    }

    /// An error if the job cannot have these steps, of different names, or the queue their bytes.
    fn check_growth(&self, handle: Handle, steps: &[Step<'_>]) -> Result<(), QueueError> {
        let notes = self.jobs().notes(handle);
        let (mut count, mut grown) = (notes.steps_len(), 0);
        for &(name, value) in steps {
            match self.jobs().step(handle, name) {
                Some(old) => grown -= old.len() as i64,
                None => {
                    grown += name.len() as i64;
                    count += 1;
                }
            }
            grown += value.len() as i64;
        }
        if count > STEPS_MAX {
            return Err(QueueError::TooManySteps);
        }
        let limit = self.settings().max_bytes;
        if limit != 0 && grown > 0 && self.bytes().saturating_add_signed(grown) > limit {
            return Err(QueueError::FullOfBytes);
        }
        Ok(())
    }
}

fn note_of<'a>((name, value): Step<'a>) -> Note<'a> {
    Note::Step { name, value }
}

/// The last value of each name, in the order in which names come first.
fn last_of_each<'a>(steps: impl Iterator<Item = Step<'a>>) -> Vec<Step<'a>> {
    let (mut all, mut places) = (Vec::new(), BTreeMap::new());
    for (name, value) in steps {
        let place = *places.entry(name).or_insert(all.len());
        if place == all.len() {
            all.push((name, value));
        } else {
            all[place].1 = value;
        }
    }
    all
}
