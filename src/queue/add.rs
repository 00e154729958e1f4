//! The rules of DQ.ADD.

mod admitted;
mod arguments;

pub use arguments::{Add, Condition, Recur};

use super::after::{AfterThat, Moment};
use super::attr::Attrs;
use super::budget::EXPIRE_BUDGET;
use super::clock::{Mint, Now, When};
use super::effect::{Effect, How};
use super::effects::Effects;
use super::error::QueueError;
use super::recurring::rule::Next;
use super::settings::{check_terms, Settings};
use super::state::after::Arriving;
use super::state::groups::{Groups, Sought};
use super::state::moves::Known;
use super::state::schedule::OrderKey;
use super::state::store::{Id, NewJob};
use super::Queue;
use admitted::Admitted;
use std::borrow::Cow;
use std::sync::Arc;

impl Queue {
    /// The id of the added job, or `None` if the condition refused it.
    #[inline]
    pub fn add<'a>(
        &mut self,
        add: &Add<'a>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
    ) -> Result<Option<Cow<'a, [u8]>>, QueueError> {
        if add.is_plain() {
            let added = match add.group {
                None if self.admits_plain(false) => self.add_plain::<false>(add, now, out)?,
                Some(_) if self.admits_plain(true) => self.add_grouped(add, now, out)?,
                _ => None,
            };
            if let Some(id) = added {
                return Ok(Some(Cow::Borrowed(id)));
            }
        }
        self.add_decided(add, now, mint, out)
    }

    #[inline(never)]
    fn add_grouped<'a>(
        &mut self,
        add: &Add<'a>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<&'a [u8]>, QueueError> {
        match self.has_past(now) {
            true => Ok(None),
            false => self.add_plain::<true>(add, now, out),
        }
    }

    /// Adds a job about which [`Queue::add_decided`] would have nothing to decide. `None`, and nothing happens, if the id
    /// is not new, or the job's group is full.
    #[inline(always)]
    fn add_plain<'a, const GROUPED: bool>(
        &mut self,
        add: &Add<'a>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<&'a [u8]>, QueueError> {
        let group = add.group.filter(|_| GROUPED);
        let group = group.map(|name| self.jobs().hashed(name));
        let groups = self.parts().groups().filter(|_| GROUPED);
        of_group(groups, group, Groups::prefetch_shard);
        let (due, expires) = add.instants(now)?;
        add.check_names()?;
        let terms = &add.terms(self.settings(), &Attrs::NONE);
        check_terms(terms)?;
        let priority = add.priority;
        let name = add.id.unwrap_or_default();
        let id = self.jobs().hashed(name);
        let jobs = self.jobs();
        let hint = jobs.prefetch_added(Some(id), OrderKey { priority, due }, GROUPED);
        of_group(groups, group, Groups::prefetch_named);
        if jobs.find(id).is_some() || !jobs.has_room() {
            return Ok(None);
        }
        let likely = of_group(groups, group, Groups::seek_likely);
        let fetch = |hint| jobs.schedule().fetch(hint, GROUPED);
        hint.iter().for_each(fetch);
        let mut job = NewJob::scheduled(name, add.payload, (due, expires), terms);
        let hint = hint.as_ref();
        if !GROUPED {
            self.commit_plain::<GROUPED>(&mut job, id, Known { hint, group: None }, out);
            return Ok(Some(name));
        }
        job.group = add.group;
        let group = groups.zip(likely).map(|(it, likely)| it.confirmed(likely));
        if is_full(groups, group) {
            return Ok(None);
        }
        self.commit_plain::<GROUPED>(&mut job, id, Known { hint, group }, out);
        Ok(Some(name))
    }

    /// As [`Queue::add`], whatever is said of the job.
    #[inline(never)]
    fn add_decided<'a>(
        &mut self,
        add: &Add<'a>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
    ) -> Result<Option<Cow<'a, [u8]>>, QueueError> {
        let group = add.group.map(|name| self.jobs().hashed(name));
        of_group(self.parts().groups(), group, Groups::prefetch_shard);
        let first = match add.recur {
            Some(_) => add.first(add.id.unwrap_or_default(), now, out)?,
            None => None,
        };
        let said = first.map(|first| Ok((first.due, first.expires)));
        let (due, expires) = said.unwrap_or_else(|| add.instants(now))?;
        add.check_names()?;
        let shared = with_rest(self.settings());
        let terms = &add.terms(self.settings(), rest_of(&shared));
        check_terms(terms)?;
        let priority = add.priority;
        let id = add.id.map(|id| self.jobs().hashed(id));
        let is_grouped = add.group.is_some();
        let hint = self
            .jobs()
            .prefetch_added(id, OrderKey { priority, due }, is_grouped);
        of_group(self.parts().groups(), group, Groups::prefetch_named);
        self.make_room(add, now, out);
        let old = id.and_then(|id| self.find_unexpired(id, now, out));
        hint.iter()
            .for_each(|hint| self.jobs().schedule().fetch(hint, is_grouped));
        let admitted = match old {
            None => self.admit_new(add, (id, first), now, out)?,
            Some(old) => self.admit_over(old, add, first, now)?,
        };
        let Some(admitted) = admitted else {
            return Ok(None);
        };
        let group = of_group(self.parts().groups(), group, Groups::seek);
        admitted.check_counts(group, (self.jobs(), self.parts()), self.settings())?;
        let name = self.name(add, &admitted, now, mint, out)?;
        let id = id.unwrap_or_else(|| self.jobs().hashed(&name));
        self.note_moment(Moment::from(now));
        let mut job = NewJob {
            group: add.group,
            ..NewJob::scheduled(id.bytes, add.payload, (due, expires), terms)
        };
        match admitted {
            Admitted::After(old, plan) => {
                if let Some((coming, after)) = add.after_others(job, id, plan.dies(), now) {
                    self.commit_added_after(coming, old, (plan, &after), now, out);
                    out.hold_back();
                }
            }
            Admitted::Behind(before) => self.commit_followed(before, job, out),
            Admitted::Renews(_) => {
                self.commit_recurring(job.came(add.recurs_from(None, &job)), out);
            }
            Admitted::New | Admitted::Replaces(_) if first.is_some() => {
                // Again, as the id may have been generated since, and JITTER depends on it.
                let first = add.first(&name, now, out)?;
                self.commit_recurring(job.came(add.recurs_from(first, &job)), out);
            }
            Admitted::New | Admitted::Replaces(_) => {
                let hint = hint.as_ref();
                self.commit_added(&mut job, id, old, Known { hint, group }, out)
            }
        }
        Ok(Some(name))
    }

    /// The job's id, generated if the client gave none. An error if MAXBYTES does not allow the job.
    #[inline(always)]
    fn name<'a>(
        &self,
        add: &Add<'a>,
        admitted: &Admitted,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
    ) -> Result<Cow<'a, [u8]>, QueueError> {
        let mut drawn = *mint;
        let name = match add.id {
            Some(id) => Cow::Borrowed(id),
            None => Cow::Owned(fresh_id(self, now, &mut drawn)),
        };
        if self.settings().max_bytes != 0 {
            let len = (name.len() + add.payload.len()) as u64;
            let grown = admitted.growth(len, add.group, (self.jobs(), self.parts()));
            let after = self.bytes().saturating_add_signed(grown);
            if grown > 0 && after > self.settings().max_bytes {
                return Err(QueueError::FullOfBytes);
            }
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
            let len_with = |it: &Self| {
                len.saturating_add_signed(it.parts().group_growth(it.jobs(), add.group, &[]))
            };
            let is_full = |it: &Self| it.bytes() + len_with(it) > it.settings().max_bytes;
            self.expire_for_room(is_full, now, out);
        }
        if self.parts().groups().is_some() && self.has_past(now) {
            self.expire_for_turns(now, out);
            self.expire_for_room(
                |it| it.parts().room_in(it.jobs(), add.group) == Some(0),
                now,
                out,
            );
        }
        if add.after.is_some() {
            self.expire_some(EXPIRE_BUDGET, now, out);
        }
    }
}

impl<'a> Add<'a> {
    /// How a job with a rule comes. Without `first` the existing job's current occurrence stays.
    fn recurs_from(&self, first: Option<Next>, job: &NewJob<'_>) -> How<'_> {
        let rule = self.recur.as_ref().map(|recur| recur.rule.borrowed());
        let (due, expires) = (job.due, job.life.expires);
        match (rule, first) {
            (Some(rule), Some(first)) => How::Recurs { rule, first },
            (Some(rule), None) => How::Renewed { rule },
            (None, _) => How::New { due, expires },
        }
    }

    /// The job as one that is after others, and what it is after. `None` without AFTER.
    #[cold]
    fn after_others<'j>(
        &'j self,
        job: NewJob<'j>,
        id: Id<'j>,
        dies: bool,
        now: Now,
    ) -> Option<(Arriving<'j>, AfterThat<'j>)> {
        let until = self.after.as_ref()?;
        let (due, is_timed) = match self.when {
            When::Delay(ms) => (ms, false),
            When::At(_) => (job.due, true),
        };
        let coming = Arriving {
            group: job.group,
            id,
            payload: job.payload,
            due,
            expires: job.life.expires,
            terms: job.terms,
        };
        let after = AfterThat {
            until,
            at: Moment::from(now),
            is_timed,
            dies,
        };
        Some((coming, after))
    }
}

/// A new id that no job of the queue has, and that is not in the dedupe window.
pub(super) fn fresh_id(queue: &Queue, now: Now, mint: &mut Mint) -> Vec<u8> {
    loop {
        let id = mint.next_id(now);
        let hashed = queue.jobs().hashed(&id);
        let is_held =
            queue.jobs().find(hashed).is_some() || queue.parts().done().find(hashed).is_some();
        if !is_held && queue.parts().remembered_until(queue.jobs(), &id).is_none() {
            return id;
        }
    }
}

/// The settings, to be read while the queue changes, if they have a rest. Few have one, and counting one more owner
/// costs as much as an index lookup.
#[inline]
fn with_rest(settings: &Arc<Settings>) -> Option<Arc<Settings>> {
    (!settings.rest.is_empty()).then(|| Arc::clone(settings))
}

fn rest_of(settings: &Option<Arc<Settings>>) -> &Attrs<'static> {
    settings.as_ref().map_or(&Attrs::NONE, |it| &it.rest)
}

/// Asks the groups, if there are any, about the group of this name.
#[inline(always)]
fn of_group<'a, T>(
    groups: Option<&Groups>,
    name: Option<Id<'a>>,
    ask: impl FnOnce(&Groups, Id<'a>) -> T,
) -> Option<T> {
    groups.zip(name).map(|(groups, name)| ask(groups, name))
}

/// Whether the MAXLEN of a group lets no other job in.
#[inline]
fn is_full(groups: Option<&Groups>, group: Option<Sought<'_>>) -> bool {
    group.and_then(|it| groups?.room_in(it.number?)) == Some(0)
}
