//! Recording what the rules have decided, and carrying it out: the only way in which they change a queue.

use super::fits::check_change;
use super::jobs::Moving;
use super::moves::Known;
use super::position::Position;
use super::store::{Id, Job, NewJob};
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::effect::{Came, Change, Effect, Forgotten, How, OccurrenceCause, Purge};
use crate::queue::effects::Effects;
use crate::queue::event::Event;
use crate::queue::job::{Failure, Handle};
use crate::queue::recurring::rule::Next;
use crate::queue::stats::{Late, Totals};
use crate::storage::broken::must_fit;

impl Queue {
    /// Counts what happened: in the totals of the queue, and in those over all queues.
    #[inline]
    pub(super) fn count(&mut self, out: &mut Effects, add: impl Fn(&mut Totals)) {
        add(&mut self.totals);
        add(&mut out.totals);
    }

    /// Counts a new job. An old job that it replaces, and that job's successor, are deleted.
    #[inline]
    pub(super) fn count_added(&mut self, old: Option<Handle>, out: &mut Effects) {
        let successor = old.and_then(|old| self.jobs.successor(old));
        let replaced = u64::from(old.is_some()) + u64::from(successor.is_some());
        self.count(out, |totals| {
            totals.added += 1;
            totals.deleted += replaced;
        });
    }

    /// Records an effect that concerns the queue as a whole, and carries it out.
    pub(in crate::queue) fn commit(&mut self, effect: &Effect<'_>, out: &mut Effects) {
        out.push(effect);
        self.apply_decided(effect, out);
    }

    /// As [`Queue::commit`], for ids that leave the dedupe window: no change to clients that WATCH the key.
    pub(in crate::queue) fn commit_forgetting(&mut self, effect: &Effect<'_>, out: &mut Effects) {
        out.push_quietly(effect);
        self.apply_decided(effect, out);
    }

    /// Takes away the first pause of a group that has ended. Very many may end at once, so the group is not looked up by its
    /// name.
    pub(in crate::queue) fn commit_resumed(&mut self, now: Now, out: &mut Effects) {
        let groups = self.parts.groups.as_ref();
        let first = groups.and_then(|it| Some((it, it.first_resumed(now.ms())?)));
        if let Some((groups, number)) = first {
            let name = groups.name(number);
            out.push_quietly(&Effect::Forgot(Forgotten::Pause(name)));
            self.parts.end_pause(&self.jobs, number);
            out.complete();
        }
    }

    fn apply_decided(&mut self, effect: &Effect<'_>, out: &mut Effects) {
        must_fit(self.apply(effect), || {
            format!("{} was decided, but cannot be applied", effect.name())
        });
        out.complete();
    }

    /// Records a new job, and puts it in the place of an old one with its id.
    pub(in crate::queue) fn commit_added(
        &mut self,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        old: Option<Handle>,
        known: Known<'_>,
        out: &mut Effects,
    ) {
        let (due, expires) = (job.due, job.life.expires);
        // Made only if it is read: it would be dropped field by field.
        out.push_made(|| Effect::Came(job.came(How::New { due, expires })));
        self.count_added(old, out);
        self.put(old, job, id, known);
        out.raise(Event::Add);
        out.complete();
    }

    /// As [`Queue::commit_added`], for a new job that concerns no part, but for groups if it has one: see
    /// [`Queue::admits_plain`].
    #[inline(always)]
    pub(in crate::queue) fn commit_plain<const GROUPED: bool>(
        &mut self,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        known: Known<'_>,
        out: &mut Effects,
    ) {
        let (due, expires) = (job.due, 0);
        out.push_made(|| Effect::Came(job.came(How::New { due, expires })));
        self.count(out, |totals| totals.added += 1);
        job.seq = self.parts.next_seq(&mut self.jobs);
        match job.group.filter(|_| GROUPED) {
            None => _ = self.jobs.put::<false>(job, id, None, known.hint),
            Some(group) => {
                let limits = &self.settings.group_limits;
                self.parts
                    .put_grouped(&mut self.jobs, job, (group, limits), id, known);
            }
        }
        out.raise(Event::Add);
        out.complete();
    }

    /// Records a successor, and stores it.
    pub(in crate::queue) fn commit_followed(
        &mut self,
        handle: Handle,
        job: NewJob<'_>,
        out: &mut Effects,
    ) {
        let replaces = self.jobs.successor(handle).is_some();
        let (due, expires) = (job.due, job.life.expires);
        out.push(&Effect::Came(job.came(How::Behind { due, expires })));
        self.count(out, |totals| totals.deleted += u64::from(replaces));
        self.follow(handle, job);
        out.complete();
    }

    /// Records a recurring job: a new one, or one that replaces a job with the same pattern.
    pub(in crate::queue) fn commit_recurring(&mut self, came: Came<'_>, out: &mut Effects) {
        let old = self.jobs.find(self.jobs.hashed(came.id));
        self.count_added(old, out);
        out.raise(Event::Add);
        self.commit(&Effect::Came(came), out);
    }

    /// Records that an occurrence ended, and what follows.
    pub(in crate::queue) fn commit_recurred(
        &mut self,
        handle: Handle,
        (ended, next): (OccurrenceCause, Option<Next>),
        failure: Option<Failure<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        must_fit(
            self.parts.check_recurred(&self.jobs, handle, ended, next),
            || {
                let id = self.jobs.job(handle).id().escape_ascii();
                format!("{ended:?} was decided of an occurrence of '{id}', but cannot be applied")
            },
        );
        let job = self.jobs.job(handle);
        out.push(&Effect::Recurred {
            id: job.id(),
            ended,
            next,
            failure,
        });
        let late = (ended == OccurrenceCause::Popped).then(|| Late::of(now, job.due()));
        self.count(out, |totals| {
            ended.count(totals);
            late.into_iter()
                .for_each(|late| totals.record_delivery(late));
        });
        if late.is_some() {
            self.serving_mut().record_delivery(handle, 0, now);
        }
        ended.events().iter().for_each(|&event| out.raise(event));
        self.recur(handle, ended, next, failure);
        out.complete();
    }

    /// Records a purge or a trim, by which `count` jobs are removed.
    pub(in crate::queue) fn commit_purge(&mut self, purge: Purge, count: usize, out: &mut Effects) {
        let effect = Effect::Purged(purge);
        self.commit(&effect, out);
        self.count_deleted(count, effect.events(), out);
    }

    pub(in crate::queue) fn count_deleted(
        &mut self,
        count: usize,
        events: &[Event],
        out: &mut Effects,
    ) {
        self.count(out, |totals| totals.deleted += count as u64);
        events.iter().for_each(|&event| out.raise(event));
    }

    /// Corrects the totals of a purge by what had `happened` to its jobs before: a job whose TTL had expired was not
    /// deleted.
    pub(in crate::queue) fn recount_purged(&mut self, happened: &Totals, out: &mut Effects) {
        self.count(out, |totals| {
            totals.deleted -= happened.expired;
            totals.add(happened);
        });
    }

    /// Records that a job, or its occurrence, was acked and stays as done.
    pub(in crate::queue) fn commit_kept(&mut self, effect: &Effect<'_>, out: &mut Effects) {
        self.commit(effect, out);
        self.count(out, |totals| totals.acked += 1);
        out.raise(Event::Ack);
    }

    /// Records what was decided about a job, and carries it out.
    #[inline]
    pub(in crate::queue) fn commit_job(
        &mut self,
        handle: Handle,
        change: Change<'_>,
        now: Now,
        out: &mut Effects,
    ) {
        let job = self.jobs.job(handle);
        must_fit_job(job, change);
        let id = job.id();
        out.push_made(|| Effect::Job { id, change });
        let before = self.jobs.position_of(job);
        self.carry_out((handle, before), change, now, out);
        out.complete();
    }

    /// Records a new lease, and gives it to the job. If this returns a [`Moving`], the job keeps its old place in the
    /// order of deadlines until [`Queue::move_leases`]; none of these leases may expire before that.
    pub(in crate::queue) fn commit_touched(
        &mut self,
        handle: Handle,
        (deadline, lease_ms): (u64, u64),
        now: Now,
        out: &mut Effects,
    ) -> Option<Moving> {
        let change = Change::Touched { deadline, lease_ms };
        must_fit_job(self.jobs.job(handle), change);
        let is_to_come = deadline > now.ms();
        let moving = is_to_come
            .then(|| self.jobs.touch(handle, change))
            .flatten();
        if moving.is_none() {
            self.commit_job(handle, change, now, out);
            return None;
        }
        let id = self.jobs.job(handle).id();
        out.push(&Effect::Job { id, change });
        out.complete();
        moving
    }

    pub(in crate::queue) fn move_leases(&mut self, moving: &mut Vec<Moving>) {
        self.jobs.move_leases(moving);
    }

    #[inline]
    fn carry_out(
        &mut self,
        (handle, before): (Handle, Position),
        change: Change<'_>,
        now: Now,
        out: &mut Effects,
    ) {
        let late = (change.is_delivery()).then(|| Late::of(now, before.status.due));
        // Its successor is removed with it.
        let taken_along =
            matches!(change, Change::Removed { .. }) && self.jobs.successor(handle).is_some();
        self.count(out, |totals| {
            change.count(totals);
            totals.deleted += u64::from(taken_along);
            late.into_iter()
                .for_each(|late| totals.record_delivery(late));
        });
        if late.is_some() {
            let token = change.token();
            self.serving_mut().record_delivery(handle, token, now);
        }
        change.events().iter().for_each(|&event| out.raise(event));
        self.change(handle, before, change);
    }
}

#[inline]
fn must_fit_job(job: Job<'_>, change: Change<'_>) {
    must_fit(check_change(job, change), || {
        let (id, place) = (job.id().escape_ascii(), job.place());
        format!("{change:?} was decided of '{id}', which is {place:?}, but cannot be applied")
    });
}
