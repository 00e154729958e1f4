//! One queue, built from its effects, each of which is judged.
//!
//! It is not the module's own [`redis_dq::queue::Queue`], which carries out any effect: here each one is checked against
//! those before it.

mod change;
mod check;
mod done;
mod groups;
pub mod job;
mod rates;
mod recur;

use std::collections::{BTreeMap, HashMap};

use redis_dq::queue::effect::{Came, Change, Effect, How, Purge};
use redis_dq::queue::job::{Place, State};
use redis_dq::queue::settings::{GroupLimits, GroupSettings};
use redis_dq::queue::state::{each_job, NewJob};

use crate::judge::Judge;
use crate::rule::Rule;
pub use check::{begun, Begun};
use done::Done;
use groups::Groups;
use job::Job;
use rates::Rates;

#[derive(Clone, Debug)]
pub struct Ledger {
    jobs: HashMap<Box<[u8]>, Job>,
    /// By (since when, order of dying).
    dead: BTreeMap<(u64, u64), Box<[u8]>>,
    done: Done,
    groups: Groups,
    limits: GroupLimits,
    /// What groups have of their own.
    own: HashMap<Box<[u8]>, GroupSettings>,
    rates: Rates,
    max_reserved: u64,
    dead_len: u64,
    reserved: u64,
    seq: u64,
    deaths: u64,
    /// The largest token so far.
    token: u64,
    /// All jobs are known: the files contain the queue from its beginning, or a snapshot of it.
    is_whole: bool,
}

impl Ledger {
    pub fn new(is_whole: bool, token: u64) -> Self {
        Ledger {
            jobs: HashMap::new(),
            dead: BTreeMap::new(),
            done: Done::default(),
            groups: Groups::default(),
            limits: GroupLimits::default(),
            own: HashMap::new(),
            rates: Rates::default(),
            max_reserved: 0,
            dead_len: 0,
            reserved: 0,
            seq: 0,
            deaths: 0,
            token,
            is_whole,
        }
    }

    /// The queue has jobs of which nothing is known.
    pub fn is_known_in_part(&mut self) {
        self.is_whole = false;
    }

    /// Forgets the windows: the server may have been restarted, or the queue has come from elsewhere.
    pub fn forget_rates(&mut self) {
        self.rates.forget();
    }

    pub fn token(&self) -> u64 {
        self.token
    }

    pub fn raise_token(&mut self, floor: u64) {
        self.token = self.token.max(floor);
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn job(&self, id: &[u8]) -> Option<&Job> {
        self.jobs.get(id)
    }

    /// Judges the jobs that are left where the files end.
    pub fn finish(&self, judge: &mut Judge) {
        let mut reserved: Vec<_> = self.jobs.iter().collect();
        reserved.retain(|(_, job)| job.place == Place::Reserved);
        reserved.sort_unstable_by_key(|(_, job)| job.token);
        for (id, job) in reserved {
            check::check_over(id, job, judge);
        }
    }

    /// Applies one effect. Returns whether the queue still exists.
    pub fn apply(&mut self, effect: &Effect<'_>, judge: &mut Judge) -> bool {
        judge.tally.effects += 1;
        match effect {
            Effect::Job { id, change } => {
                if let Change::Nacked {
                    failure: Some(failure),
                    ..
                } = change
                {
                    judge.clock_within(failure.at, failure.at);
                }
                self.change(id, *change, judge);
            }
            Effect::Dropped => {
                let left = self.jobs.len() + self.done.len();
                if self.is_whole && left > 0 {
                    let text = format!("the key was removed with {left} jobs in it");
                    judge.fault(Rule::NothingLost, b"", text);
                }
                return false;
            }
            Effect::Done(of_done) => self.apply_done(of_done, judge),
            Effect::Came(came) => self.comes(came, judge),
            Effect::CameTogether {
                group,
                due,
                expires,
                terms,
                jobs,
            } => {
                for arrival in jobs {
                    self.add(&arrival.id, Job::new((*due, *expires), terms, *group));
                }
            }
            _ => self.apply_to_queue(effect, judge),
        }
        true
    }

    fn comes(&mut self, came: &Came<'_>, judge: &mut Judge) {
        let Came {
            id,
            ref terms,
            group,
            ..
        } = *came;
        match came.how {
            How::New { due, expires } => self.add(id, Job::new((due, expires), terms, group)),
            How::Behind { due, expires } => {
                self.follow(id, Job::new((due, expires), terms, group), judge);
            }
            How::After { .. } => {
                self.seq += 1;
                self.done.replace(id);
                self.lose_sight(id);
            }
            How::Recurs { ref rule, first } => {
                self.add(id, Job::of_rule(first, terms, rule, group));
            }
            How::Renewed { ref rule } => self.renew(id, terms, rule, group, judge),
        }
    }

    /// Adds a job, in place of one with the same id.
    fn add(&mut self, id: &[u8], mut job: Job) {
        self.remove(id);
        self.done.replace(id);
        self.seq += 1;
        job.seq = self.seq;
        self.put(id.into(), job);
    }

    fn follow(&mut self, id: &[u8], mut job: Job, judge: &mut Judge) {
        self.seq += 1;
        job.seq = self.seq;
        job.place = Place::Successor;
        match self.jobs.get_mut(id) {
            Some(before) => before.successor = Some(Box::new(job)),
            None => self.is_unknown(id, "a successor of no job", judge),
        }
    }

    /// Judges an effect on a job that is not known.
    fn is_unknown(&self, id: &[u8], text: &str, judge: &mut Judge) {
        if self.is_whole {
            judge.fault(Rule::NothingFromNowhere, id, text);
        } else {
            judge.tally.unknown += 1;
        }
    }

    fn put(&mut self, id: Box<[u8]>, job: Job) {
        self.groups.enter(&job);
        match job.place {
            Place::Reserved => self.reserved += 1,
            Place::Dead => drop(self.dead.insert((job.at, job.death), id.clone())),
            Place::Scheduled | Place::Successor | Place::Blocked => {}
        }
        self.jobs.insert(id, job);
    }

    fn remove(&mut self, id: &[u8]) -> Option<(Box<[u8]>, Job)> {
        let (id, job) = self.jobs.remove_entry(id)?;
        self.groups.leave(&job);
        match job.place {
            Place::Reserved => self.reserved -= 1,
            Place::Dead => drop(self.dead.remove(&(job.at, job.death))),
            Place::Scheduled | Place::Successor | Place::Blocked => {}
        }
        Some((id, job))
    }

    /// Settings, numbers, snapshots, and effects that remove many jobs.
    fn apply_to_queue(&mut self, effect: &Effect<'_>, judge: &mut Judge) {
        match *effect {
            Effect::Configured(ref settings) => {
                (self.max_reserved, self.dead_len) = (settings.max_reserved, settings.dead_len);
                (self.limits, self.done.limits) = (settings.group_limits, settings.done_limits);
                self.rates.set(settings.rate);
                self.rates.set_of_groups(settings.group_limits.rate);
            }
            Effect::Group { name, own } => {
                self.rates.set_of_group(name, own.rate);
                match own.any() {
                    true => drop(self.own.insert(name.into(), own)),
                    false => drop(self.own.remove(name)),
                }
            }
            Effect::Recurred {
                id,
                ended,
                next,
                ref failure,
            } => {
                if let Some(failure) = failure {
                    judge.clock_within(failure.at, failure.at);
                }
                self.recur(id, ended, next, judge);
            }
            Effect::Floors { seq, death, token } => {
                self.seq = self.seq.max(seq);
                self.deaths = self.deaths.max(death);
                self.token = self.token.max(token);
            }
            Effect::Rows { rows } if each_job(rows, |job| self.restore(job)).is_err() => {
                judge.fault(Rule::NothingLost, b"", "rows that do not decode");
            }
            Effect::Purged(Purge::State { state, cut }) => {
                judge.clock_within(cut, cut);
                if state == Some(State::Done) {
                    self.done.clear();
                }
                self.purge(|job| is_in(job, state, cut));
            }
            Effect::Purged(Purge::Overdue { dead, cut }) => {
                judge.clock_within(cut, cut);
                self.purge(|job| job.is_overdue(cut) && job.is_exhausted() == dead);
            }
            Effect::Purged(Purge::Trim { count }) => self.trim(count, judge),
            Effect::Waits { id, .. } => self.lose_sight(id),
            Effect::Noted { id, .. } if self.job(id).is_none() => {
                self.is_unknown(id, "a note of no job", judge);
            }
            _ => {}
        }
    }

    /// A blocked job waits until others end, which the effects record by numbers alone: from here on nothing about it
    /// is judged.
    fn lose_sight(&mut self, id: &[u8]) {
        self.remove(id);
        self.is_known_in_part();
    }

    /// A job of a snapshot, which is not judged.
    fn restore(&mut self, stored: &NewJob<'_>) {
        if stored.place == Place::Blocked {
            return self.lose_sight(stored.id);
        }
        let job = Job::of_snapshot(stored);
        self.seq = self.seq.max(job.seq);
        self.deaths = self.deaths.max(job.death);
        self.token = self.token.max(job.token);
        if job.place == Place::Successor {
            if let Some(before) = self.jobs.get_mut(stored.id) {
                before.successor = Some(Box::new(job));
            }
            return;
        }
        self.remove(stored.id);
        self.put(stored.id.into(), job);
    }

    fn purge(&mut self, goes: impl Fn(&Job) -> bool) {
        let going = self.jobs.iter().filter(|(_, job)| goes(job));
        let going: Vec<Box<[u8]>> = going.map(|(id, _)| id.clone()).collect();
        for id in going {
            self.remove(&id);
        }
    }

    /// The `count` jobs that died first are removed.
    fn trim(&mut self, count: u64, judge: &mut Judge) {
        let left = (self.dead.len() as u64).checked_sub(count);
        if !self.is_whole {
            // There may be older dead jobs that are unknown, so which of them were removed is unknown, too.
            return self.purge(|job| job.place == Place::Dead);
        }
        if left.is_none_or(|left| self.dead_len == 0 || left < self.dead_len) {
            let dead = self.dead.len();
            let text = format!(
                "{count} of {dead} dead jobs went, by a DEADLEN of {}",
                self.dead_len
            );
            judge.fault(Rule::NothingLost, b"", text);
        }
        for _ in 0..count {
            let Some((_, id)) = self.dead.pop_first() else {
                break;
            };
            self.remove(&id);
        }
    }
}

fn is_in(job: &Job, state: Option<State>, cut: u64) -> bool {
    match state {
        None => true,
        Some(State::Delayed) => job.place == Place::Scheduled && job.due > cut,
        Some(State::Ready) => job.place == Place::Scheduled && job.due <= cut,
        Some(State::Reserved) => job.place == Place::Reserved && job.at > cut,
        Some(State::Dead) => job.place == Place::Dead,
        Some(State::Done | State::Blocked) => false,
    }
}
