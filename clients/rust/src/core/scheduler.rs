//! Which link fetches next, if several share a worker's places, and when none does.
//!
//! A fetch that waits holds places that ready jobs of another link may need, so it can be recalled.

use std::time::{Duration, Instant};

/// How long after a recall a link has its next turn; also the longest wait of a fetch that cannot be recalled.
pub(super) const TURN: Duration = Duration::from_millis(250);
/// How long a fetch may wait before it is recalled, with few links.
const HOLD: Duration = Duration::from_millis(25);

/// How long a fetch may wait before it is recalled. With many links it is shorter, so that a link with jobs fetches
/// at least half of the time.
fn hold(links: usize) -> Duration {
    HOLD.min(TURN / (2 * links.max(1)) as u32)
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    /// When the link's turn comes.
    Due(Instant),
    /// Since when the link fetches, or was last recalled.
    Out { since: Instant, is_recalled: bool },
}

/// The turn of each link.
#[derive(Debug)]
pub(super) struct LinkScheduler(Vec<Turn>);

impl LinkScheduler {
    pub fn new(links: usize, now: Instant) -> Self {
        LinkScheduler(vec![Turn::Due(now); links])
    }

    /// The link whose turn comes first, and when, of those that may fetch.
    fn next(&self, may: impl Fn(usize) -> bool) -> Option<(Instant, usize)> {
        let due = |(link, turn): (usize, &Turn)| match turn {
            Turn::Due(at) if may(link) => Some((*at, link)),
            _ => None,
        };
        self.0.iter().enumerate().filter_map(due).min()
    }

    /// The link whose fetch is recalled next, and when. One is recalled at a time, and gets time to return.
    fn next_out(&self) -> Option<(usize, Instant)> {
        let out = |(link, turn): (usize, &Turn)| match turn {
            Turn::Out { since, is_recalled } => Some((*since, link, *is_recalled)),
            Turn::Due(_) => None,
        };
        let out = self.0.iter().enumerate().filter_map(out);
        let (since, late, _) = out.clone().min()?;
        let leaving = out.filter(|(.., is_recalled)| *is_recalled);
        let last = leaving.map(|(since, ..)| since).max();
        Some((late, last.unwrap_or(since).max(since) + hold(self.0.len())))
    }

    /// The link whose turn it is now.
    pub fn first(&self, now: Instant, may: impl Fn(usize) -> bool) -> Option<usize> {
        let first = self.next(may).filter(|(at, _)| *at <= now);
        first.map(|(_, link)| link)
    }

    pub fn begin(&mut self, link: usize, now: Instant) {
        self.0[link] = Turn::Out {
            since: now,
            is_recalled: false,
        };
    }

    pub fn end(&mut self, link: usize, now: Instant, is_empty: bool) {
        let was_recalled = matches!(
            self.0[link],
            Turn::Out {
                is_recalled: true,
                ..
            }
        );
        let rests = was_recalled && is_empty;
        self.0[link] = Turn::Due(if rests { now + TURN } else { now });
    }

    /// Recalls the fetch of a link, as it is another link's turn and no place is left; returns the link.
    pub fn recall(&mut self, now: Instant) -> Option<usize> {
        let (late, at) = self.next_out()?;
        if now < at {
            return None;
        }
        self.0[late] = Turn::Out {
            since: now,
            is_recalled: true,
        };
        Some(late)
    }

    /// When to look again, if no link may begin now.
    pub fn look_at(&self, now: Instant, may: impl Fn(usize) -> bool) -> Option<Instant> {
        let (due, _) = self.next(may)?;
        if due > now {
            return Some(due);
        }
        self.next_out().map(|(_, at)| at)
    }
}

const SHORTEST_ISOLATION: Duration = Duration::from_secs(1);
const LONGEST_ISOLATION: Duration = Duration::from_secs(24 * 3600);

/// When nothing is fetched until nothing is in hand, and then one job, as one may have ended its workers.
///
/// In hand, that job would lose its last attempt with the next one that ends the worker. So it waits in the server, where
/// an idle worker finds it at once. No worker holds it, so no two can wait for each other.
///
/// It lasts as long as `patience` at most, for a handler that takes longer must not keep all the others idle. For as
/// long other jobs are fetched then, and that one is delayed: it has the next try.
#[derive(Debug)]
pub(super) struct Isolation {
    patience: Duration,
    /// When it ends, or ended.
    pub until: Option<Instant>,
}

impl Isolation {
    pub fn new(patience: Duration) -> Self {
        Isolation {
            patience: patience.clamp(SHORTEST_ISOLATION, LONGEST_ISOLATION),
            until: None,
        }
    }

    /// A job that is to run alone is given back, as others are in hand. Returns by how much it is delayed.
    pub fn want(&mut self, now: Instant) -> Option<Duration> {
        match self.until.map(|until| until + self.patience) {
            Some(next) if now < next => (!self.is_on(now)).then(|| next - now),
            _ => {
                self.until = Some(now + self.patience);
                None
            }
        }
    }

    pub fn is_on(&self, now: Instant) -> bool {
        self.look_at(now).is_some()
    }

    /// When it ends, if it is on.
    pub fn look_at(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    pub fn end(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAYED_MS: u32 = 5000;

    /// Plays links that find nothing, and end their fetches `lag_ms` after they are recalled. Returns the longest
    /// time that a link was without a fetch, and the shortest fetch.
    fn play(links: usize, places: usize, lag_ms: u32) -> (Duration, Option<Duration>) {
        let begun = Instant::now();
        let at = |ms: u32| begun + Duration::from_millis(ms.into());
        let mut scheduler = LinkScheduler::new(links, begun);
        let mut ends: Vec<Option<Instant>> = vec![None; links];
        let mut fetching = vec![false; links];
        let mut last = vec![begun; links];
        let (mut gap, mut shortest) = (Duration::ZERO, None::<Duration>);
        for now in (0..PLAYED_MS).map(at) {
            for link in 0..links {
                if ends[link].is_some_and(|end| end <= now) {
                    let took = now - last[link];
                    shortest = Some(shortest.map_or(took, |known| known.min(took)));
                    (ends[link], fetching[link], last[link]) = (None, false, now);
                    scheduler.end(link, now, true);
                }
            }
            while let Some(link) = scheduler.first(now, |_| true) {
                if fetching.iter().filter(|is| **is).count() == places {
                    if let Some(late) = scheduler.recall(now) {
                        assert!(ends.iter().all(Option::is_none), "another one is leaving");
                        ends[late] = Some(now + Duration::from_millis(lag_ms.into()));
                    }
                    break;
                }
                scheduler.begin(link, now);
                gap = gap.max(now - last[link]);
                (fetching[link], last[link]) = (true, now);
            }
        }
        for link in (0..links).filter(|link| !fetching[*link]) {
            gap = gap.max(at(PLAYED_MS) - last[link]);
        }
        (gap, shortest)
    }

    #[test]
    fn every_link_has_its_turn() {
        for links in 1..=12 {
            for places in 1..=12 {
                for lag_ms in 1..=5 {
                    let (gap, shortest) = play(links, places, lag_ms);
                    let round = (HOLD + Duration::from_millis(10)) * links as u32;
                    assert!(
                        gap <= TURN + round,
                        "{links} links at {places} places: {gap:?}"
                    );
                    assert!(shortest.is_none_or(|shortest| shortest >= hold(links)));
                    assert_eq!(shortest.is_none(), places >= links);
                }
            }
        }
    }

    #[test]
    fn who_found_something_needs_not_wait() {
        let now = Instant::now();
        let mut scheduler = LinkScheduler::new(2, now);
        scheduler.begin(0, now);
        assert_eq!(scheduler.recall(now), None);
        assert_eq!(scheduler.recall(now + HOLD), Some(0));
        scheduler.end(0, now + HOLD, false);
        scheduler.begin(1, now + HOLD);
        assert_eq!(scheduler.first(now + HOLD, |_| true), Some(0));
    }

    #[test]
    fn it_is_isolated_for_some_time_and_then_for_as_long_not() {
        let (now, drain) = (Instant::now(), Duration::from_secs(25));
        let second = Duration::from_secs(1);
        let mut isolation = Isolation::new(drain);
        assert!(!isolation.is_on(now));
        assert_eq!(isolation.want(now), None);
        assert_eq!(isolation.want(now + drain - second), None);
        assert!(isolation.is_on(now + drain - second));
        assert!(!isolation.is_on(now + drain));
        assert_eq!(isolation.want(now + drain + second), Some(drain - second));
        assert_eq!(isolation.want(now + 2 * drain), None);
        assert!(isolation.is_on(now + 2 * drain));
        isolation.end();
        assert!(!isolation.is_on(now + 2 * drain));
        assert_eq!(isolation.want(now + 3 * drain), None, "it begins anew");
    }
}
