//! Jobs that are kept as done.

use std::collections::{BTreeMap, HashMap};

use redis_dq::queue::effect::{Completion, DoneJob, OccurrenceCause, OfDone};
use redis_dq::queue::job::Place;
use redis_dq::queue::settings::DoneLimits;

use super::check::{check_acked, check_over};
use super::job::Job;
use super::Ledger;
use crate::judge::Judge;
use crate::rule::Rule;

/// The done jobs of one queue.
#[derive(Clone, Debug, Default)]
pub struct Done {
    jobs: HashMap<Box<[u8]>, Kept>,
    /// By (when it ended, order of ending).
    by_end: BTreeMap<(u64, u64), Box<[u8]>>,
    pub(super) limits: DoneLimits,
    ends: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    job: Job,
    end: (u64, u64),
    /// When it is removed; 0 is never.
    until: u64,
    /// `until` comes from the job's own KEEP.
    is_own: bool,
}

impl Done {
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    fn put(&mut self, id: &[u8], job: Job, (finished, until): (u64, u64), is_own: bool) {
        self.remove(id);
        self.ends += 1;
        let end = (finished, self.ends);
        self.by_end.insert(end, id.into());
        let kept = Kept {
            job,
            end,
            until,
            is_own,
        };
        self.jobs.insert(id.into(), kept);
    }

    fn remove(&mut self, id: &[u8]) -> Option<Kept> {
        let kept = self.jobs.remove(id)?;
        self.by_end.remove(&kept.end);
        Some(kept)
    }

    /// A new job has the id of a done one, which is removed.
    pub fn replace(&mut self, id: &[u8]) {
        if !self.jobs.is_empty() {
            self.remove(id);
        }
    }

    pub fn clear(&mut self) {
        self.jobs.clear();
        self.by_end.clear();
    }
}

impl Ledger {
    pub(super) fn apply_done(&mut self, effect: &OfDone<'_>, judge: &mut Judge) {
        match *effect {
            OfDone::Kept { id, end, .. } => self.becomes_done(id, end, judge),
            OfDone::OccurrenceKept { id, next, end } => {
                let name = self.id_of_occurrence(id);
                let job = self.job(id).cloned();
                check_end(id, end, judge);
                self.recur(id, OccurrenceCause::Acked, next, judge);
                if let (Some(name), Some(mut job)) = (name, job) {
                    self.seq += 1;
                    (job.seq, job.recurring) = (self.seq, None);
                    self.keep(&name, job, end);
                }
            }
            OfDone::Stored(ref stored) => self.restore_done(stored),
            OfDone::Gone { id } => self.done_goes(id, judge),
            OfDone::Deleted { id } => {
                if self.done.remove(id).is_none() {
                    self.is_unknown(id, "a done job deleted that is not there", judge);
                }
            }
            OfDone::Trimmed { count } => self.trim_done(count, judge),
            OfDone::Kicked { id, due } => {
                judge.clock_within(due, due);
                match self.done.remove(id) {
                    Some(kept) => self.put(id.into(), Job { due, ..kept.job }),
                    None => self.is_unknown(id, "kicked though it is not done", judge),
                }
            }
        }
    }

    fn becomes_done(&mut self, id: &[u8], end: Completion<'_>, judge: &mut Judge) {
        check_end(id, end, judge);
        let Some((_, job)) = self.remove(id) else {
            return self.is_unknown(id, "done though it is not there", judge);
        };
        check_over(id, &job, judge);
        check_acked(id, &job, judge);
        if job.successor.is_some() || job.recurring.is_some() {
            judge.fault(
                Rule::NothingLost,
                id,
                "kept as done, and so is what follows it",
            );
        }
        self.keep(id, job, end);
    }

    fn keep(&mut self, id: &[u8], job: Job, end: Completion<'_>) {
        let is_own = !self.done.limits.any();
        let job = Job {
            place: Place::Scheduled,
            expires: 0,
            token: 0,
            at: 0,
            death: 0,
            lease_ended: 0,
            attempts: 0,
            renewed_at: 0,
            successor: None,
            ..job
        };
        self.done.put(id, job, (end.finished, end.until), is_own);
    }

    fn id_of_occurrence(&self, id: &[u8]) -> Option<Vec<u8>> {
        let occurrence = self.job(id)?.recurring.as_ref()?.occurrence.at;
        Some([id, format!("@{occurrence}").as_bytes()].concat())
    }

    /// A job of a snapshot, which is not judged.
    fn restore_done(&mut self, stored: &DoneJob<'_>) {
        let job = Job {
            seq: stored.seq,
            ..Job::new((stored.due, 0), &stored.terms, stored.group)
        };
        self.seq = self.seq.max(stored.seq);
        let instants = (stored.finished, stored.until);
        let is_own = stored.terms.rest.keep_ms().is_some();
        self.done.put(stored.id, job, instants, is_own);
    }

    /// A done job is removed, by its time or as nothing keeps it.
    fn done_goes(&mut self, id: &[u8], judge: &mut Judge) {
        let Some(kept) = self.done.remove(id) else {
            return self.is_unknown(id, "a done job went that is not there", judge);
        };
        let is_kept = self.done.limits.any() || kept.is_own;
        if kept.until != 0 {
            if is_kept {
                let text = "gone by its time as a done job, which ends";
                judge.claim(kept.until, Rule::NothingLost, id, text);
            }
        } else if is_kept {
            judge.fault(Rule::NothingLost, id, "a done job went that has no time");
        }
    }

    /// The `count` jobs that were done first are removed: not one more than a limit demands, if it is a number of jobs.
    fn trim_done(&mut self, count: u64, judge: &mut Judge) {
        let limits = self.done.limits;
        let left = (self.done.len() as u64).checked_sub(count);
        let by_len = limits.len != 0 && left.is_some_and(|left| left >= limits.len);
        if self.is_whole && (left.is_none() || !by_len && limits.bytes == 0) {
            let done = self.done.len();
            let text = format!("{count} of {done} done jobs went, by no limit");
            judge.fault(Rule::NothingLost, b"", text);
        }
        for _ in 0..count {
            let Some((_, id)) = self.done.by_end.pop_first() else {
                break;
            };
            self.done.jobs.remove(&id);
        }
    }
}

fn check_end(id: &[u8], end: Completion<'_>, judge: &mut Judge) {
    judge.clock_within(end.finished, end.finished);
    if end.until != 0 && end.until < end.finished {
        judge.fault(Rule::NothingLost, id, "done, and gone before that");
    }
}
