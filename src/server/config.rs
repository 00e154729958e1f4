//! The module's settings: CONFIG GET/SET dq.*, redis.conf, or arguments of the load.

use super::api::{api, guarded, log, Ctx, KeyName, OwnString, RawString, ERR, OK};
use crate::queue::job::INSTANT_MAX;
use crate::queue::settings::TTR_DEFAULT_MS;
use redis_module::configuration::{register_i64_configuration, ConfigurationFlags};
use redis_module::{raw, Context};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};

const TIMER_STEPS: (i64, i64, i64) = (1000, 10, 100_000);
const DEFAULT_TTR: (i64, i64, i64) = (TTR_DEFAULT_MS as i64, 1, INSTANT_MAX as i64);
/// From a second, doubling, to an hour.
const DEFAULT_BACKOFF: &str =
    "1000 2000 4000 8000 16000 32000 64000 128000 256000 512000 1024000 2048000 3600000";
const BACKOFF_STEPS_MAX: usize = 16;

/// Steps of one firing of the timer; a step is one job or one client.
static TIMER_STEPS_SETTING: AtomicI64 = AtomicI64::new(TIMER_STEPS.0);
/// The lease in ms of a job without a TTR, in a queue without one.
static DEFAULT_TTR_SETTING: AtomicI64 = AtomicI64::new(DEFAULT_TTR.0);

/// The waits of jobs without a ladder of their own. None is no wait.
struct DefaultBackoff {
    delays: Rc<[u64]>,
    /// The value of CONFIG GET, which the server reads after the call.
    text: OwnString,
}

thread_local! {
    static DEFAULT_BACKOFF_SETTING: RefCell<Option<DefaultBackoff>> = const { RefCell::new(None) };
}

pub fn timer_steps() -> usize {
    TIMER_STEPS_SETTING.load(Ordering::Relaxed).max(1) as usize
}

pub fn default_ttr_ms() -> u64 {
    DEFAULT_TTR_SETTING.load(Ordering::Relaxed).max(1) as u64
}

pub fn default_backoff() -> Rc<[u64]> {
    let delays = |set: &DefaultBackoff| Rc::clone(&set.delays);
    DEFAULT_BACKOFF_SETTING.with_borrow(|set| set.as_ref().map(delays).unwrap_or_default())
}

/// Only an argument of the load, not a setting: the clock stands still except for DQ.CLOCK.
const TEST_CLOCK: &str = "test-clock";
const BACKOFF: &str = "default-backoff";

/// An argument of the load: `name value`. Other bytes than ASCII are escaped.
pub struct Argument {
    pub name: String,
    pub value: Option<String>,
}

/// All whole numbers after `default-backoff` are its value: CONFIG REWRITE writes it without the quotes it may have had.
pub fn arguments<'a>(words: impl Iterator<Item = &'a [u8]>) -> Vec<Argument> {
    let mut words = words.map(|word| word.escape_ascii().to_string()).peekable();
    let mut all = Vec::new();
    while let Some(name) = words.next() {
        let mut value = words.next();
        let is_more = |word: &String| name == BACKOFF && parts(word).all(is_whole);
        while let (Some(value), Some(more)) = (&mut value, words.next_if(is_more)) {
            value.push(' ');
            value.push_str(&more);
        }
        all.push(Argument { name, value });
    }
    all
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split([' ', ',']);
    parts.filter(|part| !part.is_empty())
}

fn is_whole(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The delays that a `default-backoff` names.
fn ladder_of(text: &str) -> Option<Vec<u64>> {
    let number = |part: &str| part.parse().ok().filter(|_| is_whole(part));
    let delays: Vec<u64> = parts(text).map(number).collect::<Option<_>>()?;
    match delays[..] {
        [0] => Some(Vec::new()),
        _ => {
            let fits = (1..=BACKOFF_STEPS_MAX).contains(&delays.len())
                && delays.iter().all(|ms| (1..=INSTANT_MAX).contains(ms));
            fits.then_some(delays)
        }
    }
}

fn set_default_backoff(text: &str) -> Option<()> {
    let delays = ladder_of(text)?;
    let text = parts(text).collect::<Vec<_>>().join(" ");
    let new = DefaultBackoff {
        delays: delays.into(),
        text: OwnString::new(text.as_bytes()),
    };
    DEFAULT_BACKOFF_SETTING.set(Some(new));
    Some(())
}

unsafe extern "C" fn get_backoff(_name: *const c_char, _data: *mut c_void) -> RawString {
    guarded("CONFIG GET", null_mut(), || {
        let text = |set: &DefaultBackoff| set.text.name().raw();
        DEFAULT_BACKOFF_SETTING.with_borrow(|set| set.as_ref().map_or(null_mut(), text))
    })
}

unsafe extern "C" fn set_backoff(
    _name: *const c_char,
    value: RawString,
    _data: *mut c_void,
    error: *mut RawString,
) -> c_int {
    guarded("CONFIG SET", ERR, || {
        // SAFETY: the server's string, for this call.
        let value = unsafe { KeyName::new(value) };
        let text = std::str::from_utf8(value.bytes());
        if text.ok().and_then(set_default_backoff).is_some() {
            return OK;
        }
        let text = format!(
            "it takes 1 to {BACKOFF_STEPS_MAX} delays of 1 to {INSTANT_MAX} ms, or 0 for no wait"
        );
        // SAFETY: the server's place for an error, which it frees.
        unsafe { *error = OwnString::new(text.as_bytes()).into_raw() };
        ERR
    })
}

/// Whether the load's arguments ask for the clock for tests.
pub fn wants_test_clock(args: &[Argument]) -> bool {
    value_of(args, TEST_CLOCK) == Some("yes")
}

/// The first value of that name.
fn value_of<'a>(args: &'a [Argument], name: &str) -> Option<&'a str> {
    let named = args.iter().find(|arg| arg.name == name)?;
    named.value.as_deref()
}

/// Registers the settings. An argument of the load, which has been checked, is the default.
pub fn register(ctx: Ctx<'_>, args: &[Argument]) {
    let context = Context::new(ctx.raw());
    let number = |name, value, (default, min, max)| {
        let given = value_of(args, name).and_then(|value| value.parse().ok());
        let flags = ConfigurationFlags::DEFAULT;
        let default = given.unwrap_or(default);
        register_i64_configuration(&context, name, value, default, min, max, flags, None);
    };
    number("timer-steps", &TIMER_STEPS_SETTING, TIMER_STEPS);
    number("default-ttr", &DEFAULT_TTR_SETTING, DEFAULT_TTR);
    register_backoff(ctx, value_of(args, BACKOFF).unwrap_or(DEFAULT_BACKOFF));
    // SAFETY: the context of the load.
    unsafe { api!(RedisModule_LoadConfigs, ctx.raw()) };
}

/// The crate's own way would give the server a new string at each CONFIG GET, which nobody frees.
fn register_backoff(ctx: Ctx<'_>, default: &str) {
    let [name, default] = [BACKOFF, default].map(|text| CString::new(text).unwrap_or_default());
    // SAFETY: the context of the load; the server copies name and default.
    unsafe {
        api!(
            RedisModule_RegisterStringConfig,
            ctx.raw(),
            name.as_ptr(),
            default.as_ptr(),
            raw::REDISMODULE_CONFIG_DEFAULT,
            Some(get_backoff),
            Some(set_backoff),
            None,
            null_mut(),
        )
    };
}

/// Whether the load's arguments are settings with values within bounds.
pub fn are_arguments_sound(args: &[Argument]) -> bool {
    let sound = args.iter().all(|arg| {
        let value = arg.value.as_deref();
        let bounds = match &arg.name[..] {
            TEST_CLOCK => return matches!(value, Some("yes" | "no")),
            BACKOFF => return value.and_then(ladder_of).is_some(),
            "timer-steps" => TIMER_STEPS,
            "default-ttr" => DEFAULT_TTR,
            _ => return false,
        };
        let number = value.filter(|value| is_whole(value) && !value.starts_with('0'));
        let number = number.and_then(|digits| digits.parse().ok());
        number.is_some_and(|number: i64| (bounds.1..=bounds.2).contains(&number))
    });
    if !sound {
        let (steps, ttr) = (TIMER_STEPS, DEFAULT_TTR);
        log(
            c"warning",
            &format!(
                "arguments are: [timer-steps {}..{}] [default-ttr {}..{} (ms)] \
                 [default-backoff ms ... (1 to {BACKOFF_STEPS_MAX}, or 0)] [test-clock yes|no]",
                steps.1, steps.2, ttr.1, ttr.2
            ),
        );
    }
    sound
}
