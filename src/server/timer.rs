//! The one timer of the module, at the earliest instant over all queues and all waits.
//!
//! A timerfd in the server's event loop tells the moment, to the microsecond; what has to be done is
//! done in a module timer of 0 ms that it starts, because only that has a context in which effects
//! can be propagated. Where there is no timerfd, a module timer alone does both, a millisecond late.
//!
//! Nothing is ever due by the timer: it asks the clock, and firing too often or too early does
//! nothing.
//!
//! The server's timers, the one of 0 ms too, go by the clock: one that is under way when the clock is set
//! back would fire as much later. So the timerfd tells of that as well, and a new one takes its place;
//! a moment later, as Valkey 9.1 goes on with the old time for a millisecond.
//!
//! The server reads its clock once, and then fires all timers that are due, those included that a callback creates. If the
//! clock is set back meanwhile, it would fire a new one over and over until the old time comes again, and serve
//! nobody. So none is created where the clock shows less than it did, or than the timer that fires was due at.

use super::api::timerfd::{self, Wakeup};
use super::api::{self, api, guarded};
use super::clock;
use redis_module::raw;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Servers up to 7.0 reckon a timer's period in 32-bit microseconds: above 2,147,483 ms one spins.
const LONGEST_PERIOD_MS: u64 = 60_000;

/// After the clock was set: until then every server has seen that it was.
const SETTLED_MS: u64 = 2;

/// Does what is due, and says when there is more to do.
pub type Run = fn(Fired<'_>) -> Next;

/// Says that the timer has fired and its work is under way: only then clients may be handed something.
/// Elsewhere the context in which the server has them replied to is not flushed.
#[derive(Clone, Copy)]
pub struct Fired<'a> {
    ctx: api::Ctx<'a>,
}

impl<'a> Fired<'a> {
    pub fn ctx(self) -> api::Ctx<'a> {
        self.ctx
    }
}

/// When the timer must fire again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// In so many ms, and not before.
    InMs(u64),
    /// At that unix-ms, unless something comes before.
    At(u64),
    /// When something happens.
    Never,
}

/// After a panic, which is a bug and would come again at once.
pub const AFTER_PANIC_MS: u64 = 1000;

struct Timer {
    run: Cell<Run>,
    /// A context of the module's own, to create timers with and nothing else.
    ctx: Cell<*mut raw::RedisModuleCtx>,
    fd: Cell<c_int>,
    /// The instant that the timerfd is set to, or u64::MAX.
    armed_for: Cell<u64>,
    /// A module timer is under way that will look at everything when it fires.
    looking: Cell<bool>,
    /// It, where there is a timerfd: then there is one at a time.
    under_way: Cell<Option<raw::RedisModuleTimerID>>,
    /// The unix-us at which it is due; once it has fired, what the clock has reached at least.
    reached_us: Cell<u64>,
    /// The clock was set: one will be under way when the timerfd tells that it has settled.
    settling: Cell<bool>,
    fires: Cell<u64>,
    late_us_max: Cell<u64>,
}

thread_local! {
    static TIMER: Timer = const {
        Timer {
            run: Cell::new(|_| Next::Never),
            ctx: Cell::new(null_mut()),
            fd: Cell::new(-1),
            armed_for: Cell::new(u64::MAX),
            looking: Cell::new(false),
            under_way: Cell::new(None),
            reached_us: Cell::new(0),
            settling: Cell::new(false),
            fires: Cell::new(0),
            late_us_max: Cell::new(0),
        }
    };
}

/// Once, at load. `run` is called when the timer fires.
pub fn start(ctx: api::Ctx<'_>, run: Run) {
    // SAFETY: live context; the detached one lives as long as the module, which is never unloaded.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext, ctx.raw()) };
    TIMER.with(|timer| {
        timer.run.set(run);
        timer.ctx.set(detached);
        timer.fd.set(timerfd::open(on_readable));
    });
}

/// The module's own context, for a look at keys where the server passes none. Nothing is written
/// with it: what it propagates is not flushed.
pub fn with_own_context<T>(look: impl FnOnce(api::Ctx<'_>) -> T) -> T {
    // SAFETY: made at load, and never freed.
    look(unsafe { api::Ctx::new(TIMER.with(|timer| timer.ctx.get())) })
}

/// Something needs attention at that instant.
pub fn arm(instant: u64) {
    TIMER.with(|timer| {
        if timer.looking.get() || instant >= timer.armed_for.get() {
            return;
        }
        let now = clock::real();
        if instant <= now.ms() {
            return look_in(timer, 0);
        }
        timer.armed_for.set(instant);
        if timer.fd.get() >= 0 {
            if timerfd::set(timer.fd.get(), instant) {
                settle(timer);
            }
        } else {
            look_in(timer, instant - now.ms());
        }
    });
}

pub fn set(next: Next) {
    match next {
        Next::InMs(ms) => look_again_in(ms),
        Next::At(instant) => arm(instant),
        Next::Never => {}
    }
}

/// Looks at everything in that many ms, or earlier.
pub fn look_again_in(ms: u64) {
    TIMER.with(|timer| {
        if !timer.looking.get() {
            look_in(timer, ms);
        }
    });
}

fn look_in(timer: &Timer, ms: u64) {
    let now_us = clock::real().us();
    if is_set_back(timer, now_us) {
        return settle(timer);
    }
    // Without a timerfd a timer under way for later must not keep one for now from being started.
    timer.looking.set(ms <= 1 || timer.fd.get() >= 0);
    let period = ms.min(LONGEST_PERIOD_MS);
    timer.reached_us.set(now_us + period * 1000);
    // SAFETY: the context was made at load; the callback takes no data.
    let id = unsafe {
        api!(
            RedisModule_CreateTimer,
            timer.ctx.get(),
            period as i64,
            Some(on_timer),
            null_mut()
        )
    };
    timer.under_way.set(Some(id));
}

/// Servers fire a timer up to a millisecond early.
fn is_set_back(timer: &Timer, now_us: u64) -> bool {
    timer.fd.get() >= 0 && now_us + SETTLED_MS * 1000 < timer.reached_us.get()
}

/// The module timer under way may have to wait for the old time to come again. Nor may it stay: a period
/// that long makes servers up to 7.0 spin.
fn settle(timer: &Timer) {
    if let Some(id) = timer.under_way.take() {
        // SAFETY: its own context; it has not fired, and this is not its callback.
        unsafe { api!(RedisModule_StopTimer, timer.ctx.get(), id, null_mut()) };
    }
    timer.reached_us.set(0);
    timer.settling.set(true);
    timer.looking.set(true);
    timerfd::set_in(timer.fd.get(), SETTLED_MS);
}

/// How often the timer did its work, and how much later than it was set to, at most.
pub fn figures() -> (u64, u64) {
    TIMER.with(|timer| (timer.fires.get(), timer.late_us_max.get()))
}

/// Called by the event loop: without a context, so nothing is done but to ask for one.
unsafe extern "C" fn on_readable(fd: c_int, _data: *mut c_void, _mask: c_int) {
    guarded("the event loop's callback", (), || {
        let wakeup = timerfd::drain(fd);
        TIMER.with(|timer| match wakeup {
            // A client served before, in the same turn of the event loop, has set it anew: it will tell.
            Wakeup::Nothing => {}
            Wakeup::ClockSet => settle(timer),
            Wakeup::InstantHasCome if timer.settling.replace(false) => {
                timer.armed_for.set(u64::MAX);
                timerfd::watch_clock(timer.fd.get());
                look_in(timer, 0);
            }
            Wakeup::InstantHasCome if timer.looking.get() => {}
            Wakeup::InstantHasCome => look_in(timer, 0),
        });
    });
}

unsafe extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    // Where the work panics it is tried again: nothing else might ever wake an idle server.
    let next = guarded("the timer", Next::InMs(AFTER_PANIC_MS), || {
        TIMER.with(note_firing);
        let run = TIMER.with(|timer| timer.run.get());
        // SAFETY: the server passed the context to this callback.
        let ctx = unsafe { api::Ctx::new(ctx) };
        run(Fired { ctx })
    });
    guarded("setting the timer", (), || set(next));
}

fn note_firing(timer: &Timer) {
    timer.looking.set(false);
    timer.under_way.set(None);
    timer.fires.set(timer.fires.get() + 1);
    let now_us = clock::real().us();
    let armed_for = timer.armed_for.replace(u64::MAX);
    if armed_for != u64::MAX {
        let late_us = now_us.saturating_sub(armed_for.saturating_mul(1000));
        timer.late_us_max.set(timer.late_us_max.get().max(late_us));
    }
    // From here on nobody creates one until the clock has settled.
    if is_set_back(timer, now_us) {
        settle(timer);
    } else {
        timer.reached_us.set(timer.reached_us.get().max(now_us));
    }
}
