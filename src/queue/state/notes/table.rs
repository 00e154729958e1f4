//! The notes of all jobs, by their handles: see the picture in the parent.

use crate::queue::codec::append;
use crate::queue::job::Handle;
use crate::queue::note::{Note, Notes};
use crate::storage::arena::Arena;
use crate::storage::broken::{must, there};
use crate::storage::lazy::Unused;
use crate::storage::relocate::Mover;
use crate::storage::table::IdTable;
use std::ops::Range;

/// Before a record's notes: the handle, and four bytes of which the arena needs one.
const HEADER: usize = 8;
const NO_RECORD: &str = "notes without a record";

/// See the picture in the parent.
#[derive(Clone)]
pub struct NotesTable {
    table: IdTable,
    records: Arena,
    /// The buffer in which notes are put together.
    scratch: Vec<u8>,
}

impl Default for NotesTable {
    fn default() -> Self {
        NotesTable::new()
    }
}

impl Unused for NotesTable {
    const UNUSED: &'static Self = &NotesTable::new();
}

/// Notes that belong to no job yet.
#[derive(Default)]
pub struct OwnNotes(Vec<u8>);

impl OwnNotes {
    /// The notes of a job that `kept` accepts.
    pub fn of(notes: Notes<'_>, kept: impl Fn(&Note<'_>) -> bool) -> Self {
        let mut own = Vec::new();
        push_kept(notes, kept, &mut own);
        OwnNotes(own)
    }

    pub fn notes(&self) -> Notes<'_> {
        Notes::of(&self.0)
    }
}

fn push_kept(notes: Notes<'_>, kept: impl Fn(&Note<'_>) -> bool, to: &mut Vec<u8>) {
    let mut rest = notes.bytes();
    for (behind, note) in notes.parts() {
        let len = rest.len() - behind.len();
        if kept(&note) {
            to.extend_from_slice(&rest[..len]);
        }
        rest = behind;
    }
}

/// Handles are numbered densely; the table wants them scattered.
fn scattered(handle: Handle) -> u64 {
    u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn handle_of(record: &[u8]) -> Handle {
    let handle = record.first_chunk().copied();
    Handle::from_le_bytes(there(handle, NO_RECORD))
}

/// Where a note belongs among a job's notes: in the place of the one that it replaces, or after all up to its kind. And
/// what was seen on the way there.
pub struct Spot {
    pub range: Range<usize>,
    /// Whether the note that it replaces is the same, and the bytes that this one counts.
    pub is_same: bool,
    pub replaced: Option<u64>,
    pub steps: usize,
    /// Whether the job waits for the step of this name.
    pub is_awaited: bool,
}

impl Spot {
    pub fn of(new: &Note<'_>, notes: Notes<'_>) -> Self {
        let all = notes.bytes();
        let mut spot = Spot {
            range: 0..0,
            is_same: false,
            replaced: None,
            steps: 0,
            is_awaited: false,
        };
        let (mut start, mut last) = (0, 0);
        for (behind, note) in notes.parts() {
            let end = all.len() - behind.len();
            if new.replaces(&note) {
                spot.range = start..end;
                spot.is_same = *new == note;
                spot.replaced = Some(note.counted());
            }
            if note.kind() <= new.kind() {
                last = end;
            }
            spot.steps += usize::from(matches!(note, Note::Step { .. }));
            spot.is_awaited |= match (new, note) {
                (Note::Step { name, .. }, Note::Awaits { name: awaited }) => *name == awaited,
                _ => false,
            };
            start = end;
        }
        if spot.replaced.is_none() {
            spot.range = last..last;
        }
        spot
    }
}

impl NotesTable {
    pub const fn new() -> Self {
        NotesTable {
            table: IdTable::new(),
            records: Arena::fine(),
            scratch: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    fn find(&self, handle: Handle) -> Option<u32> {
        let is_it = |number| self.records.get(number).map(handle_of) == Some(handle);
        self.table.find(scattered(handle), is_it)
    }

    fn record(&self, number: u32) -> &[u8] {
        there(self.records.get(number), NO_RECORD)
    }

    pub fn of(&self, handle: Handle) -> Notes<'_> {
        let number = self.find(handle);
        Notes::of(number.map_or(&[], |number| &self.record(number)[HEADER..]))
    }

    pub fn has_room_for(&self, count: usize) -> bool {
        self.records.has_room_for(count)
    }

    /// Puts a note at its place among those of a job. There must be room.
    pub fn set(&mut self, handle: Handle, note: &Note<'_>, place: Range<usize>) {
        let mut new = std::mem::take(&mut self.scratch);
        let all = self.of(handle).bytes();
        new.extend_from_slice(&all[..place.start]);
        append(note, &mut new);
        new.extend_from_slice(&all[place.end..]);
        self.put(handle, &new);
        self.give_back(new);
    }

    /// Keeps only the notes of a job that `kept` accepts.
    pub fn retain(&mut self, handle: Handle, kept: impl Fn(&Note<'_>) -> bool) {
        let mut new = std::mem::take(&mut self.scratch);
        let notes = self.of(handle);
        push_kept(notes, kept, &mut new);
        if new.len() < notes.bytes().len() {
            self.put(handle, &new);
        }
        self.give_back(new);
    }

    /// A buffer that one large value has grown is not kept.
    fn give_back(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(1024);
        self.scratch = scratch;
    }

    /// Replaces all notes of a job.
    pub fn put(&mut self, handle: Handle, notes: &[u8]) {
        let old = self.find(handle);
        let same_len = old.and_then(|number| self.records.get_mut(number));
        if let Some(record) = same_len.filter(|record| record.len() == HEADER + notes.len()) {
            record[HEADER..].copy_from_slice(notes);
            return;
        }
        if let Some(number) = old {
            self.remove_record(handle, number);
        }
        if notes.is_empty() {
            return;
        }
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&handle.to_le_bytes());
        let number = self.records.insert([&header[..], notes]);
        self.table.insert(scattered(handle), number);
    }

    fn remove_record(&mut self, handle: Handle, number: u32) {
        let indexed = self.table.remove(scattered(handle), number);
        must(indexed && self.records.remove(number), NO_RECORD);
    }

    pub fn remove(&mut self, handle: Handle) {
        if let Some(number) = self.find(handle) {
            self.remove_record(handle, number);
        }
    }

    /// Moves the notes of a job to its new handle.
    pub fn rename(&mut self, old: Handle, new: Handle) {
        let Some(number) = self.find(old) else {
            return;
        };
        must(self.table.remove(scattered(old), number), NO_RECORD);
        let record = there(self.records.get_mut(number), NO_RECORD);
        record[..4].copy_from_slice(&new.to_le_bytes());
        self.table.insert(scattered(new), number);
    }

    pub fn is_scattered(&self) -> bool {
        self.records.is_scattered()
    }

    /// Moves up to `budget` records that lie scattered; returns the unused budget.
    pub fn gather(&mut self, budget: usize) -> usize {
        for left in (1..=budget).rev() {
            let Some(old) = self.records.misplaced() else {
                return left;
            };
            let hash = scattered(handle_of(self.record(old)));
            let new = self.records.move_misplaced(old);
            must(self.table.remove(hash, old), NO_RECORD);
            self.table.insert(hash, new);
        }
        0
    }

    /// Frees about `count` records of a table that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.records.free_some(count) || self.table.free_some(count)
    }

    /// See [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.table.relocate(from, mover),
            1 => self.records.relocate_pages(from, mover),
            _ => self.records.relocate_long(from, mover),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.records.memory_bytes() + self.scratch.capacity()
    }

    /// Each record is of a job that is there, and holds its notes in their order, each once.
    pub fn check_invariants(&self, is_there: impl Fn(Handle) -> bool) -> Result<(), String> {
        self.records.check_invariants()?;
        self.table
            .check_invariants(|number| scattered(handle_of(self.record(number))))?;
        if self.table.len() != self.records.len() {
            return Err("notes and their index differ in number".into());
        }
        for number in self.table.handles() {
            let handle = handle_of(self.record(number));
            let notes = self.of(handle);
            let all: Vec<Note<'_>> = notes.iter().collect();
            let distinct = |at: usize| all[..at].iter().all(|note| !note.replaces(&all[at]));
            let is_sound = is_there(handle)
                && self.find(handle) == Some(number)
                && !all.is_empty()
                && notes
                    .parts()
                    .last()
                    .is_some_and(|(rest, _)| rest.is_empty())
                && all.is_sorted_by_key(Note::kind)
                && (0..all.len()).all(distinct);
            if !is_sound {
                return Err(format!("notes of job {handle} that cannot be: {all:?}"));
            }
        }
        Ok(())
    }
}
