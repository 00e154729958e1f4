//! Which queues need a look, and why: by their figures, and by what is usual for them.

use std::time::Instant;

use dq_watch::model::lateness::Late;
use dq_watch::model::row::Row;
use dq_watch::model::stats::{DEAD, READY};
use dq_watch::text::{escape, units};

use super::history::Parts;

const OLD_MS: u64 = 5000;
const LATE_US: u64 = 100_000;
/// A lateness needs a look if it is so many times the usual one.
const UNUSUAL: u64 = 2;
/// What is usual follows from so many hours with deliveries, or more.
const USUAL_FROM: usize = 3;

/// What a queue's figures say, whatever is usual for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Why it has no figures of this moment.
    silent: Option<String>,
    dead: u64,
    /// How long the oldest ready job has waited, and whether the queue is paused.
    waits_ms: Option<u64>,
    is_paused: bool,
    late_us: Option<u64>,
}

impl Signs {
    pub fn of(row: &Row, is_down: bool, now: Instant) -> Signs {
        let refused = row.refusal.as_ref();
        let refused = refused.map(|why| escape::line(why.as_bytes()));
        let down = is_down.then(|| "its server cannot be reached".to_owned());
        let oldest = row.stats.as_ref().and_then(|it| it.oldest_ready_ms);
        let late = row.percentile(0.99, now);
        let late = late.map(|it| match it {
            Late::AtMost(us) | Late::Over(us) => us,
        });
        let is_paused = row.is_paused();
        Signs {
            silent: refused.or(down),
            dead: row.jobs(DEAD),
            waits_ms: oldest.filter(|ms| *ms >= OLD_MS || (is_paused && row.jobs(READY) > 0)),
            is_paused,
            late_us: late.filter(|us| *us >= LATE_US),
        }
    }

    /// The more urgent, the larger; 0: nothing of it needs a look.
    pub fn rank(&self) -> (u8, u64) {
        match self {
            Signs { dead: 1.., .. } => (5, self.dead),
            Signs {
                silent: Some(_), ..
            } => (4, 0),
            Signs {
                is_paused: false,
                waits_ms: Some(ms),
                ..
            } => (3, *ms),
            Signs {
                late_us: Some(us), ..
            } => (2, *us),
            Signs {
                waits_ms: Some(ms), ..
            } => (1, *ms),
            _ => (0, 0),
        }
    }

    /// Whether DQ.EXPLAIN can say more.
    pub fn waits(&self) -> bool {
        self.silent.is_none() && self.waits_ms.is_some()
    }

    /// Why the queue needs a look; none if all is as usual. `day`: its history by the hour.
    pub fn reasons(&self, day: Option<&Parts>) -> Vec<String> {
        let late = self.late_us.map(|us| (us, usual(day)));
        let late = late.filter(|(us, usual)| usual.is_none_or(|it| *us >= UNUSUAL * it));
        let late = late.map(|(us, usual)| {
            let usual = usual.map_or(String::new(), |it| {
                format!(", usually {}", units::spaced(&units::micros(it)))
            });
            format!(
                "1 % of the last deliveries were later than {}{usual}",
                units::spaced(&units::micros(us))
            )
        });
        let waits = self.waits_ms.map(|ms| {
            format!(
                "a job has been ready for {}",
                units::spaced(&units::millis(ms))
            )
        });
        [self.silent.clone(), self.deaths(day), waits, late]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Jobs that have been dead for longer than a day are known, if the board saw all of it.
    fn deaths(&self, day: Option<&Parts>) -> Option<String> {
        let died = day.map_or(0.0, |it| it.died.iter().sum::<f64>()).round() as u64;
        let is_whole = day.is_some_and(|it| it.known.iter().all(|known| *known));
        let are = |count: u64| {
            if count == 1 {
                "1 job is".to_owned()
            } else {
                format!("{} jobs are", units::full(count))
            }
        };
        match (self.dead, died) {
            (0, _) => None,
            (_, 0) if is_whole => None,
            (dead, 0) => Some(format!("{} dead", are(dead))),
            (dead, died) => Some(format!(
                "{} dead, {} died since yesterday",
                are(dead),
                units::full(died)
            )),
        }
    }
}

/// The median of the hours with deliveries.
fn usual(day: Option<&Parts>) -> Option<u64> {
    let hours = day.map_or(&[][..], |it| &it.late_us);
    // The last one is what is compared.
    let before = &hours[..hours.len().saturating_sub(1)];
    let mut late: Vec<u64> = before.iter().copied().filter(|us| *us > 0).collect();
    late.sort_unstable();
    (late.len() >= USUAL_FROM).then(|| late[late.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::history::{Slot, HOUR_MS};

    fn day(died: u64, late_us: u64, hours: i64) -> Parts {
        let mut day = Parts::new(0, HOUR_MS, 25);
        day.knows(HOUR_MS * (25 - hours), HOUR_MS * hours);
        day.add(
            0,
            HOUR_MS,
            Slot {
                died,
                ..Slot::default()
            },
        );
        for hour in 0..4 {
            day.add(
                hour * HOUR_MS,
                HOUR_MS,
                Slot {
                    late_us,
                    ..Slot::default()
                },
            );
        }
        day
    }

    #[test]
    fn deaths_of_long_ago_are_known() {
        let signs = Signs {
            dead: 3,
            ..Signs::default()
        };
        assert_eq!(signs.reasons(None), ["3 jobs are dead"]);
        assert_eq!(signs.reasons(Some(&day(0, 0, 24))), ["3 jobs are dead"]);
        assert_eq!(signs.reasons(Some(&day(0, 0, 25))), [""; 0]);
        assert_eq!(
            signs.reasons(Some(&day(2, 0, 25))),
            ["3 jobs are dead, 2 died since yesterday"]
        );
        let none = Signs {
            dead: 0,
            ..Signs::default()
        };
        assert_eq!(
            none.reasons(Some(&day(2, 0, 25))),
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
        assert_eq!(signs.reasons(None), [said]);
        assert_eq!(
            signs.reasons(Some(&day(0, 20_000, 25))),
            [format!("{said}, usually 20 ms")]
        );
        assert_eq!(signs.reasons(Some(&day(0, 300_000, 25))), [""; 0]);
    }

    #[test]
    fn dead_jobs_before_late_ones_before_a_pause() {
        let late = Signs {
            waits_ms: Some(9000),
            ..Signs::default()
        };
        let paused = Signs {
            is_paused: true,
            ..late.clone()
        };
        let dead = Signs {
            dead: 1,
            ..Signs::default()
        };
        assert!(dead.rank() > late.rank() && late.rank() > paused.rank());
        assert_eq!(Signs::default().rank().0, 0);
        assert_eq!(late.reasons(None), ["a job has been ready for 9.0 s"]);
    }
}
