//! The delayed and ready jobs of one group, in the order in which it gives them: most groups have one or a few.

use crate::queue::job::Handle;
use crate::queue::state::schedule::lists::{Lists, Standing};
use crate::queue::state::store::Store;
use crate::storage::relocate::{move_vec, Mover};
use crate::storage::skiplist::Skiplist;
use std::mem;

/// Jobs in a line that is a plain array, at most.
const FEW: usize = 16;

#[derive(Clone, Copy)]
pub struct Waiting {
    pub handle: Handle,
    pub priority: i32,
    pub due: u64,
}

#[derive(Clone, Default)]
pub enum Line {
    #[default]
    Empty,
    One(Waiting),
    /// In their order.
    Few(Vec<Waiting>),
    /// In ready order.
    Ranked(Box<Lists>),
    /// With GROUPFIFO: by the order of adding.
    Fifo(Box<Skiplist<u64>>),
}

const _: () = assert!(size_of::<Line>() == 24);

/// What the order is that of: the jobs, and whether GROUPFIFO holds.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    pub jobs: &'a Store,
    pub is_fifo: bool,
}

impl Order<'_> {
    fn seq(self, handle: Handle) -> u64 {
        self.jobs.job(handle).seq()
    }

    fn key(self, it: &Waiting) -> (i32, u64, u64, Handle) {
        let seq = self.seq(it.handle);
        if self.is_fifo {
            (0, 0, seq, it.handle)
        } else {
            (it.priority, it.due, seq, it.handle)
        }
    }

    /// A delayed or ready job as it stands.
    fn waiting(self, handle: Handle) -> Waiting {
        let job = self.jobs.job(handle);
        Waiting {
            handle,
            priority: job.terms().priority,
            due: job.due(),
        }
    }
}

impl Waiting {
    fn standing(&self) -> Standing {
        Standing {
            priority: self.priority,
            due: self.due,
        }
    }
}

impl Line {
    pub fn len(&self) -> usize {
        match self {
            Line::Empty => 0,
            Line::One(_) => 1,
            Line::Few(few) => few.len(),
            Line::Ranked(lists) => lists.len(),
            Line::Fifo(list) => list.len(),
        }
    }

    pub fn insert(&mut self, new: Waiting, order: Order<'_>) {
        match self {
            Line::Empty => *self = Line::One(new),
            Line::One(one) => {
                let one = *one;
                let mut few = Vec::with_capacity(2);
                few.extend([one, new]);
                few.sort_unstable_by_key(|it| order.key(it));
                *self = Line::Few(few);
            }
            Line::Few(few) if few.len() < FEW => {
                let own = order.key(&new);
                let at = few.partition_point(|it| order.key(it) < own);
                few.insert(at, new);
            }
            Line::Few(few) => {
                let few = mem::take(few);
                *self = match order.is_fifo {
                    true => Line::Fifo(Box::default()),
                    false => Line::Ranked(Box::default()),
                };
                few.into_iter()
                    .chain([new])
                    .for_each(|it| self.insert(it, order));
            }
            Line::Ranked(lists) => lists.insert(new.standing(), new.handle, None, |h| order.seq(h)),
            Line::Fifo(list) => list.insert(order.seq(new.handle), new.handle, |h| order.seq(h)),
        }
    }

    /// False where it is not there.
    pub fn remove(&mut self, old: Waiting, order: Order<'_>) -> bool {
        let there = match self {
            Line::Empty => false,
            Line::One(one) => one.handle == old.handle,
            Line::Few(few) => {
                let at = few.iter().position(|it| it.handle == old.handle);
                at.map(|at| few.remove(at)).is_some()
            }
            Line::Ranked(lists) => lists.remove(old.standing(), old.handle, |h| order.seq(h)),
            Line::Fifo(list) => list.remove(order.seq(old.handle), old.handle, |h| order.seq(h)),
        };
        self.shrink(order);
        there
    }

    /// Takes the form that so few have.
    fn shrink(&mut self, order: Order<'_>) {
        match self {
            Line::One(_) => *self = Line::Empty,
            Line::Few(few) => match few[..] {
                [one] => *self = Line::One(one),
                _ if few.len() * 3 < few.capacity() => few.shrink_to(few.len() * 2),
                _ => {}
            },
            Line::Ranked(_) | Line::Fifo(_) if self.len() <= FEW / 2 => {
                *self = Line::Few(self.waiting(order));
            }
            _ => {}
        }
    }

    /// All of them, in order.
    fn waiting(&self, order: Order<'_>) -> Vec<Waiting> {
        match self {
            Line::Empty => Vec::new(),
            Line::One(one) => vec![*one],
            Line::Few(few) => few.clone(),
            Line::Ranked(lists) => {
                let all = lists.by_rank(0..=u64::MAX);
                all.map(|(_, handle)| order.waiting(handle)).collect()
            }
            Line::Fifo(list) => list
                .iter()
                .map(|(_, handle)| order.waiting(handle))
                .collect(),
        }
    }

    /// Puts them into another order, or into the same one by other numbers.
    pub fn reorder(&mut self, order: Order<'_>) {
        if self.len() > 1 {
            let mut all = self.waiting(order);
            *self = Line::Empty;
            all.sort_unstable_by_key(|it| order.key(it));
            all.into_iter().for_each(|it| self.insert(it, order));
        }
    }

    /// From when on it gives a job.
    pub fn gives_at(&self, order: Order<'_>) -> Option<u64> {
        if order.is_fifo {
            return self.head(order).map(|head| head.due);
        }
        match self {
            Line::Empty => None,
            Line::One(one) => Some(one.due),
            Line::Few(few) => few.iter().map(|it| it.due).min(),
            Line::Ranked(lists) => lists.least_due(),
            Line::Fifo(_) => None,
        }
    }

    /// With GROUPFIFO: the one that all others wait for.
    pub fn head(&self, order: Order<'_>) -> Option<Waiting> {
        match self {
            Line::Empty | Line::Ranked(_) => None,
            Line::One(one) => Some(*one),
            Line::Few(few) => few.first().copied(),
            Line::Fifo(list) => list.first().map(|(_, handle)| order.waiting(handle)),
        }
    }

    /// The job that it gives at that instant.
    pub fn first_ready(&self, now_ms: u64, order: Order<'_>) -> Option<Handle> {
        if order.is_fifo {
            let head = self.head(order).filter(|head| head.due <= now_ms);
            return head.map(|head| head.handle);
        }
        match self {
            Line::Ranked(lists) => lists.first_ready(now_ms),
            Line::One(one) => (one.due <= now_ms).then_some(one.handle),
            Line::Few(few) => {
                let first = few.iter().find(|it| it.due <= now_ms);
                first.map(|it| it.handle)
            }
            Line::Empty | Line::Fifo(_) => None,
        }
    }

    /// Frees about `count` entries of a line that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        match self {
            Line::Ranked(lists) => lists.free_some(count),
            Line::Fifo(list) => list.free_some(count),
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
            Line::Few(few) => few.capacity() * size_of::<Waiting>(),
            Line::Ranked(lists) => size_of::<Lists>() + lists.memory_bytes(),
            Line::Fifo(list) => size_of::<Skiplist<u64>>() + list.memory_bytes(),
        }
    }

    /// For tests.
    pub fn check_invariants(&self, order: Order<'_>) -> Result<Vec<Handle>, String> {
        let all = self.waiting(order);
        let is_sorted = all.is_sorted_by_key(|it| order.key(it));
        let as_they_stand = all.iter().all(|it| {
            let Waiting { priority, due, .. } = order.waiting(it.handle);
            (priority, due) == (it.priority, it.due)
        });
        let fits = match self {
            Line::Empty | Line::One(_) => true,
            Line::Few(few) => (2..=FEW).contains(&few.len()),
            Line::Ranked(_) => !order.is_fifo && all.len() > FEW / 2,
            Line::Fifo(_) => order.is_fifo && all.len() > FEW / 2,
        };
        if !is_sorted || !as_they_stand || !fits {
            return Err(format!("a line of {} out of order", all.len()));
        }
        Ok(all.iter().map(|it| it.handle).collect())
    }
}
