//! The value of a queue's key: the queue, and what this server knows about it beside.

use super::agenda::{self, Ticket};
use super::{clock, replicate};
use crate::queue::clock::Now;
use crate::queue::effects::Effects;
use crate::queue::event::Event;
use crate::queue::{HashSeed, Queue};
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
    pub queue: Queue,
    /// The instant at which the key stands on the agenda, or stood before it was parked there;
    /// u64::MAX where it does not.
    pub armed_for: u64,
    /// Dues up to then have been told to those who listen.
    pub announced_ms: u64,
    /// Where the queue's figures are entered.
    pub ticket: Ticket,
}

impl Value {
    pub fn new(queue: Queue) -> Self {
        Value {
            queue,
            armed_for: u64::MAX,
            announced_ms: clock::now().ms(),
            ticket: Ticket::default(),
        }
    }

    /// Enters the queue's figures under that name, wherever they were entered before.
    pub fn account_as(&mut self, db: c_int, name: &[u8]) {
        let (figures, until) = self.queue.figures(clock::now());
        agenda::account_anew(db, name, &mut self.ticket, figures, until);
    }

    /// Tells those who listen that dues have come since the last time; before anything else happens
    /// to the queue, so that what a command makes ready is not told twice.
    pub fn announce(&mut self, now: Now, effects: &mut Effects) {
        if let Some(since_ms) = replicate::events_are_wanted_since() {
            if self
                .queue
                .became_ready(self.announced_ms.max(since_ms), now)
            {
                effects.raise(Event::Ready);
            }
        }
        self.announced_ms = self.announced_ms.max(now.ms());
        self.queue.count_along(now);
    }
}
