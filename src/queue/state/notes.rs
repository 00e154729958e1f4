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

use super::Queue;
use crate::queue::effect::Effect;
use crate::queue::effects::Effects;
use crate::queue::history::Attempt;
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

#[cfg(test)]
mod tests;
