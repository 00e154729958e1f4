//! Carrying out ends for the jobs that wait for them, one waiting job at a time.

use super::blocked::reason_of;
use super::{Flows, Number, Pending, NONE, NO_RECORD};
use crate::queue::after::{Moment, OnDead, Outcome, Verdict};
use crate::queue::job::Handle;
use crate::queue::state::store::Store;
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

impl Stepped {
    pub fn note_due(&mut self, due: u64) {
        self.first_due = Some(self.first_due.map_or(due, |first| first.min(due)));
    }
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

    /// Removes ends that concern no job any more. A master does so in steps, of which it reports those alone in which
    /// an end is carried out for a job.
    #[cold]
    pub fn shorten_line(&mut self, jobs: &Store) {
        for _ in 0..SHORTENED {
            let first = self.line.front().filter(|_| self.restoring.is_none());
            if first.is_none_or(|first| self.first_of(first, jobs).is_some()) {
                break;
            }
            self.leave_line();
        }
    }

    /// Carries out the next end for the next job that it concerns, as far as it is noted here; `None` if nothing is
    /// left. `stepped` counts the work.
    pub fn step(&mut self, jobs: &Store, stepped: &mut Stepped) -> Option<(Handle, Fallout)> {
        while !self.line.is_empty() {
            let Some((over, on_dead, number, waiter)) = self.next(jobs) else {
                stepped.work += 1;
                self.leave_line();
                continue;
            };
            stepped.count += 1;
            stepped.work += WORK_OF_STEP;
            self.part(number, waiter, jobs);
            let end = self.over(over);
            let (at, outcome) = (end.at, end.outcome.unwrap_or(Outcome::Done));
            if on_dead.verdict(outcome) == Verdict::Dies {
                let reason = reason_of(&end.id, outcome.name());
                stepped.work += self.record(waiter).map_or(0, |it| it.links.get().len() / 4);
                return Some((waiter, Fallout::Dies { at, reason }));
            }
            let record = there(self.record_mut(waiter), NO_RECORD);
            record.note_end(at);
            record.open = record.open.saturating_sub(1);
            if record.open > 0 {
                return Some((waiter, Fallout::Waits));
            }
            let named = jobs.job(waiter).due();
            let due = match record.is_timed() {
                true => named,
                false => record.latest().after(named),
            };
            let forgets = record.is_of_group();
            return Some((waiter, Fallout::Unblocked { due, forgets }));
        }
        None
    }
}

/// What the end of a job means to one that is after it.
pub enum Fallout {
    /// It waits for others.
    Waits,
    Dies {
        at: Moment,
        reason: Vec<u8>,
    },
    /// What it was after is forgotten if that was a group.
    Unblocked {
        due: u64,
        forgets: bool,
    },
}
