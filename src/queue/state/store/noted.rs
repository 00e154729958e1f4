//! The notes of jobs in the store: see [`super::super::notes`].

use super::{Cold, Store};
use crate::queue::effect::{Change, Effect};
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place, STEPS_MAX, STEP_NAME_MAX};
use crate::queue::note::{check_progress, Note, Notes};
use crate::queue::state::bounds::malformed;
use crate::queue::state::notes::OwnNotes;
use crate::queue::tagged::{Lasting, Unknown};
use crate::storage::relocate::Mover;

fn check_name(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=STEP_NAME_MAX).contains(&name.len()) {
        return Err(malformed("a step's name of an impossible length"));
    }
    Ok(())
}

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

    /// Sets a note that was checked: see [`Store::check_note`]. The one that it replaces, if any, counted `replaced` bytes.
    pub fn note(&mut self, handle: Handle, note: Note<'_>, replaced: Option<u64>) {
        self.set_note(handle, &note, replaced.unwrap_or(0));
        let Note::Step { name, .. } = note else {
            return;
        };
        if self.notes(handle).awaits() == Some(name) {
            // Whatever the job waits for from here on, it is not this step.
            let awaits = Note::Awaits { name }.tag();
            self.retain_notes(handle, |tag| tag != awaits);
        }
    }

    /// Whether the job can have the note, in its state and with its other notes.
    pub fn check_note(
        &self,
        handle: Handle,
        note: Note<'_>,
        is_new: bool,
    ) -> Result<(), QueueError> {
        let job = self.job(handle);
        if !self.has_room_for_note() {
            return Err(QueueError::TooManyJobs);
        }
        match note {
            Note::Progress { text } => check_progress(text),
            Note::Past { history } => history.check(),
            Note::Step { name, .. } => {
                check_name(name)?;
                if is_new && self.notes(handle).steps_len() >= STEPS_MAX {
                    return Err(malformed("more steps than a job has"));
                }
                Ok(())
            }
            Note::Awaits { name } => {
                check_name(name)?;
                let waits = job.place() == Place::Scheduled && job.life().token == 0;
                if !waits || self.step(handle, name).is_some() {
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
        for other in self.notes(handle).iter() {
            if matches!(other, Note::Unknown { .. }) && !note.replaces(&other) {
                unknown.add(other.tag(), other.len())?;
            }
        }
        Ok(())
    }

    /// Shows the notes of a job, as effects.
    pub fn each_note_of(&self, handle: Handle, show: &mut dyn FnMut(&Effect<'_>)) {
        let id = self.job(handle).id();
        for note in self.notes(handle).iter() {
            show(&Effect::Noted { id, note });
        }
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
