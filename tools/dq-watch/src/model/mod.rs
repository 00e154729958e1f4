//! What is known of the queues, and what follows from two readings. No connections, no terminal.

pub mod board;
pub mod clock;
pub mod column;
pub mod lateness;
pub mod overall;

pub mod row;
pub mod stats;

/// A queue's name in the whole server, or cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    pub db: u32,
    pub name: Vec<u8>,
}

impl QueueKey {
    pub fn new(db: u32, name: impl Into<Vec<u8>>) -> QueueKey {
        QueueKey {
            db,
            name: name.into(),
        }
    }
}
