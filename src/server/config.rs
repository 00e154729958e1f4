//! The module's settings: CONFIG GET/SET dq.*, redis.conf, or arguments of the load.

use super::api::log;
use crate::queue::job::INSTANT_MAX;
use crate::queue::settings::TTR_DEFAULT_MS;
use lazy_static::lazy_static;
use redis_module::RedisString;
use std::sync::atomic::{AtomicI64, Ordering};

pub const TIMER_STEPS: (i64, i64, i64) = (1000, 10, 100_000);
pub const DEFAULT_TTR: (i64, i64, i64) = (TTR_DEFAULT_MS as i64, 1, INSTANT_MAX as i64);

lazy_static! {
    /// Steps of one firing of the timer; a step is one job or one client.
    pub static ref TIMER_STEPS_SETTING: AtomicI64 = AtomicI64::new(TIMER_STEPS.0);
    /// The lease in ms of a job without a TTR, in a queue without one.
    pub static ref DEFAULT_TTR_SETTING: AtomicI64 = AtomicI64::new(DEFAULT_TTR.0);
}

pub fn timer_steps() -> usize {
    TIMER_STEPS_SETTING.load(Ordering::Relaxed).max(1) as usize
}

pub fn default_ttr_ms() -> u64 {
    DEFAULT_TTR_SETTING.load(Ordering::Relaxed).max(1) as u64
}

/// Only an argument of the load, not a setting: the clock stands still except for DQ.CLOCK.
const TEST_CLOCK: &[u8] = b"test-clock";

/// Whether the load's arguments ask for the clock for tests.
pub fn wants_test_clock(args: &[RedisString]) -> bool {
    let pair = args.chunks(2).find(|pair| pair[0].as_slice() == TEST_CLOCK);
    pair.is_some_and(|pair| pair[1..].iter().any(|value| value.as_slice() == b"yes"))
}

/// Whether the load's arguments are settings with values within bounds: `name value ...`.
pub fn are_arguments_sound(args: &[RedisString]) -> bool {
    let sound = args.chunks(2).all(|pair| {
        let bounds = match pair[0].as_slice() {
            TEST_CLOCK => {
                let value = pair.get(1).map(RedisString::as_slice);
                return matches!(value, Some(b"yes" | b"no"));
            }
            b"timer-steps" => TIMER_STEPS,
            b"default-ttr" => DEFAULT_TTR,
            _ => return false,
        };
        let value = pair.get(1).and_then(|value| value.parse_integer().ok());
        value.is_some_and(|value| (bounds.1..=bounds.2).contains(&value))
    });
    if !sound {
        let (steps, ttr) = (TIMER_STEPS, DEFAULT_TTR);
        log(
            c"warning",
            &format!(
                "arguments are: [timer-steps {}..{}] [default-ttr {}..{} (ms)] [test-clock yes|no]",
                steps.1, steps.2, ttr.1, ttr.2
            ),
        );
    }
    sound
}
