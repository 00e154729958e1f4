//! "A queue that is told to keeps jobs that are done", sentence by sentence.

use super::notes::Notes;
use super::{after, Fault, Job, Model, Phase, LAST};
use crate::op::Id;

impl Job {
    /// When the job is removed by its time.
    fn until(&self) -> Option<u64> {
        match self.phase {
            Phase::Done { until, .. } => until,
            _ => None,
        }
    }

    pub(super) fn result(&self) -> Option<&Vec<u8>> {
        match &self.phase {
            Phase::Done { result, .. } => result.as_ref(),
            _ => None,
        }
    }

    /// "ids, payloads, results"
    fn done_bytes(&self) -> u64 {
        let result = self.result().map_or(0, Vec::len);
        let progress = self.notes.progress.as_ref().map_or(0, Vec::len);
        let reasons = self.notes.history.iter().flat_map(|past| &past.reason);
        let reasons: usize = reasons.map(Vec::len).sum();
        (self.id.len() + self.payload.len() + result + progress + reasons) as u64
    }
}

impl Model {
    pub fn find_done(&self, id: &[u8]) -> Option<usize> {
        self.done.iter().position(|job| job.id == id)
    }

    pub fn done_bytes(&self) -> u64 {
        let count = !self.has(Fault::ResultsWeighNothing);
        let results = |job: &Job| job.result().map_or(0, |it| it.len() as u64);
        let all = self.done.iter();
        all.map(|job| job.done_bytes() - if count { 0 } else { results(job) })
            .sum()
    }

    /// Done jobs in the order of ending.
    pub fn in_end_order(&self) -> Vec<&Job> {
        let mut done: Vec<&Job> = self.done.iter().collect();
        done.sort_by_key(|job| end_of(job));
        done
    }

    pub(super) fn next_done_over(&self) -> Option<u64> {
        self.done.iter().filter_map(Job::until).min()
    }

    /// "each at most ms after its end"
    pub(super) fn done_are_over(&mut self) -> usize {
        let before = self.done.len();
        let now = self.now;
        let stays = self.has(Fault::DoneOutliveTtl);
        self.done
            .retain(|job| stays || job.until().is_none_or(|until| until > now));
        before - self.done.len()
    }

    /// Keeps a copy of an acked job, if the queue keeps it.
    pub(super) fn keep_done(&mut self, index: usize, result: Option<&[u8]>, now: u64) {
        let limits = self.settings.done_limits;
        let job = &self.jobs[index];
        // "kept that long after it is done, instead of DONETTL and also where the queue keeps none"
        let keep = job
            .notes
            .said
            .keep()
            .filter(|_| !self.has(Fault::KeepForgotten));
        if keep == Some(0) || (!limits.any() && keep.is_none()) {
            return;
        }
        if job.next.is_some() && !self.has(Fault::FollowedAreKept) {
            return;
        }
        let id = self.id_when_done(index);
        let taken = id != job.id && (self.find(&id).is_some() || self.find_done(&id).is_some());
        if taken || id.len() > 1024 {
            return;
        }
        let stays = Some(keep.unwrap_or(limits.ttl_ms)).filter(|ms| *ms != 0);
        self.kept_done += 1;
        let job = &self.jobs[index];
        let started = job.token.map_or(0, |token| (token >> 20).min(LAST));
        let mut done = Job {
            id: id.clone(),
            expires: None,
            token: None,
            failure: None,
            next: None,
            recur: None,
            waits: None,
            phase: Phase::Done {
                finished: now / 1000,
                order: self.kept_done,
                until: stays.map(|ms| after(now, ms).unwrap_or(LAST)),
                started,
                result: result.map(<[u8]>::to_vec),
            },
            notes: Notes {
                progress: job.notes.progress.clone(),
                history: job.notes.history.clone(),
                said: job.notes.said.clone(),
                ..Notes::default()
            },
            ..job.clone()
        };
        // "one that is too large alone is not kept"
        let bytes = done.done_bytes();
        if limits.bytes != 0 && bytes > limits.bytes && !self.has(Fault::TooLargePushOut) {
            return;
        }
        if job.recur.is_some() {
            self.adds += 1;
            done.seq = self.adds;
        }
        self.done.push(done);
    }

    /// "kept, where done jobs are, as `<id>@<occurrence>`"
    fn id_when_done(&self, index: usize) -> Id {
        let job = &self.jobs[index];
        match &job.recur {
            Some(recur) => [&job.id[..], format!("@{}", recur.occurrence).as_bytes()].concat(),
            None => job.id.clone(),
        }
    }

    /// "The longest done go first"; "where none of the three is on any more, those go"
    pub(super) fn trim_done(&mut self) {
        let limits = self.settings.done_limits;
        if !limits.any() {
            self.done.retain(|job| job.notes.said.keep().is_some());
        }
        while (limits.len != 0 && self.done.len() as u64 > limits.len)
            || (limits.bytes != 0 && self.done_bytes() > limits.bytes)
        {
            let ends = self.done.iter().map(end_of);
            let first = if self.has(Fault::DoneLenKeepsOldest) {
                ends.max()
            } else {
                ends.min()
            };
            self.done.retain(|job| Some(end_of(job)) != first);
        }
    }

    /// "runs done jobs again, too: attempts 0, due now, result ... gone"
    pub(super) fn kick_done(&mut self, id: &[u8], now: u64) -> u64 {
        let Some(index) = self
            .find_done(id)
            .filter(|_| !self.has(Fault::DoneStayDone))
        else {
            return 0;
        };
        let mut job = self.done.remove(index);
        self.begins(&job.group);
        (job.phase, job.attempts, job.due) = (Phase::Waiting, 0, now / 1000);
        job.notes.progress = None;
        let place = self.jobs.partition_point(|other| other.seq < job.seq);
        self.jobs.insert(place, job);
        1
    }
}

/// "at = finished, then the order of ending"
fn end_of(job: &Job) -> (u64, u64) {
    match job.phase {
        Phase::Done {
            finished, order, ..
        } => (finished, order),
        _ => (0, 0),
    }
}
