//! Carrying out ends for the jobs that wait for them, one waiting job at a time.

use super::blocked::reason_of;
use super::values::{EndOf, Told};
use super::{Flows, Number, Pending, NONE, NO_RECORD};
use crate::queue::after::{Moment, OnDead, Outcome, Verdict};
use crate::queue::job::{Handle, REASON_MAX};
use crate::queue::state::store::Store;
use crate::queue::state::Queue;
use crate::storage::broken::there;

/// The work of one step, in units of one expired lease: several lists change, all over the memory.
const WORK_OF_STEP: usize = 2;
/// So many ends leave the line with one effect, at most.
const SHORTENED: usize = 1000;

/// What steps have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Waiting jobs for which an end was carried out.
    pub count: u64,
    /// The work that this took, in units of one expired lease.
    pub work: usize,
    /// Jobs that died.
    pub died: u64,
    /// Jobs that died and gave their place to a successor.
    pub succeeded: u64,
    /// Successors whose TTL had expired.
    pub expired: u64,
    /// The earliest due time of jobs that may be ready now.
    pub first_due: Option<u64>,
}

impl Flows {
    /// The first waiting job, in the order of adding, of those that an end concerns.
    pub(super) fn first_of(
        &self,
        pending: &Pending,
        jobs: &Store,
    ) -> Option<(OnDead, Number, Handle)> {
        let numbers = pending.numbers.into_iter().zip(OnDead::ALL);
        let first = |(number, on_dead): (Number, OnDead)| {
            let first = self.edges.iter_from(number).next();
            let (_, waiter) = first.filter(|&(key, _)| number != NONE && key == number)?;
            Some((on_dead, number, waiter))
        };
        let all = numbers.filter(|&(number, _)| number != NONE);
        all.filter_map(first)
            .min_by_key(|&(_, _, waiter)| (jobs.job(waiter).seq(), waiter))
    }

    /// What the next step is to carry out: the first end, and its first waiting job.
    fn next(&self, jobs: &Store) -> Option<(Number, OnDead, Number, Handle)> {
        let pending = self.line.front()?;
        let (on_dead, number, waiter) = self.first_of(pending, jobs)?;
        Some((pending.over, on_dead, number, waiter))
    }
}

impl Queue {
    /// Carries out ends for up to `most` waiting jobs, or until that took `work`.
    pub(in crate::queue) fn step_flows(&mut self, most: u64, work: usize) -> Stepped {
        let mut stepped = Stepped::default();
        while stepped.count < most && stepped.work < work && self.step_once(&mut stepped) {}
        self.drop_flows();
        stepped
    }

    /// Carries out one step; false if nothing is left.
    fn step_once(&mut self, stepped: &mut Stepped) -> bool {
        loop {
            let Some(flows) = &mut self.flows else {
                return false;
            };
            if flows.line.is_empty() {
                return false;
            }
            if let Some((over, on_dead, number, waiter)) = flows.next(&self.jobs) {
                stepped.count += 1;
                self.carry_out_end(over, (on_dead, number), waiter, stepped);
                return true;
            }
            stepped.work += 1;
            self.leave_line();
        }
    }

    /// Removes the first end from the line.
    fn leave_line(&mut self) {
        let first = self.flows.as_mut().and_then(|flows| {
            let first = flows.line.pop_front()?;
            flows.drop_over(first.over);
            Some(first)
        });
        let numbers = first.map_or([NONE; 3], |first| first.numbers);
        let numbers = numbers.into_iter().filter(|&it| it != NONE);
        numbers.for_each(|it| self.release_number(it));
    }

    /// Removes ends that concern no job any more. A master does so in steps, of which it reports those alone in which
    /// an end is carried out for a job.
    #[cold]
    pub(in crate::queue::state) fn shorten_line(&mut self) {
        for _ in 0..SHORTENED {
            let is_over = self.flows.as_ref().is_some_and(|flows| {
                let first = flows.line.front().filter(|_| flows.restoring.is_none());
                first.is_some_and(|first| flows.first_of(first, &self.jobs).is_none())
            });
            if !is_over {
                break;
            }
            self.leave_line();
        }
        self.drop_flows();
    }

    fn carry_out_end(
        &mut self,
        over: Number,
        (on_dead, number): (OnDead, Number),
        waiter: Handle,
        stepped: &mut Stepped,
    ) {
        let flows = there(self.flows.as_mut(), NO_RECORD);
        flows.part(number, waiter, &self.jobs);
        stepped.work += WORK_OF_STEP;
        let end = flows.over(over);
        let (at, outcome) = (end.at, end.outcome.unwrap_or(Outcome::Done));
        if on_dead.verdict(outcome) == Verdict::Dies {
            let reason = reason_of(&end.id, outcome.name());
            stepped.work += self.links_of(waiter);
            return self.die_of(waiter, at, &reason, stepped);
        }
        let record = there(flows.record_mut(waiter), NO_RECORD);
        record.note_end(at);
        record.open = record.open.saturating_sub(1);
        if record.open > 0 {
            return;
        }
        let (latest, is_timed, of_group) =
            (record.latest(), record.is_timed(), record.is_of_group());
        let named = self.jobs.job(waiter).due();
        let due = if is_timed { named } else { latest.after(named) };
        if of_group {
            self.drop_record(waiter);
        }
        self.unblock(waiter, due);
        stepped.first_due = Some(stepped.first_due.map_or(due, |first| first.min(due)));
    }

    /// The work for the links of a waiting job.
    fn links_of(&self, waiter: Handle) -> usize {
        let record = self.flows.as_ref().and_then(|flows| flows.record(waiter));
        record.map_or(0, |record| record.links.get().len() / 4)
    }

    /// Has a blocked job die, and records its end for those after it.
    pub(super) fn die_of(
        &mut self,
        waiter: Handle,
        at: Moment,
        reason: &[u8],
        stepped: &mut Stepped,
    ) {
        stepped.died += 1;
        let record = self.flows.as_ref().and_then(|flows| flows.record(waiter));
        let is_timed = record.is_some_and(|record| record.is_timed());
        let due = match is_timed {
            true => self.jobs.job(waiter).due(),
            false => at.ms,
        };
        let reason = &reason[..reason.len().min(REASON_MAX)];
        self.close_links(waiter);
        if self.is_listened_to() {
            self.note_end(waiter, (Outcome::Dead, Some(reason)), Some(at.ms), false);
        }
        if let Some(flows) = &mut self.flows {
            let id = self.jobs.job(waiter).id();
            let end = EndOf {
                id,
                outcome: Some(Outcome::Dead),
                at,
                value: Some(Told::of(id, reason, &**self.jobs.hasher())),
            };
            flows.end_job(waiter, end);
        }
        match self.lasting_successor(waiter, at, stepped) {
            Some(due) => {
                stepped.first_due = Some(stepped.first_due.map_or(due, |first| first.min(due)));
                stepped.succeeded += 1;
                self.succeed(waiter, 0);
            }
            None => self.kill(waiter, at, due, reason),
        }
    }

    /// The due time of the successor that takes the job's place, unless the successor's TTL has expired.
    fn lasting_successor(
        &mut self,
        waiter: Handle,
        at: Moment,
        stepped: &mut Stepped,
    ) -> Option<u64> {
        let successor = self.jobs.job(self.jobs.successor(waiter)?);
        let (due, expires) = (successor.due(), successor.life().expires);
        if expires == 0 || expires > at.ms {
            return Some(due);
        }
        stepped.expired += 1;
        self.remove_successor(waiter);
        None
    }
}
