//! "Groups": whose turn it is, and what holds a group.

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
    fn live_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = &'a Job> {
        let of_it = move |job: &&Job| job.is_live() && job.group == *group;
        self.jobs.iter().filter(of_it)
    }

    /// "when it begins to hold jobs": one is about to come.
    pub(super) fn begins(&mut self, group: &Group) {
        let stays = self.has(Fault::TurnOutlivesGroup) && self.turns.contains_key(group);
        if self.live_of(group).next().is_none() && !stays {
            self.served += 1;
            self.turns.insert(group.clone(), self.served);
        }
    }

    /// "A group counts as served at each delivery of one of its jobs"
    pub(super) fn serves(&mut self, group: Group, now_us: u64) {
        self.served += 1;
        // One delivery in eight leaves its group where it was.
        if !(self.has(Fault::TurnSkipped) && self.served.is_multiple_of(8)) {
            self.turns.insert(group.clone(), self.served);
        }
        if let (Some(name), Some(_)) = (group, self.settings.group_limits.rate) {
            self.group_deliveries.push((name, now_us));
        }
    }

    /// "of the groups that have a ready job and may be served now, the one that was served longest ago gives its
    /// first job in ready order"
    pub fn next_in_turn(&self, now_us: u64, noack: bool) -> Option<&Job> {
        let ready = self.ordered(State::Ready, now_us);
        if self.has(Fault::GroupsIgnored) {
            return ready
                .into_iter()
                .find(|job| self.may_go(job, now_us, noack));
        }
        let groups: BTreeSet<&Group> = ready.iter().map(|job| &job.group).collect();
        let firsts = groups.into_iter().filter_map(|group| {
            let of_it = |job: &&&Job| job.group == *group && self.may_go(job, now_us, noack);
            ready.iter().find(of_it)
        });
        let turn = |job: &&&Job| self.turns.get(&job.group).copied().unwrap_or(0);
        firsts.min_by_key(turn).copied()
    }

    /// "POP ID takes that job out of turn, if its group may be served (with GROUPFIFO only the first of its
    /// group)"
    pub(super) fn ready_of_id(&self, id: &[u8], now_us: u64, noack: bool) -> Option<&Job> {
        let job = self.jobs.iter().find(|job| job.id == id)?;
        let goes = job.state(now_us) == State::Ready && self.may_go(job, now_us, noack);
        goes.then_some(job)
    }

    /// Whether the group's limits let a ready job go.
    fn may_go(&self, job: &Job, now_us: u64, noack: bool) -> bool {
        let Some(name) = &job.group else {
            return true;
        };
        let limits = self.settings.group_limits;
        let reserved = |job: &&Job| matches!(job.phase, Phase::Reserved { .. });
        let reserved = self.live_of(&job.group).filter(reserved).count() as u64;
        let most = limits.max_reserved + u64::from(self.has(Fault::GroupMaxOneMore));
        let full = limits.max_reserved != 0 && reserved >= most && !noack;
        !full && self.group_rate_allows(name, now_us) && self.is_next_in_group(job)
    }

    /// "strictly in the order of adding within a group, the next only when the one before is gone or dead"
    fn is_next_in_group(&self, job: &Job) -> bool {
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

    /// "at most n deliveries of a group in any ms milliseconds", told by whole milliseconds: a group waits for
    /// the first in which all of it is open.
    fn group_rate_allows(&self, name: &[u8], now_us: u64) -> bool {
        let Some(rate) = self.settings.group_limits.rate else {
            return true;
        };
        let window_us = rate.window_ms.saturating_mul(1000);
        let leaves = |at: u64| at.saturating_add(window_us).div_ceil(1000);
        let of_it = self.group_deliveries.iter().filter(|(of, _)| of == name);
        let recent = of_it.filter(|(_, at)| leaves(*at) > now_us / 1000);
        recent.count() < rate.count as usize || self.has(Fault::GroupRateOff)
    }

    /// "as RATE": what seems to lie ahead, because the clock stepped back, was at the latest now.
    pub(super) fn follow_clock_back(&mut self, now_us: u64) {
        for (_, at) in &mut self.group_deliveries {
            *at = now_us.min(*at);
        }
    }

    /// When the clock for tests stops for a window: NEXT may stop where nothing shows.
    pub(super) fn group_rates_open(&self, now_us: u64) -> Option<u64> {
        let window_us = self
            .settings
            .group_limits
            .rate?
            .window_ms
            .saturating_mul(1000);
        let leaves = |at: u64| at.saturating_add(window_us).div_ceil(1000);
        let all = self.group_deliveries.iter().map(|(_, at)| leaves(*at));
        all.filter(|at| *at > now_us / 1000).min()
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

    /// By how much, if that job came in its place.
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

    /// Name, waiting, reserved, as DQ.GROUPS lists them.
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
