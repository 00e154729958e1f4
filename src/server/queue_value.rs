//! The value of a queue's key: the queue, and what this server knows about it beyond its data.

use super::agenda::{self, Ticket};
use super::{clock, idle, replicate};
use crate::queue::clock::Now;
use crate::queue::effects::Effects;
use crate::queue::event::Event;
use crate::queue::state::asleep::Asleep;
use crate::queue::state::figures::Figures;
use crate::queue::{HashSeed, Queue};
use crate::storage::allocated::allocated;
use crate::storage::broken::there;
use crate::storage::relocate::{move_one, Mover};
use lazy_static::lazy_static;
use redis_module::raw;
use std::ffi::c_int;
use std::hash::{BuildHasher, RandomState};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The server's handle of the data type, set by [`super::datatype`] at load.
static DATA_TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(null_mut());

pub fn set_data_type(data_type: *mut raw::RedisModuleType) {
    DATA_TYPE.store(data_type, Ordering::Relaxed);
}

pub fn data_type() -> *mut raw::RedisModuleType {
    DATA_TYPE.load(Ordering::Relaxed)
}

lazy_static! {
    /// Random seeds, drawn at load: ids come from users, who could make them collide.
    static ref SEED: HashSeed = {
        let random = RandomState::new();
        HashSeed::new([0, 1, 2, 3].map(|n: u64| random.hash_one(n)))
    };
}

pub fn new_queue() -> Queue {
    Queue::new(&SEED)
}

pub struct Value {
    form: Form,
    /// The instant of the key's entry on the agenda, or of its last one before it was parked;
    /// u64::MAX if it has none.
    pub armed_for: u64,
    /// Jobs due up to this unix-ms have raised their events.
    pub announced_ms: u64,
    /// The account that has the queue's figures.
    pub ticket: Ticket,
}

enum Form {
    Awake(Box<[Awake; 1]>),
    Asleep(Asleep),
}

impl Form {
    fn of(queue: Queue) -> Self {
        Form::Awake(Box::new([Awake {
            queue,
            is_used: true,
            enlisted: Ticket::default(),
            marked: u64::MAX,
        }]))
    }
}

/// The queue, and what decides when it falls asleep.
struct Awake {
    queue: Queue,
    /// Used since the last visit of [`super::sleep`].
    is_used: bool,
    /// The ticket by which [`super::sleep`] will visit it again.
    enlisted: Ticket,
    /// What [`agenda::closed`] was when the account was marked as outdated: until that changes, or figures are entered,
    /// it still is. u64::MAX if it was not.
    marked: u64,
}

/// The result of a visit of [`super::sleep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// It was used: visit it again later.
    Again,
    /// It is asleep from now on, with so many jobs.
    Asleep(usize),
    /// It was asleep already, or cannot sleep as it is.
    Done,
}

impl Value {
    pub fn new(queue: Queue) -> Self {
        Value {
            form: Form::of(queue),
            armed_for: u64::MAX,
            announced_ms: clock::now().ms(),
            ticket: Ticket::default(),
        }
    }

    /// The queue, to read or change it; wakes it if it is asleep.
    #[inline]
    pub fn queue(&mut self) -> &mut Queue {
        if let Form::Asleep(_) = self.form {
            self.wake();
        }
        let awake = there(self.awake(), "a queue that does not wake");
        awake.is_used = true;
        &mut awake.queue
    }

    pub fn is_asleep(&self) -> bool {
        matches!(self.form, Form::Asleep(_))
    }

    #[inline]
    fn awake(&mut self) -> Option<&mut Awake> {
        match &mut self.form {
            Form::Awake(awake) => Some(&mut awake[0]),
            Form::Asleep(_) => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&mut self) {
        if let Form::Asleep(asleep) = &self.form {
            let queue = there(asleep.awake(&SEED), "a queue that sleeps");
            self.form = Form::of(queue);
            self.enlist();
        }
    }

    /// Has the next sweeps visit the queue, unless it is asleep.
    #[inline]
    pub fn enlist(&mut self) {
        let ticket = self.ticket;
        if let Some(awake) = self.awake() {
            if std::mem::replace(&mut awake.enlisted, ticket) != ticket {
                idle::enlist(ticket);
            }
        }
    }

    /// Puts the queue to sleep if nobody has used it since the last visit.
    pub fn sleep_if_idle(&mut self) -> Visited {
        let Some(awake) = self.awake() else {
            return Visited::Done;
        };
        if std::mem::take(&mut awake.is_used) {
            return Visited::Again;
        }
        awake.enlisted = Ticket::default();
        awake.marked = u64::MAX;
        self.sleep()
    }

    /// Puts the queue to sleep, if it can be.
    pub fn sleep(&mut self) -> Visited {
        let Some(awake) = self.awake() else {
            return Visited::Done;
        };
        let Some(asleep) = awake.queue.asleep() else {
            return Visited::Done;
        };
        let jobs = awake.queue.free_effort();
        self.form = Form::Asleep(asleep);
        Visited::Asleep(jobs)
    }

    /// Reads the queue without changing or waking it.
    pub fn with_queue<T>(&self, look: impl FnOnce(&Queue) -> T) -> T {
        match &self.form {
            Form::Awake(awake) => look(&awake[0].queue),
            Form::Asleep(asleep) => look(&there(asleep.awake(&SEED), "a queue that sleeps")),
        }
    }

    /// As [`Queue::snapshot`].
    pub fn snapshot(&self, write: &mut dyn FnMut(&[u8])) {
        match &self.form {
            Form::Awake(awake) => awake[0].queue.snapshot(write),
            Form::Asleep(asleep) => asleep.snapshot(write),
        }
    }

    /// As [`Queue::free_effort`].
    pub fn free_effort(&self) -> usize {
        match &self.form {
            Form::Awake(awake) => awake[0].queue.free_effort(),
            Form::Asleep(_) => 1,
        }
    }

    /// The queue, to be freed; none if it is asleep.
    pub fn into_queue(self) -> Option<Queue> {
        match self.form {
            Form::Awake(awake) => {
                let [awake] = *awake;
                Some(awake.queue)
            }
            Form::Asleep(_) => None,
        }
    }

    /// The memory of the whole value, as allocated.
    pub fn memory_bytes(&self) -> usize {
        let form = match &self.form {
            Form::Awake(awake) => {
                awake[0].queue.memory_bytes() - size_of::<Queue>() + allocated(size_of::<Awake>())
            }
            Form::Asleep(asleep) => asleep.memory_bytes(),
        };
        allocated(size_of::<Self>()) + form
    }

    /// Continues from a cursor as [`Queue::relocate`] does.
    pub fn relocate(&mut self, cursor: u64, mover: &mut impl Mover) -> u64 {
        if cursor == 0 {
            self.form = match std::mem::replace(&mut self.form, Form::Asleep(Asleep::default())) {
                Form::Awake(awake) => Form::Awake(move_one(awake, mover)),
                Form::Asleep(asleep) => Form::Asleep(asleep.moved(mover)),
            };
        }
        self.awake()
            .map_or(0, |it| it.queue.relocate(cursor, mover))
    }

    /// Enters the queue's figures under that name, wherever they were entered before.
    pub fn account_as(&mut self, db: c_int, name: &[u8]) {
        let (figures, until) = self.figures(clock::now());
        agenda::account_anew(db, name, &mut self.ticket, figures, until);
        self.accounted(u64::MAX);
    }

    /// Whether the queue's figures will be entered before they are read.
    #[inline]
    pub fn is_marked(&self) -> bool {
        matches!(&self.form, Form::Awake(awake) if awake[0].marked == agenda::closed())
    }

    /// Has figures told as they are now: entered at once, or by whoever reads them.
    #[inline(never)]
    pub fn account(&mut self, db: c_int, name: &[u8], now: Now, at_once: bool) {
        if !at_once && agenda::mark(db, self.ticket) {
            return self.accounted(agenda::closed());
        }
        let (figures, until) = self.figures(now);
        if !agenda::account(db, name, &mut self.ticket, figures, until) {
            agenda::arm(0);
        }
        self.accounted(u64::MAX);
        if replicate::subscribed_since().is_some() {
            agenda::arm(until);
        }
    }

    fn accounted(&mut self, marked: u64) {
        if let Some(awake) = self.awake() {
            awake.marked = marked;
        }
        self.enlist();
    }

    fn figures(&mut self, now: Now) -> (Figures, u64) {
        match &mut self.form {
            Form::Awake(awake) => awake[0].queue.figures(now),
            Form::Asleep(asleep) => asleep.figures(now),
        }
    }

    /// Raises the event for jobs that have become due since the last call. Must run before anything
    /// else happens to the queue, so that a job which a command makes ready raises one event.
    #[inline]
    pub fn announce(&mut self, now: Now, effects: &mut Effects) {
        if let Some(since_ms) = replicate::subscribed_since() {
            self.announce_since(since_ms, now, effects);
        }
    }

    #[cold]
    fn announce_since(&mut self, since_ms: u64, now: Now, effects: &mut Effects) {
        let since_ms = self.announced_ms.max(since_ms);
        if self.queue().jobs().became_ready(since_ms, now) {
            effects.raise(Event::Ready);
        }
        self.announced_ms = self.announced_ms.max(now.ms());
    }
}
