//! Groups: which jobs they have, and whose turn it is.
//!
//! ```text
//!   name ──hash──► names ──► number ──► all[number]: name, line of its delayed and ready jobs, how many are
//!                                       reserved, turn, from when on it may be served
//!   turns  open   (turn, from when on) ──► number     groups that may be served, now or once that instant has come
//!          full   the same                            groups at GROUPMAX: NOACK may serve them
//! ```
//!
//! A *turn* is a number that grows with each delivery in the queue, and with each group that begins to hold jobs:
//! the least one was served longest ago. It follows from the effects alone, so replicas have the same order.
//!
//! *Ready* is a function of time, for groups as for jobs. A group stands under the instant from which it may be served:
//! the first due time of its line, or later where GROUPRATE says so. The list is ordered by turns, and its links know
//! the least instant beneath them. So the first group whose instant has come is found in O(log groups), and nothing
//! moves when a million groups become ready at once. A group that GROUPFIFO holds back stands in no list.
//!
//! Jobs without a group take turns as one more group, whose line is the queue's own. Jobs with a group stand in the
//! schedule, too, beside those without: see [`super::schedule`]. In a queue where no job has a group, none of this
//! exists.
//!
//! A group exists as long as any job has it, even a dead one, or as long as it has settings of its own ([`own`]); it
//! *holds* the jobs that are not dead.

mod check;
mod line;
mod linked;
mod own;
mod pass;
mod passed_over;
mod prefetch;
mod served;
mod turns;

pub use linked::{check_turns, TurnsSeen};
pub use served::HeldByGroup;

use super::jobs::Jobs;
use super::store::{allocated, Id, Store};
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::settings::GroupLimits;
use crate::storage::broken::{must, there};
use crate::storage::relocate::{move_boxed, Mover};
use crate::storage::slab::Slab;
use crate::storage::table::{IdTable, Near};
use line::Line;
use own::{Owns, HAS_OWN};
use pass::Pass;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use turns::{Turns, INSTANT};

/// The instant of a group in no list of turns: no other is so late.
const NOWHERE: u64 = INSTANT;
/// Above these bits of `Group::at`: the round in which the group was updated last. See [`pass`].
const ROUND_BITS: u32 = 61;
const _: () = assert!(pass::ROUNDS <= 1 << (u64::BITS - ROUND_BITS));
/// The largest turn that is accepted: no queue counts on so far from it that a turn would not fit.
const TURN_MAX: u64 = 1 << 60;

const NO_GROUP: &str = "a job of a group that is not there";

#[derive(Clone)]
struct Group {
    name: Box<[u8]>,
    line: Line,
    turn: u64,
    /// Its place in the lists of turns, and the round of these lists.
    at: u64,
    /// Its jobs in any state, and successors; one more while jobs wait for the group. [`HAS_OWN`] is a bit of it: a group
    /// with settings stays without jobs.
    users: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Group>() == 64);

impl Group {
    /// Delayed, ready and reserved jobs, not blocked ones.
    fn live(&self) -> usize {
        self.line.len() + self.reserved as usize
    }

    fn round(&self) -> usize {
        (self.at >> ROUND_BITS) as usize
    }

    fn stand_nowhere(&mut self, round: usize) {
        self.at = NOWHERE | (round as u64) << ROUND_BITS;
    }

    fn stands_at(&self, at: u64, round: usize) -> bool {
        self.at == at | (round as u64) << ROUND_BITS
    }

    fn stands_nowhere(&self) -> bool {
        self.at & INSTANT == NOWHERE
    }
}

/// Where a search for a group's name has ended.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    name: Id<'a>,
    pub number: Option<GroupNumber>,
    near: Near,
}

/// A group as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Blocked, delayed and ready jobs.
    pub waiting: usize,
    /// Reserved jobs.
    pub reserved: usize,
}

impl GroupView<'_> {
    pub fn holds_any(&self) -> bool {
        self.waiting + self.reserved > 0
    }
}

/// All groups of a queue.
#[derive(Clone)]
pub struct Groups {
    all: Slab<Group>,
    names: IdTable,
    /// The group that a job was last added to by its name alone.
    latest: GroupNumber,
    /// Bytes of the names of all groups that have users.
    name_bytes: u64,
    /// Bytes that the allocator gives for the names.
    name_memory: usize,
    turns: Turns,
    round: usize,
    pass: Option<Box<Pass>>,
    /// The last turn given.
    turn: u64,
    /// The turn of the jobs without a group.
    own_turn: u64,
    /// Whether a snapshot has told this turn.
    is_own_turn_known: bool,
    /// Groups that hold jobs.
    held: usize,
    /// Reserved jobs that have a group.
    reserved: usize,
    /// How many blocked jobs a group has, for groups that have any.
    blocked: BTreeMap<GroupNumber, u32>,
    max_reserved: u64,
    is_fifo: bool,
    owns: Owns,
    /// The group whose turn it is, and how many jobs it has given in it. Not data.
    giving: Option<(GroupNumber, u32)>,
    /// Groups whose first job weighs more than their window allows, with the instant from which another job may be
    /// first, or this one may go.
    passed_over: BTreeMap<GroupNumber, u64>,
    /// While groups are freed: those before this number have no long lines any more.
    freed_lines: GroupNumber,
}

impl Groups {
    pub fn new(limits: GroupLimits) -> Self {
        Groups {
            all: Slab::new(),
            names: IdTable::new(),
            latest: 0,
            name_bytes: 0,
            name_memory: 0,
            turns: Turns::default(),
            round: 0,
            pass: None,
            turn: 0,
            own_turn: 0,
            is_own_turn_known: false,
            held: 0,
            reserved: 0,
            blocked: BTreeMap::new(),
            max_reserved: limits.max_reserved,
            is_fifo: limits.is_fifo,
            owns: Owns::new(),
            giving: None,
            passed_over: BTreeMap::new(),
            freed_lines: 0,
        }
    }

    fn get(&self, number: GroupNumber) -> &Group {
        there(self.all.get(number), NO_GROUP)
    }

    fn get_mut(&mut self, number: GroupNumber) -> &mut Group {
        there(self.all.get_mut(number), NO_GROUP)
    }

    pub fn name(&self, number: GroupNumber) -> &[u8] {
        &self.get(number).name
    }

    pub fn seek<'a>(&self, name: Id<'a>) -> Sought<'a> {
        let is_it = |it| *self.get(it).name == *name.bytes;
        let (number, near) = self.names.search(name.hash(), is_it);
        Sought { name, number, near }
    }

    /// As [`Groups::seek`], by the name's hash alone: the group is to be [`Groups::confirmed`], and may have been prefetched
    /// until then.
    pub fn seek_likely<'a>(&self, name: Id<'a>) -> Sought<'a> {
        let (number, near) = self.names.search(name.hash(), |_| true);
        number.into_iter().for_each(|it| self.prefetch_group(it));
        Sought { name, number, near }
    }

    /// What a search by the whole name finds.
    pub fn confirmed<'a>(&self, likely: Sought<'a>) -> Sought<'a> {
        let name = likely.name;
        match likely.number {
            Some(number) if *self.get(number).name != *name.bytes => self.seek(name),
            _ => likely,
        }
    }

    /// The group that was sought since groups have changed last, with one user more.
    pub fn acquire(&mut self, sought: Sought<'_>) -> GroupNumber {
        let number = match sought.number {
            Some(number) => number,
            None => return self.begin(sought, 1),
        };
        debug_assert!(*self.get(number).name == *sought.name.bytes);
        self.add_user(number);
        number
    }

    /// The group of this name, with one user more. Many jobs in a row have the same.
    pub fn acquire_named(&mut self, name: &[u8], jobs: &Store) -> GroupNumber {
        let latest = self.all.get(self.latest);
        if latest.is_none_or(|it| *it.name != *name) {
            let sought = self.seek(jobs.hashed(name));
            self.latest = sought.number.unwrap_or_else(|| self.begin(sought, 0));
        }
        self.add_user(self.latest);
        self.latest
    }

    /// A group of this name, with so many users.
    fn begin(&mut self, Sought { name, near, .. }: Sought<'_>, users: u32) -> GroupNumber {
        self.name_memory += allocated(name.bytes.len());
        self.name_bytes += u64::from(users.min(1)) * name.bytes.len() as u64;
        let mut group = Group {
            name: name.bytes.into(),
            line: Line::Empty,
            turn: 0,
            at: NOWHERE,
            users,
            reserved: 0,
        };
        group.stand_nowhere(self.round);
        let number = self.all.insert(group);
        self.names.insert_near(name.hash(), number, near);
        number
    }

    /// Takes one user off a group, which is removed with its last one unless it has settings.
    pub fn release(&mut self, number: GroupNumber, hasher: &impl BuildHasher) {
        let group = self.get_mut(number);
        must(group.users & !HAS_OWN > 0, NO_GROUP);
        group.users -= 1;
        if group.users & !HAS_OWN > 0 {
            return;
        }
        let (name_len, stays) = (group.name.len() as u64, group.users > 0);
        self.name_bytes -= name_len;
        if !stays {
            self.end(number, hasher);
        }
    }

    fn end(&mut self, number: GroupNumber, hasher: &impl BuildHasher) {
        self.giving.take_if(|giving| giving.0 == number);
        let group = self.get(number);
        must(
            group.live() == 0 && group.stands_nowhere(),
            "a group that goes and holds jobs",
        );
        self.passed_over.remove(&number);
        let group = there(self.all.remove(number), NO_GROUP);
        let known = self.names.remove(hasher.hash_one(&*group.name), number);
        must(known, "a group whose name is not known");
        self.name_memory -= allocated(group.name.len());
    }

    /// Numbers of all groups, in no order.
    fn numbers(&self) -> impl Iterator<Item = GroupNumber> + '_ {
        self.names.handles()
    }

    /// Frees about `count` things of groups that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        // Long lines first, each on its own.
        let end = self.all.end();
        for _ in 0..count {
            let group = self.all.get_mut(self.freed_lines);
            if group.is_some_and(|group| group.line.free_some(count)) {
                return true;
            }
            if self.freed_lines >= end {
                break;
            }
            self.freed_lines += 1;
        }
        if self.freed_lines < end {
            return true;
        }
        let pass = self.pass.as_mut();
        let older = pass.is_some_and(|pass| {
            pass.free_lines(count) || pass.all_older().iter_mut().any(|it| it.free_some(count))
        });
        older
            || self.turns.free_some(count)
            || self.owns.free_some(count)
            || self.names.free_some(count)
            || self.all.free_some(count)
    }

    /// A part of them: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.names.relocate(from, mover),
            1 => self.turns.open.relocate(from, mover),
            2 => self.turns.full.relocate(from, mover),
            3 | 4 => self.owns.relocate(part - 3, from, mover),
            _ => self.all.relocate(from, mover, |group, mover| {
                move_boxed(&mut group.name, mover);
                group.line.relocate(mover);
            }),
        }
    }

    /// Without lines and turns.
    pub fn heap_bytes(&self) -> usize {
        let groups = self.all.memory_bytes() + self.names.memory_bytes() + self.owns.memory_bytes();
        size_of::<Self>() + groups + self.name_memory
    }

    /// Heap bytes, and those of the structure itself.
    pub fn memory_bytes(&self) -> usize {
        let line = |number| self.get(number).line.memory_bytes();
        self.heap_bytes()
            + self.turns.memory_bytes()
            + self.passed_over.len() * size_of::<(GroupNumber, u64)>()
            + self.pass.as_ref().map_or(0, |pass| pass.memory_bytes())
            + self.numbers().map(line).sum::<usize>()
    }
}

impl Groups {
    /// Whether any job that has a group is blocked, delayed, ready or reserved.
    fn holds_any(&self, jobs: &Jobs) -> bool {
        jobs.schedule().grouped_len() + self.reserved > 0 || !self.blocked.is_empty()
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.all.len() == 0
    }

    /// Groups that hold jobs. After a large purge, groups that held only purged jobs are counted until they are
    /// updated.
    pub fn len(&self, jobs: &Jobs) -> usize {
        match self.holds_any(jobs) {
            true => self.held,
            false => 0,
        }
    }

    /// The group of this name, if some job has it, or if it has settings.
    pub fn named(&self, name: &[u8], jobs: &Store) -> Option<GroupNumber> {
        self.seek(jobs.hashed(name)).number
    }

    /// One step of a scan over all groups, or over those that are `set`: that have settings.
    pub fn scan(
        &self,
        cursor: u64,
        set: bool,
        mut show: impl FnMut(GroupNumber, GroupView<'_>),
    ) -> u64 {
        let see = |number| show(number, self.view(number));
        match set {
            true => self.scan_own(cursor, see),
            false => self.names.scan(cursor, see),
        }
    }

    /// Bytes of the names of groups that any job has, which MAXBYTES counts.
    pub fn name_bytes(&self) -> u64 {
        self.name_bytes
    }

    /// How the bytes of group names would change if a job of the group `name` were added, and the jobs and successors
    /// `going` were removed. `is_awaited` says of a group whether jobs wait for it.
    pub fn growth(
        &self,
        name: Option<&[u8]>,
        going: &[Handle],
        jobs: &Store,
        is_awaited: impl Fn(GroupNumber) -> bool,
    ) -> i64 {
        let new = name.map(|name| self.used(name, jobs));
        let grown = match (name, new) {
            (Some(name), Some(None)) => name.len() as i64,
            _ => 0,
        };
        let numbers = || going.iter().filter_map(|&it| jobs.job(it).group());
        let mut freed: Vec<GroupNumber> = numbers().collect();
        freed.sort_unstable();
        freed.dedup();
        let is_freed = |&number: &GroupNumber| {
            let users = numbers().filter(|&it| it == number).count();
            let waiting = usize::from(is_awaited(number));
            self.users(number) as usize == users + waiting && new != Some(Some(number))
        };
        let freed = freed.into_iter().filter(is_freed);
        let freed = freed.map(|number| self.name(number).len() as i64);
        grown - freed.sum::<i64>()
    }

    /// How many jobs have this group, and one more if jobs wait for it.
    pub fn users(&self, number: GroupNumber) -> u32 {
        self.get(number).users & !HAS_OWN
    }

    /// The group of this name, if some job has it.
    pub fn used(&self, name: &[u8], jobs: &Store) -> Option<GroupNumber> {
        let number = self.named(name, jobs);
        number.filter(|&number| self.users(number) > 0)
    }

    /// Updates the lines after jobs got new numbers in the order of adding. No group may be of an older round.
    pub fn number_anew(&mut self, jobs: &Store) {
        let numbers: Vec<GroupNumber> = self.numbers().collect();
        for number in numbers {
            self.get_mut(number).line.number_anew(jobs);
        }
    }

    /// The group of this name, and how many jobs it holds.
    pub fn held_by(&self, name: &[u8], jobs: &Store) -> Option<(GroupNumber, usize)> {
        let number = self.named(name, jobs)?;
        let (waiting, reserved) = self.counts(number);
        Some((number, waiting + reserved))
    }

    /// Whether it holds no job.
    pub fn is_empty(&self, number: GroupNumber) -> bool {
        self.counts(number) == (0, 0)
    }

    fn blocked_in(&self, number: GroupNumber) -> usize {
        self.blocked.get(&number).map_or(0, |&count| count as usize)
    }

    /// Blocked jobs of all groups.
    fn blocked_len(&self) -> usize {
        self.blocked.values().map(|&count| count as usize).sum()
    }

    pub fn add_user(&mut self, number: GroupNumber) {
        let group = self.get_mut(number);
        group.users += 1;
        let is_first = group.users & !HAS_OWN == 1;
        if is_first {
            self.name_bytes += self.get(number).name.len() as u64;
        }
    }

    pub fn view(&self, number: GroupNumber) -> GroupView<'_> {
        let (waiting, reserved) = self.counts(number);
        GroupView {
            name: &self.get(number).name,
            waiting,
            reserved,
        }
    }
}

#[cfg(test)]
mod tests;
