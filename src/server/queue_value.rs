//! The value of a queue's key: the queue, and what this server knows about it that is not data.

use super::agenda::{self, Ticket};
use super::{clock, idle, replicate};
use crate::queue::clock::Now;
use crate::queue::effects::Effects;
use crate::queue::event::Event;
use crate::queue::state::asleep::Asleep;
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

/// The server's handle of the data type: [`super::datatype`] sets it at load.
static DATA_TYPE: AtomicPtr<raw::RedisModuleType> = AtomicPtr::new(null_mut());

pub fn set_data_type(data_type: *mut raw::RedisModuleType) {
    DATA_TYPE.store(data_type, Ordering::Relaxed);
}

pub fn data_type() -> *mut raw::RedisModuleType {
    DATA_TYPE.load(Ordering::Relaxed)
}

lazy_static! {
    /// Drawn at load: ids come from users.
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
    /// The instant at which the key stands on the agenda, or stood before it was parked there;
    /// u64::MAX where it does not.
    pub armed_for: u64,
    /// Jobs due up to then have raised their events.
    pub announced_ms: u64,
    /// Where the queue's figures are entered.
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
        }]))
    }
}

/// Beside the queue what its way to sleep needs.
struct Awake {
    queue: Queue,
    /// Since [`super::sleep`] came by.
    is_used: bool,
    /// By which ticket it will come by again.
    enlisted: Ticket,
}

/// What becomes of a queue that [`super::sleep`] comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It was used: look again later.
    Again,
    /// It sleeps from now on, with so many jobs.
    Asleep(usize),
    /// It slept already, or cannot sleep as it is.
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

    /// To be looked at or changed: awake from here on.
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

    /// Has the queue looked at in the next sweeps, unless it sleeps.
    #[inline]
    pub fn enlist(&mut self) {
        let ticket = self.ticket;
        if let Some(awake) = self.awake() {
            if std::mem::replace(&mut awake.enlisted, ticket) != ticket {
                idle::enlist(ticket);
            }
        }
    }

    /// Has the queue sleep if nobody has used it since the last look.
    pub fn look(&mut self) -> Look {
        let Some(awake) = self.awake() else {
            return Look::Done;
        };
        if std::mem::take(&mut awake.is_used) {
            return Look::Again;
        }
        awake.enlisted = Ticket::default();
        self.sleep()
    }

    /// Where the queue can.
    pub fn sleep(&mut self) -> Look {
        let Some(awake) = self.awake() else {
            return Look::Done;
        };
        let Some(asleep) = awake.queue.asleep() else {
            return Look::Done;
        };
        let jobs = awake.queue.free_effort();
        self.form = Form::Asleep(asleep);
        Look::Asleep(jobs)
    }

    /// As it is, for who may not change it.
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

    /// For who frees it.
    pub fn into_queue(self) -> Option<Queue> {
        match self.form {
            Form::Awake(awake) => {
                let [awake] = *awake;
                Some(awake.queue)
            }
            Form::Asleep(_) => None,
        }
    }

    /// What the allocator gives for all of it.
    pub fn memory_bytes(&self) -> usize {
        let form = match &self.form {
            Form::Awake(awake) => {
                awake[0].queue.memory_bytes() - size_of::<Queue>() + allocated(size_of::<Awake>())
            }
            Form::Asleep(asleep) => asleep.memory_bytes(),
        };
        allocated(size_of::<Self>()) + form
    }

    /// Goes on from a cursor as [`Queue::relocate`] does.
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
        let (figures, until, done) = match &mut self.form {
            Form::Awake(awake) => {
                let queue = &mut awake[0].queue;
                let (figures, until) = queue.figures(clock::now());
                (figures, until, queue.done_figures())
            }
            Form::Asleep(asleep) => {
                let (figures, until) = asleep.figures(clock::now());
                (figures, until, (figures.done, figures.done_bytes))
            }
        };
        agenda::account_anew(db, name, &mut self.ticket, figures, until);
        if done.0 > 0 {
            agenda::enter_done(db, self.ticket, done);
        }
        self.enlist();
    }

    /// Tells subscribers that jobs have become due since the last time; before anything else happens
    /// to the queue, so that what a command makes ready raises one event.
    pub fn announce(&mut self, now: Now, effects: &mut Effects) {
        if let Some(since_ms) = replicate::subscribed_since() {
            let since_ms = self.announced_ms.max(since_ms);
            if self.queue().became_ready(since_ms, now) {
                effects.raise(Event::Ready);
            }
        }
        self.announced_ms = self.announced_ms.max(now.ms());
        self.queue().count_along(now);
    }
}
