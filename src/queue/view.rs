//! Looking at a queue, changing nothing.

use super::clock::Now;
use super::job::{Handle, JobView, Place, State};
use super::state::store::Course;
use super::Queue;

/// What DQ.STATS tells beside the totals.
#[allow(missing_docs, reason = "states are called as DQ.STATS calls them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub delayed: usize,
    pub ready: usize,
    pub reserved: usize,
    pub dead: usize,
    /// The earliest due that has not come.
    pub next_due: Option<u64>,
    /// Age of the ready job with the earliest due.
    pub oldest_ready_ms: Option<u64>,
}

/// Which jobs DQ.PEEK shows: instants inclusive, by the state's own order.
#[allow(missing_docs, reason = "called as the commands call them")]
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    pub state: State,
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

/// A stretch of time in equal parts: TO lies after FROM, and is not in it.
#[allow(missing_docs, reason = "called as the commands call them")]
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    pub from: u64,
    pub to: u64,
    pub buckets: u64,
}

impl Forecast {
    /// The instant at which a part begins, counted from 0; behind the last one that is TO.
    fn begin_of(&self, bucket: u64) -> u64 {
        let offset = u128::from(bucket) * u128::from(self.to - self.from);
        self.from + (offset / u128::from(self.buckets)) as u64
    }
}

impl Queue {
    pub(super) fn state_of(&self, handle: Handle, now: Now) -> State {
        let job = self.jobs().job(handle);
        match job.place() {
            Place::Scheduled if job.due() <= now.ms() => State::Ready,
            Place::Scheduled => State::Delayed,
            Place::Reserved => State::Reserved,
            Place::Dead => State::Dead,
            // Nobody sees one but by its job.
            Place::Successor => State::Delayed,
        }
    }

    /// The job of that id, if there is one.
    pub fn get(&self, id: &[u8], now: Now) -> Option<JobView<'_>> {
        self.find(self.jobs().hashed(id))
            .map(|handle| self.view(handle, now))
    }

    pub(super) fn view(&self, handle: Handle, now: Now) -> JobView<'_> {
        let job = self.jobs().job(handle);
        let Course { due, life, .. } = job.course();
        JobView {
            id: job.id(),
            payload: job.payload(),
            state: self.state_of(handle, now),
            due,
            terms: job.terms(),
            life,
            failure: job.failure(),
            recurring: job.recurring().map(|it| (&it.rule.rule, it.round)),
            group: self.group_of(handle),
            next: self
                .jobs()
                .successor(handle)
                .map(|next| self.jobs().job(next).payload()),
        }
    }

    /// Jobs in a state, or delayed + ready + reserved.
    pub fn len(&self, state: Option<State>, now: Now) -> usize {
        match state {
            None => self.live_len(),
            Some(State::Delayed) => self.schedule().len() - self.schedule().ready_len(now.ms()),
            Some(State::Ready) => self.schedule().ready_len(now.ms()),
            Some(State::Reserved) => self.reserved().len(),
            Some(State::Dead) => self.dead().len(),
        }
    }

    /// Shows for each part how many delayed and ready jobs are due in it: by ranks, whatever the number
    /// of jobs.
    pub fn forecast(&self, forecast: &Forecast, mut show: impl FnMut(usize)) {
        let mut before = self.schedule().len_before(forecast.from);
        for bucket in 1..=forecast.buckets {
            let until = self.schedule().len_before(forecast.begin_of(bucket));
            show(until - before);
            before = until;
        }
    }

    /// Counts by state, and the ends of the schedule.
    pub fn summary(&self, now: Now) -> Summary {
        let ready = self.schedule().ready_len(now.ms());
        let least_due = self.schedule().least_due();
        Summary {
            delayed: self.schedule().len() - ready,
            ready,
            reserved: self.reserved().len(),
            dead: self.dead().len(),
            next_due: self.schedule().next_due(now.ms()),
            oldest_ready_ms: least_due.and_then(|due| now.ms().checked_sub(due)),
        }
    }

    /// Shows jobs of one state in its own order.
    pub fn peek(&self, peek: &Peek, now: Now, mut show: impl FnMut(JobView<'_>)) {
        let Peek { from, to, .. } = *peek;
        let count = usize::try_from(peek.count).unwrap_or(usize::MAX);
        let show = |handle| show(self.view(handle, now));
        let until = |&(at, _): &(u64, Handle)| at <= to;
        let handle = |(_, handle)| handle;
        match peek.state {
            State::Delayed => {
                let from = from.max(now.ms() + 1);
                let delayed = self.schedule().by_due(from, |h| self.jobs().job(h).seq());
                delayed
                    .take_while(until)
                    .map(handle)
                    .take(count)
                    .for_each(show);
            }
            State::Ready => {
                let ready = self
                    .schedule()
                    .by_rank(from..=now.ms().min(to), |h| self.jobs().job(h).seq());
                ready.take(count).for_each(show);
            }
            State::Reserved => {
                let reserved = self.reserved().iter_from(from);
                reserved
                    .take_while(until)
                    .map(handle)
                    .take(count)
                    .for_each(show);
            }
            State::Dead => {
                let dead = self.dead().iter_from(from);
                dead.take_while(until)
                    .map(handle)
                    .take(count)
                    .for_each(show);
            }
        }
    }

    /// One step of a scan over all jobs: every job that is there throughout is shown at least once
    /// before the cursor is 0 again.
    pub fn scan(&self, cursor: u64, now: Now, mut show: impl FnMut(JobView<'_>)) -> u64 {
        self.jobs().scan(cursor, |handle| {
            if !self.is_purged(handle) {
                show(self.view(handle, now));
            }
        })
    }
}
