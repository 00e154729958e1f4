//! The delayed and ready jobs of one group, in the two orders in which it may give them, so that nothing moves when
//! GROUPFIFO is set or unset. Most groups have one job or a few.

use crate::queue::clock::Now;
use crate::queue::job::Handle;
use crate::queue::state::schedule::lists::{Lists, OrderKey};
use crate::queue::state::store::Store;
use crate::storage::relocate::{move_vec, Mover};
use crate::storage::skiplist::Skiplist;
use std::mem;
use std::ops::RangeInclusive;

/// How many jobs a line holds as a plain array, at most.
const FEW: usize = 16;

#[derive(Clone, Copy)]
pub struct Waiting {
    pub handle: Handle,
    pub priority: i32,
    pub due: u64,
}

/// A job of a short line, with its number in the order of adding.
#[derive(Clone, Copy)]
pub struct Placed {
    job: Waiting,
    seq: u64,
}

#[derive(Clone, Default)]
pub enum Line {
    #[default]
    Empty,
    One(Waiting),
    /// In ready order.
    Few(Vec<Placed>),
    Many(Box<Many>),
}

const _: () = assert!(size_of::<Line>() == 24);

#[derive(Clone, Default)]
pub struct Many {
    ranked: Lists,
    /// The same jobs in the order of adding.
    by_seq: Skiplist<u64>,
}

impl Waiting {
    /// A delayed or ready job as it stands.
    fn of(handle: Handle, jobs: &Store) -> Self {
        let job = jobs.job(handle);
        Waiting {
            handle,
            priority: job.terms().priority,
            due: job.due(),
        }
    }

    fn order_key(&self) -> OrderKey {
        OrderKey {
            priority: self.priority,
            due: self.due,
        }
    }

    fn placed(self, jobs: &Store) -> Placed {
        Placed {
            job: self,
            seq: jobs.job(self.handle).seq(),
        }
    }
}

impl Placed {
    fn rank(&self) -> (i32, u64, u64, Handle) {
        (self.job.priority, self.job.due, self.seq, self.job.handle)
    }

    fn order(&self) -> (u64, Handle) {
        (self.seq, self.job.handle)
    }
}

impl Many {
    fn insert(&mut self, Placed { job, seq }: Placed, jobs: &Store) {
        let tie = |handle| jobs.job(handle).seq();
        self.ranked.insert(job.order_key(), job.handle, None, tie);
        self.by_seq.insert(seq, job.handle, tie);
    }

    fn remove(&mut self, Placed { job, seq }: Placed, jobs: &Store) -> bool {
        let tie = |handle| jobs.job(handle).seq();
        self.ranked.remove(job.order_key(), job.handle, tie)
            && self.by_seq.remove(seq, job.handle, tie)
    }

    fn count(&self, dues: &RangeInclusive<u64>) -> usize {
        let before = self.ranked.len_up_to(*dues.start(), false);
        self.ranked.len_up_to(*dues.end(), true) - before
    }

    /// Jobs whose due time is within the range, or jobs whose due time is not.
    fn split(&self, dues: &RangeInclusive<u64>, within: bool, jobs: &Store) -> Vec<Waiting> {
        let tie = |handle| jobs.job(handle).seq();
        let upto = |from: u64, to: u64| {
            let some = self.ranked.by_due(from, tie);
            some.take_while(move |&(due, _)| due <= to)
        };
        let all = |it: &mut dyn Iterator<Item = (u64, Handle)>| {
            it.map(|(_, handle)| Waiting::of(handle, jobs)).collect()
        };
        let (&start, &end) = (dues.start(), dues.end());
        match (within, start.checked_sub(1)) {
            (true, _) => all(&mut upto(start, end)),
            (false, None) => all(&mut upto(end.saturating_add(1), u64::MAX)),
            (false, Some(before)) => {
                all(&mut upto(0, before).chain(upto(end.saturating_add(1), u64::MAX)))
            }
        }
    }
}

impl Line {
    pub fn len(&self) -> usize {
        match self {
            Line::Empty => 0,
            Line::One(_) => 1,
            Line::Few(few) => few.len(),
            Line::Many(many) => many.by_seq.len(),
        }
    }

    pub fn insert(&mut self, new: Waiting, jobs: &Store) {
        match self {
            Line::Empty => *self = Line::One(new),
            Line::One(one) => {
                let mut few = Vec::with_capacity(2);
                few.extend([*one, new].map(|it| it.placed(jobs)));
                few.sort_unstable_by_key(Placed::rank);
                *self = Line::Few(few);
            }
            Line::Few(few) if few.len() < FEW => {
                let new = new.placed(jobs);
                let at = few.partition_point(|it| it.rank() < new.rank());
                few.insert(at, new);
            }
            Line::Few(few) => {
                let mut many = Box::<Many>::default();
                for placed in few.drain(..).chain([new.placed(jobs)]) {
                    many.insert(placed, jobs);
                }
                *self = Line::Many(many);
            }
            Line::Many(many) => many.insert(new.placed(jobs), jobs),
        }
    }

    /// False if the job is not there.
    pub fn remove(&mut self, old: Waiting, jobs: &Store) -> bool {
        let there = match self {
            Line::Empty => false,
            Line::One(one) => one.handle == old.handle,
            Line::Few(few) => {
                let at = few.iter().position(|it| it.job.handle == old.handle);
                at.map(|at| few.remove(at)).is_some()
            }
            Line::Many(many) => many.remove(old.placed(jobs), jobs),
        };
        if let Line::One(_) = self {
            *self = Line::Empty;
        }
        self.shrink(jobs);
        there
    }

    /// Takes the form for as few jobs as are left.
    fn shrink(&mut self, jobs: &Store) {
        match self {
            Line::Few(few) => match few[..] {
                [] => *self = Line::Empty,
                [one] => *self = Line::One(one.job),
                _ if few.len() * 3 < few.capacity() => few.shrink_to(few.len() * 2),
                _ => {}
            },
            Line::Many(many) if many.by_seq.len() <= FEW / 2 => {
                let few = many.ranked.by_rank(0..=u64::MAX);
                let few = few.map(|(_, handle)| Waiting::of(handle, jobs).placed(jobs));
                *self = Line::Few(few.collect());
            }
            _ => {}
        }
    }

    /// All jobs, in ready order.
    fn placed(&self, jobs: &Store) -> Vec<Placed> {
        match self {
            Line::Empty => Vec::new(),
            Line::One(one) => vec![one.placed(jobs)],
            Line::Few(few) => few.clone(),
            Line::Many(many) => {
                let all = many.ranked.by_rank(0..=u64::MAX);
                let placed = |(_, handle)| Waiting::of(handle, jobs).placed(jobs);
                all.map(placed).collect()
            }
        }
    }

    /// Updates the line after its jobs got new numbers, in the same order.
    pub fn number_anew(&mut self, jobs: &Store) {
        if self.len() > 1 {
            let all = self.placed(jobs);
            *self = Line::Empty;
            all.into_iter().for_each(|it| self.insert(it.job, jobs));
        }
    }

    /// How many are due within the range.
    pub fn count(&self, dues: &RangeInclusive<u64>) -> usize {
        match self {
            Line::Empty => 0,
            Line::One(one) => usize::from(dues.contains(&one.due)),
            Line::Few(few) => few.iter().filter(|it| dues.contains(&it.job.due)).count(),
            Line::Many(many) => many.count(dues),
        }
    }

    /// Removes the jobs that are due within the range. Returns a long line that is useless now, to be freed.
    pub fn purge(&mut self, dues: &RangeInclusive<u64>, jobs: &Store) -> Option<Line> {
        let mut useless = None;
        match self {
            Line::Empty => {}
            Line::One(one) => {
                if dues.contains(&one.due) {
                    *self = Line::Empty;
                }
            }
            Line::Few(few) => few.retain(|it| !dues.contains(&it.job.due)),
            Line::Many(many) => {
                let going = many.count(dues);
                if going > many.by_seq.len() / 2 {
                    let staying = many.split(dues, false, jobs);
                    useless = Some(mem::take(self));
                    staying.into_iter().for_each(|it| self.insert(it, jobs));
                } else if going > 0 {
                    for it in many.split(dues, true, jobs) {
                        many.remove(it.placed(jobs), jobs);
                    }
                }
            }
        }
        self.shrink(jobs);
        useless
    }

    /// The next due time that has not come yet.
    pub fn next_due(&self, now: Now) -> Option<u64> {
        match self {
            Line::Empty => None,
            Line::One(one) => Some(one.due).filter(|&due| due > now.ms()),
            Line::Few(few) => {
                let dues = few.iter().map(|it| it.job.due);
                dues.filter(|&due| due > now.ms()).min()
            }
            Line::Many(many) => many.ranked.next_due(now.ms()),
        }
    }

    /// The instant from which the line gives a job.
    pub fn gives_at(&self, is_fifo: bool, jobs: &Store) -> Option<u64> {
        if is_fifo {
            return self.head(jobs).map(|head| head.due);
        }
        match self {
            Line::Empty => None,
            Line::One(one) => Some(one.due),
            Line::Few(few) => few.iter().map(|it| it.job.due).min(),
            Line::Many(many) => many.ranked.least_due(),
        }
    }

    /// The first in the order of adding: with GROUPFIFO all others wait for it.
    pub fn head(&self, jobs: &Store) -> Option<Waiting> {
        match self {
            Line::Empty => None,
            Line::One(one) => Some(*one),
            Line::Few(few) => few.iter().min_by_key(|it| it.order()).map(|it| it.job),
            Line::Many(many) => {
                let first = many.by_seq.first();
                first.map(|(_, handle)| Waiting::of(handle, jobs))
            }
        }
    }

    /// The job that the line gives at this instant.
    pub fn first_ready(&self, now_ms: u64, is_fifo: bool, jobs: &Store) -> Option<Handle> {
        if is_fifo {
            let head = self.head(jobs).filter(|head| head.due <= now_ms);
            return head.map(|head| head.handle);
        }
        match self {
            Line::Empty => None,
            Line::One(one) => (one.due <= now_ms).then_some(one.handle),
            Line::Few(few) => {
                let first = few.iter().find(|it| it.job.due <= now_ms);
                first.map(|it| it.job.handle)
            }
            Line::Many(many) => many.ranked.first_ready(now_ms),
        }
    }

    /// How many ready jobs come before this one, counted up to `most`.
    pub fn ready_before(&self, handle: Handle, now_ms: u64, most: usize) -> usize {
        match self {
            Line::Empty | Line::One(_) => 0,
            Line::Few(few) => {
                let before = few.iter().take_while(|it| it.job.handle != handle);
                before.filter(|it| it.job.due <= now_ms).take(most).count()
            }
            Line::Many(many) => many.ranked.ready_before(handle, now_ms, most),
        }
    }

    /// Frees about `count` entries of a line that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        match self {
            Line::Many(many) => many.ranked.free_some(count) || many.by_seq.free_some(count),
            _ => false,
        }
    }

    /// Moves what lies in an array.
    pub fn relocate(&mut self, mover: &mut impl Mover) {
        if let Line::Few(few) = self {
            move_vec(few, mover);
        }
    }

    /// Heap bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Line::Empty | Line::One(_) => 0,
            Line::Few(few) => few.capacity() * size_of::<Placed>(),
            Line::Many(many) => {
                size_of::<Many>() + many.ranked.memory_bytes() + many.by_seq.memory_bytes()
            }
        }
    }

    /// For tests.
    pub fn check_invariants(&self, jobs: &Store) -> Result<Vec<Handle>, String> {
        let all = self.placed(jobs);
        let seq = |handle| jobs.job(handle).seq();
        let fits = match self {
            Line::Empty | Line::One(_) => true,
            Line::Few(few) => (2..=FEW).contains(&few.len()),
            Line::Many(many) => {
                many.ranked
                    .check_invariants(|h| Waiting::of(h, jobs).order_key(), seq)?;
                many.by_seq.check_invariants(seq)?;
                let mut orders: Vec<_> = all.iter().map(Placed::order).collect();
                orders.sort_unstable();
                all.len() > FEW / 2 && many.by_seq.iter().eq(orders)
            }
        };
        let as_they_stand = all.iter().all(|it| {
            let now = Waiting::of(it.job.handle, jobs).placed(jobs);
            now.rank() == it.rank()
        });
        if !all.is_sorted_by_key(Placed::rank) || !as_they_stand || !fits {
            return Err(format!("a line of {} out of order", all.len()));
        }
        Ok(all.iter().map(|it| it.job.handle).collect())
    }
}
