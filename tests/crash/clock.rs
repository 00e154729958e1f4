//! The clock of a run, which stamps the entries of its history.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::history::Stamp;

#[derive(Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    pub fn new() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    pub fn stamp(&self) -> Stamp {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Stamp {
            at_us: self.start.elapsed().as_micros() as u64,
            wall_us: wall.expect("a clock past 1970").as_micros() as u64,
        }
    }
}
