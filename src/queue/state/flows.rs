//! Jobs that are after others: which job waits for what, and which of that has ended.
//!
//! ```text
//!   waiting job ──hash──► waiters ──► records[number]: waiter, open, latest, links
//!                                                                      │
//!   job or group ──► of_job, of_group ──► awaited[number] ◄────────────┘   what, for which ONDEAD, how many links
//!                                              │ ▲
//!                      overs[number] ◄─────────┘ └── edges (number, waiter): still open for this one
//!                      id, outcome, instant ──► values[number]: one for all ends of the id with the same value
//!
//!   line:  [end] [end] [end] ...      an end, and the numbers of the jobs that it concerns
//! ```
//!
//! A job that others are after has up to three numbers, one for the waiting jobs of each ONDEAD. When the job ends, its
//! numbers move to the line as they are, however many jobs wait: from then on they belong to its end. Steps take the
//! waiting jobs of the first end one by one, in the order of their adding. So an end binds to the job, not to its id,
//! and is recorded in constant time.
//!
//! A job keeps its links, and how each ended, until it is removed. In a queue where no job is after others, none of
//! this exists.

mod blocked;
mod check;
mod keep;
mod snapshot;
mod step;
mod values;

use super::jobs::Jobs;
use super::store::allocated;
use crate::queue::after::{Moment, OnDead, Outcome};
use crate::queue::job::{GroupNumber, Handle};
use crate::storage::broken::there;
use crate::storage::few::Few;
use crate::storage::relocate::{move_boxed, Mover};
use crate::storage::skiplist::Skiplist;
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
pub(super) use blocked::reason_of;
pub(in crate::queue) use keep::Released;
use std::collections::{BTreeMap, VecDeque};
pub(super) use step::{Fallout, Stepped};
use values::Values;
pub(super) use values::{EndOf, EndValue};

/// Names what is awaited, or an end.
pub type Number = u32;
pub(super) const NONE: Number = Number::MAX;

const NO_NUMBER: &str = "a link to nothing";
const NO_RECORD: &str = "a waiting job without its record";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Job(Handle),
    Group(GroupNumber),
    /// It has ended: the number of its end.
    Over(Number),
}

#[derive(Clone, Debug)]
pub struct Awaited {
    pub what: What,
    on_dead: OnDead,
    /// Links to it, and one more while it stands in the line.
    users: u32,
}

/// How a job or a group ended.
#[derive(Clone, Debug)]
struct Over {
    /// The id of the job, or the name of the group.
    id: Box<[u8]>,
    /// None if it had not ended when its waiter stopped waiting for it.
    outcome: Option<Outcome>,
    at: Moment,
    /// Its number among the values; [`NONE`] without one.
    value: Number,
    users: u32,
}

/// What a job is after, in the order of its AFTER.
pub type Links = Few<Number>;

#[derive(Clone, Debug)]
pub struct Record {
    pub links: Links,
    /// The latest end that was counted, in half milliseconds.
    pub latest: u64,
    pub waiter: Handle,
    /// Links that are still open: their ends have not been carried out for it.
    pub open: u16,
    pub on_dead: OnDead,
    pub flags: u8,
}

/// In a record: the due time is an instant, else a delay.
pub(super) const TIMED: u8 = 1;
/// In a record: its one link is to a group.
pub(super) const OF_GROUP: u8 = 2;

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    pub fn is_timed(&self) -> bool {
        self.flags & TIMED != 0
    }

    pub fn is_of_group(&self) -> bool {
        self.flags & OF_GROUP != 0
    }

    fn latest(&self) -> Moment {
        Moment {
            ms: self.latest / 2,
            is_within: self.latest % 2 == 1,
        }
    }

    pub fn note_end(&mut self, at: Moment) {
        let at = at.ms * 2 + u64::from(at.is_within);
        self.latest = self.latest.max(at);
    }
}

/// An end that is still to be carried out, with the number for each ONDEAD; [`NONE`] if no job waits with it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    over: Number,
    numbers: [Number; 3],
    /// While a snapshot is restored: the number of its end there.
    rank: u64,
}

/// The ends of a snapshot as they come, and the numbers by which jobs are linked to them.
#[derive(Clone, Debug, Default)]
pub struct Restoring {
    ends: Vec<(Number, [Number; 3])>,
    /// The numbers of links that were resolved already: these are not in the line.
    resolved: Vec<[Number; 3]>,
}

/// See the picture above.
#[derive(Clone, Default)]
pub struct Flows {
    /// Blocked jobs that have a group, by that group.
    members: Skiplist<u32>,
    edges: Skiplist<u32>,
    pub(super) awaited: Slab<Awaited>,
    overs: Slab<Over>,
    values: Values,
    records: Slab<Record>,
    waiters: IdTable,
    pub(super) of_job: IdTable,
    /// The number that a link was last made to: many jobs in a row are after the same one.
    pub(super) latest: Number,
    pub(super) of_group: BTreeMap<GroupNumber, Number>,
    line: VecDeque<Pending>,
    /// Awaited groups that have become empty, and since when.
    pub(super) emptied: BTreeMap<GroupNumber, Moment>,
    /// From this number on, each awaited group may have become empty: a purge took very many jobs.
    unsure: Option<GroupNumber>,
    /// When the jobs that a rule is ending now ended.
    pub(super) moment: Moment,
    heap_bytes: usize,
    restoring: Option<Box<Restoring>>,
    /// Parts of a snapshot have come: it is still to be checked that no job would stay blocked for ever.
    pub(super) is_unchecked: bool,
}

/// Handles are numbered densely; the tables want them scattered.
fn scattered(handle: Handle) -> u64 {
    u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Flows {
    pub(super) fn awaited(&self, number: Number) -> &Awaited {
        there(self.awaited.get(number), NO_NUMBER)
    }

    fn over(&self, number: Number) -> &Over {
        there(self.overs.get(number), NO_NUMBER)
    }

    fn record_number(&self, waiter: Handle) -> Option<u32> {
        self.waiters.find(scattered(waiter), |it| {
            there(self.records.get(it), NO_RECORD).waiter == waiter
        })
    }

    pub(super) fn record(&self, waiter: Handle) -> Option<&Record> {
        self.records.get(self.record_number(waiter)?)
    }

    fn record_mut(&mut self, waiter: Handle) -> Option<&mut Record> {
        let number = self.record_number(waiter)?;
        self.records.get_mut(number)
    }

    /// The number of a job for those that wait for it with this ONDEAD.
    pub(super) fn number_of(&self, job: Handle, on_dead: OnDead) -> Option<Number> {
        self.of_job.find(scattered(job), |it| {
            let awaited = self.awaited(it);
            awaited.what == What::Job(job) && awaited.on_dead == on_dead
        })
    }

    /// The numbers of a job for each ONDEAD, in their order.
    fn numbers_of(&self, job: Handle) -> [Number; 3] {
        OnDead::ALL.map(|on_dead| self.number_of(job, on_dead).unwrap_or(NONE))
    }

    /// Whether others are after this job.
    pub(in crate::queue) fn is_awaited(&self, job: Handle) -> bool {
        let found = self
            .of_job
            .find(scattered(job), |it| self.awaited(it).what == What::Job(job));
        found.is_some()
    }

    /// Whether there is something to carry out.
    pub(in crate::queue) fn is_pending(&self) -> bool {
        !self.line.is_empty() || self.has_emptied() || self.is_unchecked
    }

    pub(in crate::queue::state) fn has_line(&self) -> bool {
        !self.line.is_empty()
    }

    pub(in crate::queue) fn value_bytes(&self) -> u64 {
        self.values.len()
    }

    fn value_of(&self, over: &Over) -> Option<&[u8]> {
        (over.value != NONE).then(|| self.values.get(over.value))
    }

    /// Whether it holds nothing that anybody could ask for.
    pub(super) fn is_bare(&self, jobs: &Jobs) -> bool {
        jobs.blocked().is_empty()
            && !jobs.blocked().has_detached()
            && self.records.len() == 0
            && self.awaited.len() == 0
            && self.restoring.is_none()
    }

    /// Frees about `count` things of flows that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.members.free_some(count)
            || self.edges.free_some(count)
            || self.waiters.free_some(count)
            || self.of_job.free_some(count)
            || self.records.free_some(count)
            || self.awaited.free_some(count)
            || self.overs.free_some(count)
            || self.values.free_some(count)
            || (0..count).any(|_| self.of_group.pop_first().is_some())
    }

    /// How much there is to free.
    pub fn left(&self) -> usize {
        self.edges.len() + self.records.len() + self.overs.len()
    }

    /// A part of them: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.edges.relocate(from, mover),
            1 => self.waiters.relocate(from, mover),
            2 => self.of_job.relocate(from, mover),
            3 => self.members.relocate(from, mover),
            4 => self.overs.relocate(from, mover, |over, mover| {
                move_boxed(&mut over.id, mover);
            }),
            5 | 6 => self.values.relocate(part - 5, from, mover),
            _ => None,
        }
    }

    /// Without the lists.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.awaited.memory_bytes()
            + self.overs.memory_bytes()
            + self.values.memory_bytes()
            + self.records.memory_bytes()
            + self.waiters.memory_bytes()
            + self.of_job.memory_bytes()
            + self.line.capacity() * size_of::<Pending>()
            + self.of_group.len() * 2 * size_of::<(GroupNumber, Number)>()
            + self.heap_bytes
    }

    /// Heap bytes, and those of the structure itself.
    pub fn memory_bytes(&self) -> usize {
        let lists = [&self.members, &self.edges].map(Skiplist::memory_bytes);
        self.heap_bytes() + lists.iter().sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
