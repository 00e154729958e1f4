//! The rules of DQ.ADD.

mod arguments;

pub use arguments::{Add, Condition};

use super::after::{AfterThat, Moment};
use super::attr::Attrs;
use super::blocked::AddedAfter;
use super::budget::EXPIRE_BUDGET;
use super::clock::{Mint, Now};
use super::effect::{Came, Effect, How};
use super::effects::Effects;
use super::error::QueueError;
use super::job::{Handle, Place, Terms};
use super::recurring::rule::Next;
use super::settings::{check_terms, Settings};
use super::state::flows::{Arriving, Plan};
use super::state::schedule::Standing;
use super::state::store::{Id, NewJob};
use super::when::When;
use super::Queue;
use crate::storage::skiplist::InsertHint;
use std::borrow::Cow;
use std::sync::Arc;

/// How a job that the condition admits is added.
struct Admitted {
    /// Where the existing job with its id is, if there is one.
    place: Option<Place>,
    /// The new job becomes the successor of the existing one, which is reserved.
    follows: bool,
    /// The existing job's rule has the same pattern: its current occurrence stays.
    is_renewed: bool,
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
        let first = add.first(add.id.unwrap_or_default(), now, out)?;
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
        let way = self.prefetch_added(id, Standing { priority, due }, is_grouped);
        self.make_room(add, now, out);
        let old = id.and_then(|id| self.find_unexpired(id, now, out));
        way.iter()
            .for_each(|way| self.jobs().schedule().fetch(way, is_grouped));
        let Some(admitted) = self.admit(add, (id, first), old, now, out)? else {
            return Ok(None);
        };
        let Admitted {
            place,
            follows,
            is_renewed,
        } = admitted;
        let plan = self.plan_of(add, old)?;
        self.check_counts(place, follows)?;
        let replaced = (old, plan.as_ref());
        let name = self.name(add, replaced, (follows, is_renewed), now, mint, out)?;
        let id = id.unwrap_or_else(|| self.jobs().hashed(&name));
        if self.flows().is_some() {
            self.note_moment(Moment::from(now));
        }
        match (old.filter(|_| follows), plan) {
            (None, Some(plan)) => {
                self.add_blocked(id, (add, terms), (due, expires), old, plan, now, out);
            }
            (Some(before), _) => self.add_behind(before, id, (add, terms), (due, expires), out),
            (None, None) if first.is_some() => {
                // Again, as the id may have been generated since, and JITTER depends on it.
                let first = add.first(&name, now, out)?;
                let first = first.filter(|_| !is_renewed);
                self.add_recurring(&name, (add, terms), first, out);
            }
            (None, None) => self.add_new(id, (add, terms), (due, expires), old, way.as_ref(), out),
        }
        Ok(Some(name))
    }

    /// How the job is added; `None` if the condition refuses it because of what exists under its id.
    #[inline(always)]
    fn admit(
        &mut self,
        add: &Add<'_>,
        (id, first): (Option<Id<'_>>, Option<Next>),
        old: Option<Handle>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<Admitted>, QueueError> {
        let place = old.map(|handle| self.jobs().job(handle).place());
        let is_renewed = old.is_some_and(|old| self.is_renewed_by(old, add));
        let recurs = old.is_some_and(|old| self.recurs(old));
        let follows = add.condition == Condition::Next && place == Some(Place::Reserved) && !recurs;
        // A done job with the id does not stop NX, and XX finds it.
        let finds_done = old.is_none() && id.is_some_and(|id| self.finds_done(id, now, out));
        if !follows && self.refuses(add.condition, add.id, (place, finds_done), now) {
            return Ok(None);
        }
        if first.is_some_and(|first| !is_renewed && !add.allows(&first)) {
            return Err(QueueError::UntilIsPast);
        }
        Ok(Some(Admitted {
            place,
            follows,
            is_renewed,
        }))
    }

    /// The job's id, generated if the client gave none. An error if MAXBYTES does not allow the job.
    #[inline(always)]
    fn name<'a>(
        &self,
        add: &Add<'a>,
        replaced: (Option<Handle>, Option<&Plan>),
        how: (bool, bool),
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
            self.check_bytes(len, add.group, replaced, how)?;
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
            None if add.recur.is_some() && old.is_some_and(|old| self.is_awaited(old)) => {
                Err(QueueError::AfterRule)
            }
            None => Ok(None),
        }
    }

    /// An error if the job would exceed MAXLEN, or the number of jobs that a queue can hold. `place` is that of the
    /// existing job, which the new one replaces, or follows as its successor.
    #[inline]
    fn check_counts(&self, place: Option<Place>, follows: bool) -> Result<(), QueueError> {
        let grows = place.is_none_or(|place| place == Place::Dead);
        let limit = self.settings().max_len;
        if grows && limit != 0 && self.jobs().live_len() as u64 >= limit {
            return Err(QueueError::Full);
        }
        if (place.is_none() || follows) && !self.jobs().has_room() {
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
        replaces && recur.is_some_and(|recur| self.has_pattern(old, &recur.rule.pattern))
    }

    /// Adds a job with a rule. Without `first` the existing job's current occurrence stays.
    fn add_recurring(
        &mut self,
        id: &[u8],
        (add, terms): (&Add<'_>, &Terms<'_>),
        first: Option<Next>,
        out: &mut Effects,
    ) {
        let Some(recur) = &add.recur else {
            return;
        };
        let rule = recur.rule.borrowed();
        let came = Came {
            id,
            payload: add.payload,
            terms: terms.borrowed(),
            group: add.group,
            how: match first {
                Some(first) => How::Recurs { rule, first },
                None => How::Renewed { rule },
            },
        };
        self.commit_recurring(came, out);
    }

    fn remembers(&self, id: &[u8], now: Now) -> bool {
        self.remembered_until(id)
            .is_some_and(|until| until > now.ms())
    }

    /// An error if `len` more bytes, less those of what is replaced, exceed MAXBYTES.
    fn check_bytes(
        &self,
        len: u64,
        group: Option<&[u8]>,
        (old, plan): (Option<Handle>, Option<&Plan>),
        (follows, renewed): (bool, bool),
    ) -> Result<(), QueueError> {
        let successor = old.and_then(|old| self.jobs().successor(old));
        let replaced = if follows { successor } else { old };
        let mut freed = replaced.map_or(0, |handle| self.jobs().content_of(handle));
        if let Some(old) = old.filter(|_| renewed) {
            // A renewed job keeps its steps.
            freed -= self.jobs().notes(old).counted();
        }
        let going: Vec<Handle> = match follows {
            true => successor.into_iter().collect(),
            false => old.into_iter().chain(successor).collect(),
        };
        let names = self.group_growth(group, &going);
        let results = self.results_growth(old.filter(|_| !follows), plan);
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

    fn add_behind(
        &mut self,
        before: Handle,
        id: Id<'_>,
        (add, terms): (&Add<'_>, &Terms<'_>),
        instants: (u64, u64),
        out: &mut Effects,
    ) {
        let job = NewJob {
            place: Place::Successor,
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, instants, terms)
        };
        self.commit_followed(before, job, out);
    }

    #[cold]
    #[allow(clippy::too_many_arguments, reason = "as they come")]
    fn add_blocked(
        &mut self,
        id: Id<'_>,
        (add, terms): (&Add<'_>, &Terms<'_>),
        (due, expires): (u64, u64),
        old: Option<Handle>,
        plan: Plan,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(until) = &add.after else {
            return;
        };
        let (due, is_timed) = match add.when {
            When::Delay(ms) => (ms, false),
            When::At(_) => (due, true),
        };
        let added = AddedAfter {
            coming: Arriving {
                group: add.group,
                id,
                payload: add.payload,
                due,
                expires,
                terms,
            },
            old,
            plan,
            after: AfterThat {
                until,
                at: Moment::from(now),
                is_timed,
                dies: false,
            },
        };
        self.add_after(added, now, out);
    }

    fn add_new(
        &mut self,
        id: Id<'_>,
        (add, terms): (&Add<'_>, &Terms<'_>),
        instants: (u64, u64),
        old: Option<Handle>,
        way: Option<&InsertHint<u64>>,
        out: &mut Effects,
    ) {
        let job = NewJob {
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, instants, terms)
        };
        self.commit_added(job, id, old, way, out);
    }

    /// The settings, to be read while the queue changes, if they have a rest. Few have one, and counting one more owner
    /// costs as much as an index lookup.
    #[inline]
    fn rest_of_settings(&self) -> Option<Arc<Settings>> {
        let has_rest = !self.settings().rest.is_empty();
        has_rest.then(|| self.shared_settings())
    }
}

fn rest_of(settings: &Option<Arc<Settings>>) -> &Attrs<'static> {
    settings.as_ref().map_or(&Attrs::NONE, |it| &it.rest)
}
