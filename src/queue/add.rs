//! The rules of DQ.ADD.

use super::after::{AfterThat, For, Moment};
use super::blocked::AddedAfter;
use super::budget::EXPIRE_BUDGET;
use super::clock::{Mint, Now};
use super::effect::{Coming, Effect};
use super::effects::Effects;
use super::error::QueueError;
use super::job::{Handle, Place, Terms, GROUP_MAX, ID_MAX};
use super::note::Note;
use super::recurring::rule::Next;
use super::settings::{check_terms, Settings, TTR_DEFAULT_MS};
use super::state::flows::{Arriving, Plan};
use super::state::schedule::Standing;
use super::state::store::{Id, NewJob};
use super::when::{Recur, When};
use super::Queue;
use crate::storage::skiplist::InsertHint;
use std::borrow::Cow;
use std::sync::Arc;

/// Whether a job may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Only where no live job has the id, and it is not remembered.
    #[default]
    New,
    /// Only where a job of that id is there, in any state.
    Existing,
    /// In any case.
    Replace,
    /// As New; but behind a reserved job of that id, to take its place.
    Next,
}

/// The arguments of DQ.ADD. What is `None` comes from the queue's settings.
#[allow(missing_docs, reason = "named as in the commands")]
#[derive(Clone, Debug)]
pub struct Add<'a> {
    /// `None`: made from the clock.
    pub id: Option<&'a [u8]>,
    pub payload: &'a [u8],
    pub condition: Condition,
    pub when: When,
    pub priority: i32,
    pub ttr_ms: Option<u64>,
    /// For a job that names no TTR in a queue that names none.
    pub server_ttr_ms: u64,
    pub max_attempts: Option<u32>,
    pub backoff_ms: Option<&'a [u64]>,
    pub ttl_ms: Option<u64>,
    /// It comes again.
    pub recur: Option<Recur<'a>>,
    /// Whose it is.
    pub group: Option<&'a [u8]>,
    /// How long it stays once it is done.
    pub keep_ms: Option<u64>,
    /// What a delivery of it counts in RATE and GROUPRATE.
    pub cost: u32,
    /// What it waits for.
    pub after: Option<For<'a>>,
}

impl<'a> Add<'a> {
    /// With what a job has that names nothing.
    pub fn new(id: Option<&'a [u8]>, payload: &'a [u8]) -> Self {
        Add {
            id,
            payload,
            condition: Condition::New,
            when: When::Delay(0),
            priority: 0,
            ttr_ms: None,
            server_ttr_ms: TTR_DEFAULT_MS,
            max_attempts: None,
            backoff_ms: None,
            ttl_ms: None,
            recur: None,
            group: None,
            keep_ms: None,
            cost: 1,
            after: None,
        }
    }

    pub(super) fn check_names(&self) -> Result<(), QueueError> {
        if self.id.is_some_and(|id| !(1..=ID_MAX).contains(&id.len())) {
            return Err(QueueError::IdLength);
        }
        if (self.group).is_some_and(|name| !(1..=GROUP_MAX).contains(&name.len())) {
            return Err(QueueError::GroupLength);
        }
        Ok(())
    }
}

/// How a job comes that the condition lets in.
struct Admitted {
    /// Where the job of its id is.
    place: Option<Place>,
    /// Behind that one, which is reserved.
    follows: bool,
    /// That one keeps the rule that it has.
    is_renewed: bool,
}

impl Queue {
    /// The id of the added job, or `None` where the condition refused it.
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
        check_terms(&add.terms(self.settings(), &self.settings().backoff_ms))?;
        let priority = add.priority;
        let id = add.id.map(|id| self.jobs().hashed(id));
        let is_grouped = add.group.is_some();
        let way = self.prefetch_added(id, Standing { priority, due }, is_grouped);
        self.make_room(add, now, out);
        let old = id.and_then(|id| self.find_settled(id, now, out));
        way.iter()
            .for_each(|way| self.schedule().fetch(way, is_grouped));
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
        let name = self.name(add, old, (follows, is_renewed), now, mint, out)?;
        let id = id.unwrap_or_else(|| self.jobs().hashed(&name));
        if self.has_flows() {
            self.note_moment(Moment::from(now));
        }
        match (old.filter(|_| follows), plan) {
            (None, Some(plan)) => {
                self.add_blocked(id, add, (due, expires), old, plan, now, out);
            }
            (Some(before), _) => self.add_behind(before, id, add, (due, expires), out),
            (None, None) if first.is_some() => {
                // Of an id that was made just now.
                let first = add.first(&name, now, out)?;
                self.add_recurring(&name, add, first.filter(|_| !is_renewed), out);
            }
            (None, None) => self.add_new(id, add, (due, expires), old, way.as_ref(), out),
        }
        if add.keep_ms.is_some() || add.cost != 1 {
            self.note_added(&name, follows, add, out);
        }
        Ok(Some(name))
    }

    /// Whether the job may come, and how: `None` where the condition refuses it, for what is there under its id.
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
        // One that is done hinders nothing, and XX finds it.
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

    /// Its id, made where it has none, if MAXBYTES allows the job.
    #[inline(always)]
    fn name<'a>(
        &self,
        add: &Add<'a>,
        old: Option<Handle>,
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
            self.check_bytes(len, add.group, old, how)?;
        }
        if add.id.is_none() {
            *mint = drawn;
            let (ms, seq) = mint.id();
            out.push(&Effect::Minted { ms, seq, token: 0 });
        }
        Ok(name)
    }

    /// What is over leaves where a limit would hold the new job back, or what it is after may be over.
    fn make_room(&mut self, add: &Add<'_>, now: Now, out: &mut Effects) {
        if self.settings().max_len != 0 {
            self.expire_overdue(now, EXPIRE_BUDGET, out);
            let is_full = |it: &Self| it.live_len() as u64 >= it.settings().max_len;
            self.settle_for_room(is_full, now, out);
        }
        if self.settings().max_bytes != 0 {
            self.expire_overdue(now, EXPIRE_BUDGET, out);
            let len = (add.id.map_or(0, <[u8]>::len) + add.payload.len()) as u64;
            let len_with = |it: &Self| len.saturating_add_signed(it.group_growth(add.group, &[]));
            let is_full = |it: &Self| it.bytes() + len_with(it) > it.settings().max_bytes;
            self.settle_for_room(is_full, now, out);
        }
        self.settle_for_turns(now, out);
        if add.after.is_some() {
            self.settle_some(EXPIRE_BUDGET, now, out);
        }
    }

    /// What the job is to wait for; a rule cannot take the place of one that others wait for.
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

    /// Refuses one job more than there may be, in the place of the old one or behind it.
    #[inline]
    fn check_counts(&self, place: Option<Place>, follows: bool) -> Result<(), QueueError> {
        let grows = place.is_none_or(|place| place == Place::Dead);
        let limit = self.settings().max_len;
        if grows && limit != 0 && self.live_len() as u64 >= limit {
            return Err(QueueError::Full);
        }
        if (place.is_none() || follows) && !self.jobs().has_room() {
            return Err(QueueError::TooManyJobs);
        }
        Ok(())
    }

    /// By its condition, for where the job of that id is; one that follows it is not asked about.
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

    /// Whether an existing job keeps the rule that it has.
    fn is_renewed_by(&self, old: Handle, add: &Add<'_>) -> bool {
        let replaces = matches!(add.condition, Condition::Existing | Condition::Replace);
        let recur = add.recur.as_ref().filter(|recur| !recur.is_timed);
        replaces && recur.is_some_and(|recur| self.has_pattern(old, &recur.rule.pattern))
    }

    /// The rule's first occurrence; if that is the existing one, it stays.
    fn add_recurring(&mut self, id: &[u8], add: &Add<'_>, first: Option<Next>, out: &mut Effects) {
        let Some(recur) = &add.recur else {
            return;
        };
        let settings = self.shared_settings();
        let (terms, rule) = (
            add.terms(&settings, &settings.backoff_ms),
            recur.rule.borrowed(),
        );
        let payload = add.payload;
        let effect = match (first, add.group) {
            (first, Some(group)) => Effect::Grouped {
                group,
                id,
                payload,
                terms,
                coming: match first {
                    Some(first) => Coming::Recurs { rule, first },
                    None => Coming::Renewed { rule },
                },
            },
            (Some(first), None) => Effect::Recurs {
                id,
                payload,
                terms,
                rule,
                first,
            },
            (None, None) => Effect::Renewed {
                id,
                payload,
                terms,
                rule,
            },
        };
        self.commit_recurring(&effect, out);
    }

    fn remembers(&self, id: &[u8], now: Now) -> bool {
        self.remembered_until(id)
            .is_some_and(|until| until > now.ms())
    }

    /// Whether so many bytes more are within MAXBYTES, without those that are replaced.
    fn check_bytes(
        &self,
        len: u64,
        group: Option<&[u8]>,
        old: Option<Handle>,
        (follows, renewed): (bool, bool),
    ) -> Result<(), QueueError> {
        let successor = old.and_then(|old| self.jobs().successor(old));
        let replaced = if follows { successor } else { old };
        let mut freed = replaced.map_or(0, |handle| self.jobs().content_of(handle));
        if let Some(old) = old.filter(|_| renewed) {
            // Its steps stay.
            freed -= self.jobs().notes(old).counted();
        }
        let going: Vec<Handle> = match follows {
            true => successor.into_iter().collect(),
            false => old.into_iter().chain(successor).collect(),
        };
        let names = self.group_growth(group, &going);
        let grown = (len as i64 - freed as i64).saturating_add(names);
        let after = self.bytes().saturating_add_signed(grown);
        if grown > 0 && after > self.settings().max_bytes {
            return Err(QueueError::FullOfBytes);
        }
        Ok(())
    }

    /// An id that the queue neither holds nor remembers.
    pub(super) fn fresh_id(&self, now: Now, mint: &mut Mint) -> Vec<u8> {
        loop {
            let id = mint.next_id(now);
            let hashed = self.jobs().hashed(&id);
            let is_held = self.find(hashed).is_some() || self.find_done(hashed).is_some();
            if !is_held && self.remembered_until(&id).is_none() {
                return id;
            }
        }
    }

    /// Notes what there is to note of the job that has just come, or of the successor.
    #[cold]
    #[inline(never)]
    fn note_added(&mut self, id: &[u8], follows: bool, add: &Add<'_>, out: &mut Effects) {
        let mut handle = self.find(self.jobs().hashed(id));
        if follows {
            handle = handle.and_then(|handle| self.jobs().successor(handle));
        }
        for note in add.notes() {
            if let Some(handle) = handle {
                self.commit_noted(handle, note, out);
            }
        }
    }

    fn add_behind(
        &mut self,
        before: Handle,
        id: Id<'_>,
        add: &Add<'_>,
        instants: (u64, u64),
        out: &mut Effects,
    ) {
        let laddered = self.laddered();
        let terms = add.terms(self.settings(), ladder_of(&laddered));
        let job = NewJob {
            place: Place::Successor,
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, instants, &terms)
        };
        self.commit_followed(before, job, out);
    }

    #[cold]
    #[allow(clippy::too_many_arguments, reason = "as they come")]
    fn add_blocked(
        &mut self,
        id: Id<'_>,
        add: &Add<'_>,
        (due, expires): (u64, u64),
        old: Option<Handle>,
        plan: Plan,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(until) = &add.after else {
            return;
        };
        let laddered = self.laddered();
        let terms = add.terms(self.settings(), ladder_of(&laddered));
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
                terms: &terms,
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
        add: &Add<'_>,
        instants: (u64, u64),
        old: Option<Handle>,
        way: Option<&InsertHint<u64>>,
        out: &mut Effects,
    ) {
        let laddered = self.laddered();
        let terms = add.terms(self.settings(), ladder_of(&laddered));
        let job = NewJob {
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, instants, &terms)
        };
        self.commit_added(job, id, old, way, out);
    }

    /// The settings, kept while the queue changes, where they have a ladder: few have one, and counting owners costs
    /// as much as a look into the index.
    #[inline]
    fn laddered(&self) -> Option<Arc<Settings>> {
        let has_ladder = !self.settings().backoff_ms.is_empty();
        has_ladder.then(|| self.shared_settings())
    }
}

fn ladder_of(settings: &Option<Arc<Settings>>) -> &[u64] {
    settings.as_ref().map_or(&[], |it| &it.backoff_ms)
}

impl Add<'_> {
    /// Its own terms, and the queue's where it has none; with the queue's ladder.
    pub(super) fn terms<'s>(&'s self, settings: &Settings, ladder: &'s [u64]) -> Terms<'s> {
        let defaults = settings.terms(self.server_ttr_ms);
        Terms {
            priority: self.priority,
            ttr_ms: self.ttr_ms.unwrap_or(defaults.ttr_ms),
            max_attempts: self.max_attempts.unwrap_or(defaults.max_attempts),
            backoff_ms: Cow::Borrowed(self.backoff_ms.unwrap_or(ladder)),
        }
    }

    /// What is noted of the job when it comes.
    #[inline]
    pub(super) fn notes(&self) -> impl Iterator<Item = Note<'static>> {
        let keep = self.keep_ms.map(|ms| Note::Keep { ms });
        let units = self.cost;
        let cost = (units != 1).then_some(Note::Cost { units });
        keep.into_iter().chain(cost)
    }

    /// The first occurrence of a job with a rule.
    fn first(&self, id: &[u8], now: Now, out: &Effects) -> Result<Option<Next>, QueueError> {
        let of = |recur: &Recur<'_>| recur.first(id, self.when, now, out.zone_of());
        self.recur.as_ref().map(of).transpose()
    }

    /// Whether UNTIL allows it.
    fn allows(&self, first: &Next) -> bool {
        let recur = self.recur.as_ref();
        recur.is_none_or(|recur| recur.allows(first))
    }

    /// Due and expiry (0: never).
    pub(super) fn instants(&self, now: Now) -> Result<(u64, u64), QueueError> {
        let due = self.when.instant(now)?;
        let expires = match self.ttl_ms {
            Some(ms) => now.after(ms).ok_or(QueueError::OutOfRange)?,
            None => 0,
        };
        Ok((due, expires))
    }
}
