//! What few queues have beside their jobs. Each part gets the jobs as an argument, and knows no other part.
//!
//! ```text
//!   dedupe        ids that NX refuses                          dedupe.rs
//!   done          jobs that are done and kept                  done/
//!   groups        their turns, lines and limits                groups.rs
//!   group_rates   the windows of GROUPRATE, and of groups      rate/group.rs
//!   flows         blocked jobs, and what they are after        flows.rs
//!   rate          the window of RATE                           rate.rs
//!   departures    what clients that wait for ends are told     departures.rs
//! ```
//!
//! What becomes of all of them at once is here, in this order: a new part is a field and a line in each function.

use super::dedupe::DedupeWindow;
use super::departures::Departures;
use super::done::Done;
use super::flows::Flows;
use super::groups::Groups;
use super::jobs::Jobs;
use super::purged::LISTED_BYTES;
use super::rate::group::GroupRates;
use super::rate::RateWindow;
use crate::queue::budget::steps_of_bytes;
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::relocate::Mover;

/// See the picture above.
#[derive(Default)]
pub struct Parts {
    pub(in crate::queue) dedupe: Lazy<DedupeWindow>,
    pub(super) done: Lazy<Done>,
    /// Only if a job has a group, or a group has settings.
    pub(super) groups: Option<Box<Groups>>,
    pub(super) group_rates: Option<Box<GroupRates>>,
    /// Only if a job is after others, or was.
    pub(super) flows: Option<Box<Flows>>,
    pub(super) cold: Lazy<Cold>,
}

/// What still fewer have.
#[derive(Default)]
pub(super) struct Cold {
    pub(super) rate: Option<Box<RateWindow>>,
    /// Made while the queue is changed, if a client waits for jobs to end.
    pub(super) departures: Option<Box<Departures>>,
    /// Set aside, to be freed by the owner of the queue.
    pub(super) garbage: Vec<Garbage>,
}

impl Unused for Cold {
    const UNUSED: &'static Self = &Cold {
        rate: None,
        departures: None,
        garbage: Vec::new(),
    };
}

impl Parts {
    /// Whether there are none but groups: the queue is a matter of its jobs and their groups alone. One branch for all of
    /// them.
    #[inline(always)]
    pub(super) fn are_groups(&self) -> bool {
        !(self.dedupe.is_made() | self.done.is_made() | self.flows.is_some() | self.cold.is_made())
    }

    /// Whether there are none: the queue is a matter of its jobs alone.
    #[inline(always)]
    pub(super) fn are_unused(&self) -> bool {
        self.are_groups() & !(self.groups.is_some() | self.group_rates.is_some())
    }

    /// Jobs that are done and kept.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// Whether there is anything to look for among done jobs.
    #[inline]
    pub fn has_done(&self) -> bool {
        self.done.is_made()
    }

    /// The instant until which NX refuses the id. Hashes it only if the dedupe window has any id.
    pub fn remembered_until(&self, jobs: &Jobs, id: &[u8]) -> Option<u64> {
        (self.dedupe.len() > 0).then(|| self.dedupe.until(jobs.hashed(id)))?
    }

    /// If any job has a group, or a group has settings.
    #[inline]
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_deref()
    }

    /// If any job is after others, or was.
    #[inline]
    pub fn flows(&self) -> Option<&Flows> {
        self.flows.as_deref()
    }

    /// Whether ends are still to be carried out, or groups or blocked jobs to be checked.
    #[inline]
    pub fn has_flow_work(&self) -> bool {
        self.flows().is_some_and(Flows::is_pending)
    }

    /// What notes departures, if a client waits for any.
    #[inline]
    pub(super) fn departures(&mut self) -> Option<&mut Departures> {
        self.cold.made()?.departures.as_deref_mut()
    }

    /// The window of RATE, to be changed.
    pub(super) fn rate(&mut self) -> Option<&mut RateWindow> {
        self.cold.made()?.rate.as_deref_mut()
    }

    /// What was set aside since the last call.
    pub(super) fn take_garbage(&mut self) -> Vec<Garbage> {
        let cold = self.cold.made();
        cold.map_or(Vec::new(), |cold| std::mem::take(&mut cold.garbage))
    }

    /// How many ids, windows and jobs are left to be freed.
    pub(super) fn unfreed(&self) -> usize {
        self.dedupe.len()
            + self.done.len()
            + self.groups.as_ref().map_or(0, |it| it.own_len())
            + self.group_rates.as_ref().map_or(0, |it| it.len())
            + self.flows.as_ref().map_or(0, |it| it.left())
    }

    /// About the heap bytes that are left to be freed, but for what [`Parts::unfreed`] counts.
    pub(super) fn unfreed_bytes(&self) -> usize {
        self.dedupe.heap_bytes()
            + self.done.heap_bytes()
            + self.groups.as_ref().map_or(0, |it| it.heap_bytes())
            + self.group_rates.as_ref().map_or(0, |it| it.memory_bytes())
            + self.flows.as_ref().map_or(0, |it| it.heap_bytes())
    }

    /// Frees about `count` things of parts that are not used any more; false once nothing is left.
    pub(super) fn free_some(&mut self, count: usize) -> bool {
        self.dedupe.made().is_some_and(|it| it.free_some(count))
            || self.done.made().is_some_and(|it| it.free_some(count))
            || self.groups.as_mut().is_some_and(|it| it.free_some(count))
            || (self.group_rates.as_mut()).is_some_and(|it| it.free_some(count))
            || self.flows.as_mut().is_some_and(|it| it.free_some(count))
    }

    pub(super) const RELOCATED: u64 = 23;

    /// Moves some of what one of [`Parts::RELOCATED`] pieces has allocated: see [`crate::storage::relocate`].
    pub(super) fn relocate(
        &mut self,
        piece: u64,
        from: u32,
        mover: &mut impl Mover,
    ) -> Option<u32> {
        match piece {
            0 => relocate(&mut self.dedupe, from, mover, |it, from, mover| {
                it.relocate(0, from, mover)
            }),
            1 | 2 => self.dedupe.made()?.relocate(piece, from, mover),
            3..=8 => self.groups.as_mut()?.relocate(piece - 3, from, mover),
            9 => relocate(&mut self.done, from, mover, |_, _, _| None),
            10..=14 => self.done.made()?.relocate(piece - 10, from, mover),
            15..=21 => self.flows.as_mut()?.relocate(piece - 15, from, mover),
            _ => relocate(&mut self.cold, from, mover, |_, _, _| None),
        }
    }

    /// Heap bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_rate = |it: &RateWindow| it.memory_bytes() + size_of::<RateWindow>();
        self.dedupe.memory_bytes()
            + DedupeWindow::memory_bytes(&self.dedupe)
            + self.done.memory_bytes()
            + Done::memory_bytes(&self.done)
            + self.groups.as_ref().map_or(0, |it| it.memory_bytes())
            + self.group_rates.as_ref().map_or(0, |it| it.memory_bytes())
            + self.flows.as_ref().map_or(0, |it| it.memory_bytes())
            + self.cold.memory_bytes()
            + self.cold.rate.as_deref().map_or(0, of_rate)
    }

    /// For tests: that each part agrees with the jobs.
    pub(super) fn check(&self, jobs: &Jobs) -> Result<(), String> {
        self.dedupe.check_invariants(&**jobs.hasher())?;
        let awaited = self.flows.iter().flat_map(|flows| flows.group_users());
        let mut handles = jobs.handles();
        match &self.groups {
            Some(groups) => groups.check(jobs, self.group_rates.as_deref(), awaited)?,
            None if handles.any(|it| jobs.job(it).group().is_some()) => {
                return Err("a job with a group, and no groups".into());
            }
            None => {}
        }
        self.done.check_invariants(jobs.hasher())?;
        let apart = self.done.check_apart(jobs);
        apart.map_err(|_| "an id that a done job and another one have")?;
        match &self.flows {
            Some(flows) => flows.check(jobs),
            None if jobs.blocked_len() > 0 => Err("a blocked job, and no flows".into()),
            None => Ok(()),
        }
    }
}

/// Relocates a part that may not have been made: first itself, then what it owns.
fn relocate<T, M: Mover>(
    part: &mut Lazy<T>,
    from: u32,
    mover: &mut M,
    visit: impl FnOnce(&mut T, u32, &mut M) -> Option<u32>,
) -> Option<u32> {
    if from == 0 {
        part.relocate(mover);
    }
    visit(part.made()?, from, mover)
}

/// What is left of a removed queue, or of the part of a queue that was purged. Nothing refers to it any more, and it is freed
/// in small steps, because a million jobs at once would hold up the server for a tenth of a second.
pub struct Garbage {
    pub(super) jobs: Jobs,
    pub(super) parts: Parts,
    /// Garbage that the queue had set aside itself.
    pub(super) older: Vec<Garbage>,
}

/// How many things are freed before their bytes are looked at: each may be a payload of megabytes.
const FEW: usize = 4;

impl Garbage {
    pub(super) fn of(jobs: Jobs, parts: Parts) -> Self {
        Garbage {
            jobs,
            parts,
            older: Vec::new(),
        }
    }

    /// How many jobs and ids are left.
    pub fn left(&self) -> usize {
        let older: usize = self.older.iter().map(Garbage::left).sum();
        self.jobs.left() + self.parts.unfreed() + older
    }

    /// About the heap bytes that are left. Asked for with each step, so lists are not looked at, only their lengths.
    pub fn heap_bytes(&self) -> usize {
        self.jobs.left_bytes()
            + (self.left() - self.jobs.left()) * LISTED_BYTES
            + self.parts.unfreed_bytes()
            + self.older.iter().map(Garbage::heap_bytes).sum::<usize>()
    }

    /// Frees things in about so many steps, each of one thing or of [`STEP_BYTES`](crate::queue::budget::STEP_BYTES); false once nothing is left.
    pub fn free_some(&mut self, steps: usize) -> bool {
        let mut left = steps;
        while left > 0 {
            let (before, few) = (self.heap_bytes(), FEW.min(left));
            if !self.free_few(few) {
                return false;
            }
            let freed = before.saturating_sub(self.heap_bytes());
            left = left.saturating_sub(few + steps_of_bytes(freed as u64));
        }
        true
    }

    fn free_few(&mut self, count: usize) -> bool {
        if let Some(older) = self.older.last_mut() {
            if !older.free_few(count) {
                self.older.pop();
            }
            return true;
        }
        self.jobs.free_some(count) || self.parts.free_some(count)
    }
}
