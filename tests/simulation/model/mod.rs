//! The oracle: the command contract word by word, without any thought of speed.
//!
//! Jobs are in the order of adding, so that stable sorts break ties as the contract does. Time passes in
//! [`Model::advance`], which plays what is overdue at the instants at which it happened.

mod acts;
mod done;
pub mod explain;
mod fault;
mod flows;
mod groups;
mod notes;
mod rates;
mod recurring;
mod view;

pub use fault::Fault;
pub use flows::{End, Link, Waits};
pub use notes::Notes;
pub use rates::Counted;
pub use recurring::Recurring;

use crate::op::Id;
pub use dq::queue::outcome::Outcome;
use dq::queue::settings::{GroupSettings, Settings};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// 2^42 - 1, the last instant.
pub const LAST: u64 = 4_398_046_511_103;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Delayed or ready, depending on its due time.
    Waiting,
    Reserved {
        deadline: u64,
        lease: u64,
    },
    Dead {
        since: u64,
        order: u64,
    },
    /// A done job, which is kept apart from the others.
    Done {
        finished: u64,
        order: u64,
        until: Option<u64>,
        started: u64,
        result: Option<Vec<u8>>,
    },
    /// Waits for other jobs.
    Blocked,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: Id,
    pub payload: Vec<u8>,
    pub priority: i32,
    pub due: u64,
    pub ttr: u64,
    pub attempts: u32,
    pub max_attempts: u32,
    /// None: the server's.
    pub backoff: Option<Vec<u64>>,
    pub expires: Option<u64>,
    pub token: Option<u64>,
    pub phase: Phase,
    /// In the order of adding.
    pub seq: u64,
    /// When the last failure was, and its reason.
    pub failure: Option<(u64, Option<Vec<u8>>)>,
    pub next: Option<Box<Job>>,
    pub recur: Option<Recurring>,
    pub group: Option<Vec<u8>>,
    pub notes: Notes,
    pub waits: Option<Waits>,
}

/// What time does to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    LeaseEnds,
    Vanishes,
    Skipped,
    SuccessorVanishes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    Off,
    Until(u64),
    Forever,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub added: u64,
    pub delivered: u64,
    pub acked: u64,
    pub nacked: u64,
    pub timed_out: u64,
    pub died: u64,
    pub deleted: u64,
    pub expired: u64,
    pub missed: u64,
    pub late_count: u64,
    pub late_sum: u64,
    pub late_max: u64,
    /// The lateness of each delivery, in microseconds.
    pub lateness: Vec<u64>,
}

/// An end as DQ.AWAIT reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    pub id: Id,
    pub outcome: Outcome,
    pub value: Option<Vec<u8>>,
    pub at: u64,
    pub attempts: u32,
}

#[derive(Clone)]
pub struct Model {
    pub jobs: Vec<Job>,
    pub done: Vec<Job>,
    /// The dedupe window: until when NX refuses an id.
    pub memory: HashMap<Id, u64>,
    pub settings: Settings,
    /// Deliveries that count for RATE.
    pub deliveries: Vec<Counted>,
    /// For each group, the number of the serving at which it was last served or began to hold jobs; `served` counts
    /// servings.
    pub turns: HashMap<Option<Vec<u8>>, u64>,
    pub served: u64,
    /// What groups have of their own.
    pub own: BTreeMap<Vec<u8>, GroupSettings>,
    /// The group whose turn it is, and how many it has given in it.
    pub turn: Option<(Option<Vec<u8>>, u32)>,
    /// Deliveries that count for GROUPRATE, or for the RATE of their group.
    pub group_deliveries: Vec<(Vec<u8>, Counted)>,
    /// Whether a delivery has counted other than 1.
    pub had_costs: bool,
    pub pause: Pause,
    pub kept: bool,
    pub adds: u64,
    pub deaths: u64,
    /// Jobs that were kept as done.
    pub kept_done: u64,
    pub last_token: u64,
    pub last_made_id: (u64, u64),
    pub totals: Totals,
    /// How jobs ended, until the comparison takes them.
    pub ends: Vec<Ended>,
    /// In ms.
    pub now: u64,
    pub now_us: u64,
    pub fault: Fault,
    /// Ends that are to be carried out; how many there were so far; when the last one was, in us.
    pub line: VecDeque<End>,
    pub end_numbers: u64,
    pub moment: u64,
    /// The dead list is trimmed only once all ends are carried out.
    pub holds_trim: bool,
}

impl Model {
    pub fn new(fault: Fault) -> Self {
        Model {
            jobs: Vec::new(),
            done: Vec::new(),
            memory: HashMap::new(),
            settings: Settings::default(),
            deliveries: Vec::new(),
            turns: HashMap::new(),
            served: 0,
            own: BTreeMap::new(),
            turn: None,
            group_deliveries: Vec::new(),
            had_costs: false,
            pause: Pause::Off,
            kept: false,
            adds: 0,
            deaths: 0,
            kept_done: 0,
            last_token: 0,
            last_made_id: (0, 0),
            totals: Totals::default(),
            ends: Vec::new(),
            now: 0,
            now_us: 0,
            fault,
            line: VecDeque::new(),
            end_numbers: 0,
            moment: 0,
            holds_trim: false,
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// The key was removed, and a new queue gets its name; tokens and ids continue.
    pub fn drop_key(&mut self) {
        *self = Model {
            last_token: self.last_token,
            last_made_id: self.last_made_id,
            ends: std::mem::take(&mut self.ends),
            ..Model::new(self.fault)
        };
    }

    /// The queue moved to another server: totals and the rate window stay behind.
    pub fn moved_house(&mut self) {
        self.totals = Totals::default();
        self.deliveries.clear();
        self.group_deliveries.clear();
        self.turn = None;
    }

    pub fn find(&self, id: &[u8]) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == id)
    }

    /// Plays everything up to now; returns how many events that were.
    pub fn advance(&mut self, now_us: u64) -> usize {
        let now = now_us / 1000;
        (self.now, self.now_us) = (now, now_us);
        let mut happened = 0;
        while let Some((at, what, index)) = self.first_event().filter(|event| event.0 <= now) {
            if self.must_follow_before(at) {
                self.follow_up();
                continue;
            }
            happened += 1;
            match what {
                What::LeaseEnds => self.lease_ends(index, at),
                What::Vanishes => self.expires(index, at * 1000),
                What::Skipped => {
                    self.moment = at * 1000;
                    self.totals.missed += 1;
                    self.note_end(index, Outcome::Expired, at);
                    self.occurrence_ends(index);
                }
                What::SuccessorVanishes => {
                    self.jobs[index].next = None;
                    self.totals.expired += 1;
                }
            }
        }
        if self.flows() {
            self.follow_up();
        }
        let before = self.memory.len();
        self.memory.retain(|_, until| *until > now);
        happened + before - self.memory.len() + self.done_are_over() + self.pauses_end(now)
    }

    /// The next event: the earliest end of a lease or TTL, and its job. A lease ends before a TTL of the same instant;
    /// other ties are broken by the order of adding.
    fn first_event(&self) -> Option<(u64, What, usize)> {
        let mut first: Option<(u64, What, usize)> = None;
        for (index, job) in self.jobs.iter().enumerate() {
            let own = self.event_of(job);
            let next = job.next.as_ref().and_then(|next| next.expires);
            let next = next.map(|at| (at, What::SuccessorVanishes));
            for (at, what) in own.into_iter().chain(next) {
                let leased = |what| what != What::LeaseEnds;
                let earlier =
                    |(first, of, _): (u64, What, usize)| (at, leased(what)) < (first, leased(of));
                if first.is_none_or(earlier) {
                    first = Some((at, what, index));
                }
            }
        }
        first
    }

    fn event_of(&self, job: &Job) -> Option<(u64, What)> {
        match (&job.phase, job.expires) {
            (Phase::Reserved { deadline, .. }, Some(expires))
                if self.has(Fault::TtlEndsLease) && expires < *deadline =>
            {
                Some((expires, What::Vanishes))
            }
            (Phase::Reserved { deadline, .. }, _) => Some((*deadline, What::LeaseEnds)),
            (Phase::Blocked, expires) => expires.map(|at| (at, What::Vanishes)),
            (Phase::Dead { .. }, _) if self.has(Fault::DeadOutliveTtl) => None,
            (_, expires) => {
                let vanishes = expires.map(|at| (at, What::Vanishes));
                let skipped = self.skipped_at(job).map(|at| (at, What::Skipped));
                // "before a TTL that ends then too"
                skipped
                    .into_iter()
                    .chain(vanishes)
                    .min_by_key(|(at, _)| *at)
            }
        }
    }

    /// The job expires by its TTL, together with its successor.
    fn expires(&mut self, index: usize, at_us: u64) {
        self.moment = at_us;
        let at = self.jobs[index].expires.unwrap_or(self.now);
        self.note_end(index, Outcome::Expired, at);
        if self.jobs[index].recur.is_some() {
            self.totals.expired += 1;
            return self.occurrence_ends(index);
        }
        let id = self.jobs[index].id.clone();
        let job = self.remove(index);
        self.notes_end(&id, Outcome::Expired, at_us, None);
        self.totals.expired += 1;
        self.totals.deleted += u64::from(job.next.is_some());
    }

    /// "waits until at least one of these jobs has ended"
    fn note_end(&mut self, index: usize, outcome: Outcome, at: u64) {
        let job = &self.jobs[index];
        let reason = job.failure.as_ref().and_then(|(_, reason)| reason.clone());
        self.ends.push(Ended {
            id: job.id.clone(),
            outcome,
            value: reason.filter(|_| outcome == Outcome::Dead),
            at,
            attempts: job.attempts,
        });
    }

    /// Removes a job together with its successor; the caller counts that one.
    fn remove(&mut self, index: usize) -> Job {
        let id = self.jobs[index].id.clone();
        self.waits_no_more(&id);
        self.jobs.remove(index)
    }

    /// "takes its place the moment that job goes"
    fn ends(&mut self, index: usize) -> Job {
        let mut job = self.jobs.remove(index);
        if let Some(mut next) = job.next.take() {
            self.totals.added += 1;
            if self.has(Fault::SuccessorLosesPlace) {
                self.adds += 1;
                next.seq = self.adds;
            }
            let place = self.jobs.partition_point(|other| other.seq < next.seq);
            self.begins(&next.group);
            self.jobs.insert(place, *next);
        }
        job
    }

    /// "ready again at once; dead (since the deadline) if its attempts are used up; gone if its TTL
    /// is past"
    fn lease_ends(&mut self, index: usize, at: u64) {
        self.totals.timed_out += 1;
        let silent = self.has(Fault::LeaseEndSilent);
        let job = &mut self.jobs[index];
        if job.expires.is_some_and(|expires| expires <= at) {
            return self.expires(index, at * 1000);
        }
        if !silent {
            job.failure = Some((at, Some(b"lease ended".to_vec())));
        }
        if !self.has(Fault::TimeoutsLeaveNoHistory) {
            self.keep_attempt(index, (at, "timeout"), None);
        }
        let job = &mut self.jobs[index];
        let used_up = job.max_attempts != 0 && job.attempts >= job.max_attempts;
        if self.fault == Fault::StepsLostWithLease {
            job.notes.steps.clear();
        }
        if self.fault == Fault::TimeoutEndsToken {
            job.token = None;
        }
        if used_up && self.fault != Fault::TimeoutNeverKills {
            self.dies(index, at, at * 1000, Some(b"lease ended".to_vec()));
        } else {
            job.phase = Phase::Waiting;
        }
    }

    fn dies(&mut self, index: usize, since: u64, at_us: u64, reason: Option<Vec<u8>>) {
        self.moment = at_us;
        let id = self.jobs[index].id.clone();
        self.note_end(index, Outcome::Dead, since);
        self.deaths += 1;
        self.totals.died += u64::from(!self.has(Fault::DeathsUncounted));
        if self.jobs[index].recur.is_some() {
            return self.occurrence_dies(index, since);
        }
        self.notes_end(&id, Outcome::Dead, at_us, reason);
        if self.jobs[index].next.is_some() {
            // "it replaces the dead one, which pushes no other out of DEADLEN"
            if self.has(Fault::SuccessorDiesToo) {
                self.jobs[index].next = None;
            }
            self.totals.deleted += 1;
            self.ends(index);
            return;
        }
        self.jobs[index].phase = Phase::Dead {
            since,
            order: self.deaths,
        };
        if !self.holds_trim {
            self.trim_dead();
        }
    }

    /// "DEADLEN keeps only the n youngest dead."
    fn trim_dead(&mut self) {
        let kept = self.settings.dead_len as usize;
        let dead = self.in_death_order();
        if kept == 0 || dead.len() <= kept {
            return;
        }
        let mut surplus = dead[..dead.len() - kept].to_vec();
        if self.has(Fault::DeadLenKeepsOldest) {
            surplus = dead[kept..].to_vec();
        }
        self.totals.deleted += surplus.len() as u64;
        surplus.sort_unstable();
        let at_us = self.now_us;
        let mut ids: Vec<(u64, u64, Id)> = Vec::new();
        for index in surplus.into_iter().rev() {
            self.note_end(index, Outcome::Deleted, self.now);
            let job = self.remove(index);
            if let Phase::Dead { since, order } = job.phase {
                ids.push((since, order, job.id));
            }
        }
        ids.sort();
        // Trimming the dead empties no group.
        let moment = self.moment;
        for (_, _, id) in ids {
            self.notes_end(&id, Outcome::Deleted, at_us, None);
        }
        self.moment = moment;
    }

    fn in_death_order(&self) -> Vec<usize> {
        let death = |index: &usize| match self.jobs[*index].phase {
            Phase::Dead { since, order } => Some((since, order)),
            _ => None,
        };
        let mut dead: Vec<usize> = (0..self.jobs.len())
            .filter(|i| death(i).is_some())
            .collect();
        dead.sort_by_key(|index| death(index));
        dead
    }
}

/// "where an instant is counted from now, now is rounded up to the millisecond"; no wait at all is
/// this millisecond. `None` past the last instant.
pub fn after(now_us: u64, ms: u64) -> Option<u64> {
    if ms == 0 {
        return Some(now_us / 1000);
    }
    let instant = now_us.div_ceil(1000).checked_add(ms)?;
    (instant <= LAST).then_some(instant)
}
