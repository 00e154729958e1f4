//! "Groups": which group's turn it is, and what holds a group back.

use super::{Fault, Job, Model, Phase};
use crate::op::AddOp;
use dq::queue::job::State;
use std::collections::BTreeSet;

type Group = Option<Vec<u8>>;

impl Job {
    fn is_live(&self) -> bool {
        !matches!(self.phase, Phase::Dead { .. })
    }
}

impl Model {
    pub(super) fn live_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = &'a Job> {
        let of_it = move |job: &&Job| job.is_live() && job.group == *group;
        self.jobs.iter().filter(of_it)
    }

    /// "when it begins to hold jobs": called before a job is added.
    pub(super) fn begins(&mut self, group: &Group) {
        let stays = self.has(Fault::TurnOutlivesGroup) && self.turns.contains_key(group);
        if self.live_of(group).next().is_none() && !stays {
            self.served += 1;
            self.turns.insert(group.clone(), self.served);
        }
    }

    /// "A group counts as served at each delivery of one of its jobs"
    pub(super) fn serves(&mut self, group: Group) {
        self.served += 1;
        // The fault: one delivery in eight does not change its group's turn.
        if !(self.has(Fault::TurnSkipped) && self.served.is_multiple_of(8)) {
            self.turns.insert(group, self.served);
        }
    }

    /// "of the groups that have a ready job and may be served now, the one that was served longest ago gives its
    /// first job in ready order"
    pub fn next_in_turn(&self, now_us: u64, noack: bool) -> Option<&Job> {
        let ready = self.ordered(State::Ready, now_us);
        if self.has(Fault::GroupsIgnored) {
            return ready
                .into_iter()
                .find(|job| self.may_go(job, noack) && self.fits_group(job, now_us));
        }
        let groups: BTreeSet<&Group> = ready.iter().map(|job| &job.group).collect();
        let firsts = groups.into_iter().filter_map(|group| {
            let of_it = |job: &&&Job| job.group == *group && self.may_go(job, noack);
            let others_pass = self.has(Fault::CostlyArePassed);
            let first = |job: &&&Job| of_it(job) && (!others_pass || self.fits_group(job, now_us));
            ready
                .iter()
                .find(first)
                .filter(|job| self.fits_group(job, now_us))
        });
        let turn = |job: &&&Job| self.turns.get(&job.group).copied().unwrap_or(0);
        firsts.min_by_key(turn).copied()
    }

    /// "POP ID takes that job out of turn, if its group may be served (with GROUPFIFO only the first of its
    /// group)"
    pub(super) fn ready_of_id(&self, id: &[u8], now_us: u64, noack: bool) -> Option<&Job> {
        let job = self.jobs.iter().find(|job| job.id == id)?;
        let goes = job.state(now_us) == State::Ready && self.may_go(job, noack);
        let goes = goes && self.fits_group(job, now_us);
        goes.then_some(job)
    }

    /// Whether the group's limits, except GROUPRATE, allow delivering a ready job.
    pub(super) fn may_go(&self, job: &Job, noack: bool) -> bool {
        if job.group.is_none() {
            return true;
        }
        let limits = self.settings.group_limits;
        let reserved = |job: &&Job| matches!(job.phase, Phase::Reserved { .. });
        let reserved = self.live_of(&job.group).filter(reserved).count() as u64;
        let most = limits.max_reserved + u64::from(self.has(Fault::GroupMaxOneMore));
        let full = limits.max_reserved != 0 && reserved >= most && !noack;
        !full && self.is_next_in_group(job)
    }

    /// "strictly in the order of adding within a group, the next only when the one before is gone or dead"
    pub(super) fn is_next_in_group(&self, job: &Job) -> bool {
        if !self.settings.group_limits.is_fifo {
            return true;
        }
        let others = self.live_of(&job.group);
        let overtaken = |other: &&Job| match other.phase {
            Phase::Reserved { .. } => true,
            Phase::Blocked => false,
            _ => other.seq < job.seq && !self.has(Fault::FifoOvertaken),
        };
        !others.into_iter().any(|other| overtaken(&other))
    }

    fn names(&self) -> BTreeSet<Vec<u8>> {
        let successors = self.jobs.iter().filter_map(|job| job.next.as_deref());
        let all = self.jobs.iter().chain(successors);
        all.filter_map(|job| job.group.clone()).collect()
    }

    /// "each distinct group name once"
    pub(super) fn names_len(&self) -> u64 {
        self.names().iter().map(|name| name.len() as u64).sum()
    }

    /// By how much the names grow if the ADD is carried out: it may replace a job, or a successor.
    pub(super) fn names_grow(
        &self,
        add: &AddOp,
        there: Option<usize>,
        follows: Option<usize>,
    ) -> i64 {
        let mut after = self.clone();
        match (follows, there) {
            (Some(at), _) => after.jobs[at].next = None,
            (None, Some(at)) => {
                after.jobs.remove(at);
            }
            (None, None) => {}
        }
        let mut names = after.names();
        names.extend(add.group.clone());
        let len: usize = names.iter().map(Vec::len).sum();
        len as i64 - self.names_len() as i64
    }

    /// Name, waiting and reserved jobs of each group, as DQ.GROUPS lists them.
    pub fn groups(&self) -> Vec<(Vec<u8>, usize, usize)> {
        let names = self.names().into_iter();
        let all = names.map(|name| {
            let group = Some(name.clone());
            let waits = |job: &&Job| matches!(job.phase, Phase::Waiting | Phase::Blocked);
            let all = self.live_of(&group).count();
            let waiting = self.live_of(&group).filter(waits).count();
            (name, waiting, all - waiting)
        });
        all.filter(|(_, waiting, reserved)| waiting + reserved > 0)
            .collect()
    }
}
