//! Notes of jobs: a note that came, an attempt that failed, and all of them for a snapshot. See [`super::super::notes`].

use super::Jobs;
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use crate::queue::history::{Attempt, History, HISTORY_MAX};
use crate::queue::job::Handle;
use crate::queue::note::Note;
use crate::queue::state::bounds::{check_id, malformed};

impl Jobs {
    pub fn apply_noted(&mut self, id: &[u8], note: Note<'_>) -> Result<(), QueueError> {
        check_id(id)?;
        let handle = self.expect(id)?;
        let before = self.note_before(handle, &note);
        let replaced = before.map(|before| before.counted());
        self.check_note(handle, note, replaced.is_none())?;
        self.note(handle, note, replaced);
        Ok(())
    }

    pub fn apply_failed(
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

    pub fn keep_failed(&mut self, handle: Handle, attempt: &Attempt<'_>, kept: u64) {
        let all = self.notes(handle).history().and(attempt, kept);
        let history = History(&all);
        self.note(handle, Note::Past { history }, None);
    }

    /// Shows all notes of all jobs, as effects.
    pub fn each_note(&self, show: &mut dyn FnMut(&Effect<'_>)) {
        if self.has_notes() {
            self.in_order()
                .for_each(|handle| self.each_note_of(handle, show));
        }
    }
}
