//! The notes of jobs in the store: see [`super::super::notes`].

use super::{Cold, Store};
use crate::queue::effect::Change;
use crate::queue::job::Handle;
use crate::queue::note::{Note, Notes};
use crate::queue::state::notes::Lasting;
use crate::storage::relocate::Mover;
use std::ops::Range;

impl Store {
    /// Whether any job has a note. Costs nothing in a queue without notes.
    #[inline]
    pub fn has_notes(&self) -> bool {
        let notes = self.cold.if_made().and_then(|it| it.notes.if_made());
        notes.is_some_and(|notes| notes.len() > 0)
    }

    #[inline]
    pub fn notes(&self, handle: Handle) -> Notes<'_> {
        if self.has_notes() {
            self.cold.notes.of(handle)
        } else {
            Notes::default()
        }
    }

    pub fn has_room_for_notes(&self, count: usize) -> bool {
        self.cold.notes.has_room_for(count)
    }

    /// Puts a note at its place among those of the job. The note that it replaces, if any, counted
    /// `replaced` bytes.
    pub fn set_note(
        &mut self,
        handle: Handle,
        note: &Note<'_>,
        place: Range<usize>,
        replaced: u64,
    ) {
        let notes = self.cold.make().notes.make();
        notes.set(handle, note, place);
        self.content_bytes = self.content_bytes + note.counted() - replaced;
    }

    /// Gives all its notes to a job that has none.
    pub fn put_notes(&mut self, handle: Handle, notes: Notes<'_>) {
        if !notes.is_empty() {
            self.cold.make().notes.make().put(handle, notes.bytes());
            self.content_bytes += notes.counted();
        }
    }

    #[cold]
    pub fn retain_notes(&mut self, handle: Handle, kept: impl Fn(&Note<'_>) -> bool) {
        let before = self.notes(handle).counted();
        let notes = self.cold.made().and_then(|cold| cold.notes.made());
        if let Some(notes) = notes {
            notes.retain(handle, kept);
        }
        self.content_bytes = self.content_bytes + self.notes(handle).counted() - before;
    }

    /// Drops the notes of a job that do not outlast a change.
    #[cold]
    pub fn change_notes(&mut self, handle: Handle, change: Change<'_>) {
        let goes = |note: Note<'_>| !Lasting::over(&note, change);
        if self.notes(handle).iter().any(goes) {
            self.retain_notes(handle, |note| Lasting::over(note, change));
        }
    }

    /// Drops all notes of a job that is about to be removed.
    #[cold]
    pub(super) fn drop_notes(&mut self, handle: Handle) {
        self.content_bytes -= self.notes(handle).counted();
        let notes = self.cold.made().and_then(|cold| cold.notes.made());
        if let Some(notes) = notes {
            notes.remove(handle);
        }
    }

    #[cold]
    pub(super) fn move_notes(&mut self, old: Handle, new: Handle) {
        let notes = self.cold.made().and_then(|cold| cold.notes.made());
        if let Some(notes) = notes {
            notes.rename(old, new);
        }
    }

    /// Moves up to `budget` jobs' notes together; returns the unused budget.
    pub fn gather_notes(&mut self, budget: usize) -> usize {
        let notes = self.cold.made().and_then(|cold| cold.notes.made());
        notes.map_or(budget, |notes| notes.gather(budget))
    }

    pub fn relocate_notes(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let notes = &mut self.cold.made()?.notes;
        if part == 0 && from == 0 {
            notes.relocate(mover);
        }
        notes.made()?.relocate(part, from, mover)
    }

    pub(super) fn check_notes(&self) -> Result<(), String> {
        let notes = &self.cold.notes;
        notes.check_invariants(|handle| self.contains(handle))
    }
}

impl Cold {
    pub(super) fn free_some_notes(&mut self, count: usize) -> bool {
        self.notes
            .made()
            .is_some_and(|notes| notes.free_some(count))
    }
}
