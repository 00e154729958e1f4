//! The rules of DQ.ADD.

mod arguments;

pub use arguments::{Add, Condition};

use super::after::{AfterThat, Moment};
use super::attr::Attrs;
use super::blocked::AddedAfter;
use super::budget::EXPIRE_BUDGET;
use super::clock::{Mint, Now};
use super::effect::{Effect, How};
use super::effects::Effects;
use super::error::QueueError;
use super::job::{Handle, Place};
use super::recurring::rule::Next;
use super::settings::{check_terms, Settings};
use super::state::flows::{Arriving, Plan};
use super::state::schedule::OrderKey;
use super::state::store::{Id, NewJob};
use super::when::When;
use super::Queue;
use std::borrow::Cow;
use std::sync::Arc;

/// How a job that the condition admits is added. Handles are of the existing job with its id.
enum Way {
    New,
    Replaces(Handle),
    /// It becomes the successor of a reserved job.
    Behind(Handle),
    /// Its rule has the pattern of the existing one, whose current occurrence stays.
    Renews(Handle),
    /// It is after others, perhaps in the place of an existing job.
    After(Option<Handle>, Plan),
}

impl Way {
    /// The job that is gone then.
    #[inline]
    fn replaced(&self) -> Option<Handle> {
        match *self {
            Way::Replaces(old) | Way::Renews(old) => Some(old),
            Way::After(old, _) => old,
            Way::New | Way::Behind(_) => None,
        }
    }
}

impl Queue {
    /// The id of the added job, or `None` if the condition refused it.
    pub fn add<'a>(
        &mut self,
        add: &Add<'a>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
    ) -> Result<Option<Cow<'a, [u8]>>, QueueError> {
        let first = match add.recur {
            Some(_) => add.first(add.id.unwrap_or_default(), now, out)?,
            None => None,
        };
        let (due, expires) = match first {
            Some(first) => (first.due, first.expires),
            None => add.instants(now)?,
        };
        add.check_names()?;
        let shared = self.rest_of_settings();
        let terms = &add.terms(self.settings(), rest_of(&shared));
        check_terms(terms)?;
        let priority = add.priority;
        let id = add.id.map(|id| self.jobs().hashed(id));
        let is_grouped = add.group.is_some();
        let hint = self
            .jobs()
            .prefetch_added(id, OrderKey { priority, due }, is_grouped);
        self.make_room(add, now, out);
        let old = id.and_then(|id| self.find_unexpired(id, now, out));
        hint.iter()
            .for_each(|hint| self.jobs().schedule().fetch(hint, is_grouped));
        let way = match old {
            None => self.admit_new(add, (id, first), now, out)?,
            Some(old) => self.admit_over(old, add, first, now)?,
        };
        let Some(way) = way else {
            return Ok(None);
        };
        self.check_counts(&way, add.group)?;
        let name = self.name(add, &way, now, mint, out)?;
        let id = id.unwrap_or_else(|| self.jobs().hashed(&name));
        if self.flows().is_some() {
            self.note_moment(Moment::from(now));
        }
        let mut job = NewJob {
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, (due, expires), terms)
        };
        match way {
            Way::After(old, plan) => {
                let added = add.after_others(job, id, old, plan, now);
                added
                    .into_iter()
                    .for_each(|it| self.add_after(it, now, out));
            }
            Way::Behind(before) => self.add_behind(before, job, out),
            Way::Renews(_) => self.add_recurring(&job, add, None, out),
            Way::New | Way::Replaces(_) if first.is_some() => {
                // Again, as the id may have been generated since, and JITTER depends on it.
                let first = add.first(&name, now, out)?;
                self.add_recurring(&job, add, first, out);
            }
            Way::New | Way::Replaces(_) => self.commit_added(&mut job, id, old, hint.as_ref(), out),
        }
        Ok(Some(name))
    }

    /// How a job is added whose id no job has; `None` if the condition refuses it.
    #[inline(always)]
    fn admit_new(
        &mut self,
        add: &Add<'_>,
        (id, first): (Option<Id<'_>>, Option<Next>),
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<Way>, QueueError> {
        // A done job with the id does not stop NX, and XX finds it.
        let finds_done = id.is_some_and(|id| self.finds_done(id, now, out));
        if self.refuses(add.condition, add.id, (None, finds_done), now) {
            return Ok(None);
        }
        if first.is_some_and(|first| !add.allows(&first)) {
            return Err(QueueError::UntilIsPast);
        }
        let plan = self.plan_of(add, None)?;
        Ok(Some(plan.map_or(Way::New, |plan| Way::After(None, plan))))
    }

    /// As [`Queue::admit_new`], where `old` has the id.
    fn admit_over(
        &mut self,
        old: Handle,
        add: &Add<'_>,
        first: Option<Next>,
        now: Now,
    ) -> Result<Option<Way>, QueueError> {
        let place = self.jobs().job(old).place();
        let is_renewed = self.is_renewed_by(old, add);
        let recurs = self.jobs().recurs(old);
        let follows = add.condition == Condition::Next && place == Place::Reserved && !recurs;
        if !follows && self.refuses(add.condition, add.id, (Some(place), false), now) {
            return Ok(None);
        }
        if first.is_some_and(|first| !is_renewed && !add.allows(&first)) {
            return Err(QueueError::UntilIsPast);
        }
        Ok(Some(match self.plan_of(add, Some(old))? {
            _ if follows => Way::Behind(old),
            Some(plan) => Way::After(Some(old), plan),
            None if is_renewed => Way::Renews(old),
            None => Way::Replaces(old),
        }))
    }

    /// The job's id, generated if the client gave none. An error if MAXBYTES does not allow the job.
    #[inline(always)]
    fn name<'a>(
        &self,
        add: &Add<'a>,
        way: &Way,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
    ) -> Result<Cow<'a, [u8]>, QueueError> {
        let mut drawn = *mint;
        let name = match add.id {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(self.fresh_id(now, &mut drawn)),
        };
        if self.settings().max_bytes != 0 {
            let len = (name.len() + add.payload.len()) as u64;
            self.check_bytes(len, add.group, way)?;
        }
        if add.id.is_none() {
            *mint = drawn;
            let (ms, seq) = mint.id();
            out.push(&Effect::Minted { ms, seq, token: 0 });
        }
        Ok(name)
    }

    /// Carries out overdue expirations first: they may make room under a limit, or end what AFTER names.
    fn make_room(&mut self, add: &Add<'_>, now: Now, out: &mut Effects) {
        if self.settings().max_len != 0 {
            self.expire_overdue(now, EXPIRE_BUDGET, out);
            let is_full = |it: &Self| it.jobs().live_len() as u64 >= it.settings().max_len;
            self.expire_for_room(is_full, now, out);
        }
        if self.settings().max_bytes != 0 {
            self.expire_overdue(now, EXPIRE_BUDGET, out);
            let len = (add.id.map_or(0, <[u8]>::len) + add.payload.len()) as u64;
            let len_with = |it: &Self| len.saturating_add_signed(it.group_growth(add.group, &[]));
            let is_full = |it: &Self| it.bytes() + len_with(it) > it.settings().max_bytes;
            self.expire_for_room(is_full, now, out);
        }
        self.expire_for_turns(now, out);
        if self.room_in(add.group) == Some(0) {
            self.expire_for_room(|it| it.room_in(add.group) == Some(0), now, out);
        }
        if add.after.is_some() {
            self.expire_some(EXPIRE_BUDGET, now, out);
        }
    }

    /// What the job is to wait for. A recurring job cannot replace a job that others are after.
    #[inline]
    fn plan_of(&self, add: &Add<'_>, old: Option<Handle>) -> Result<Option<Plan>, QueueError> {
        match &add.after {
            Some(until) => {
                let id = add.id.unwrap_or_default();
                Ok(Some(self.plan_added(id, old, add.group, until)?))
            }
            None if add.recur.is_some()
                && old.is_some_and(|old| self.flows().is_some_and(|it| it.is_awaited(old))) =>
            {
                Err(QueueError::AfterRule)
            }
            None => Ok(None),
        }
    }

    /// An error if the job would exceed MAXLEN, or that of its group, or the number of jobs that a queue can hold.
    #[inline]
    fn check_counts(&self, way: &Way, group: Option<&[u8]>) -> Result<(), QueueError> {
        let replaced = way.replaced();
        let is_one_more = replaced.is_none() && !matches!(way, Way::Behind(_));
        let is_dead = |old| self.jobs().job(old).place() == Place::Dead;
        let limit = self.settings().max_len;
        if limit != 0
            && (is_one_more || replaced.is_some_and(is_dead))
            && self.jobs().live_len() as u64 >= limit
        {
            return Err(QueueError::Full);
        }
        if group.is_some() && self.room_in(group) == Some(0) {
            let is_of_it = |old| !is_dead(old) && self.group_of(old) == group;
            if is_one_more || replaced.is_some_and(|old| !is_of_it(old)) {
                return Err(QueueError::GroupFull);
            }
        }
        if replaced.is_none() && !self.jobs().has_room() {
            return Err(QueueError::TooManyJobs);
        }
        Ok(())
    }

    /// Whether the condition refuses a job, given where the existing job with its id is. Not asked about a successor.
    #[inline]
    pub(super) fn refuses(
        &self,
        condition: Condition,
        id: Option<&[u8]>,
        (place, finds_done): (Option<Place>, bool),
        now: Now,
    ) -> bool {
        match condition {
            Condition::New | Condition::Next => {
                place.is_some_and(|place| place != Place::Dead)
                    || id.is_some_and(|id| self.remembers(id, now))
            }
            Condition::Existing => place.is_none() && !finds_done,
            Condition::Replace => false,
        }
    }

    /// Whether the job replaces one with the same pattern, and names no first instant: then the current occurrence
    /// stays.
    fn is_renewed_by(&self, old: Handle, add: &Add<'_>) -> bool {
        let replaces = matches!(add.condition, Condition::Existing | Condition::Replace);
        let recur = add.recur.as_ref().filter(|recur| !recur.is_timed);
        replaces && recur.is_some_and(|recur| self.jobs().has_pattern(old, &recur.rule.pattern))
    }

    /// Adds a job with a rule. Without `first` the existing job's current occurrence stays.
    fn add_recurring(
        &mut self,
        job: &NewJob<'_>,
        add: &Add<'_>,
        first: Option<Next>,
        out: &mut Effects,
    ) {
        let Some(recur) = &add.recur else {
            return;
        };
        let rule = recur.rule.borrowed();
        let how = match first {
            Some(first) => How::Recurs { rule, first },
            None => How::Renewed { rule },
        };
        self.commit_recurring(job.came(how), out);
    }

    fn remembers(&self, id: &[u8], now: Now) -> bool {
        self.remembered_until(id)
            .is_some_and(|until| until > now.ms())
    }

    /// An error if `len` more bytes, less those of what is replaced, exceed MAXBYTES.
    fn check_bytes(&self, len: u64, group: Option<&[u8]>, way: &Way) -> Result<(), QueueError> {
        let replaced = way.replaced();
        let old = match *way {
            Way::Behind(before) => Some(before),
            _ => replaced,
        };
        let successor = old.and_then(|old| self.jobs().successor(old));
        let freed = replaced.or(successor);
        let mut freed = freed.map_or(0, |handle| self.jobs().content_of(handle));
        if let Way::Renews(old) = *way {
            // A renewed job keeps its steps.
            freed -= self.jobs().notes(old).counted();
        }
        let going: Vec<Handle> = replaced.into_iter().chain(successor).collect();
        let names = self.group_growth(group, &going);
        let plan = match way {
            Way::After(_, plan) => Some(plan),
            _ => None,
        };
        let results = self.results_growth(replaced, plan);
        let grown = (len as i64 - freed as i64).saturating_add(names + results);
        let after = self.bytes().saturating_add_signed(grown);
        if grown > 0 && after > self.settings().max_bytes {
            return Err(QueueError::FullOfBytes);
        }
        Ok(())
    }

    /// A new id that no job of the queue has, and that is not in the dedupe window.
    pub(super) fn fresh_id(&self, now: Now, mint: &mut Mint) -> Vec<u8> {
        loop {
            let id = mint.next_id(now);
            let hashed = self.jobs().hashed(&id);
            let is_held = self.jobs().find(hashed).is_some() || self.find_done(hashed).is_some();
            if !is_held && self.remembered_until(&id).is_none() {
                return id;
            }
        }
    }

    fn add_behind(&mut self, before: Handle, job: NewJob<'_>, out: &mut Effects) {
        let place = Place::Successor;
        self.commit_followed(before, NewJob { place, ..job }, out);
    }

    /// The settings, to be read while the queue changes, if they have a rest. Few have one, and counting one more owner
    /// costs as much as an index lookup.
    #[inline]
    fn rest_of_settings(&self) -> Option<Arc<Settings>> {
        let has_rest = !self.settings().rest.is_empty();
        has_rest.then(|| self.shared_settings())
    }
}

impl<'a> Add<'a> {
    /// The job as one that is after others. `None` without AFTER.
    #[cold]
    fn after_others<'j>(
        &'j self,
        job: NewJob<'j>,
        id: Id<'j>,
        old: Option<Handle>,
        plan: Plan,
        now: Now,
    ) -> Option<AddedAfter<'j>> {
        let until = self.after.as_ref()?;
        let (due, is_timed) = match self.when {
            When::Delay(ms) => (ms, false),
            When::At(_) => (job.due, true),
        };
        Some(AddedAfter {
            coming: Arriving {
                group: job.group,
                id,
                payload: job.payload,
                due,
                expires: job.life.expires,
                terms: job.terms,
            },
            old,
            plan,
            after: AfterThat {
                until,
                at: Moment::from(now),
                is_timed,
                dies: false,
            },
        })
    }
}

fn rest_of(settings: &Option<Arc<Settings>>) -> &Attrs<'static> {
    settings.as_ref().map_or(&Attrs::NONE, |it| &it.rest)
}
