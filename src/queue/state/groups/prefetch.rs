//! Prefetches the memory of groups, as [`crate::queue::prefetch`] does that of jobs: a name's place in the table, the group,
//! its name and its first job lie wherever they came to lie.

use super::line::Line;
use super::Groups;
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::state::store::{Id, Store};
use crate::storage::prefetch::prefetch;
use std::hash::BuildHasher;

/// Fewer groups are in the processor's cache anyway. Tests prefetch with almost any number.
const MANY: usize = if cfg!(debug_assertions) { 3 } else { 65_536 };

impl Groups {
    fn are_many(&self) -> bool {
        self.all.len() >= MANY
    }

    /// For a job of the group of this name that is about to be added, as soon as the name is known.
    pub fn prefetch_shard(&self, name: Id<'_>) {
        if self.are_many() {
            self.names.prefetch_shard(name.hash());
        }
    }

    /// As [`Groups::prefetch_shard`], once the shard has arrived.
    pub fn prefetch_named(&self, name: Id<'_>) {
        if self.are_many() {
            self.names.prefetch_slots(name.hash());
        }
    }

    /// As [`Groups::prefetch_named`], once the slots have arrived: the group, and what it has of its own.
    pub(super) fn prefetch_group(&self, number: GroupNumber) {
        if self.are_many() {
            self.all.prefetch(number);
            self.owns.prefetch(number);
        }
    }

    /// The group of a job that is about to change its place.
    // In line, it would cost jobs without a group a few instructions.
    #[inline(never)]
    pub fn number_of(&self, handle: Handle, jobs: &Store) -> Option<GroupNumber> {
        let number = jobs.job(handle).group()?;
        if self.are_many() {
            self.all.prefetch(number);
        }
        Some(number)
    }

    /// For a group that may be about to end with its last job.
    #[inline]
    pub(super) fn prefetch_name(&self, number: GroupNumber) {
        let group = self.get(number);
        if self.are_many() && group.users == 1 {
            group.name.first().into_iter().for_each(prefetch);
        }
    }

    /// As [`Groups::prefetch_name`], once the name has arrived.
    pub fn prefetch_end(&self, number: GroupNumber, hasher: &impl BuildHasher) {
        let group = self.get(number);
        if self.are_many() && group.users == 1 {
            self.names.prefetch_slots(hasher.hash_one(&*group.name));
        }
    }

    /// For the deliveries after this one: the job that is next in turn, what leads to the one behind it, and the group
    /// behind that.
    pub(super) fn prefetch_following(&self, jobs: &Store) {
        if !self.are_many() {
            return;
        }
        // Others have more than one place to look at.
        let only_job = |number: &GroupNumber| match self.get(*number).line {
            Line::One(one) => Some(one.handle),
            _ => None,
        };
        let mut following = self.turns.open.leading().iter();
        let (next, behind, third) = (following.next(), following.next(), following.next());
        let (next, behind) = (next.and_then(only_job), behind.and_then(only_job));
        next.into_iter().for_each(|it| jobs.prefetch_job(it));
        behind.into_iter().for_each(|it| jobs.prefetch_slot(it));
        third.into_iter().for_each(|&it| self.all.prefetch(it));
    }
}
