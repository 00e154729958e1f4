//! Notes: what only some jobs have, beside the store, by the job's handle.
//!
//! ```text
//!   handle ──scattered──► IdTable ──► its record in an arena:     handle (4)  0 (4)  Note  Note ...
//! ```
//!
//! One record for each job that has notes, with no allocation of its own if it is short; nothing at all in a queue
//! without notes. A note is set by [`Effect::Noted`], by rules through [`Queue::commit_noted`], and read by
//! [`Store::notes`](super::store::Store::notes). It is dropped with its job, or when something else happens to the job:
//! [`Lasting`] says when. KEEP and COST are stored and shown like the others. What KEEP means is up to the end of a
//! job, what COST means to [`super::rate`].

mod table;

use super::apply::{check_id, check_instant, malformed};
use super::Queue;
use crate::queue::effect::{Change, Effect};
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place, COST_MAX, PROGRESS_MAX, STEPS_MAX, STEP_NAME_MAX};
use crate::queue::note::Note;
use crate::storage::broken::must;
use table::Spot;

pub(super) use table::{NotesTable, OwnNotes};

/// What a note outlives.
pub(super) struct Lasting;

impl Lasting {
    /// Whether the note stays with its job after this change.
    pub fn over(note: &Note<'_>, change: Change) -> bool {
        let is_kick = matches!(change, Change::Kicked { .. });
        // The job's due time and place stay.
        let goes_on = matches!(
            change,
            Change::Touched { .. } | Change::Prioritized { .. } | Change::SuccessorExpired
        );
        match note {
            Note::Progress { .. } => !is_kick,
            Note::Awaits { .. } => goes_on,
            Note::Keep { .. } | Note::Cost { .. } | Note::Step { .. } => true,
        }
    }

    /// Whether the next occurrence has the note.
    pub fn over_occurrence(note: &Note<'_>) -> bool {
        Self::is_said_at_adding(note)
    }

    /// Whether the note is an option of DQ.ADD.
    fn is_said_at_adding(note: &Note<'_>) -> bool {
        matches!(note, Note::Keep { .. } | Note::Cost { .. })
    }

    /// Whether an occurrence that stays as a dead job has the note.
    pub fn in_dead_copy(note: &Note<'_>) -> bool {
        !matches!(note, Note::Awaits { .. })
    }

    /// Whether a job keeps the note when a new one with the same pattern replaces it: not what the new one says itself.
    pub fn over_renewal(note: &Note<'_>) -> bool {
        !Self::is_said_at_adding(note)
    }
}

/// A job that counts 1 has no such note.
pub(super) fn check_cost(units: u32) -> Result<(), QueueError> {
    if !(2..=COST_MAX).contains(&units) {
        return Err(malformed("a cost that no job has"));
    }
    Ok(())
}

fn check_name(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=STEP_NAME_MAX).contains(&name.len()) {
        return Err(malformed("a step's name of an impossible length"));
    }
    Ok(())
}

impl Queue {
    /// Records a note of a job or of a successor, and sets it. Does nothing if the job has the same note already.
    pub(in crate::queue) fn commit_noted(
        &mut self,
        handle: Handle,
        note: Note<'_>,
        out: &mut Effects,
    ) {
        let spot = Spot::of(&note, self.jobs.notes(handle));
        if spot.is_same {
            return;
        }
        let fits = self.check_note(handle, note, &spot);
        must(fits.is_ok(), "a note that the job's state does not allow");
        let job = self.jobs.job(handle);
        out.push(&Effect::Noted {
            id: job.id(),
            successor: job.place() == Place::Successor,
            note,
        });
        self.note(handle, note, spot);
        out.complete();
    }

    pub(super) fn apply_noted(
        &mut self,
        id: &[u8],
        successor: bool,
        note: Note<'_>,
    ) -> Result<(), QueueError> {
        check_id(id)?;
        let mut handle = self.expect(id)?;
        if successor {
            let next = self.jobs.successor(handle);
            handle = next.ok_or(malformed("a note of a successor that is not there"))?;
        }
        let spot = Spot::of(&note, self.jobs.notes(handle));
        self.check_note(handle, note, &spot)?;
        self.note(handle, note, spot);
        Ok(())
    }

    fn note(&mut self, handle: Handle, note: Note<'_>, spot: Spot) {
        let replaced = spot.replaced.unwrap_or(0);
        self.jobs.set_note(handle, &note, spot.range, replaced);
        if spot.is_awaited {
            // Whatever the job waits for from here on, it is not this step.
            self.jobs
                .retain_notes(handle, |note| !matches!(note, Note::Awaits { .. }));
        }
    }

    /// Whether the job can have the note, in its state and with its other notes.
    fn check_note(&self, handle: Handle, note: Note<'_>, to: &Spot) -> Result<(), QueueError> {
        let job = self.jobs.job(handle);
        let place = job.place();
        if place == Place::Successor && !Lasting::is_said_at_adding(&note) {
            return Err(malformed("a note that no successor has"));
        }
        if !self.jobs.has_room_for_notes(1) {
            return Err(QueueError::TooManyJobs);
        }
        match note {
            Note::Progress { text } if text.len() > PROGRESS_MAX => {
                Err(malformed("progress longer than any that is kept"))
            }
            Note::Progress { .. } => Ok(()),
            Note::Keep { ms } => check_instant(ms),
            Note::Cost { units } => check_cost(units),
            Note::Step { name, .. } => {
                check_name(name)?;
                if to.replaced.is_none() && to.steps >= STEPS_MAX {
                    return Err(malformed("more steps than a job has"));
                }
                Ok(())
            }
            Note::Awaits { name } => {
                check_name(name)?;
                let waits = place == Place::Scheduled && job.life().token == 0;
                if !waits || self.jobs.notes(handle).step(name).is_some() {
                    return Err(malformed("a job that waits for nothing"));
                }
                Ok(())
            }
        }
    }

    /// Shows all notes of all jobs, as effects.
    pub(super) fn each_note(&self, show: &mut dyn FnMut(&Effect<'_>)) {
        if self.jobs.has_notes() {
            self.handles()
                .for_each(|handle| self.each_note_of(handle, show));
        }
    }

    /// Shows the notes of a job and of its successor.
    pub(super) fn each_note_of(&self, handle: Handle, show: &mut dyn FnMut(&Effect<'_>)) {
        let all = [Some(handle), self.jobs.successor(handle)];
        for (handle, successor) in all.into_iter().zip([false, true]) {
            let Some(handle) = handle else {
                continue;
            };
            let id = self.jobs.job(handle).id();
            for note in self.jobs.notes(handle).iter() {
                show(&Effect::Noted {
                    id,
                    successor,
                    note,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
