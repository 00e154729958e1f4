//! Notes: what only some jobs have, beside the store, by the job's handle.
//!
//! ```text
//!   handle ──scattered──► IdTable ──► its record in an arena:     handle (4)  0 (4)  Note  Note ...
//! ```
//!
//! One record for each job that has notes, with no allocation of its own if it is short; nothing at all in a queue
//! without notes. A note is set by [`Effect::Noted`], by rules through [`Queue::commit_noted`], and read by
//! [`Store::notes`](super::store::Store::notes). It is dropped with its job, or when something else happens to the job:
//! [`Lasting`] says when. No note outlives an occurrence, and a successor has none.

mod table;

use super::apply::{check_id, malformed};
use super::Queue;
use crate::queue::effect::{Change, Effect};
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place, PROGRESS_MAX, STEPS_MAX, STEP_NAME_MAX};
use crate::queue::note::Note;
use crate::storage::broken::must;
use table::Spot;

pub(super) use table::{NotesTable, OwnNotes};

/// What a note outlives.
pub(super) struct Lasting;

impl Lasting {
    /// Whether the note stays with its job after this change.
    pub fn over(note: &Note<'_>, change: Change<'_>) -> bool {
        let is_kick = matches!(change, Change::Kicked { .. });
        // The job's due time and place stay.
        let goes_on = matches!(
            change,
            Change::Touched { .. } | Change::Prioritized { .. } | Change::SuccessorExpired
        );
        match note {
            Note::Progress { .. } => !is_kick,
            Note::Awaits { .. } => goes_on,
            Note::Step { .. } => true,
        }
    }

    /// Whether an occurrence that stays as a dead job has the note.
    pub fn in_dead_copy(note: &Note<'_>) -> bool {
        !matches!(note, Note::Awaits { .. })
    }
}

fn check_name(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=STEP_NAME_MAX).contains(&name.len()) {
        return Err(malformed("a step's name of an impossible length"));
    }
    Ok(())
}

impl Queue {
    /// Records a note of a job, and sets it. Does nothing if the job has the same note already.
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
        out.push(&Effect::Noted { id: job.id(), note });
        self.note(handle, note, spot);
        out.complete();
    }

    pub(super) fn apply_noted(&mut self, id: &[u8], note: Note<'_>) -> Result<(), QueueError> {
        check_id(id)?;
        let handle = self.expect(id)?;
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
        if !self.jobs.has_room_for_notes(1) {
            return Err(QueueError::TooManyJobs);
        }
        match note {
            Note::Progress { text } if text.len() > PROGRESS_MAX => {
                Err(malformed("progress longer than any that is kept"))
            }
            Note::Progress { .. } => Ok(()),
            Note::Step { name, .. } => {
                check_name(name)?;
                if to.replaced.is_none() && to.steps >= STEPS_MAX {
                    return Err(malformed("more steps than a job has"));
                }
                Ok(())
            }
            Note::Awaits { name } => {
                check_name(name)?;
                let waits = job.place() == Place::Scheduled && job.life().token == 0;
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

    /// Shows the notes of a job.
    pub(super) fn each_note_of(&self, handle: Handle, show: &mut dyn FnMut(&Effect<'_>)) {
        let id = self.jobs.job(handle).id();
        for note in self.jobs.notes(handle).iter() {
            show(&Effect::Noted { id, note });
        }
    }
}

#[cfg(test)]
mod tests;
