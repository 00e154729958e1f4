//! Seeds, and reports of what was run with them.

use std::env;
use std::fmt;

use crate::history::Tally;

pub fn from_env(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// The seed of `DQ_SEED` alone, or the first `count`.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    match from_env("DQ_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + count,
    }
}

#[derive(Default)]
pub struct Report {
    pub cycles: u64,
    pub tally: Tally,
}

impl Report {
    pub fn add(&mut self, cycles: u64, tally: &Tally) {
        self.cycles += cycles;
        self.tally.add(tally);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} cycles, {}", self.cycles, self.tally)
    }
}
