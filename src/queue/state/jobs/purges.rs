//! Purges: which jobs each has taken, and the handing out of these, to be freed.

use super::{Cold, Jobs};
use crate::queue::effect::Purge;
use crate::queue::job::{Handle, Place, State};
use crate::queue::state::position::Fate;
use crate::queue::state::purged::{Purged, PurgedJobs, LISTED_BYTES, MANY, MANY_BYTES, SUMMED};
use crate::queue::state::schedule::Detached;
use crate::queue::state::store::Status;

/// A step of freeing purged jobs.
pub enum Freed {
    /// To be freed by the caller.
    Job(Handle),
    /// An entry of no job, or a purge of which nothing is left.
    Entry,
}

impl Jobs {
    /// The purge that has taken this job, if any.
    pub(super) fn purge_of(&self, handle: Handle) -> Option<&PurgedJobs> {
        let Status { place, due, life } = self.store.job(handle).status();
        let stood_there = |purged: &Purged| match purged {
            Purged::Dues(dues) => place == Place::Scheduled && dues.contains(&due),
            Purged::Leases(ends) => place == Place::Reserved && ends.contains(&life.at),
            Purged::Overdue { fate, cut } => {
                let stood_there = place == Place::Reserved && life.at <= *cut;
                stood_there && self.position(handle).fate() == *fate
            }
            Purged::DeadBefore(end) => place == Place::Dead && (life.at, life.death) < *end,
            Purged::Blocked => place == Place::Blocked,
        };
        let is_of = |it: &&PurgedJobs| stood_there(&it.purged) && !it.has_newer(handle);
        self.cold.purges.iter().find(is_of)
    }

    /// How many purged jobs are not freed yet.
    #[inline]
    pub fn unfreed_len(&self) -> usize {
        self.store.len() - self.store.successors_len() - self.listed_len()
    }

    /// About the memory of `unfreed` purged jobs: ids and payloads as far as they are known, and the average of all jobs.
    #[cold]
    pub fn unfreed_bytes(&self, unfreed: usize) -> u64 {
        let (all, content) = (self.store.len() as u64, self.store.content_bytes());
        let heap = self.store.heap_bytes() as u64;
        let (unfreed, known) = (unfreed as u64, self.cold.purged_bytes);
        let of_average = |bytes: u64| bytes / all.max(1) * unfreed;
        let jobs = match self.cold.purges.iter().all(|purged| purged.counted) {
            true => known + of_average(heap.saturating_sub(content)),
            false => known.max(of_average(heap)),
        };
        jobs + unfreed * LISTED_BYTES as u64
    }

    /// How many jobs a purge of a state takes: of the reserved ones, those whose leases end after `cut`.
    pub fn taken_by(&self, state: Option<State>, cut: u64) -> usize {
        let ready = || self.schedule.ready_len(cut);
        match state {
            None => self.listed_len(),
            Some(State::Delayed) => self.schedule.len() - ready(),
            Some(State::Ready) => ready(),
            Some(State::Reserved) => self.reserved.len() - self.reserved.count_by(cut),
            Some(State::Dead) => self.dead.len(),
            Some(State::Done) => 0,
            Some(State::Blocked) => self.blocked_len(),
        }
    }

    /// `count` jobs, found by `all`, if they are freed in no time.
    pub fn few(&self, count: usize, all: impl FnOnce() -> Vec<Handle>) -> Option<Vec<Handle>> {
        let all = (count <= MANY).then(all)?;
        let bytes: u64 = all.iter().map(|&it| self.store.content_of(it)).sum();
        (bytes <= MANY_BYTES).then_some(all)
    }

    /// The first `count` jobs that `purged` names.
    pub fn named_by(&self, purged: &Purged, count: usize) -> Vec<Handle> {
        let of = |handles: &mut dyn Iterator<Item = (u64, Handle)>| {
            handles.take(count).map(|(_, handle)| handle).collect()
        };
        match purged {
            Purged::Dues(dues) => of(&mut self.schedule.by_due(*dues.start(), |it| self.seq(it))),
            Purged::Leases(ends) => of(&mut self.leases_from(*ends.start())),
            Purged::Overdue { fate, .. } => of(&mut self.reserved.list(*fate as usize).iter()),
            Purged::DeadBefore(_) => of(&mut self.dead.iter()),
            Purged::Blocked => of(&mut self.blocked().iter()),
        }
    }

    /// Says which jobs a purge or a trim that is about to be carried out takes.
    pub fn goes_with(&self, purge: Purge) -> Box<dyn Fn(Handle) -> bool + '_> {
        let status = move |handle| self.store.job(handle).status();
        let at = move |handle, place| status(handle).place == place;
        match purge {
            Purge::State { state, cut } => match state {
                // No job is left that waits for them.
                None | Some(State::Blocked | State::Done) => Box::new(|_| false),
                Some(State::Delayed) => {
                    Box::new(move |job| at(job, Place::Scheduled) && status(job).due > cut)
                }
                Some(State::Ready) => {
                    Box::new(move |job| at(job, Place::Scheduled) && status(job).due <= cut)
                }
                Some(State::Reserved) => {
                    Box::new(move |job| at(job, Place::Reserved) && status(job).life.at > cut)
                }
                Some(State::Dead) => Box::new(move |job| at(job, Place::Dead)),
            },
            Purge::Trim { count } => {
                let of = move |handle| (status(handle).life.at, status(handle).life.death);
                let kept = usize::try_from(count).ok().and_then(|at| self.dead.nth(at));
                let kept = kept.map_or((u64::MAX, u64::MAX), |(_, handle)| of(handle));
                Box::new(move |job| at(job, Place::Dead) && of(job) < kept)
            }
            // None is left where jobs are after others: there all that is overdue is carried out first.
            Purge::Overdue { .. } => Box::new(|_| false),
        }
    }

    /// Bytes of the jobs that have just been detached, found by a visit of those that are left. Only if these are few,
    /// and the bytes of all other purges are known.
    fn bytes_of_others(&self) -> Option<u64> {
        let all_known = self.cold.purges.iter().all(|purged| purged.counted);
        let few = self.listed_len() + self.followed().len() <= SUMMED;
        (all_known && few).then(|| {
            let left = self.in_order().map(|handle| self.store.content_of(handle));
            self.store.content_bytes() - self.cold.purged_bytes - left.sum::<u64>()
        })
    }

    /// Detaches the jobs that `purged` names, `count` of them.
    pub fn detach(&mut self, purged: Purged, count: usize) {
        let followed = self.cold.make().followed.detach(&purged);
        let known = (count + followed <= SUMMED).then(|| {
            let going = self.named_by(&purged, count).into_iter();
            going.map(|handle| self.store.content_of(handle)).sum()
        });
        let (mut scheduled, mut listed) = (Detached::default(), [0; 4]);
        match &purged {
            Purged::Dues(dues) => scheduled = self.schedule.detach(dues.clone()),
            Purged::Leases(ends) => {
                let of = |fate| self.reserved.detach(fate as usize, ends.clone());
                listed = Fate::ALL.map(of);
            }
            Purged::Overdue { fate, cut } => {
                listed[*fate as usize] = self.reserved.detach(*fate as usize, 0..=*cut);
            }
            Purged::DeadBefore(_) => {
                self.dead.make().detach_first(count);
                listed[0] = count;
            }
            Purged::Blocked => listed[0] = self.cold.make().blocked.detach(0..=u64::MAX),
        }
        let known = known.or_else(|| self.bytes_of_others());
        let cold = self.cold.make();
        cold.purged_bytes += known.unwrap_or(0);
        let all = &mut cold.purges;
        let taken = PurgedJobs::new(purged, (scheduled, listed, followed), known.is_some());
        let place = taken.purged.place();
        let latest = all.iter_mut().rev().find(|it| it.purged.place() == place);
        match latest.filter(|latest| taken.joins(latest)) {
            Some(latest) => latest.join(taken),
            None => all.push(taken),
        }
    }

    /// Takes a step of freeing the latest purge; `None` if there is none.
    pub fn pop_purged(&mut self) -> Option<Freed> {
        let Cold {
            blocked, purges, ..
        } = self.cold.made()?;
        let latest = purges.last_mut()?;
        let kind = latest.listed.iter().position(|&listed| listed > 0);
        if let Some(kind) = kind {
            latest.listed[kind] -= 1;
        }
        let next = match (latest.purged.place(), kind) {
            (Place::Scheduled, _) => self.schedule.pop_detached(&mut latest.scheduled),
            (_, None) => None,
            (Place::Reserved, Some(kind)) => self.reserved.pop_detached(kind),
            (Place::Blocked, _) => blocked.pop_detached().map(|(_, handle)| handle),
            _ => self.dead.make().pop_detached().map(|(_, handle)| handle),
        };
        match next {
            Some(handle) if self.store.contains(handle) && self.is_purged(handle) => {
                return Some(Freed::Job(handle));
            }
            Some(_) => {}
            None => self.pop_followed_of_last(),
        }
        Some(Freed::Entry)
    }

    /// All jobs of the latest purge are freed: frees an entry that it has in `followed`, or else the purge itself.
    fn pop_followed_of_last(&mut self) {
        let cold = self.cold.make();
        match cold.purges.last_mut() {
            Some(latest) if latest.followed > 0 => {
                latest.followed -= 1;
                cold.followed.free_detached(&latest.purged);
            }
            _ => {
                cold.purges.pop();
            }
        }
    }

    /// Takes the bytes of a purged job that is about to be freed off the purged bytes.
    pub fn forget_bytes(&mut self, handle: Handle) {
        if self.purge_of(handle).is_some_and(|purge| purge.counted) {
            let bytes = self.store.content_of(handle);
            self.cold.make().purged_bytes -= bytes;
        }
    }

    /// Takes the successor of a purged job off the purged bytes, by `remove`.
    pub fn forget_successor_bytes(&mut self, handle: Handle, before: u64) {
        let gone = before - self.store.content_of(handle);
        if self.purge_of(handle).is_some_and(|purge| purge.counted) {
            self.cold.make().purged_bytes -= gone;
        }
    }

    /// Forgets a handle that has no job any more.
    #[inline]
    pub fn forget_purged(&mut self, handle: Handle) {
        if let Some(cold) = self.cold.made() {
            cold.purges.iter_mut().for_each(|it| it.freed(handle));
        }
    }

    /// For tests: checks that all that is detached belongs to purges.
    pub(super) fn check_purged(&self) -> Result<(), String> {
        let (mut scheduled, mut reserved, mut dead) = (Detached::default(), [0; 4], 0);
        for purge in &self.cold.purges {
            scheduled += purge.scheduled;
            match purge.purged.place() {
                Place::Reserved => (0..4).for_each(|at| reserved[at] += purge.listed[at]),
                Place::Blocked => {}
                _ => dead += purge.listed[0],
            }
        }
        let mut leases = [0; 4];
        for (kind, _) in self.reserved.detached() {
            leases[kind] += 1;
        }
        let detached = (
            self.schedule.detached().0,
            leases,
            self.dead.detached().count(),
        );
        if (scheduled, reserved, dead) != detached {
            return Err(format!(
                "{:?} are expected to be detached",
                (scheduled, reserved, dead)
            ));
        }
        Ok(())
    }

    /// How many purged jobs there are. Visits each: for tests.
    pub(super) fn count_purged(&self) -> usize {
        let (_, mut handles) = self.schedule.detached();
        let leases = self.reserved.detached().into_iter();
        handles.extend(leases.map(|(_, handle)| handle));
        for list in [self.dead(), self.blocked()] {
            handles.extend(list.detached().map(|(_, handle)| handle));
        }
        handles.retain(|&handle| self.store.contains(handle) && self.is_purged(handle));
        handles.sort_unstable();
        handles.dedup();
        handles.len()
    }
}

#[cfg(test)]
mod tests;
