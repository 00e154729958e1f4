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
use super::jobs::Jobs;
use super::Queue;
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::history::{Attempt, History, HISTORY_MAX};
use crate::queue::job::Handle;
use crate::queue::note::Note;
use crate::storage::broken::must;

pub(super) use table::{NotesTable, OwnNotes};

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
        let fits = self.jobs.check_note(handle, note, replaced.is_none());
        must(fits.is_ok(), "a note that the job's state does not allow");
        let job = self.jobs.job(handle);
        out.push(&Effect::Noted { id: job.id(), note });
        self.jobs.note(handle, note, replaced);
        out.complete();
    }

    /// Records an attempt of a job that failed.
    #[cold]
    pub(in crate::queue) fn commit_failed(
        &mut self,
        handle: Handle,
        attempt: Attempt<'_>,
        out: &mut Effects,
    ) {
        let (id, kept) = (self.jobs.job(handle).id(), self.settings.history);
        out.push(&Effect::Failed { id, attempt, kept });
        self.jobs.keep_failed(handle, &attempt, kept);
        out.complete();
    }
}

impl Jobs {
    pub(super) fn apply_noted(&mut self, id: &[u8], note: Note<'_>) -> Result<(), QueueError> {
        check_id(id)?;
        let handle = self.expect(id)?;
        let before = self.note_before(handle, &note);
        let replaced = before.map(|before| before.counted());
        self.check_note(handle, note, replaced.is_none())?;
        self.note(handle, note, replaced);
        Ok(())
    }

    pub(super) fn apply_failed(
        &mut self,
        id: &[u8],
        attempt: Attempt<'_>,
        kept: u64,
    ) -> Result<(), QueueError> {
        check_id(id)?;
        attempt.check()?;
        let handle = self.expect(id)?;
        if !(1..=HISTORY_MAX).contains(&kept) {
            return Err(malformed("more attempts than any job keeps, or none"));
        }
        if !self.has_room_for_note() {
            return Err(QueueError::TooManyJobs);
        }
        self.keep_failed(handle, &attempt, kept);
        Ok(())
    }

    fn keep_failed(&mut self, handle: Handle, attempt: &Attempt<'_>, kept: u64) {
        let all = self.notes(handle).history().and(attempt, kept);
        let history = History(&all);
        self.note(handle, Note::Past { history }, None);
    }

    /// Shows all notes of all jobs, as effects.
    pub(super) fn each_note(&self, show: &mut dyn FnMut(&Effect<'_>)) {
        if self.has_notes() {
            self.in_order()
                .for_each(|handle| self.each_note_of(handle, show));
        }
    }
}

#[cfg(test)]
mod tests;
