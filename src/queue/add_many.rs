//! The rules of DQ.MADD: jobs that come together with the same options, all of them or none.
//!
//! First it checks that no job would be an error. Then each is added as if it were alone, and one effect records
//! all of them.

use super::add::{fresh_id, Add, Condition};
use super::after::Moment;
use super::budget::EXPIRE_BUDGET;
use super::clock::{Mint, Now};
use super::effects::Effects;
use super::error::QueueError;
use super::job::{Handle, Place, ID_MAX};
use super::settings::check_terms;
use super::state::flows::Released;
use super::state::store::Id;
use super::state::together::{Coming, Together};
use super::Queue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Jobs of one command, at most.
pub const MADD_MAX: usize = 10_000;
/// Ids that the server generates are shorter.
const MADE_ID_MAX: usize = 48;
/// A job's part of the index is prefetched this many jobs before its turn, and twice as many before, the shard that
/// leads to it.
const AHEAD: usize = 8;

/// What one of the jobs has of its own.
#[derive(Clone, Copy, Debug)]
pub struct NewOne<'a> {
    /// `None`: made from the clock.
    pub id: Option<&'a [u8]>,
    /// Any bytes.
    pub payload: &'a [u8],
}

impl Queue {
    /// Adds each of the jobs as `add` says, except for id and payload; `add` must have no rule and no NEXT. `report`
    /// gets their ids in order, `None` for a job that the condition refuses. If one would be an error, nothing is added
    /// or reported.
    pub fn add_many<'a>(
        &mut self,
        add: &Add<'_>,
        jobs: &[NewOne<'a>],
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        mut report: impl FnMut(Option<&[u8]>),
    ) -> Result<(), QueueError> {
        let (due, expires) = add.instants(now)?;
        let is_id = |id: &[u8]| (1..=ID_MAX).contains(&id.len());
        if !jobs.iter().all(|job| job.id.is_none_or(is_id)) {
            return Err(QueueError::IdLength);
        }
        add.check_names()?;
        let settings = Arc::clone(self.settings());
        let terms = add.terms(&settings, &settings.rest);
        check_terms(&terms)?;
        self.expire_for_many(add, jobs, now, out);
        self.check_room(add, jobs, now, *mint)?;
        self.note_moment(Moment::from(now));

        let together = Together {
            group: add.group,
            due,
            expires,
            terms,
        };
        let mut coming = Coming::new(self, &together, out);
        let hashed = |job: &NewOne<'a>| Some(coming.queue().jobs().hashed(job.id?));
        let ids: Vec<Option<Id<'_>>> = jobs.iter().map(hashed).collect();
        for (at, job) in jobs.iter().enumerate() {
            let ahead = |jobs| ids.get(at + jobs).copied().flatten();
            (coming.queue().jobs()).prefetch_ids(ahead(2 * AHEAD), ahead(AHEAD));
            coming.admit((job, ids[at]), add.condition, now, mint, &mut report);
        }
        Ok(())
    }

    /// Carries out overdue expirations, as far as adding each of the jobs alone would.
    fn expire_for_many(&mut self, add: &Add<'_>, jobs: &[NewOne<'_>], now: Now, out: &mut Effects) {
        let has_come = |it: &Self| it.next_event().is_some_and(|at| at <= now.ms());
        if has_come(self) {
            let (max_len, max_bytes) = (self.settings().max_len, self.settings().max_bytes);
            if max_len != 0 || max_bytes != 0 {
                self.expire_overdue(now, EXPIRE_BUDGET, out);
            }
            let (count, bytes) = (jobs.len() as u64, most_bytes(add, jobs));
            let is_full = |it: &Self| {
                (max_len != 0 && it.jobs().live_len() as u64 + count > max_len)
                    || (max_bytes != 0 && it.bytes().saturating_add(bytes) > max_bytes)
            };
            for _ in 0..=jobs.len() / EXPIRE_BUDGET {
                if is_full(self) {
                    self.expire_for_room(is_full, now, out);
                }
            }
        }
        self.expire_for_turns(now, out);
        let is_full = |it: &Self| {
            it.parts()
                .room_in(it.jobs(), add.group)
                .is_some_and(|room| room < jobs.len() as u64)
        };
        for _ in 0..=jobs.len() / EXPIRE_BUDGET {
            if is_full(self) {
                self.expire_for_room(is_full, now, out);
            }
        }
        if has_come(self) || self.jobs().successors_len() > 0 {
            for id in jobs.iter().filter_map(|job| job.id) {
                self.expire_job(id, now, out);
            }
        }
    }

    /// An error if one of the jobs would exceed a limit.
    fn check_room(
        &self,
        add: &Add<'_>,
        jobs: &[NewOne<'_>],
        now: Now,
        mint: Mint,
    ) -> Result<(), QueueError> {
        if !self.jobs().has_room_for(jobs.len()) {
            return Err(QueueError::TooManyJobs);
        }
        let (max_len, max_bytes) = (self.settings().max_len, self.settings().max_bytes);
        let has_room = (self.parts().room_in(self.jobs(), add.group))
            .is_none_or(|room| jobs.len() as u64 <= room);
        let fits = has_room
            && (max_len == 0 || (self.jobs().live_len() + jobs.len()) as u64 <= max_len)
            && (max_bytes == 0 || self.bytes().saturating_add(most_bytes(add, jobs)) <= max_bytes);
        if fits {
            return Ok(());
        }
        Rehearsal::new(self, add, now, mint).run(jobs)
    }
}

impl<'a> Coming<'_, 'a> {
    /// Adds one of the jobs, if the condition admits it.
    fn admit(
        &mut self,
        (job, id): (&NewOne<'a>, Option<Id<'a>>),
        condition: Condition,
        now: Now,
        mint: &mut Mint,
        report: &mut impl FnMut(Option<&[u8]>),
    ) {
        let name = match job.id {
            Some(id) => Cow::Borrowed(id),
            None => {
                let id = fresh_id(self.queue(), now, mint);
                self.note_made(mint.id());
                Cow::Owned(id)
            }
        };
        let queue = self.queue();
        let id = id.unwrap_or_else(|| queue.jobs().hashed(&name));
        let old = queue.jobs().find(id);
        let place = old.map(|old| queue.jobs().job(old).place());
        let finds_done = old.is_none() && queue.parts().done().find(id).is_some();
        let found = (place, finds_done);
        let parts = queue.parts();
        if parts.refuses(queue.jobs(), condition, job.id, found, now) {
            return report(None);
        }
        self.put(old, id, job.payload);
        report(Some(&name));
        self.record(name, job.payload);
    }
}

/// By how many bytes the jobs can make the queue grow, at most.
fn most_bytes(add: &Add<'_>, jobs: &[NewOne<'_>]) -> u64 {
    let of = |job: &NewOne<'_>| job.id.map_or(MADE_ID_MAX, <[u8]>::len) + job.payload.len();
    let sum: usize = jobs.iter().map(of).sum();
    (sum + add.group.map_or(0, <[u8]>::len)) as u64
}

/// Checks the limits as the jobs come one after the other, without changing anything.
struct Rehearsal<'q, 'a> {
    queue: &'q Queue,
    add: &'q Add<'a>,
    now: Now,
    mint: Mint,
    len: u64,
    /// How many more jobs the group's MAXLEN lets in.
    room: Option<u64>,
    bytes: i64,
    /// Jobs of the command that have come so far, with the length of their payloads.
    come: HashMap<Vec<u8>, usize>,
    /// How many jobs are left in groups of which some were replaced.
    left: HashMap<u32, u32>,
    /// Results of ended jobs, as far as jobs that were after them have been replaced.
    released: Released,
    own_group: Option<u32>,
    has_own_group: bool,
}

impl<'q, 'a> Rehearsal<'q, 'a> {
    fn new(queue: &'q Queue, add: &'q Add<'a>, now: Now, mint: Mint) -> Self {
        let own_group = add
            .group
            .and_then(|name| queue.parts().groups()?.used(name, queue.jobs()));
        Rehearsal {
            queue,
            add,
            now,
            mint,
            len: queue.jobs().live_len() as u64,
            room: queue.parts().room_in(queue.jobs(), add.group),
            bytes: queue.bytes() as i64,
            come: HashMap::new(),
            left: HashMap::new(),
            released: Released::default(),
            own_group,
            has_own_group: own_group.is_some(),
        }
    }

    fn run(mut self, jobs: &[NewOne<'_>]) -> Result<(), QueueError> {
        jobs.iter().try_for_each(|job| self.add(job))
    }

    fn add(&mut self, job: &NewOne<'_>) -> Result<(), QueueError> {
        let id = match job.id {
            Some(id) => id.to_vec(),
            None => self.fresh_id(),
        };
        let (queue, settings) = (self.queue, self.queue.settings());
        let come = self.come.get(&id).copied();
        let hashed = queue.jobs().hashed(&id);
        let old = match come {
            Some(_) => None,
            None => queue.jobs().find(hashed),
        };
        let finds_done = old.is_none() && queue.parts().done().find(hashed).is_some();
        let place = match come {
            Some(_) => Some(Place::Scheduled),
            None => old.map(|old| queue.jobs().job(old).place()),
        };
        let (condition, found) = (self.add.condition, (place, finds_done));
        let parts = queue.parts();
        if parts.refuses(queue.jobs(), condition, job.id, found, self.now) {
            return Ok(());
        }
        let grows = place.is_none_or(|place| place == Place::Dead);
        if grows && settings.max_len != 0 && self.len >= settings.max_len {
            return Err(QueueError::Full);
        }
        self.len += u64::from(grows);
        let of_group = |old| self.queue.parts().group_of(self.queue.jobs(), old) == self.add.group;
        if grows || old.is_some_and(|old| !of_group(old)) {
            self.room = match self.room {
                Some(0) => return Err(QueueError::GroupFull),
                room => room.map(|room| room - 1),
            };
        }
        let replaced = come.map_or(0, |payload| id.len() + payload) as i64;
        let grown = (id.len() + job.payload.len()) as i64 - replaced + self.grown_by_replacing(old);
        let grown = grown - self.results_freed(old) as i64;
        self.bytes += grown;
        if settings.max_bytes != 0 && grown > 0 && self.bytes as u64 > settings.max_bytes {
            return Err(QueueError::FullOfBytes);
        }
        self.come.insert(id, job.payload.len());
        Ok(())
    }

    fn fresh_id(&mut self) -> Vec<u8> {
        loop {
            let id = fresh_id(self.queue, self.now, &mut self.mint);
            if !self.come.contains_key(&id) {
                return id;
            }
        }
    }

    /// Bytes by which the queue grows: the group's name if the job is the first of its group, less what goes with the
    /// replaced job. That is its content, and the name of its group if it was the last one there.
    fn grown_by_replacing(&mut self, old: Option<Handle>) -> i64 {
        let mut grown = 0;
        if !std::mem::replace(&mut self.has_own_group, true) {
            grown += self.add.group.map_or(0, <[u8]>::len) as i64;
        }
        let Some(old) = old else {
            return grown;
        };
        let jobs = self.queue.jobs();
        grown -= jobs.content_of(old) as i64;
        for going in [Some(old), jobs.successor(old)].into_iter().flatten() {
            let group = jobs.job(going).group();
            if let Some(number) = group.filter(|_| group != self.own_group) {
                let (jobs, name_len) = self.queue.parts().group_jobs(number);
                let left = self.left.entry(number).or_insert(jobs);
                *left -= 1;
                if *left == 0 {
                    grown -= name_len as i64;
                }
            }
        }
        grown
    }

    /// Bytes of results that go with the replaced job: of ended jobs that no other job is after.
    fn results_freed(&mut self, old: Option<Handle>) -> u64 {
        let flows = old.zip(self.queue.parts().flows());
        flows.map_or(0, |(old, flows)| {
            flows.values_freed(old, &mut self.released)
        })
    }
}
