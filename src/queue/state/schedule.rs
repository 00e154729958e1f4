//! The delayed and ready jobs of the whole queue. Those without a group are served in the order of this schedule; those
//! with a group stand in the line of their group, too.

pub(super) mod lists;

use crate::queue::job::Handle;
use crate::storage::relocate::Mover;
use crate::storage::skiplist::InsertHint;
pub(in crate::queue) use lists::merge;
use lists::Lists;
pub use lists::OrderKey;
use std::ops::RangeInclusive;

#[derive(Clone, Default)]
pub struct Schedule {
    own: Lists,
    /// Jobs that have a group; none if there is no such job.
    grouped: Option<Box<Lists>>,
    ready: Ready,
}

/// How many jobs were ready at `as_of`, and until when no job becomes due. Unknown by default.
#[derive(Clone, Copy, Default)]
struct Ready {
    count: usize,
    as_of: u64,
    until: u64,
}

impl Ready {
    #[inline]
    fn inserted(&mut self, due: u64, count: usize) {
        if due <= self.as_of {
            self.count = self.count.wrapping_add(count);
        } else {
            self.until = self.until.min(due);
        }
    }

    #[inline]
    fn removed(&mut self, due: u64) {
        if due <= self.as_of {
            self.count = self.count.wrapping_sub(1);
        }
    }
}

/// How many entries of each list were detached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detached {
    own: lists::Detached,
    grouped: lists::Detached,
}

impl std::ops::AddAssign for Detached {
    fn add_assign(&mut self, other: Self) {
        self.own += other.own;
        self.grouped += other.grouped;
    }
}

impl Schedule {
    pub fn len(&self) -> usize {
        self.own.len() + self.grouped_len()
    }

    pub fn grouped_len(&self) -> usize {
        self.grouped.as_ref().map_or(0, |grouped| grouped.len())
    }

    /// Jobs without a group.
    pub fn own(&self) -> &Lists {
        &self.own
    }

    /// `seq` gives the order of adding, by which equal keys are ordered.
    // A function of its own, with the list's, wherever it is called from: else some of it is put into each caller.
    #[inline(never)]
    pub fn insert(
        &mut self,
        at: OrderKey,
        handle: Handle,
        is_grouped: bool,
        hint: Option<&InsertHint<u64>>,
        seq: impl Fn(Handle) -> u64,
    ) {
        self.ready.inserted(at.due, 1);
        let lists = match is_grouped {
            false => &mut self.own,
            true => self.grouped.get_or_insert_default(),
        };
        lists.insert(at, handle, hint, seq);
    }

    /// Inserts jobs without a group that have one order key, in the order of their adding.
    pub fn insert_together(
        &mut self,
        at: OrderKey,
        handles: &[Handle],
        seq: impl Fn(Handle) -> u64,
    ) {
        self.ready.inserted(at.due, handles.len());
        self.own.insert_together(at, handles, seq);
    }

    /// See [`crate::storage::skiplist::Skiplist::insert_hint`]. Only for the list that nearly all jobs are in, of
    /// priority 0.
    pub fn insert_hint(&self, at: OrderKey, is_grouped: bool) -> Option<InsertHint<u64>> {
        self.lists(is_grouped)?.insert_hint(at)
    }

    pub fn fetch(&self, hint: &InsertHint<u64>, is_grouped: bool) {
        if let Some(lists) = self.lists(is_grouped) {
            lists.fetch(hint);
        }
    }

    fn lists(&self, is_grouped: bool) -> Option<&Lists> {
        match is_grouped {
            false => Some(&self.own),
            true => self.grouped.as_deref(),
        }
    }

    /// Handles of the first few jobs without a group.
    pub fn leading(&self) -> &[Handle] {
        self.own.leading()
    }

    #[inline]
    pub fn remove(
        &mut self,
        at: OrderKey,
        handle: Handle,
        is_grouped: bool,
        seq: impl Fn(Handle) -> u64,
    ) -> bool {
        self.ready.removed(at.due);
        if !is_grouped {
            return self.own.remove(at, handle, seq);
        }
        let Some(grouped) = &mut self.grouped else {
            return false;
        };
        let there = grouped.remove(at, handle, seq);
        self.drop_grouped();
        there
    }

    /// Drops the lists of jobs with groups if there is nothing in them.
    fn drop_grouped(&mut self) {
        self.grouped.take_if(|grouped| grouped.is_bare());
    }

    /// The earliest due time of all.
    #[inline]
    pub fn least_due(&self) -> Option<u64> {
        let own = self.own.least_due();
        match &self.grouped {
            None => own,
            Some(grouped) => own.into_iter().chain(grouped.least_due()).min(),
        }
    }

    /// The earliest due time after `now_ms`.
    pub fn next_due(&self, now_ms: u64) -> Option<u64> {
        let all = self.all().filter_map(|lists| lists.next_due(now_ms));
        all.min()
    }

    fn all(&self) -> impl Iterator<Item = &Lists> {
        [&self.own].into_iter().chain(self.grouped.as_deref())
    }

    pub fn ready_len(&self, now_ms: u64) -> usize {
        self.all().map(|lists| lists.len_up_to(now_ms, true)).sum()
    }

    /// How many of the ready jobs have a group.
    pub fn grouped_ready_len(&self, now_ms: u64) -> usize {
        let grouped = self.grouped.as_ref();
        grouped.map_or(0, |lists| lists.len_up_to(now_ms, true))
    }

    /// How many jobs are due before this instant.
    pub fn len_before(&self, instant: u64) -> usize {
        self.all()
            .map(|lists| lists.len_up_to(instant, false))
            .sum()
    }

    /// How many jobs are ready, and an instant until which that holds if nothing else happens: the next due time, or an
    /// earlier one. The count is kept up to date, so this costs nothing unless a due time has come since.
    #[inline]
    pub fn count_ready(&mut self, now_ms: u64) -> (usize, u64) {
        if (self.ready.as_of..self.ready.until).contains(&now_ms) {
            self.ready.as_of = now_ms;
        } else {
            self.ready = Ready {
                count: self.ready_len(now_ms),
                as_of: now_ms,
                until: self.next_due(now_ms).unwrap_or(u64::MAX),
            };
        }
        (self.ready.count, self.ready.until)
    }

    /// In the order of (due, adding), from `from` on.
    pub fn by_due<'a>(
        &'a self,
        from: u64,
        seq: impl Fn(Handle) -> u64 + Copy + 'a,
    ) -> impl Iterator<Item = (u64, Handle)> + 'a {
        let grouped = self.grouped.iter();
        let grouped = grouped.flat_map(move |lists| lists.by_due(from, seq));
        merge(self.own.by_due(from, seq), grouped, move |a, b| {
            (a.0, seq(a.1)) <= (b.0, seq(b.1))
        })
    }

    /// Jobs whose due time is within the range, in the order in which they would be served once they are due, if groups
    /// did not take turns.
    pub fn by_rank<'a>(
        &'a self,
        dues: RangeInclusive<u64>,
        seq: impl Fn(Handle) -> u64 + 'a,
    ) -> impl Iterator<Item = Handle> + 'a {
        let own = self.own.by_rank(dues.clone());
        let grouped = self.grouped.iter();
        let grouped = grouped.flat_map(move |lists| lists.by_rank(dues.clone()));
        let all = merge(own, grouped, move |a, b| (a.0, seq(a.1)) <= (b.0, seq(b.1)));
        all.map(|(_, handle)| handle)
    }

    /// Ready jobs that have a group, in the order in which they would be served if groups did not take turns.
    pub fn grouped_ready(&self, now_ms: u64) -> impl Iterator<Item = Handle> + '_ {
        let grouped = self.grouped.iter();
        let ready = grouped.flat_map(move |lists| lists.by_rank(0..=now_ms));
        ready.map(|(_, handle)| handle)
    }

    /// Takes out all jobs whose due time is within the range. [`Schedule::pop_detached`] returns them.
    pub fn detach(&mut self, dues: RangeInclusive<u64>) -> Detached {
        self.ready = Ready::default();
        let grouped = self.grouped.as_mut();
        Detached {
            own: self.own.detach(dues.clone()),
            grouped: grouped.map_or_else(Default::default, |lists| lists.detach(dues)),
        }
    }

    /// Any of the jobs that were detached last, of which `left` are still there. A job that stood in two lists comes
    /// twice.
    pub fn pop_detached(&mut self, left: &mut Detached) -> Option<Handle> {
        if let Some(handle) = self.own.pop_detached(&mut left.own) {
            return Some(handle);
        }
        let handle = self.grouped.as_mut()?.pop_detached(&mut left.grouped);
        self.drop_grouped();
        handle
    }

    /// What is detached and still there. Visits each job: for tests.
    pub fn detached(&self) -> (Detached, Vec<Handle>) {
        let (own, mut handles) = self.own.detached();
        let grouped = self.grouped.as_ref().map(|lists| lists.detached());
        let (grouped, others) = grouped.unwrap_or_default();
        handles.extend(others);
        (Detached { own, grouped }, handles)
    }

    /// Frees about `count` entries of a schedule that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let grouped = &mut self.grouped;
        self.own.free_some(count) || grouped.as_mut().is_some_and(|it| it.free_some(count))
    }

    /// One of the six lists: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, list: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match list.checked_sub(3) {
            None => self.own.relocate(list, from, mover),
            Some(list) => self.grouped.as_mut()?.relocate(list, from, mover),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let grouped = self.grouped.as_ref();
        self.own.memory_bytes()
            + grouped.map_or(0, |lists| size_of::<Lists>() + lists.memory_bytes())
    }

    pub fn check_invariants(
        &self,
        order_key: impl Fn(Handle) -> (OrderKey, bool),
        seq: impl Fn(Handle) -> u64,
    ) -> Result<(), String> {
        self.check_ready()?;
        for (lists, grouped) in self.all().zip([false, true]) {
            lists.check_invariants(|handle| order_key(handle).0, &seq)?;
            let mut handles = lists.by_due(0, &seq).map(|(_, handle)| handle);
            if handles.any(|handle| order_key(handle).1 != grouped) {
                return Err("a job with a group among those without, or one without".into());
            }
        }
        if self.grouped.as_ref().is_some_and(|it| it.is_bare()) {
            return Err("lists for jobs with groups, and none of these".into());
        }
        Ok(())
    }

    fn check_ready(&self) -> Result<(), String> {
        let Ready {
            count,
            as_of,
            until,
        } = self.ready;
        let is_counted = until > as_of;
        if is_counted && count != self.ready_len(as_of) {
            return Err(format!("not {count} jobs are ready at {as_of}"));
        }
        if is_counted && self.next_due(as_of).is_some_and(|due| due < until) {
            return Err(format!("a due comes between {as_of} and {until}"));
        }
        Ok(())
    }
}
