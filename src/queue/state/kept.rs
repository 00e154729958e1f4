//! Jobs that are kept as done: carrying out effects on them, which may be forged.

use super::bounds::{check_id, check_instant, malformed, CONTRADICTION};
use super::done::{Done, DoneView};
use super::jobs::Jobs;
use super::moves::Known;
use super::parts::Parts;
use super::recurring::id_of_occurrence;
use super::store::{Id, NewJob, Status};
use super::Queue;
use crate::queue::effect::{Change, Completion, DoneJob, OccurrenceCause, OfDone};
use crate::queue::error::QueueError;
use crate::queue::instant::started_at;
use crate::queue::job::{Handle, Place, GROUP_MAX, SEQ_MAX};
use crate::queue::note::Notes;
use crate::queue::outcome::Outcome;
use crate::queue::recurring::rule::Next;
use crate::queue::settings::{check_terms, DoneLimits};
use crate::queue::tagged::Lasting;
use crate::storage::broken::there;

const UNFIT: &str = "an effect that the job's state does not allow";

impl Queue {
    pub(super) fn apply_done(&mut self, effect: &OfDone<'_>) -> Result<(), QueueError> {
        let hasher = self.jobs.hasher();
        match *effect {
            OfDone::Kept { id, remember, end } => {
                self.parts.apply_kept(&mut self.jobs, id, remember, end)?
            }
            OfDone::OccurrenceKept { id, next, end } => self.apply_occurrence(id, next, end)?,
            OfDone::Stored(ref job) => self.parts.apply_done_stored(job, &mut self.jobs)?,
            OfDone::Gone { id } | OfDone::Deleted { id } => {
                let handle = self.parts.done.expect(self.jobs.hashed(id))?;
                self.parts.done.make().remove(handle, hasher);
            }
            OfDone::Trimmed { count } => {
                let count = usize::try_from(count).ok();
                let count = count.filter(|&count| count <= self.parts.done.len());
                let count = count.ok_or(malformed("more done jobs than there are"))?;
                for _ in 0..count {
                    let first = there(self.parts.done.first(), "fewer done jobs than there are");
                    self.parts.done.make().remove(first, hasher);
                }
            }
            OfDone::Kicked { id, due } => self.apply_done_kicked(id, due)?,
        }
        self.parts.note_done(self.settings.done_limits);
        Ok(())
    }

    /// The id of a job that is to be removed though no limit and no time removes it, if one is found within `looks`
    /// jobs. And how many were looked at.
    pub(in crate::queue) fn next_unkept_done(&mut self, looks: usize) -> (Option<Vec<u8>>, usize) {
        let Some(done) = self.parts.done.made() else {
            return (None, 1);
        };
        let (found, looked_at) = done.next_unkept(looks);
        (found.map(|it| done.get(it).id.to_vec()), looked_at)
    }

    /// Whether the settings keep done jobs.
    #[inline]
    pub(in crate::queue) fn keeps_done(&self) -> bool {
        self.keeps_done
    }

    fn apply_occurrence(
        &mut self,
        id: &[u8],
        next: Option<Next>,
        end: Completion<'_>,
    ) -> Result<(), QueueError> {
        self.parts.done.check_end(&end)?;
        let handle = self.jobs.expect(id)?;
        self.parts
            .check_recurred(&self.jobs, handle, OccurrenceCause::Acked, next)?;
        if self.jobs.job(handle).life().token == 0
            || !self.parts.has_room_for_occurrence(&self.jobs, handle)
        {
            return Err(malformed(UNFIT));
        }
        let seq = self.parts.next_seq(&mut self.jobs);
        let job = self.jobs.job(handle);
        let recurring = there(job.recurring(), UNFIT);
        let name = id_of_occurrence(id, recurring.occurrence.at);
        self.parts.keep_done(&self.jobs, handle, &name, seq, end);
        self.recur(handle, OccurrenceCause::Acked, next, None);
        if let Some(departure) = self.last_departure() {
            departure.set_value(end.result);
        }
        Ok(())
    }

    fn apply_done_kicked(&mut self, id: &[u8], due: u64) -> Result<(), QueueError> {
        check_instant(due)?;
        let handle = self.parts.done.expect(self.jobs.hashed(id))?;
        if !self.jobs.has_room() || !self.jobs.has_room_for_note() {
            return Err(QueueError::TooManyJobs);
        }
        let done = std::mem::take(&mut self.parts.done);
        let DoneView {
            payload,
            shared,
            notes,
            seq,
            ..
        } = done.get(handle);
        let job = NewJob {
            seq,
            place: Place::Scheduled,
            group: shared.group.as_deref(),
            ..NewJob::scheduled(id, payload, (due, 0), &shared.terms)
        };
        let kicked = self.insert(&job, self.jobs.hashed(id), Known::default());
        let stays = |tag| !Change::Kicked { due }.ends(Lasting::of(tag));
        self.jobs.copy_notes(kicked, Notes::of(notes), stays);
        self.parts.done = done;
        self.parts.done.make().remove(handle, self.jobs.hasher());
        Ok(())
    }
}

impl Done {
    fn expect(&self, id: Id<'_>) -> Result<u32, QueueError> {
        let handle = self.find(id);
        handle.ok_or(malformed("an effect on a done job that is not there"))
    }
}

impl Parts {
    fn apply_done_stored(&mut self, job: &DoneJob<'_>, jobs: &mut Jobs) -> Result<(), QueueError> {
        check_id(job.id)?;
        check_terms(&job.terms)?;
        for instant in [job.due, job.started, job.finished, job.until] {
            check_instant(instant)?;
        }
        Notes::of(job.notes).check_done()?;
        let group_fits = job
            .group
            .is_none_or(|name| (1..=GROUP_MAX).contains(&name.len()));
        let until_fits = job.until == 0 || job.until >= job.finished;
        if job.seq > SEQ_MAX || !group_fits || !until_fits {
            return Err(malformed(CONTRADICTION));
        }
        let id = jobs.hashed(job.id);
        let is_known = !jobs.is_unindexed() && jobs.find(id).is_some();
        if is_known || self.done.find(id).is_some() {
            return Err(malformed(CONTRADICTION));
        }
        if !self.done.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.done.make().insert(job, id, jobs.hasher());
        jobs.numbers.seq = jobs.numbers.seq.max(job.seq);
        Ok(())
    }

    /// Notes when time or a limit next removes a done job: each command asks for that.
    pub(super) fn note_done(&mut self, limits: DoneLimits) {
        if let Some(done) = self.done.made() {
            done.wakes = done.wakes_at(limits);
        }
    }

    /// Removes a done job whose id a new job gets.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_done(&mut self, jobs: &Jobs, id: Id<'_>, limits: DoneLimits) {
        if let Some(handle) = self.done.find(id) {
            self.done.make().remove(handle, jobs.hasher());
            self.note_done(limits);
        }
    }

    fn apply_kept(
        &mut self,
        jobs: &mut Jobs,
        id: &[u8],
        remember: u64,
        end: Completion<'_>,
    ) -> Result<(), QueueError> {
        self.done.check_end(&end)?;
        check_instant(remember)?;
        let handle = jobs.expect(id)?;
        let job = jobs.job(handle);
        if job.life().token == 0 || job.is_followed() || job.recurring().is_some() {
            return Err(malformed(UNFIT));
        }
        let seq = job.seq();
        self.keep_done(jobs, handle, id, seq, end);
        if let Some(departures) = self.departures() {
            let how = (Outcome::Done, end.result);
            departures.ended(handle, how, (Some(end.finished), false), jobs);
        }
        self.remember_job(jobs, handle, remember);
        self.remove(jobs, handle);
        Ok(())
    }

    /// Keeps a copy of a job, or of its occurrence, as done.
    fn keep_done(&mut self, jobs: &Jobs, handle: Handle, id: &[u8], seq: u64, end: Completion<'_>) {
        let group = self.group_of(jobs, handle).map(Box::<[u8]>::from);
        let job = jobs.job(handle);
        let Status { due, life, .. } = job.status();
        let notes = jobs.notes(handle).when_done();
        let done = DoneJob {
            id,
            payload: job.payload(),
            result: end.result,
            notes: &notes,
            group: group.as_deref(),
            terms: job.terms().when_done(),
            seq,
            due,
            attempts: life.attempts,
            started: started_at(life.token),
            finished: end.finished,
            until: end.until,
        };
        let id = jobs.hashed(id);
        self.done.make().insert(&done, id, jobs.hasher());
    }
}
