//! One reading of a queue.

/// The totals that DQ.STATS has, by its names and in its order; INFO dq has the same (`timed_out`).
pub const TOTALS: [&str; 9] = [
    "added",
    "delivered",
    "acked",
    "nacked",
    "timed-out",
    "died",
    "deleted",
    "expired",
    "missed",
];

/// Places in `TOTALS`.
pub const ADDED: usize = 0;
pub const DELIVERED: usize = 1;
pub const ACKED: usize = 2;
pub const NACKED: usize = 3;
pub const TIMED_OUT: usize = 4;
pub const DIED: usize = 5;
pub const MISSED: usize = 8;

pub type Totals = [u64; TOTALS.len()];
pub type Rates = [f64; TOTALS.len()];

/// The states of a job, in the order in which their jobs are counted and listed.
pub const STATES: [&str; 6] = ["delayed", "ready", "reserved", "dead", "blocked", "done"];

/// Places in `STATES`.
pub const DELAYED: usize = 0;
pub const READY: usize = 1;
pub const RESERVED: usize = 2;
pub const DEAD: usize = 3;
pub const BLOCKED: usize = 4;

/// Jobs by state.
pub type Jobs = [u64; STATES.len()];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    pub jobs: Jobs,
    /// Unix-ms.
    pub next_due: Option<i64>,
    pub oldest_ready_ms: Option<u64>,
    pub waiting_clients: u64,
    pub recurring: u64,
    /// Groups that hold jobs which are not dead.
    pub groups: u64,
    /// The cost of the deliveries in the window of RATE.
    pub rate_used: u64,
    pub bytes: u64,
    /// Bytes of done jobs, as DONEBYTES counts them.
    pub done_bytes: u64,
    /// 0: not paused. -1: until resumed. Otherwise the instant at which the pause ends.
    pub paused: i64,
    pub totals: Totals,
    pub lateness_count: u64,
    pub lateness_sum_us: u64,
    pub lateness_max_us: u64,
    pub lateness: Vec<(Option<u64>, u64)>,
}

/// Growth per second. A total that fell was reset in between, so all of it is new.
pub fn rates(old: &Totals, new: &Totals, seconds: f64) -> Rates {
    let mut rates = Rates::default();
    for (rate, (old, new)) in rates.iter_mut().zip(old.iter().zip(new)) {
        let grown = new.checked_sub(*old).unwrap_or(*new);
        *rate = if seconds > 0.0 {
            grown as f64 / seconds
        } else {
            0.0
        };
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_second() {
        let (mut old, mut new) = (Totals::default(), Totals::default());
        (old[ADDED], new[ADDED]) = (100, 150);
        (old[ACKED], new[ACKED]) = (40, 10);
        let rates = rates(&old, &new, 2.5);
        assert_eq!(rates[ADDED], 20.0);
        assert_eq!(rates[ACKED], 4.0, "fell, so began anew");
        assert_eq!(rates[DIED], 0.0);
        assert_eq!(
            super::rates(&old, &new, 0.0)[ADDED],
            0.0,
            "no time, no rate"
        );
    }
}
