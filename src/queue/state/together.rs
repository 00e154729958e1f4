//! Jobs that are added together: recorded as one effect, and carried out.

use super::bounds::{check_group, check_id, check_instant};
use super::moves::Unlinked;
use super::store::{Id, NewJob};
use super::Queue;
use crate::queue::effect::{Arrival, Effect};
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::event::Event;
use crate::queue::job::{Handle, Terms};
use crate::queue::settings::check_terms;
use std::borrow::Cow;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Bytes that say how long an id and a usual payload are, at most.
const LENGTHS: usize = 6;

/// What jobs that are added together share.
pub(in crate::queue) struct Together<'a> {
    pub group: Option<&'a [u8]>,
    pub due: u64,
    /// 0 means never.
    pub expires: u64,
    pub terms: Terms<'a>,
}

impl Together<'_> {
    fn job<'j>(&'j self, id: &'j [u8], payload: &'j [u8]) -> NewJob<'j> {
        NewJob {
            group: self.group,
            ..NewJob::scheduled(id, payload, (self.due, self.expires), &self.terms)
        }
    }
}

/// Jobs that are being added together. When this is dropped, the jobs that were put are recorded and linked, even if a
/// broken invariant stops the rest.
pub(in crate::queue) struct Coming<'q, 'a> {
    queue: &'q mut Queue,
    together: &'q Together<'q>,
    out: &'q mut Effects,
    jobs: Vec<Arrival<'a>>,
    unlinked: Unlinked,
    /// The last id that was generated.
    made: Option<(u64, u64)>,
    any: bool,
}

impl<'q, 'a> Coming<'q, 'a> {
    pub fn new(queue: &'q mut Queue, together: &'q Together<'q>, out: &'q mut Effects) -> Self {
        Coming {
            queue,
            together,
            out,
            jobs: Vec::new(),
            unlinked: Unlinked::default(),
            made: None,
            any: false,
        }
    }

    pub fn queue(&self) -> &Queue {
        self.queue
    }

    pub fn note_made(&mut self, id: (u64, u64)) {
        self.made = Some(id);
    }

    /// Adds a job, in the place of an old one with its id.
    pub fn put(&mut self, old: Option<Handle>, id: Id<'_>, payload: &[u8]) {
        self.queue.count_added(old, self.out);
        let mut job = self.together.job(id.bytes, payload);
        self.queue.put_with(old, &mut job, id, &mut self.unlinked);
        self.any = true;
    }

    /// Notes a job that was put, for the effect.
    pub fn record(&mut self, id: Cow<'a, [u8]>, payload: &'a [u8]) {
        if !self.out.is_unencoded() {
            self.jobs.push(Arrival { id, payload });
        }
    }
}

impl Drop for Coming<'_, '_> {
    fn drop(&mut self) {
        if !self.any {
            return;
        }
        if let Some((ms, seq)) = self.made {
            self.out.push(&Effect::Minted { ms, seq, token: 0 });
        }
        let len = |job: &Arrival<'_>| job.id.len() + job.payload.len() + LENGTHS;
        let terms_len = self.together.terms.rest.bytes().len() + 512;
        self.out
            .expect_bytes(self.jobs.iter().map(len).sum::<usize>() + terms_len);
        self.out.push(&Effect::CameTogether {
            group: self.together.group,
            due: self.together.due,
            expires: self.together.expires,
            terms: self.together.terms.borrowed(),
            jobs: std::mem::take(&mut self.jobs),
        });
        self.out.raise(Event::Add);
        self.out.complete();
        if !std::thread::panicking() {
            return self.unlinked.link(&mut self.queue.jobs);
        }
        // What has panicked once may panic again: here that would end the server.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.unlinked.link(&mut self.queue.jobs)
        }));
    }
}

impl Queue {
    pub(super) fn apply_came_together(
        &mut self,
        group: Option<&[u8]>,
        (due, expires): (u64, u64),
        terms: &Terms<'_>,
        jobs: &[Arrival<'_>],
    ) -> Result<(), QueueError> {
        group.map_or(Ok(()), check_group)?;
        check_instant(due)?;
        check_instant(expires)?;
        check_terms(terms)?;
        jobs.iter().try_for_each(|job| check_id(&job.id))?;
        if !self.jobs.has_room_for(jobs.len()) {
            return Err(QueueError::TooManyJobs);
        }
        let together = Together {
            group,
            due,
            expires,
            terms: terms.borrowed(),
        };
        let mut unlinked = Unlinked::default();
        for job in jobs {
            let id = self.jobs.hashed(&job.id);
            let old = self.jobs.find(id);
            let mut job = together.job(&job.id, job.payload);
            self.put_with(old, &mut job, id, &mut unlinked);
        }
        unlinked.link(&mut self.jobs);
        Ok(())
    }
}
