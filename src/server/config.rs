//! The module's settings: CONFIG GET/SET dq.*, redis.conf, or arguments of the load.

use super::api::{api, log, Ctx};
use crate::queue::job::INSTANT_MAX;
use crate::queue::settings::TTR_DEFAULT_MS;
use redis_module::configuration::{
    get_i64_default_config_value, register_i64_configuration, ConfigurationFlags,
};
use redis_module::{Context, RedisString};
use std::sync::atomic::{AtomicI64, Ordering};

const TIMER_STEPS: (i64, i64, i64) = (1000, 10, 100_000);
const DEFAULT_TTR: (i64, i64, i64) = (TTR_DEFAULT_MS as i64, 1, INSTANT_MAX as i64);

/// Steps of one firing of the timer; a step is one job or one client.
static TIMER_STEPS_SETTING: AtomicI64 = AtomicI64::new(TIMER_STEPS.0);
/// The lease in ms of a job without a TTR, in a queue without one.
static DEFAULT_TTR_SETTING: AtomicI64 = AtomicI64::new(DEFAULT_TTR.0);

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

/// Registers the settings. An argument of the load, which has been checked, is the default.
pub fn register(ctx: Ctx<'_>, args: &[RedisString]) {
    let context = Context::new(ctx.raw());
    let number = |name, value, (default, min, max)| {
        let default = get_i64_default_config_value(args, name, default).unwrap_or(default);
        let flags = ConfigurationFlags::DEFAULT;
        register_i64_configuration(&context, name, value, default, min, max, flags, None);
    };
    number("timer-steps", &TIMER_STEPS_SETTING, TIMER_STEPS);
    number("default-ttr", &DEFAULT_TTR_SETTING, DEFAULT_TTR);
    // SAFETY: the context of the load.
    unsafe { api!(RedisModule_LoadConfigs, ctx.raw()) };
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
