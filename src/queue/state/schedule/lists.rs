//! Jobs in two orders: by due time, and as they are served once they are due.
//!
//! Jobs of priority 0, which is nearly always all of them, are served in the order of their due times: one list is
//! both. The others stand in two, by due time and by (priority, due time). The second keeps the least due time below
//! each of its links, so that its first due job is found without a look at jobs that are not due. Thus nothing moves
//! when jobs become due, however many at once.

use crate::queue::job::Handle;
use crate::storage::relocate::Mover;
use crate::storage::skiplist::{InsertHint, ReadyKey, Skiplist};
use std::iter::Peekable;
use std::ops::RangeInclusive;

/// The jobs without a group, or those with one, or those of one group.
#[derive(Clone, Default)]
pub struct Lists {
    plain: Skiplist<u64>,
    ranked: Option<Box<Ranked>>,
}

#[derive(Clone, Default)]
struct Ranked {
    by_due: Skiplist<u64>,
    by_rank: Skiplist<ReadyKey>,
}

/// How many entries of each list were detached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    plain: usize,
    /// By due time, and by rank.
    ranked: [usize; 2],
}

impl std::ops::AddAssign for Detached {
    fn add_assign(&mut self, other: Self) {
        self.plain += other.plain;
        self.ranked[0] += other.ranked[0];
        self.ranked[1] += other.ranked[1];
    }
}

impl Ranked {
    /// Detaches one range of the list by due time, and one for each priority of the other list: little work if there
    /// are few priorities.
    fn detach(&mut self, dues: RangeInclusive<u64>) -> usize {
        let count = self.by_due.detach(dues.clone());
        let key = |priority, due| ReadyKey { priority, due };
        if self.by_due.is_empty() {
            let all = key(i32::MIN, 0)..=key(i32::MAX, u64::MAX);
            self.by_rank.detach(all);
            return count;
        }
        let mut next = self.by_rank.first();
        while let Some((ReadyKey { priority, .. }, _)) = next {
            let stretch = key(priority, *dues.start())..=key(priority, *dues.end());
            self.by_rank.detach(stretch);
            let behind = priority.checked_add(1);
            next = behind.and_then(|priority| self.by_rank.iter_from(key(priority, 0)).next());
        }
        count
    }
}

/// Where a job stands: its priority and its due time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderKey {
    pub priority: i32,
    pub due: u64,
}

impl OrderKey {
    fn key(self) -> ReadyKey {
        ReadyKey {
            priority: self.priority,
            due: self.due,
        }
    }
}

impl Lists {
    pub fn len(&self) -> usize {
        self.plain.len() + self.ranked.as_ref().map_or(0, |ranked| ranked.by_due.len())
    }

    /// `seq` gives the order of adding, by which equal keys are ordered.
    #[inline(always)]
    pub fn insert(
        &mut self,
        at: OrderKey,
        handle: Handle,
        hint: Option<&InsertHint<u64>>,
        seq: impl Fn(Handle) -> u64,
    ) {
        if at.priority == 0 {
            return self.plain.insert_by(hint, at.due, handle, seq);
        }
        let ranked = self.ranked.get_or_insert_default();
        ranked.by_due.insert(at.due, handle, &seq);
        ranked.by_rank.insert(at.key(), handle, &seq);
    }

    /// See [`super::Schedule::insert_together`].
    pub fn insert_together(
        &mut self,
        at: OrderKey,
        handles: &[Handle],
        seq: impl Fn(Handle) -> u64,
    ) {
        let entries: Vec<_> = handles.iter().map(|&handle| (at.due, handle)).collect();
        if at.priority == 0 {
            return self.plain.insert_sorted(&entries, seq);
        }
        let ranked = self.ranked.get_or_insert_default();
        ranked.by_due.insert_sorted(&entries, &seq);
        let entries: Vec<_> = handles.iter().map(|&handle| (at.key(), handle)).collect();
        ranked.by_rank.insert_sorted(&entries, &seq);
    }

    /// See [`Skiplist::insert_hint`]. Only for the list that nearly all jobs are in, of priority 0.
    pub fn insert_hint(&self, at: OrderKey) -> Option<InsertHint<u64>> {
        let behind_all = self.plain.last().is_none_or(|(due, _)| due <= at.due);
        (at.priority == 0 && !behind_all).then(|| self.plain.insert_hint(at.due))
    }

    pub fn fetch(&self, hint: &InsertHint<u64>) {
        self.plain.fetch(hint);
    }

    /// Handles of the first few jobs of priority 0.
    pub fn leading(&self) -> &[Handle] {
        self.plain.leading()
    }

    pub fn remove(&mut self, at: OrderKey, handle: Handle, seq: impl Fn(Handle) -> u64) -> bool {
        if at.priority == 0 {
            return self.plain.remove(at.due, handle, seq);
        }
        let Some(ranked) = &mut self.ranked else {
            return false;
        };
        let there = ranked.by_due.remove(at.due, handle, &seq)
            && ranked.by_rank.remove(at.key(), handle, &seq);
        self.drop_ranked();
        there
    }

    /// Drops the lists of other priorities if there is nothing in them.
    fn drop_ranked(&mut self) {
        let is_bare = |r: &mut Box<Ranked>| {
            r.by_due.is_empty() && !r.by_due.has_detached() && !r.by_rank.has_detached()
        };
        self.ranked.take_if(is_bare);
    }

    /// The job that is served first of those that are due.
    pub fn first_ready(&self, now_ms: u64) -> Option<Handle> {
        let plain = self.plain.first().filter(|&(due, _)| due <= now_ms);
        let ranked = self
            .ranked
            .as_ref()
            .and_then(|ranked| ranked.by_rank.first_due(now_ms));
        match (plain, ranked) {
            (Some((_, plain)), Some((key, ranked))) => {
                Some(if key.priority < 0 { ranked } else { plain })
            }
            (plain, ranked) => plain.map(|(_, h)| h).or(ranked.map(|(_, h)| h)),
        }
    }

    /// How many ready jobs come before this one, counted up to `most`.
    pub fn ready_before(&self, handle: Handle, now_ms: u64, most: usize) -> usize {
        let ready = self.by_rank(0..=now_ms).map(|(_, it)| it);
        ready.take_while(|&it| it != handle).take(most).count()
    }

    /// The earliest due time of all.
    pub fn least_due(&self) -> Option<u64> {
        let ranked = self.ranked.as_ref().and_then(|r| r.by_due.first());
        let plain = self.plain.first();
        plain.into_iter().chain(ranked).map(|(due, _)| due).min()
    }

    /// The earliest due time after `now_ms`.
    pub fn next_due(&self, now_ms: u64) -> Option<u64> {
        let plain = self.plain.iter_from(now_ms + 1).next();
        let ranked = self.ranked.as_ref();
        let ranked = ranked.and_then(|r| r.by_due.iter_from(now_ms + 1).next());
        plain.into_iter().chain(ranked).map(|(due, _)| due).min()
    }

    /// Whether there is neither a job in it, nor a detached one.
    pub fn is_bare(&self) -> bool {
        self.plain.is_empty() && !self.plain.has_detached() && self.ranked.is_none()
    }

    pub fn len_up_to(&self, instant: u64, inclusive: bool) -> usize {
        let ranked = self.ranked.as_ref();
        self.plain.count_below(instant, inclusive)
            + ranked.map_or(0, |r| r.by_due.count_below(instant, inclusive))
    }

    /// In the order of (due, adding), from `from` on.
    pub fn by_due<'a>(
        &'a self,
        from: u64,
        seq: impl Fn(Handle) -> u64 + 'a,
    ) -> impl Iterator<Item = (u64, Handle)> + 'a {
        let ranked = self
            .ranked
            .iter()
            .flat_map(move |r| r.by_due.iter_from(from));
        merge(self.plain.iter_from(from), ranked, move |a, b| {
            (a.0, seq(a.1)) <= (b.0, seq(b.1))
        })
    }

    /// Jobs whose due time is within the range, in the order in which they are served once they are due.
    pub fn by_rank(
        &self,
        dues: RangeInclusive<u64>,
    ) -> impl Iterator<Item = (ReadyKey, Handle)> + '_ {
        let (from, to) = dues.into_inner();
        let plain = self.plain.iter_from(from);
        let plain = plain.take_while(move |&(due, _)| due <= to);
        let plain = plain.map(|(due, handle)| (ReadyKey { priority: 0, due }, handle));
        let ranked = self.ranked.iter().flat_map(move |r| r.by_rank.iter_due(to));
        let ranked = ranked.filter(move |&(key, _)| key.due >= from);
        merge(plain, ranked, |a, b| a.0.priority <= b.0.priority)
    }

    /// Takes out all jobs whose due time is within the range. [`Lists::pop_detached`] returns them.
    pub fn detach(&mut self, dues: RangeInclusive<u64>) -> Detached {
        let ranked = self.ranked.as_mut();
        Detached {
            plain: self.plain.detach(dues.clone()),
            ranked: [ranked.map_or(0, |ranked| ranked.detach(dues)); 2],
        }
    }

    /// Any of the jobs that were detached last, of which `left` are still there. A job that stood in two lists comes
    /// twice.
    pub fn pop_detached(&mut self, left: &mut Detached) -> Option<Handle> {
        if left.plain > 0 {
            left.plain -= 1;
            return self.plain.pop_detached().map(|(_, handle)| handle);
        }
        let ranked = self.ranked.as_mut()?;
        let handle = if left.ranked[0] > 0 {
            left.ranked[0] -= 1;
            ranked.by_due.pop_detached().map(|(_, handle)| handle)
        } else if left.ranked[1] > 0 {
            left.ranked[1] -= 1;
            ranked.by_rank.pop_detached().map(|(_, handle)| handle)
        } else {
            None
        };
        self.drop_ranked();
        handle
    }

    /// What is detached and still there. Visits each job: for tests.
    pub fn detached(&self) -> (Detached, Vec<Handle>) {
        let mut handles: Vec<Handle> = self.plain.detached().map(|(_, h)| h).collect();
        let plain = handles.len();
        let ranked = self.ranked.as_ref().map_or([0; 2], |ranked| {
            handles.extend(ranked.by_due.detached().map(|(_, h)| h));
            [handles.len() - plain, ranked.by_rank.detached().count()]
        });
        (Detached { plain, ranked }, handles)
    }

    /// Frees about `count` entries of a schedule that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let ranked = &mut self.ranked;
        self.plain.free_some(count)
            || ranked.as_mut().is_some_and(|ranked| {
                ranked.by_due.free_some(count) || ranked.by_rank.free_some(count)
            })
    }

    /// One of the three lists: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, list: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match (list, &mut self.ranked) {
            (0, _) => self.plain.relocate(from, mover),
            (1, Some(ranked)) => ranked.by_due.relocate(from, mover),
            (_, Some(ranked)) => ranked.by_rank.relocate(from, mover),
            (_, None) => None,
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let ranked = self.ranked.as_ref().map_or(0, |r| {
            size_of::<Ranked>() + r.by_due.memory_bytes() + r.by_rank.memory_bytes()
        });
        self.plain.memory_bytes() + ranked
    }

    pub fn check_invariants(
        &self,
        order_key: impl Fn(Handle) -> OrderKey,
        seq: impl Fn(Handle) -> u64,
    ) -> Result<(), String> {
        self.plain.check_invariants(&seq)?;
        let plain = self
            .plain
            .iter()
            .map(|(due, h)| (h, OrderKey { priority: 0, due }));
        let mut ranked_keys = Vec::new();
        if let Some(ranked) = &self.ranked {
            ranked.by_due.check_invariants(&seq)?;
            ranked.by_rank.check_invariants(&seq)?;
            ranked_keys.extend(ranked.by_rank.iter().map(|(key, h)| {
                let ReadyKey { priority, due } = key;
                (h, OrderKey { priority, due })
            }));
            let mut dues: Vec<(u64, Handle)> =
                ranked_keys.iter().map(|&(h, at)| (at.due, h)).collect();
            dues.sort_by_key(|&(due, h)| (due, seq(h)));
            if !ranked.by_due.iter().eq(dues) {
                return Err("the two orders of ranked jobs differ".into());
            }
            if ranked_keys.is_empty() && ranked.by_rank.detached().next().is_none() {
                return Err("lists for ranked jobs, and none of these".into());
            }
        }
        for (handle, at) in plain.chain(ranked_keys) {
            if order_key(handle) != at {
                return Err(format!(
                    "job {handle} stands at {at:?}, not at its own place"
                ));
            }
        }
        Ok(())
    }
}

pub(in crate::queue) fn merge<T>(
    a: impl Iterator<Item = T>,
    b: impl Iterator<Item = T>,
    a_first: impl Fn(&T, &T) -> bool,
) -> impl Iterator<Item = T> {
    let (mut a, mut b): (Peekable<_>, Peekable<_>) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if !a_first(x, y) => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
