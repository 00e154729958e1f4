//! The notes of all jobs, by their handles: see the picture in the parent.

use super::beside::Steps;
use crate::queue::codec::append;
use crate::queue::job::Handle;
use crate::queue::note::{Note, Notes, STEP};
use crate::storage::arena::Arena;
use crate::storage::broken::{must, there};
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::relocate::Mover;
use crate::storage::table::IdTable;
use ahash::RandomState;
use std::ops::Range;

/// Before a record's notes: the handle, and four bytes of which the arena needs one.
const HEADER: usize = 8;
/// In the header behind the handle: the number of the job's steps beside stands before its string.
const HAS_STEPS: u8 = 1;
/// Bytes of a job's string, beyond which its steps lie beside it.
const STRING_MAX: usize = 1024;
const NO_RECORD: &str = "notes without a record";

/// See the picture in the parent.
#[derive(Clone)]
pub struct NotesTable {
    table: IdTable,
    records: Arena,
    steps: Lazy<Steps>,
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

/// A record as it is read; or the notes of a job that has none.
#[derive(Clone, Copy, Default)]
struct Record<'a> {
    /// The series of the steps that lie beside.
    series: Option<u32>,
    string: &'a [u8],
}

impl<'a> Record<'a> {
    fn of(record: &'a [u8]) -> Self {
        let (head, string) = record.split_at(HEADER);
        if head[4] & HAS_STEPS == 0 {
            let series = None;
            return Record { series, string };
        }
        let (series, string) = there(string.split_first_chunk(), NO_RECORD);
        let series = Some(u32::from_le_bytes(*series));
        Record { series, string }
    }
}

/// Notes on their way from one job to another.
#[derive(Default)]
pub struct OwnNotes {
    string: Vec<u8>,
    series: Option<u32>,
    /// Bytes that they count.
    pub counted: u64,
}

impl OwnNotes {
    pub fn is_empty(&self) -> bool {
        self.series.is_none() && self.string.is_empty()
    }
}

fn push_kept(string: &[u8], kept: impl Fn(u32) -> bool, to: &mut Vec<u8>) {
    for (part, _) in Notes::of(string).in_string() {
        if kept(part.tag) {
            to.extend_from_slice(&string[part.start..part.end]);
        }
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

fn hash_of(name: &[u8], hasher: &RandomState) -> u32 {
    hasher.hash_one(name) as u32
}

/// Where a note belongs in a string: in the place of the one that it replaces, or behind all whose tags are not larger.
fn place_in(string: &[u8], new: &Note<'_>) -> Range<usize> {
    let mut behind = 0;
    let upto = |tag| tag <= new.tag();
    for (part, note) in (Notes::of(string).in_string()).take_while(|(part, _)| upto(part.tag)) {
        if new.replaces(&note) {
            return part.start..part.end;
        }
        behind = part.end;
    }
    behind..behind
}

impl NotesTable {
    pub const fn new() -> Self {
        NotesTable {
            table: IdTable::new(),
            records: Arena::fine(),
            steps: Lazy::new(),
            scratch: Vec::new(),
        }
    }

    /// How many jobs have notes.
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

    fn read(&self, handle: Handle) -> Record<'_> {
        let number = self.find(handle);
        number.map_or(Record::default(), |it| Record::of(self.record(it)))
    }

    pub fn of(&self, handle: Handle) -> Notes<'_> {
        let Record { series, string } = self.read(handle);
        let beside = series.map(|series| self.steps.of(series));
        Notes::with(string, beside.unwrap_or_default())
    }

    /// The note that this one would replace.
    pub fn before(&self, handle: Handle, new: &Note<'_>, by: &RandomState) -> Option<Note<'_>> {
        let Record { series, string } = self.read(handle);
        if let (&Note::Step { name, .. }, Some(series)) = (new, series) {
            let (name, value) = self.steps.step(series, name, hash_of(name, by))?;
            return Some(Note::Step { name, value });
        }
        let mut all = Notes::of(string).in_string().map(|(_, note)| note);
        all.find(|note| new.replaces(note))
    }

    pub fn has_room(&self) -> bool {
        self.records.has_room_for(1) && self.steps.has_room()
    }

    /// Puts a note at its place among those of a job. There must be room.
    pub fn set(&mut self, handle: Handle, note: &Note<'_>, by: &RandomState) {
        let Record { mut series, string } = self.read(handle);
        if series.is_none() && string.len() + note.len() > STRING_MAX {
            series = self.set_steps_beside(handle, note, by);
        }
        if let (&Note::Step { name, value }, Some(series)) = (note, series) {
            let steps = self.steps.make();
            return steps.set(series, (name, value), hash_of(name, by));
        }
        let mut new = std::mem::take(&mut self.scratch);
        let string = self.read(handle).string;
        let place = place_in(string, note);
        new.extend_from_slice(&string[..place.start]);
        append(note, &mut new);
        new.extend_from_slice(&string[place.end..]);
        self.put(handle, series, &new);
        self.give_back(new);
    }

    /// Makes a job that has steps, or is to have this one, keep them beside its string. Returns their series.
    #[cold]
    fn set_steps_beside(
        &mut self,
        handle: Handle,
        note: &Note<'_>,
        by: &RandomState,
    ) -> Option<u32> {
        let string = self.read(handle).string.to_vec();
        let old = Notes::of(&string);
        if note.tag() != STEP && old.steps_len() == 0 {
            return None;
        }
        let steps = self.steps.make();
        let series = steps.new_series();
        for (name, value) in old.steps() {
            steps.set(series, (name, value), hash_of(name, by));
        }
        let mut rest = Vec::new();
        push_kept(&string, |tag| tag != STEP, &mut rest);
        self.put(handle, Some(series), &rest);
        Some(series)
    }

    /// Takes all notes from a job, and drops those whose tags `kept` does not accept.
    pub fn take(&mut self, handle: Handle, kept: impl Fn(u32) -> bool) -> OwnNotes {
        let Some(number) = self.find(handle) else {
            return OwnNotes::default();
        };
        let Record { mut series, string } = Record::of(self.record(number));
        let mut own = OwnNotes::default();
        push_kept(string, &kept, &mut own.string);
        if let Some(gone) = series.take_if(|_| !kept(STEP)) {
            self.steps.make().remove(gone);
        }
        own.series = series;
        self.remove_record(handle, number);
        let beside = series.map(|series| self.steps.of(series));
        own.counted = Notes::with(&own.string, beside.unwrap_or_default()).counted();
        own
    }

    /// Gives notes to a job that has none.
    pub fn give(&mut self, handle: Handle, own: OwnNotes) {
        self.put(handle, own.series, &own.string);
    }

    /// A buffer that one large value has grown is not kept.
    fn give_back(&mut self, mut scratch: Vec<u8>) {
        scratch.clear();
        scratch.shrink_to(STRING_MAX);
        self.scratch = scratch;
    }

    /// Writes the record of a job anew.
    fn put(&mut self, handle: Handle, series: Option<u32>, string: &[u8]) {
        let old = self.find(handle);
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&handle.to_le_bytes());
        header[4] = if series.is_some() { HAS_STEPS } else { 0 };
        let beside = series.map(u32::to_le_bytes);
        let beside = beside.as_ref().map_or(&[][..], |series| &series[..]);
        let start = HEADER + beside.len();
        let same = old.and_then(|number| self.records.get_mut(number));
        let fits = |it: &&mut [u8]| it.len() == start + string.len() && it[4] == header[4];
        if let Some(record) = same.filter(fits) {
            record[start..].copy_from_slice(string);
            return;
        }
        if let Some(number) = old {
            self.remove_record(handle, number);
        }
        if series.is_some() || !string.is_empty() {
            let number = self.records.insert([&header[..], beside, string]);
            self.table.insert(scattered(handle), number);
        }
    }

    fn remove_record(&mut self, handle: Handle, number: u32) {
        let indexed = self.table.remove(scattered(handle), number);
        must(indexed && self.records.remove(number), NO_RECORD);
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
        self.records.is_scattered() || self.steps.is_scattered()
    }

    /// Moves up to `budget` records and steps that lie scattered; returns the unused budget.
    pub fn gather(&mut self, budget: usize) -> usize {
        for left in (1..=budget).rev() {
            let Some(old) = self.records.misplaced() else {
                let steps = self.steps.made();
                return steps.map_or(left, |steps| steps.gather(left));
            };
            let hash = scattered(handle_of(self.record(old)));
            let new = self.records.move_misplaced(old);
            must(self.table.remove(hash, old), NO_RECORD);
            self.table.insert(hash, new);
        }
        0
    }

    /// Frees about `count` records or steps of a table that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        (self.steps.made()).is_some_and(|steps| steps.free_some(count))
            || self.records.free_some(count)
            || self.table.free_some(count)
    }

    /// See [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.table.relocate(from, mover),
            1 => self.records.relocate_pages(from, mover),
            2 => self.records.relocate_long(from, mover),
            _ => {
                if part == 3 && from == 0 {
                    self.steps.relocate(mover);
                }
                self.steps.made()?.relocate(part - 3, from, mover)
            }
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
            + self.records.memory_bytes()
            + self.steps.memory_bytes()
            + Steps::memory_bytes(&self.steps)
            + self.scratch.capacity()
    }

    /// Each record is of a job that is there, and holds its notes in their order, each once.
    pub fn check_invariants(&self, is_there: impl Fn(Handle) -> bool) -> Result<(), String> {
        self.records.check_invariants()?;
        self.steps.check_invariants()?;
        self.table
            .check_invariants(|number| scattered(handle_of(self.record(number))))?;
        if self.table.len() != self.records.len() {
            return Err("notes and their index differ in number".into());
        }
        let mut beside = 0;
        for number in self.table.handles() {
            let handle = handle_of(self.record(number));
            let Record { series, string } = self.read(handle);
            if let Some(series) = series {
                self.steps.check_series(series)?;
                beside += 1;
            }
            let in_string = Notes::of(string).in_string().last();
            let notes = self.of(handle);
            let all: Vec<Note<'_>> = notes.iter().collect();
            let distinct = |at: usize| all[..at].iter().all(|note| !note.replaces(&all[at]));
            let is_sound = is_there(handle)
                && self.find(handle) == Some(number)
                && !all.is_empty()
                && in_string.map_or(0, |(part, _)| part.end) == string.len()
                && (series.is_none() || Notes::of(string).steps_len() == 0)
                && all.is_sorted_by_key(Note::tag)
                && (0..all.len()).all(distinct);
            if !is_sound {
                return Err(format!("notes of job {handle} that cannot be: {all:?}"));
            }
        }
        match beside == self.steps.series_len() {
            true => Ok(()),
            false => Err("steps of a job that is not there".into()),
        }
    }
}
