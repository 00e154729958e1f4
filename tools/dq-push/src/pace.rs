//! When calls to a host may begin: its rate, and the breaker that spares a failing host.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, Instant};

/// The part of a second's calls that may begin at once.
const BURST: f64 = 0.05;

pub struct Pace {
    host: String,
    rate: Option<f64>,
    breaker: Option<(usize, Duration)>,
    state: Mutex<State>,
    closed: Notify,
}

struct State {
    tokens: f64,
    counted: Instant,
    failures: usize,
    open_until: Option<Instant>,
}

impl Pace {
    pub fn new(host: &str, rate: Option<f64>, breaker: Option<(usize, Duration)>) -> Pace {
        Pace {
            host: host.to_owned(),
            rate,
            breaker,
            state: Mutex::new(State {
                tokens: burst(rate),
                counted: Instant::now(),
                failures: 0,
                open_until: None,
            }),
            closed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a call may begin; returns how many may.
    pub async fn ready(&self) -> usize {
        loop {
            let closed = self.closed.notified();
            let wait = match self.allowed(Instant::now()) {
                Ok(count) => return count,
                Err(wait) => wait,
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = closed => {}
            }
        }
    }

    fn allowed(&self, now: Instant) -> Result<usize, Duration> {
        let mut state = self.state();
        let mut most = usize::MAX;
        if let Some(rate) = self.rate {
            let earned = now.duration_since(state.counted).as_secs_f64() * rate;
            state.tokens = (state.tokens + earned).min(burst(self.rate));
            state.counted = now;
            if state.tokens < 1.0 {
                let wait = (1.0 - state.tokens) / rate;
                return Err(Duration::from_secs_f64(wait) + Duration::from_millis(1));
            }
            most = state.tokens as usize;
        }
        let (Some((_, pause)), Some(until)) = (self.breaker, state.open_until) else {
            return Ok(most);
        };
        if let Some(wait) = until.checked_duration_since(now).filter(|it| !it.is_zero()) {
            return Err(wait);
        }
        // One call tests the host; until it has ended, others wait.
        state.open_until = Some(now + pause);
        Ok(1)
    }

    /// Counts a call that begins.
    pub fn spend(&self) {
        self.state().tokens -= 1.0;
    }

    /// Records a call's end, and whether the host answered as one that works.
    pub fn ended(&self, well: bool) {
        let Some((after, pause)) = self.breaker else {
            return;
        };
        let mut state = self.state();
        if well {
            state.failures = 0;
            if state.open_until.take().is_some() {
                eprintln!("dq http: host {}: answers again", self.host);
                self.closed.notify_waiters();
            }
            return;
        }
        state.failures += 1;
        if state.failures >= after {
            let is_new = state.open_until.replace(Instant::now() + pause).is_none();
            if is_new {
                eprintln!(
                    "dq http: host {}: {after} calls in a row have failed; one call every {pause:?} until it answers",
                    self.host
                );
            }
        }
    }

    pub fn is_open(&self) -> bool {
        self.state().open_until.is_some()
    }
}

fn burst(rate: Option<f64>) -> f64 {
    (rate.unwrap_or_default() * BURST).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_calls_than_the_rate() {
        let pace = Pace::new("a", Some(100.0), None);
        let begun = Instant::now();
        let mut calls = 0;
        for at_ms in 0..10_000 {
            if let Ok(count) = pace.allowed(begun + Duration::from_millis(at_ms)) {
                assert!(count <= 5);
                for _ in 0..count {
                    pace.spend();
                }
                calls += count;
            }
        }
        assert!((995..=1005).contains(&calls), "{calls}");
    }

    #[test]
    fn the_breaker_lets_one_call_find_out() {
        let pause = Duration::from_secs(30);
        let pace = Pace::new("a", None, Some((3, pause)));
        for well in [false, false, true, false, false] {
            pace.ended(well);
        }
        assert!(!pace.is_open(), "not in a row");
        pace.ended(false);
        let now = Instant::now();
        assert!(pace.is_open() && pace.allowed(now).is_err());
        let later = now + pause + pause;
        assert_eq!(pace.allowed(later), Ok(1));
        assert_eq!(pace.allowed(later), Err(pause), "only one");
        pace.ended(true);
        assert_eq!(pace.allowed(later), Ok(usize::MAX));
    }
}
