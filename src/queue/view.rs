//! Read-only access to a queue.

use super::budget::DELIVERED_BYTES;
use super::clock::Now;
use super::instant::started_at;
use super::job::{CompletionView, Failure, Handle, JobView, Life, Place, State};
use super::note::Notes;
use super::outcome::{JobEnd, Known, Outcome};
use super::overdue::{At, View, LOOKED_AT};
use super::recurring::rule::{Occurrence, ZoneOf};
use super::state::done::Done;
use super::state::jobs::Jobs;
use super::state::schedule::merge;
use super::state::store::Status;
use super::Queue;
use std::ops::RangeInclusive;

/// What DQ.STATS shows beside the totals.
#[allow(missing_docs, reason = "states are called as DQ.STATS calls them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub delayed: usize,
    pub ready: usize,
    pub reserved: usize,
    pub dead: usize,
    pub done: usize,
    pub blocked: usize,
    /// The earliest due time that has not come.
    pub next_due: Option<u64>,
    /// Age of the ready job with the earliest due time.
    pub oldest_ready_ms: Option<u64>,
}

/// Which jobs DQ.PEEK shows: instants inclusive, by the state's own order.
#[allow(missing_docs, reason = "named as in the commands")]
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    pub state: State,
    pub from: u64,
    pub to: u64,
    pub count: u64,
    /// How much of each payload is shown, in bytes.
    pub prefix: usize,
    /// FROM or TO was given: then blocked jobs without an instant are not shown.
    pub is_bounded: bool,
}

impl Peek {
    /// Shows the first ones, until COUNT or the bytes of an answer are reached.
    fn show<'q>(&self, jobs: impl Iterator<Item = JobView<'q>>, mut each: impl FnMut(JobView<'q>)) {
        let (count, mut bytes) = (usize::try_from(self.count), 0);
        for job in jobs.take(count.unwrap_or(usize::MAX)) {
            bytes += job.payload.len().min(self.prefix);
            each(job);
            if bytes >= DELIVERED_BYTES {
                break;
            }
        }
    }
}

/// A period in equal parts: TO lies after FROM, and is not part of it.
#[allow(missing_docs, reason = "named as in the commands")]
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    pub from: u64,
    pub to: u64,
    pub buckets: u64,
}

impl Forecast {
    /// The instant at which a part begins, counted from 0. After the last part it is TO.
    fn begin_of(&self, bucket: u64) -> u64 {
        let offset = u128::from(bucket) * u128::from(self.to - self.from);
        self.from + (offset / u128::from(self.buckets)) as u64
    }
}

impl Jobs {
    /// When the lease with this token ends.
    pub fn held_until(&self, id: &[u8], token: u64) -> Option<u64> {
        let job = self.job(self.find(self.hashed(id))?);
        let life = job.life();
        (job.place() == Place::Reserved && life.token == token).then_some(life.at)
    }

    pub(super) fn state_of(&self, handle: Handle, now: Now) -> State {
        let job = self.job(handle);
        match job.place() {
            Place::Scheduled if job.due() <= now.ms() => State::Ready,
            Place::Scheduled => State::Delayed,
            Place::Reserved => State::Reserved,
            Place::Dead => State::Dead,
            Place::Blocked => State::Blocked,
            // A successor is shown only with the job before it.
            Place::Successor => State::Delayed,
        }
    }

    /// The due time of the nth delayed job, counted from 1; an earlier one for a large number.
    pub fn nth_due(&self, number: u64, now: Now) -> Option<u64> {
        const MOST: u64 = 1000;
        let seq = |handle| self.job(handle).seq();
        let mut delayed = self.schedule().by_due(now.ms() + 1, seq);
        let nth = delayed.nth(number.clamp(1, MOST) as usize - 1);
        nth.map(|(due, _)| due)
    }

    /// Shows for each part how many delayed and ready jobs are due in it. It computes that from ranks, without visiting
    /// the jobs.
    pub fn forecast(&self, forecast: &Forecast, mut show: impl FnMut(usize)) {
        let mut before = self.schedule().len_before(forecast.from);
        for bucket in 1..=forecast.buckets {
            let until = self.schedule().len_before(forecast.begin_of(bucket));
            show(until - before);
            before = until;
        }
    }
}

impl Queue {
    /// What a master or its replica knows of this job.
    pub fn known_of(&self, id: &[u8]) -> Known {
        let id = self.jobs().hashed(id);
        if let Some(handle) = self.jobs().find(id) {
            let job = self.jobs().job(handle);
            let life = job.life();
            if job.place() != Place::Dead {
                return Known::Lives;
            }
            let reason = job.failure().and_then(|failure| failure.reason);
            return Known::Ended(JobEnd {
                outcome: Outcome::Dead,
                value: reason.map(<[u8]>::to_vec),
                at: Some(life.at),
                attempts: life.attempts,
            });
        }
        let Some(handle) = self.parts().done().find(id) else {
            return Known::Nothing;
        };
        let job = self.parts().done().get(handle);
        Known::Ended(JobEnd {
            outcome: Outcome::Done,
            value: job.result.map(<[u8]>::to_vec),
            at: Some(job.finished),
            attempts: job.attempts,
        })
    }
}

impl Done {
    fn view(&self, handle: u32) -> JobView<'_> {
        let job = self.get(handle);
        JobView {
            id: job.id,
            payload: job.payload,
            state: State::Done,
            due: job.due,
            terms: &job.shared.terms,
            life: Life {
                attempts: job.attempts,
                ..Life::default()
            },
            failure: None,
            recurring: None,
            group: job.shared.group.as_deref(),
            next: None,
            notes: Notes::of(job.notes),
            has_due: true,
            waits: None,
            started: Some(job.started),
            done: Some(CompletionView {
                result: job.result,
                finished: job.finished,
            }),
            client: None,
        }
    }

    /// Whether its time is over, though its removal has not been carried out.
    pub(super) fn is_over(&self, handle: u32, at: At) -> bool {
        let until = self.get(handle).until();
        until != 0 && until <= at.ended_ms
    }
}

impl<'q> View<'q> {
    /// The job of that id, if there is one.
    pub fn get(self, id: &[u8]) -> Option<JobView<'q>> {
        let View {
            jobs, parts, at, ..
        } = self;
        let id = jobs.hashed(id);
        let Some(handle) = jobs.find(id) else {
            let done = parts.done();
            let there = done.find(id).filter(|&it| !done.is_over(it, at));
            return there.map(|it| done.view(it));
        };
        let state = jobs.seen_state(handle, at)?;
        Some(JobView {
            waits: parts.waits_of(jobs, handle),
            client: jobs.client_of(handle).filter(|_| state == State::Reserved),
            ..self.job_in(handle, state)
        })
    }

    fn has_due(self, handle: Handle) -> bool {
        let flows = self.parts.flows();
        flows.is_none_or(|it| it.has_due(handle, self.jobs))
    }

    fn job_in(self, handle: Handle, state: State) -> JobView<'q> {
        let job = self.jobs.job(handle);
        let next = self.jobs.successor(handle);
        let Status {
            place, due, life, ..
        } = job.status();
        // What the timer has yet to carry out: seen in another state, it has come back or died by the end of its lease.
        let lease_ended = place == Place::Reserved && matches!(state, State::Ready | State::Dead);
        JobView {
            id: job.id(),
            payload: job.payload(),
            state,
            due,
            terms: job.terms(),
            life,
            failure: match lease_ended {
                true => Some(Failure::of_lease(life.at)),
                false => job.failure(),
            },
            recurring: job.recurring().map(|it| (&it.rule.rule, it.occurrence)),
            group: self.parts.group_of(self.jobs, handle),
            next: next.map(|next| self.jobs.job(next).payload()),
            notes: self.jobs.notes(handle),
            started: (state == State::Reserved).then(|| started_at(life.token)),
            done: None,
            has_due: self.has_due(handle),
            waits: None,
            client: None,
        }
    }

    /// The next instants at which a job will be due, at most `count`. `None` if there is no such job; empty if it has
    /// no rule.
    pub fn next_instants(self, id: &[u8], count: usize, zone_of: ZoneOf) -> Option<Vec<u64>> {
        let View {
            jobs, parts, at, ..
        } = self;
        let hashed = jobs.hashed(id);
        let Some(handle) = jobs.find(hashed) else {
            return parts.done().find(hashed).map(|_| Vec::new());
        };
        let job = jobs.job(handle);
        let mut instants = Vec::new();
        let Some(recurring) = job.recurring() else {
            return Some(instants);
        };
        let Status { place, due, .. } = job.status();
        let (mut occurrence, mut from) = (recurring.occurrence, at.now.ms());
        let waits = place == Place::Scheduled && !occurrence.delivered && due > at.now.ms();
        if waits {
            instants.push(due);
            from = due;
        }
        let (zone, _) = recurring.rule.zone(zone_of, occurrence);
        while instants.len() < count {
            let Some(next) = recurring.rule.next(id, occurrence, from, &*zone) else {
                break;
            };
            instants.push(next.due);
            from = next.due;
            occurrence = Occurrence {
                at: next.occurrence,
                runs: occurrence.runs + 1,
                delivered: false,
                offset_s: next.offset_s,
            };
        }
        Some(instants)
    }

    /// Counts by state, and the ends of the schedule.
    pub fn summary(self) -> Summary {
        let View { jobs, at, .. } = self;
        let [delayed, ready, reserved, dead] = self.lens();
        let now_ms = at.now.ms();
        // A ready job may be one that an overdue lease has made ready: the schedule does not hold it yet.
        let oldest = jobs.schedule().least_due().filter(|&due| due <= now_ms);
        let oldest = oldest.into_iter().chain(jobs.overdue_due(at)).min();
        let oldest = oldest.filter(|_| ready > 0);
        Summary {
            delayed,
            ready,
            reserved,
            dead,
            blocked: jobs.blocked_len(),
            done: self.done_len(),
            next_due: jobs.next_due_at(at),
            oldest_ready_ms: oldest.map(|due| now_ms - due),
        }
    }

    /// Jobs of these due times in the order of delivery, with those of overdue leases, of which about `count` are known.
    fn by_rank(self, dues: RangeInclusive<u64>, count: usize) -> impl Iterator<Item = Handle> + 'q {
        let jobs = self.jobs;
        let ready = jobs
            .schedule()
            .by_rank(dues.clone(), |it| jobs.job(it).seq());
        let back = jobs.overdue_by_rank(dues, count, self.at);
        merge(ready, back.into_iter(), |&a, &b| {
            jobs.rank(a) <= jobs.rank(b)
        })
    }

    /// How many ready jobs of its group, or of those without one, come before a ready job, counted up to `most`.
    pub(super) fn ready_before(self, handle: Handle, most: usize) -> usize {
        let (jobs, now) = (self.jobs, self.at.now);
        if self.overdue().is_none() {
            return self.queue.serving().ready_before(handle, now, most);
        }
        let group = jobs.job(handle).group();
        if group.is_some() && self.queue.settings().group_limits.is_fifo {
            return 0;
        }
        let before = self
            .by_rank(0..=now.ms(), most)
            .take_while(|&it| it != handle);
        let of_group = before
            .take(LOOKED_AT)
            .filter(|&it| jobs.job(it).group() == group);
        let ready = of_group.filter(|&it| jobs.seen_state(it, self.at) == Some(State::Ready));
        ready.take(most).count()
    }

    /// Shows jobs of one state in its own order.
    pub fn peek(self, peek: &Peek, mut each: impl FnMut(JobView<'_>)) {
        let at = self.at;
        let Peek { from, to, .. } = *peek;
        if peek.state == State::Done {
            return self.peek_done(peek, each);
        }
        let until = |&(at, _): &(u64, Handle)| at <= to;
        let handle = |(_, handle)| handle;
        let mut show = |handles: &mut dyn Iterator<Item = Handle>| {
            let are_so = handles.filter(|&it| self.jobs.seen_state(it, at) == Some(peek.state));
            peek.show(are_so.map(|it| self.job_in(it, peek.state)), &mut each);
        };
        let now_ms = at.now.ms();
        match peek.state {
            State::Delayed => {
                let seq = |handle| self.jobs.job(handle).seq();
                let delayed = self.jobs.schedule().by_due(from.max(now_ms + 1), seq);
                show(&mut delayed.take_while(until).map(handle));
            }
            State::Ready => {
                let dues = from..=now_ms.min(to);
                let count = usize::try_from(peek.count).unwrap_or(usize::MAX);
                show(&mut self.by_rank(dues, count));
            }
            State::Reserved => {
                let leases = self.jobs.leases_from(from.max(at.ended_ms + 1));
                show(&mut leases.take_while(until).map(handle));
            }
            State::Blocked => {
                let is_within = |&handle: &Handle| {
                    let due = self.has_due(handle).then(|| self.jobs.job(handle).due());
                    match due {
                        Some(due) => (from..=to).contains(&due),
                        None => !peek.is_bounded,
                    }
                };
                show(&mut self.jobs.blocked().iter().map(handle).filter(is_within));
            }
            State::Dead => {
                let dead = self.jobs.dead().iter_from(from);
                let died = self.jobs.overdue_dead(from, at);
                let dead = merge(dead, died, |a, b| a.0 <= b.0);
                show(&mut dead.take_while(until).map(handle));
            }
            State::Done => {}
        }
    }

    fn peek_done(self, peek: &Peek, show: impl FnMut(JobView<'_>)) {
        let done = self.parts.done().iter_from(peek.from);
        let done = done.filter(|&it| !self.parts.done().is_over(it, self.at));
        let done = done.map(|it| self.parts.done().view(it));
        peek.show(done.take_while(|job| job.at() <= peek.to), show);
    }

    /// Done jobs whose time is not over, and that DONELEN keeps.
    pub(super) fn done_len(self) -> usize {
        let View {
            queue, parts, at, ..
        } = self;
        let len = parts.done().len() - parts.done().over_by(at.ended_ms);
        match queue.settings().done_limits.len {
            most if most != 0 && at.ended_ms != 0 => len.min(most as usize),
            _ => len,
        }
    }

    /// One step of a scan over all jobs: every job that is there throughout is shown at least once
    /// before the cursor is 0 again.
    pub fn scan(self, cursor: u64, mut show: impl FnMut(JobView<'_>)) -> u64 {
        if self.parts.has_done() {
            return self.scan_all(cursor, show);
        }
        self.jobs.scan(cursor, |handle| {
            if !self.jobs.is_purged(handle) {
                let state = self.jobs.seen_state(handle, self.at);
                state
                    .into_iter()
                    .for_each(|state| show(self.job_in(handle, state)));
            }
        })
    }

    /// As [`View::scan`], if there are done jobs. Both indexes order ids by the same hash. A step ends in both where
    /// the shorter one ends, so that a job is seen whichever index it is in by then.
    fn scan_all(self, cursor: u64, mut show: impl FnMut(JobView<'_>)) -> u64 {
        let (jobs, all_done, at) = (self.jobs, self.parts.done(), self.at);
        let (mut handles, mut done) = (Vec::new(), Vec::new());
        let ends = [
            jobs.scan(cursor, |handle| handles.push(handle)),
            all_done.scan(cursor, |handle| done.push(handle)),
        ];
        // 0 says that an index has been read to its end.
        let end = ends.into_iter().filter(|&end| end != 0).min().unwrap_or(0);
        let held = handles.into_iter().filter(|&it| !jobs.is_purged(it));
        let held = held.filter_map(|it| Some(self.job_in(it, jobs.seen_state(it, at)?)));
        let done = done.into_iter().filter(|&it| !all_done.is_over(it, at));
        let all = held.chain(done.map(|it| all_done.view(it)));
        let is_within = |job: &JobView<'_>| end == 0 || jobs.hashed(job.id).cursor() < end;
        all.filter(is_within).for_each(&mut show);
        end
    }
}
