//! The notes of jobs in the store: see [`super::super::notes`].

use super::{Cold, Store};
use crate::queue::effect::Change;
use crate::queue::job::Handle;
use crate::queue::note::{Note, Notes};
use crate::queue::state::notes::OwnNotes;
use crate::queue::tagged::Lasting;
use crate::storage::relocate::Mover;

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

    /// The note that this one would replace.
    pub fn note_before(&self, handle: Handle, note: &Note<'_>) -> Option<Note<'_>> {
        let notes = self.cold.if_made()?.notes.if_made()?;
        notes.before(handle, note, &self.hasher)
    }

    /// The value of a step.
    pub fn step(&self, handle: Handle, name: &[u8]) -> Option<&[u8]> {
        match self.note_before(handle, &Note::Step { name, value: b"" })? {
            Note::Step { value, .. } => Some(value),
            _ => None,
        }
    }

    pub fn has_room_for_note(&self) -> bool {
        self.cold.notes.has_room()
    }

    /// Puts a note at its place among those of the job. The note that it replaces, if any, counted
    /// `replaced` bytes.
    pub fn set_note(&mut self, handle: Handle, note: &Note<'_>, replaced: u64) {
        let notes = self.cold.make().notes.make();
        notes.set(handle, note, &self.hasher);
        self.content_bytes = self.content_bytes + note.counted() - replaced;
    }

    /// Gives a job that has none the notes of another one, if `kept` accepts their tags. There must be room.
    pub fn copy_notes(&mut self, handle: Handle, notes: Notes<'_>, kept: impl Fn(u32) -> bool) {
        for note in notes.iter().filter(|note| kept(note.tag())) {
            self.set_note(handle, &note, 0);
        }
    }

    /// Takes all notes from a job, and drops those whose tags `kept` does not accept.
    pub fn take_notes(&mut self, handle: Handle, kept: impl Fn(u32) -> bool) -> OwnNotes {
        if !self.has_notes() {
            return OwnNotes::default();
        }
        self.content_bytes -= self.notes(handle).counted();
        self.cold.make().notes.make().take(handle, kept)
    }

    /// Gives notes to a job that has none.
    pub fn give_notes(&mut self, handle: Handle, own: OwnNotes) {
        if !own.is_empty() {
            self.content_bytes += own.counted;
            self.cold.make().notes.make().give(handle, own);
        }
    }

    #[cold]
    pub fn retain_notes(&mut self, handle: Handle, kept: impl Fn(u32) -> bool) {
        let own = self.take_notes(handle, kept);
        self.give_notes(handle, own);
    }

    /// Drops the notes of a job that do not outlast a change.
    #[cold]
    pub fn change_notes(&mut self, handle: Handle, change: Change<'_>) {
        let goes = |tag| change.ends(Lasting::of(tag));
        // Steps stay.
        let mut tags = self.notes(handle).in_string().map(|(part, _)| part.tag);
        let some_go = tags.any(goes);
        drop(tags);
        if some_go {
            self.retain_notes(handle, |tag| !goes(tag));
        }
    }

    /// Drops all notes of a job that is about to be removed.
    #[cold]
    pub(super) fn drop_notes(&mut self, handle: Handle) {
        self.take_notes(handle, |_| false);
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
