//! Jobs that have a successor, counted by where they stand: how many successors a purge removes with their jobs must be
//! known at once, however many there are.

use super::purged::Purged;
use super::store::Status;
use crate::queue::job::{Handle, Place};
use crate::storage::broken::must;
use crate::storage::relocate::Mover;
use crate::storage::skiplist::Skiplist;
use std::ops::RangeInclusive;

/// Empty if NEXT is not used.
#[derive(Clone, Default)]
pub struct Followed {
    /// By their due times.
    scheduled: Skiplist<u64>,
    /// By their deadlines.
    reserved: Skiplist<u64>,
}

fn tie(handle: Handle) -> u64 {
    handle.into()
}

impl Followed {
    pub const fn new() -> Self {
        Followed {
            scheduled: Skiplist::new(),
            reserved: Skiplist::new(),
        }
    }

    fn list_of(&mut self, status: Status) -> Option<(&mut Skiplist<u64>, u64)> {
        match status.place {
            Place::Scheduled => Some((&mut self.scheduled, status.due)),
            Place::Reserved => Some((&mut self.reserved, status.life.at)),
            Place::Dead | Place::Successor | Place::Blocked => None,
        }
    }

    pub fn insert(&mut self, handle: Handle, status: Status) {
        if let Some((list, instant)) = self.list_of(status) {
            list.insert(instant, handle, tie);
        }
    }

    pub fn remove(&mut self, handle: Handle, status: Status) {
        if let Some((list, instant)) = self.list_of(status) {
            let there = list.remove(instant, handle, tie);
            must(there, "a job whose successor was not counted");
        }
    }

    pub fn len(&self) -> usize {
        self.scheduled.len() + self.reserved.len()
    }

    /// Successors of delayed and ready jobs that are due by `cut`.
    pub fn due_by(&self, cut: u64) -> usize {
        self.scheduled.count_below(cut, true)
    }

    pub fn due_after(&self, cut: u64) -> usize {
        self.scheduled.len() - self.due_by(cut)
    }

    /// Successors of reserved jobs whose leases end after `cut`.
    pub fn leased_beyond(&self, cut: u64) -> usize {
        self.reserved.len() - self.reserved.count_below(cut, true)
    }

    /// Reserved jobs that have a successor and whose leases end by `cut`.
    pub fn leased_by(&self, cut: u64) -> impl Iterator<Item = Handle> + '_ {
        let leases = self.reserved.iter().take_while(move |&(at, _)| at <= cut);
        leases.map(|(_, handle)| handle)
    }

    fn list_for(&mut self, purged: &Purged) -> Option<(&mut Skiplist<u64>, RangeInclusive<u64>)> {
        match purged {
            Purged::Dues(dues) => Some((&mut self.scheduled, dues.clone())),
            Purged::Leases(ends) => Some((&mut self.reserved, ends.clone())),
            // Dead and blocked jobs are in no list; overdue ones were removed one by one.
            Purged::DeadBefore(_) | Purged::Blocked | Purged::Overdue { .. } => None,
        }
    }

    /// Detaches the jobs that a purge takes; returns how many. Their entries are freed one by one.
    pub fn detach(&mut self, purged: &Purged) -> usize {
        let of = self.list_for(purged);
        of.map_or(0, |(list, instants)| list.detach(instants))
    }

    /// Frees an entry that this purge has detached.
    pub fn free_detached(&mut self, purged: &Purged) {
        if let Some((list, _)) = self.list_for(purged) {
            must(
                list.pop_detached().is_some(),
                "fewer successors than a purge took",
            );
        }
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.scheduled.free_some(count) || self.reserved.free_some(count)
    }

    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.scheduled.relocate(from, mover),
            _ => self.reserved.relocate(from, mover),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.scheduled.memory_bytes() + self.reserved.memory_bytes()
    }

    /// For tests: whether it has exactly these, by due times and by deadlines, and so many that are detached.
    pub fn check(&self, expected: [Vec<(u64, Handle)>; 2], detached: usize) -> Result<(), String> {
        let lists = [&self.scheduled, &self.reserved];
        let in_lists: usize = lists.iter().map(|list| list.detached().count()).sum();
        for (list, mut expected) in lists.into_iter().zip(expected) {
            list.check_invariants(tie)?;
            let mut there: Vec<_> = list.iter().collect();
            there.sort_unstable();
            expected.sort_unstable();
            if expected != there {
                return Err(format!("successors of {expected:?}, counted are {there:?}"));
            }
        }
        match detached == in_lists {
            true => Ok(()),
            false => Err(format!("{in_lists} detached, not {detached}")),
        }
    }
}
