//! Which queues need a look, and why: by their figures, and by what is usual for them.

use std::time::Instant;

use dq_watch::model::row::Row;
use dq_watch::model::stats::{DEAD, READY};
use dq_watch::text::why::{self, Lapses};
use dq_watch::text::{escape, units};

use super::history::Parts;

const OLD_MS: u64 = 5000;
const LATE_US: u64 = 100_000;
/// A lateness needs a look if it is so many times the usual one.
const UNUSUAL: u64 = 2;
/// So many times these limits, or what is usual, come before deaths.
const MUCH: u64 = 10;
/// What is usual follows from so many hours with deliveries, or more.
const USUAL_FROM: usize = 3;

/// What a queue's figures say, whatever is usual for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Why it has no figures of this moment.
    silent: Option<String>,
    dead: u64,
    ready: u64,
    /// For how long the oldest ready job has been due, whether clients take jobs, and whether the queue is paused.
    waits_ms: Option<u64>,
    is_asked: bool,
    /// Whether the figures alone tell that: only the server knows whose the leases are.
    is_told: bool,
    is_paused: bool,
    late_us: Option<u64>,
    /// Most leases expire, and not only one did.
    lapses: Option<Lapses>,
}

/// What is known of a queue's last day.
#[derive(Clone, Copy, Debug, Default)]
pub struct Day {
    /// Of its dead jobs those that died in it, and whether there may be more.
    pub died: Option<(u64, bool)>,
    /// Those that the board saw die.
    pub seen: u64,
    /// The usual lateness.
    pub usual_us: Option<u64>,
}

impl Signs {
    pub fn of(row: &Row, is_down: bool, now: Instant) -> Signs {
        let refused = row.refusal.as_ref();
        let refused = refused.map(|why| escape::line(why.as_bytes()));
        let down = is_down.then(|| "its server cannot be reached".to_owned());
        let oldest = row.stats.as_ref().and_then(|it| it.oldest_ready_ms);
        let late = row.surely_over(0.99, now);
        let is_paused = row.is_paused();
        Signs {
            silent: refused.or(down),
            dead: row.jobs(DEAD),
            ready: row.jobs(READY),
            waits_ms: oldest.filter(|ms| *ms >= OLD_MS || (is_paused && row.jobs(READY) > 0)),
            is_asked: row.is_attended() != Some(false),
            is_told: !row.leases_tell(),
            is_paused,
            late_us: late.filter(|us| *us >= LATE_US),
            lapses: row.lapses().filter(|it| it.are_most()),
        }
    }

    /// What hurts most comes first, as docs/board.md has it: the larger, the more urgent; 0: nothing of it needs a look.
    pub fn rank(&self, day: Day) -> (u8, u64) {
        let usual_us = day.usual_us.unwrap_or_default();
        let waits = self.waits_ms.filter(|_| !self.is_paused);
        let waited = waits.map_or(0, |ms| ms / OLD_MS.max(usual_us / 1000));
        let late = self.late_us.map_or(0, |us| us / LATE_US.max(usual_us));
        let times = waited.max(late);
        let dead = if self.died(day).is_some() {
            self.dead
        } else {
            0
        };
        match self {
            Signs {
                is_asked: false, ..
            } if waited >= MUCH => (6, self.ready.saturating_mul(waits.unwrap_or_default())),
            _ if times >= MUCH => (5, times),
            // That a server does not answer is said above all.
            Signs {
                silent: Some(_), ..
            } => (4, 0),
            _ if dead > 0 => (3, day.deaths().unwrap_or(dead)),
            _ if waits.is_some() || self.late_us.is_some() || self.lapses.is_some() => (2, times),
            Signs {
                waits_ms: Some(ms), ..
            } => (1, *ms),
            _ => (0, 0),
        }
    }

    /// Its rank as one number, as far as the day is not needed.
    pub fn weight(&self) -> f64 {
        let (class, weight) = self.rank(Day::default());
        f64::from(class) + (weight as f64 + 1.0).log2() / 65.0
    }

    /// Whether it must be asked whose leases these are, as the rank depends on it.
    pub fn asks(&self) -> bool {
        let is_far = self.waits_ms.is_some_and(|ms| ms >= MUCH * OLD_MS);
        self.silent.is_none() && !self.is_paused && !self.is_told && is_far
    }

    /// With what the server says about that.
    pub fn with(self, is_asked: bool) -> Signs {
        Signs { is_asked, ..self }
    }

    /// Whether DQ.EXPLAIN can say more.
    pub fn waits(&self) -> bool {
        self.silent.is_none() && self.waits_ms.is_some()
    }

    /// Whether it must be asked when its dead jobs died.
    pub fn has_dead(&self) -> bool {
        self.silent.is_none() && self.dead > 0
    }

    /// Why the queue needs a look; none if all is as usual.
    pub fn reasons(&self, day: Day) -> Vec<String> {
        let late = self.late_us;
        let late = late.filter(|us| day.usual_us.is_none_or(|it| *us >= UNUSUAL * it));
        let late = late.map(|us| {
            let usual = day.usual_us.map_or(String::new(), |it| {
                format!(", usually {}", units::spaced(&units::micros(it)))
            });
            format!(
                "1 % of the last deliveries were later than {}{usual}",
                units::spaced(&units::micros(us))
            )
        });
        let waits = self.waits_ms.map(|ms| {
            format!(
                "a job has been due for {}",
                units::spaced(&units::millis(ms))
            )
        });
        // Beside jobs that wait DQ.EXPLAIN says it.
        let lapses = self.lapses.filter(|_| !self.waits()).map(why::lapsed);
        [self.silent.clone(), self.died(day), waits, late, lapses]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Jobs that have been dead for longer than a day are known.
    fn died(&self, day: Day) -> Option<String> {
        let (died, is_more) = day.died.unwrap_or_default();
        // One may have died after the figures were read.
        let dead = match self.dead {
            0 => return None,
            dead => dead.max(died),
        };
        let are = match dead {
            1 => "1 job is dead".to_owned(),
            dead => format!("{} jobs are dead", units::full(dead)),
        };
        let of_them = match (day.died, is_more) {
            (None, _) => return Some(are),
            (Some((0, _)), _) => return None,
            (_, false) if dead == 1 => "it".to_owned(),
            (_, false) if died == dead => "all of them".to_owned(),
            (_, false) => format!("{} of them", units::full(died)),
            (_, true) => format!("at least {} of them", units::full(died)),
        };
        Some(format!("{are}, {of_them} died since yesterday"))
    }
}

impl Day {
    /// How many died, as far as that is known.
    fn deaths(&self) -> Option<u64> {
        let (died, is_more) = self.died?;
        Some(if is_more { died.max(self.seen) } else { died })
    }
}

/// The median of the hours with deliveries.
pub fn usual(day: &Parts) -> Option<u64> {
    // The last one is what is compared.
    let before = &day.late_us[..day.late_us.len().saturating_sub(1)];
    let mut late: Vec<u64> = before.iter().copied().filter(|us| *us > 0).collect();
    late.sort_unstable();
    (late.len() >= USUAL_FROM).then(|| late[late.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::history::{Slot, HOUR_MS};

    fn died(died: u64, is_more: bool) -> Day {
        Day {
            died: Some((died, is_more)),
            ..Day::default()
        }
    }

    #[test]
    fn deaths_of_long_ago_are_known() {
        let signs = Signs {
            dead: 3000,
            ..Signs::default()
        };
        assert_eq!(signs.reasons(Day::default()), ["3,000 jobs are dead"]);
        assert_eq!(signs.reasons(died(0, false)), [""; 0]);
        assert_eq!(signs.rank(died(0, false)).0, 0);
        assert_eq!(
            signs.reasons(died(2, false)),
            ["3,000 jobs are dead, 2 of them died since yesterday"]
        );
        assert_eq!(
            signs.reasons(died(100, true)),
            ["3,000 jobs are dead, at least 100 of them died since yesterday"]
        );
        let few = |dead: u64| Signs {
            dead,
            ..Signs::default()
        };
        assert_eq!(
            few(9).reasons(died(10, false)),
            ["10 jobs are dead, all of them died since yesterday"],
            "one more since the figures were read"
        );
        assert_eq!(
            few(1).reasons(died(1, false)),
            ["1 job is dead, it died since yesterday"]
        );
        let seen = Day {
            seen: 350,
            ..died(100, true)
        };
        assert!(few(120).rank(seen) > few(120).rank(died(99, false)));
        assert_eq!(
            few(120).reasons(seen),
            ["120 jobs are dead, at least 100 of them died since yesterday"],
            "others may have been retried"
        );
        assert_eq!(
            Signs::default().reasons(died(2, false)),
            [""; 0],
            "retried or deleted"
        );
    }

    #[test]
    fn lateness_is_beside_what_is_usual() {
        let signs = Signs {
            late_us: Some(500_000),
            ..Signs::default()
        };
        let said = "1 % of the last deliveries were later than 500 ms";
        let of = |late_us: u64| {
            let mut day = Parts::new(0, HOUR_MS, 25);
            let slot = Slot {
                late_us,
                ..Slot::default()
            };
            (0..4).for_each(|hour| day.add(hour * HOUR_MS, HOUR_MS, slot));
            Day {
                usual_us: usual(&day),
                ..Day::default()
            }
        };
        assert_eq!(signs.reasons(of(0)), [said]);
        assert_eq!(
            signs.reasons(of(20_000)),
            [format!("{said}, usually 20 ms")]
        );
        assert_eq!(signs.reasons(of(300_000)), [""; 0]);
    }

    #[test]
    fn what_hurts_most_comes_first() {
        let waits = |ms: u64, is_asked: bool| Signs {
            ready: 3000,
            waits_ms: Some(ms),
            is_asked,
            ..Signs::default()
        };
        let paused = Signs {
            is_paused: true,
            ..waits(600_000, false)
        };
        let dead = Signs {
            dead: 500,
            ..Signs::default()
        };
        let late = Signs {
            late_us: Some(2_000_000),
            ..Signs::default()
        };
        let few = Signs {
            ready: 1,
            ..waits(900_000, false)
        };
        let lapses = Signs {
            lapses: Some(Lapses {
                lapsed: 3,
                ended: 4,
            }),
            ..Signs::default()
        };
        let said = ["3 of the last 4 leases expired without an ACK"];
        assert_eq!(lapses.reasons(Day::default()), said);
        let silent = Signs {
            silent: Some("NOPERM".to_owned()),
            ..Signs::default()
        };
        let order = [
            &waits(600_000, false),
            &few,
            &waits(600_000, true),
            &late,
            &silent,
            &dead,
            &waits(9000, false),
            &lapses,
            &paused,
            &Signs::default(),
        ];
        let ranks = order.map(|it| it.rank(Day::default()));
        assert!(ranks.is_sorted_by(|a, b| a > b), "{ranks:?}");
        let weights = order.map(Signs::weight);
        assert!(weights.is_sorted_by(|a, b| a > b), "{weights:?}");
        assert_eq!(ranks[9].0, 0);
        let nightly = Day {
            usual_us: Some(300_000_000),
            ..Day::default()
        };
        let usual = waits(600_000, false).rank(nightly);
        assert!(usual < dead.rank(Day::default()), "usual for it");
        assert_eq!(
            waits(9000, true).reasons(Day::default()),
            ["a job has been due for 9.0 s"]
        );
    }
}
