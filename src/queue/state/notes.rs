//! Notes: what only some jobs have, beside the store, by the job's handle.
//!
//! ```text
//!   handle ──scattered──► IdTable ──► its record in an arena:     handle (4)  flag (1)  0 (3)  [series (4)]  Note  Note ...
//!                                                                                                │
//!                                                           steps of more than 1 KB, in beside.rs ◄─┘
//! ```
//!
//! One record for each job that has notes, with no allocation of its own if it is short; nothing at all in a queue
//! without notes. A note is set by [`Effect::Noted`], by rules through [`Queue::commit_noted`], and read by
//! [`Store::notes`](super::store::Store::notes). It is dropped with its job, or when something else happens to the job:
//! [its tag](crate::queue::tagged::Lasting) says when. No note outlives an occurrence, and a successor has none.

mod beside;
mod table;

use super::bounds::{check_id, malformed};
use super::Queue;
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place, STEPS_MAX, STEP_NAME_MAX};
use crate::queue::note::{check_progress, Note};
use crate::queue::tagged::{Lasting, Unknown};
use crate::storage::broken::must;

pub(super) use table::{NotesTable, OwnNotes};

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
        let before = self.jobs.note_before(handle, &note);
        if before == Some(note) {
            return;
        }
        let replaced = before.map(|before| before.counted());
        let fits = self.check_note(handle, note, replaced.is_none());
        must(fits.is_ok(), "a note that the job's state does not allow");
        let job = self.jobs.job(handle);
        out.push(&Effect::Noted { id: job.id(), note });
        self.note(handle, note, replaced);
        out.complete();
    }

    pub(super) fn apply_noted(&mut self, id: &[u8], note: Note<'_>) -> Result<(), QueueError> {
        check_id(id)?;
        let handle = self.expect(id)?;
        let before = self.jobs.note_before(handle, &note);
        let replaced = before.map(|before| before.counted());
        self.check_note(handle, note, replaced.is_none())?;
        self.note(handle, note, replaced);
        Ok(())
    }

    fn note(&mut self, handle: Handle, note: Note<'_>, replaced: Option<u64>) {
        self.jobs.set_note(handle, &note, replaced.unwrap_or(0));
        let Note::Step { name, .. } = note else {
            return;
        };
        if self.jobs.notes(handle).awaits() == Some(name) {
            // Whatever the job waits for from here on, it is not this step.
            let awaits = Note::Awaits { name }.tag();
            self.jobs.retain_notes(handle, |tag| tag != awaits);
        }
    }

    /// Whether the job can have the note, in its state and with its other notes.
    fn check_note(&self, handle: Handle, note: Note<'_>, is_new: bool) -> Result<(), QueueError> {
        let job = self.jobs.job(handle);
        if !self.jobs.has_room_for_note() {
            return Err(QueueError::TooManyJobs);
        }
        match note {
            Note::Progress { text } => check_progress(text),
            Note::Step { name, .. } => {
                check_name(name)?;
                if is_new && self.jobs.notes(handle).steps_len() >= STEPS_MAX {
                    return Err(malformed("more steps than a job has"));
                }
                Ok(())
            }
            Note::Awaits { name } => {
                check_name(name)?;
                let waits = job.place() == Place::Scheduled && job.life().token == 0;
                if !waits || self.jobs.step(handle, name).is_some() {
                    return Err(malformed("a job that waits for nothing"));
                }
                Ok(())
            }
            Note::Unknown { tag, .. } if Lasting::of(tag) == Lasting::Terms => {
                Err(malformed("an attribute among notes"))
            }
            Note::Unknown { .. } => self.check_unknown(handle, note),
        }
    }

    /// Whether the job can have the note beside others that this version does not know.
    #[cold]
    fn check_unknown(&self, handle: Handle, note: Note<'_>) -> Result<(), QueueError> {
        let mut unknown = Unknown::default();
        unknown.add(note.tag(), note.len())?;
        for other in self.jobs.notes(handle).iter() {
            if matches!(other, Note::Unknown { .. }) && !note.replaces(&other) {
                unknown.add(other.tag(), other.len())?;
            }
        }
        Ok(())
    }

    /// Shows all notes of all jobs, as effects.
    pub(super) fn each_note(&self, show: &mut dyn FnMut(&Effect<'_>)) {
        if self.jobs.has_notes() {
            self.jobs
                .in_order()
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
