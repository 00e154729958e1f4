//! Why nothing is delivered, or why this job is not: DQ.EXPLAIN. What holds a job back is asked of the same functions as
//! in [`super::deliver`].

use super::budget::OUT_OF_TURN;
use super::clock::Now;
use super::deliver::Pop;
use super::effect::FOREVER;
use super::job::{Handle, State, INSTANT_MAX};
use super::overdue::{At, View};
use super::Queue;

/// Ready jobs before a job that are counted, at most.
const BEFORE_MAX: usize = 1000;

/// What may hold back jobs, or one job.
#[allow(missing_docs, reason = "called as DQ.EXPLAIN calls them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Paused,
    MaxReserved,
    Delayed,
    Blocked,
    Reserved,
    Empty,
    Groups,
    Rate,
    Idle,
    /// In place of it, where clients wait for a batch.
    Fill,
    Done,
    Dead,
    Signal,
    GroupPaused,
    GroupMax,
    GroupRate,
    GroupFifo,
    Behind,
}

impl Code {
    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Code::Paused => "paused",
            Code::MaxReserved => "maxreserved",
            Code::Delayed => "delayed",
            Code::Blocked => "blocked",
            Code::Reserved => "reserved",
            Code::Empty => "empty",
            Code::Groups => "groups",
            Code::Rate => "rate",
            Code::Idle => "idle",
            Code::Fill => "fill",
            Code::Done => "done",
            Code::Dead => "dead",
            Code::Signal => "signal",
            Code::GroupPaused => "group-paused",
            Code::GroupMax => "group-max",
            Code::GroupRate => "group-rate",
            Code::GroupFifo => "group-fifo",
            Code::Behind => "behind",
        }
    }
}

/// One thing that holds.
#[allow(missing_docs, reason = "what they mean depends on the code")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: Code,
    pub number: Option<u64>,
    /// An instant.
    pub until: Option<u64>,
}

impl Code {
    fn alone(self) -> Reason {
        Reason {
            code: self,
            number: None,
            until: None,
        }
    }

    fn of(self, number: usize) -> Reason {
        Reason {
            number: Some(number as u64),
            ..self.alone()
        }
    }

    fn until(self, instant: u64) -> Reason {
        self.alone().until(Some(instant))
    }
}

impl Reason {
    fn until(self, instant: Option<u64>) -> Self {
        Reason {
            until: instant,
            ..self
        }
    }
}

impl Queue {
    /// All that holds the queue's jobs back, in the order of the contract. [`Code::Idle`] comes last, exactly if a POP
    /// would deliver one.
    pub fn explain(&mut self, at: At) -> Vec<Reason> {
        let mut all = self.at(at).limits();
        let summary = self.at(at).summary();
        if summary.ready == 0 {
            let count = |code: Code, count: usize| (count > 0).then(|| code.of(count));
            let delayed = count(Code::Delayed, summary.delayed);
            let first_lease = self.jobs().leases_from(at.ended_ms + 1).next();
            let reserved = count(Code::Reserved, summary.reserved);
            let coming = [
                delayed.map(|it| it.until(summary.next_due)),
                count(Code::Blocked, summary.blocked),
                reserved.map(|it| it.until(first_lease.map(|(lease, _)| lease))),
            ];
            all.extend(coming.into_iter().flatten());
            if coming.iter().all(Option::is_none) {
                all.push(Code::Empty.alone());
            }
            return all;
        }
        match self.whose_turn(at.now) {
            Some(turn) => all.extend(self.at(at).rate_holds(turn)),
            // Else the ends of leases that have yet to be carried out have made them ready.
            None if self.jobs().schedule().ready_len(at.now.ms()) > 0 => {
                let opens = self.serving_mut().groups_open(at.now);
                all.push(Code::Groups.of(summary.ready).until(opens));
            }
            None => {}
        }
        if all.is_empty() {
            all.push(Code::Idle.of(summary.ready));
        }
        all
    }

    /// All that holds this job back; `None` if there is no such job. [`Code::Idle`] comes last, if a POP that names it would
    /// deliver it, or if nothing but RATE would refuse it, which lets the job go whose turn it is.
    pub fn explain_job(&mut self, id: &[u8], at: At) -> Option<Vec<Reason>> {
        let hashed = self.jobs().hashed(id);
        let Some(handle) = self.jobs().find(hashed) else {
            let done = self.parts().done();
            let done = done.find(hashed).filter(|&it| !done.is_over(it, at));
            return done.map(|_| vec![Code::Done.alone()]);
        };
        let state = self.jobs().seen_state(handle, at)?;
        let job = self.jobs().job(handle);
        let (due, life) = (job.due(), job.life());
        Some(vec![match state {
            State::Ready => return Some(self.explain_ready(handle, id, at)),
            State::Done => Code::Done.alone(),
            State::Dead => Code::Dead.alone(),
            State::Reserved => Code::Reserved.until(life.at),
            State::Blocked => {
                let waits = self.parts().waits_of(self.jobs(), handle);
                Code::Blocked.of(waits.map_or(0, |it| it.after.len().max(1)))
            }
            State::Delayed if self.jobs().notes(handle).awaits().is_some() => {
                // At the bound of instants nothing happens.
                let due = Some(due).filter(|&due| due < INSTANT_MAX);
                Code::Signal.alone().until(due)
            }
            State::Delayed => Code::Delayed.until(due),
        }])
    }

    fn explain_ready(&mut self, handle: Handle, id: &[u8], at: At) -> Vec<Reason> {
        let now = at.now;
        self.serving_mut()
            .update_groups_before(Some(id), false, now);
        let held = self.serving().held_by_group(handle, now);
        let until_end = |end: u64| Some(end).filter(|&at| at != FOREVER);
        let paused = held.paused;
        let paused = paused.map(|end| Code::GroupPaused.alone().until(until_end(end)));
        let max = held
            .max
            .map(|reserved| Code::GroupMax.of(reserved as usize));
        let rate = held.until.map(|opens| {
            let group = self.jobs().job(handle).group();
            let used = self.serving().window_used(group, now);
            Code::GroupRate.of(used as usize).until(Some(opens))
        });
        let fifo = held.fifo.then(|| Code::GroupFifo.alone());
        let before = self.at(at).ready_before(handle, BEFORE_MAX);
        let behind = (before > 0).then(|| Code::Behind.of(before));
        let mut all: Vec<Reason> = [paused, max, rate, fifo, behind]
            .into_iter()
            .flatten()
            .collect();
        all.extend(self.at(at).limits());
        let turn = self.whose_turn(now);
        all.extend(turn.and_then(|turn| self.at(at).rate_holds(turn)));
        let serving = self.serving();
        let goes = !serving.is_held(false, now)
            && serving.may_be_served(handle, now, false)
            && serving.fits_rates(handle, now);
        // Nothing may be named here that holds a dearer job than the one whose turn it is: it is never left without a word.
        if goes || all.is_empty() {
            all.push(Code::Idle.of(self.at(at).summary().ready));
        }
        all
    }

    /// The job that the next delivery would give if the queue itself held nothing back.
    fn whose_turn(&mut self, now: Now) -> Option<Handle> {
        let mut budget = OUT_OF_TURN;
        self.serving_mut().update_groups_before(None, false, now);
        let next = self.next_to_go(&Pop::default(), now, None, &mut budget);
        next.map(|(handle, _)| handle)
    }
}

impl View<'_> {
    /// What holds all jobs.
    fn limits(self) -> Vec<Reason> {
        let mut all = Vec::new();
        if self.queue.serving().is_paused(self.at.now) {
            let until = Some(self.queue.paused_until()).filter(|&at| at != FOREVER);
            all.push(Code::Paused.alone().until(until));
        }
        if self.queue.serving().is_full() {
            all.push(Code::MaxReserved.of(self.jobs.reserved().len()));
        }
        all
    }

    /// Whether RATE holds back the job whose turn it is.
    fn rate_holds(self, turn: Handle) -> Option<Reason> {
        let now = self.at.now;
        let serving = self.queue.serving();
        let opens = serving.rate_opens_ms(self.jobs.weight_of(turn), now);
        let used = serving.rate_used(now) as usize;
        (opens > 0).then(|| Code::Rate.of(used).until(Some(opens)))
    }
}
