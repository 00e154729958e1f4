//! "Groups": which group's turn it is, and what holds a group back.

use super::{after, Fault, Job, Model, Phase};
use crate::op::{AddOp, Reply};
use dq::queue::job::State;
use dq::queue::settings::{GroupSettings, Rate};
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
            self.turn.take_if(|turn| turn.0 == *group);
        }
    }

    /// "the group's turn lasts n deliveries"
    fn weight_of(&self, group: &Group) -> u32 {
        let own = self.own_of(group).weight;
        own.filter(|_| !self.has(Fault::WeightIgnored)).unwrap_or(1)
    }

    /// "if it has given fewer than n in this turn"
    fn goes_on(&self, group: &Group) -> bool {
        let turn = self.turn.as_ref().filter(|turn| turn.0 == *group);
        turn.is_some_and(|turn| turn.1 < self.weight_of(group))
    }

    /// A delivery in turn.
    pub(super) fn gives(&mut self, group: &Group) {
        let before = self.turn.as_ref().filter(|_| self.goes_on(group));
        let given = before.map_or(0, |turn| turn.1);
        self.turn = Some((group.clone(), given + 1));
    }

    pub(super) fn pause_group(&mut self, name: &[u8], ms: Option<u64>, now_us: u64) -> Reply {
        if !(1..=256).contains(&name.len()) {
            return Reply::Error("ERR GROUP must be 1 to 256 bytes long");
        }
        let until = match ms.map(|ms| after(now_us, ms)) {
            None => u64::MAX,
            Some(Some(until)) => until,
            Some(None) => return Reply::Error("ERR value is not an integer or out of range"),
        };
        self.own.entry(name.to_vec()).or_default().paused_until = until;
        self.kept = true;
        Reply::Ok
    }

    pub(super) fn resume_group(&mut self, name: &[u8]) {
        if let Some(own) = self.own.get_mut(name) {
            own.paused_until = 0;
        }
        self.own.retain(|_, own| *own != GroupSettings::default());
    }

    /// "The pause is one of its settings until it ends."
    pub(super) fn pauses_end(&mut self, now: u64) -> usize {
        let ended = |own: &GroupSettings| own.paused_until != 0 && own.paused_until <= now;
        let names = self.own.iter().filter(|it| ended(it.1));
        let names: Vec<Vec<u8>> = names.map(|it| it.0.clone()).collect();
        names.iter().for_each(|name| self.resume_group(name));
        names.len()
    }

    pub(super) fn paused_until(&self, group: &Group, now_us: u64) -> Option<u64> {
        let until = self.own_of(group).paused_until;
        let is_paused = until > now_us / 1000 && !self.has(Fault::GroupPauseIgnored);
        is_paused.then_some(until)
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
            let is_paused = self.paused_until(group, now_us).is_some();
            let of_it = |job: &&&Job| job.group == *group && self.may_go(job, noack) && !is_paused;
            let others_pass = self.has(Fault::CostlyArePassed);
            let first = |job: &&&Job| of_it(job) && (!others_pass || self.fits_group(job, now_us));
            ready
                .iter()
                .find(first)
                .filter(|job| self.fits_group(job, now_us))
        });
        let turn = |job: &&&Job| self.turns.get(&job.group).copied().unwrap_or(0);
        firsts
            .min_by_key(|job| (!self.goes_on(&job.group), turn(job)))
            .copied()
    }

    /// "POP ID takes that job out of turn, if its group may be served (with GROUPFIFO only the first of its
    /// group)"
    pub(super) fn ready_of_id(&self, id: &[u8], now_us: u64, noack: bool) -> Option<&Job> {
        let job = self.jobs.iter().find(|job| job.id == id)?;
        let goes = job.state(now_us) == State::Ready && self.may_go(job, noack);
        let is_paused = self.paused_until(&job.group, now_us).is_some();
        let goes = goes && self.fits_group(job, now_us) && !is_paused;
        goes.then_some(job)
    }

    /// Whether the group's limits, except GROUPRATE, allow delivering a ready job.
    pub(super) fn may_go(&self, job: &Job, noack: bool) -> bool {
        if job.group.is_none() {
            return true;
        }
        let max_reserved = self.max_of(&job.group);
        let reserved = |job: &&Job| matches!(job.phase, Phase::Reserved { .. });
        let reserved = self.live_of(&job.group).filter(reserved).count() as u64;
        let most = max_reserved + u64::from(self.has(Fault::GroupMaxOneMore));
        let full = max_reserved != 0 && reserved >= most && !noack;
        !full && self.is_next_in_group(job)
    }

    /// "They hold instead of the queue's, which holds, as it is at the moment, where the group has none of its own"
    pub fn own_of(&self, group: &Group) -> GroupSettings {
        let own = group.as_ref().and_then(|name| self.own.get(name));
        own.copied().unwrap_or_default()
    }

    pub(super) fn max_of(&self, group: &Group) -> u64 {
        let own = self.own_of(group).max_reserved;
        let own = own.filter(|_| !self.has(Fault::OwnMaxIgnored));
        own.unwrap_or(self.settings.group_limits.max_reserved)
    }

    pub(super) fn rate_of(&self, group: &Group) -> Option<Rate> {
        let own = self.own_of(group).rate;
        let own = own.filter(|_| !self.has(Fault::OwnRateIgnored));
        group.as_ref()?;
        own.unwrap_or(self.settings.group_limits.rate)
    }

    pub(super) fn set_group(&mut self, name: &[u8], change: Option<GroupSettings>) -> Reply {
        let before = self.own_of(&Some(name.to_vec()));
        let own = match change {
            Some(_) if !(1..=256).contains(&name.len()) => {
                return Reply::Error("ERR GROUP must be 1 to 256 bytes long");
            }
            Some(new) => GroupSettings {
                weight: new.weight.or(before.weight),
                max_reserved: new.max_reserved.or(before.max_reserved),
                rate: new.rate.or(before.rate),
                max_len: new.max_len.or(before.max_len),
                paused_until: before.paused_until,
            },
            None => GroupSettings::default(),
        };
        // "its window begins anew when it changes or goes"
        if own.rate != before.rate && !self.has(Fault::WindowOutlivesRate) {
            self.group_deliveries.retain(|(of, _)| of != name);
        }
        self.own.insert(name.to_vec(), own);
        self.own.retain(|_, own| *own != GroupSettings::default());
        self.kept |= change.is_some();
        Reply::Ok
    }

    /// "at most n jobs of the group blocked + delayed + ready + reserved [...] replacing a live job of the same group is no
    /// growth, of another one it is"
    pub(super) fn group_is_full(&self, add: &AddOp, live: Option<usize>) -> bool {
        let most = self.own_of(&add.group).max_len.unwrap_or(0) as usize;
        let is_replaced = live.is_some_and(|at| self.jobs[at].group == add.group);
        let is_full = most != 0 && self.live_of(&add.group).count() >= most;
        is_full && !is_replaced && !self.has(Fault::GroupLenIgnored)
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
