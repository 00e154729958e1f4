//! The one timer of the module, at the earliest instant over all queues and all waits.
//!
//! A timerfd in the server's event loop reports the instant, to the microsecond. The work is done
//! in a module timer of 0 ms that it starts, because only a module timer has a context in which
//! effects can be propagated. Without a timerfd, a module timer alone does both, up to a
//! millisecond late.
//!
//! The timer does not make jobs due: it reads the clock, and firing too often or too early has no effect.
//!
//! The server's timers, also one of 0 ms, follow the wall clock: one that is pending when the clock
//! is set back would fire late by as much. So the timerfd reports a clock that was set, and a new
//! module timer replaces the pending one. It starts a moment later, as Valkey 9.1 continues with
//! the old time for a millisecond.
//!
//! The server reads its clock once, and then fires all timers that are due, also those that a
//! callback creates. If the clock is set back meanwhile, it would fire a new one over and over
//! until the old time comes again, and serve no client. So a callback checks whether the clock was
//! set back since the last check, and then creates none.

use super::api::timerfd::{self, Wakeup};
use super::api::{self, api, guarded};
use super::clock;
use redis_module::raw;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Servers up to 7.0 compute a timer's period in 32-bit microseconds: above 2,147,483 ms they spin.
const LONGEST_PERIOD_MS: u64 = 60_000;

/// How long after a change of the clock every server has noticed it.
const SETTLED_MS: u64 = 2;

/// Does what is due, and returns when there is more to do.
pub type Run = fn(Fired<'_>) -> Next;

/// Proof that the timer has fired and its work is under way: only then may clients be answered.
/// Elsewhere the server does not flush the context in which it replies to them.
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
    /// In so many ms, and not earlier.
    InMs(u64),
    /// At this unix-ms, unless the timer is armed for earlier.
    At(u64),
    /// When something happens.
    Never,
}

/// The pause after a panic, which is a bug and would come again at once.
pub const AFTER_PANIC_MS: u64 = 1000;

struct Timer {
    run: Cell<Run>,
    /// A context of the module's own, to create timers with and nothing else.
    ctx: Cell<*mut raw::RedisModuleCtx>,
    fd: Cell<c_int>,
    /// The instant that the timerfd is set to, or u64::MAX.
    armed_for: Cell<u64>,
    /// A module timer is pending that will check everything when it fires.
    is_checking: Cell<bool>,
    /// The pending module timer. With a timerfd there is at most one at a time.
    under_way: Cell<Option<raw::RedisModuleTimerID>>,
    /// What [`clock::ahead_us`] was at the last check.
    ahead_us: Cell<i64>,
    /// The clock was set: a module timer is started once the server has noticed that.
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
            is_checking: Cell::new(false),
            under_way: Cell::new(None),
            ahead_us: Cell::new(0),
            settling: Cell::new(false),
            fires: Cell::new(0),
            late_us_max: Cell::new(0),
        }
    };
}

/// Called once, at load. `run` is called when the timer fires.
pub fn start(ctx: api::Ctx<'_>, run: Run) {
    // SAFETY: live context; the detached one lives as long as the module, which is never unloaded.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext, ctx.raw()) };
    TIMER.with(|timer| {
        timer.run.set(run);
        timer.ahead_us.set(clock::ahead_us());
        timer.ctx.set(detached);
        timer.fd.set(timerfd::open(on_readable));
    });
}

/// The module's own context, to look at keys where the server passes none. Nothing may be written
/// with it: what it propagates is not flushed.
pub fn with_own_context<T>(look: impl FnOnce(api::Ctx<'_>) -> T) -> T {
    // SAFETY: made at load, and never freed.
    look(unsafe { api::Ctx::new(TIMER.with(|timer| timer.ctx.get())) })
}

/// Has the timer fire at this instant, or earlier.
pub fn arm(instant: u64) {
    TIMER.with(|timer| {
        if timer.is_checking.get() || instant >= timer.armed_for.get() {
            return;
        }
        let now = clock::real();
        if instant <= now.ms() {
            return start_timer(timer, 0);
        }
        timer.armed_for.set(instant);
        if timer.fd.get() >= 0 {
            if timerfd::set(timer.fd.get(), instant) {
                settle(timer);
            }
        } else {
            start_timer(timer, instant - now.ms());
        }
    });
}

pub fn set(next: Next) {
    match next {
        Next::InMs(ms) => check_in(ms),
        Next::At(instant) => arm(instant),
        Next::Never => {}
    }
}

/// Has the timer check everything in so many ms, or earlier.
pub fn check_in(ms: u64) {
    TIMER.with(|timer| {
        if !timer.is_checking.get() {
            start_timer(timer, ms);
        }
    });
}

fn start_timer(timer: &Timer, ms: u64) {
    // Without a timerfd, a timer pending for later must not keep one for now from being started.
    timer.is_checking.set(ms <= 1 || timer.fd.get() >= 0);
    let period = ms.min(LONGEST_PERIOD_MS) as i64;
    // SAFETY: the context was made at load; the callback takes no data.
    let id = unsafe {
        api!(
            RedisModule_CreateTimer,
            timer.ctx.get(),
            period,
            Some(on_timer),
            null_mut()
        )
    };
    timer.under_way.set(Some(id));
}

/// Whether the clock was set back since the last check, by more than a moment. A server would fire
/// a timer again only for as long as it was set back, so less does not matter.
fn was_set_back(timer: &Timer) -> bool {
    let is_less = |ahead_us| timer.ahead_us.get() - ahead_us > 1000 * SETTLED_MS as i64;
    let mut ahead_us = clock::ahead_us();
    if is_less(ahead_us) {
        // This process may have lost the processor between the two clocks.
        ahead_us = clock::ahead_us();
    }
    let was_set_back = is_less(ahead_us);
    timer.ahead_us.set(ahead_us);
    was_set_back
}

/// Stops the pending module timer, which might wait until the old time comes again. It cannot stay:
/// so long a period makes servers up to 7.0 spin.
fn settle(timer: &Timer) {
    if let Some(id) = timer.under_way.take() {
        // SAFETY: the module's own context; the timer has not fired, and this is not its callback.
        unsafe { api!(RedisModule_StopTimer, timer.ctx.get(), id, null_mut()) };
    }
    timer.ahead_us.set(clock::ahead_us());
    timer.settling.set(true);
    timer.is_checking.set(true);
    if timer.fd.get() >= 0 {
        timerfd::set_in(timer.fd.get(), SETTLED_MS);
    }
}

fn has_settled(timer: &Timer) {
    timer.settling.set(false);
    timer.armed_for.set(u64::MAX);
    if timer.fd.get() >= 0 {
        timerfd::watch_clock(timer.fd.get());
    }
    start_timer(timer, 0);
}

/// Called from the server's cron, whose clock is never set: where no timerfd reports that the clock
/// was set.
pub fn check_clock() {
    TIMER.with(|timer| {
        if timer.settling.get() {
            if timer.fd.get() < 0 {
                has_settled(timer);
            }
        } else if was_set_back(timer) && timer.under_way.get().is_some() {
            settle(timer);
        }
    });
}

/// How often the timer fired, and by how many µs it was late at most.
pub fn figures() -> (u64, u64) {
    TIMER.with(|timer| (timer.fires.get(), timer.late_us_max.get()))
}

/// Called by the event loop, without a context. So the work is left to a module timer, which has one.
unsafe extern "C" fn on_readable(fd: c_int, _data: *mut c_void, _mask: c_int) {
    guarded("the event loop's callback", (), || {
        let wakeup = timerfd::drain(fd);
        TIMER.with(|timer| match wakeup {
            // A client served earlier in the same turn of the event loop has set the timerfd anew:
            // it will report again.
            Wakeup::Nothing => {}
            Wakeup::ClockSet => settle(timer),
            Wakeup::InstantHasCome if timer.settling.get() => has_settled(timer),
            Wakeup::InstantHasCome if timer.is_checking.get() => {}
            Wakeup::InstantHasCome => start_timer(timer, 0),
        });
    });
}

unsafe extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    // After a panic the work is tried again: nothing else might ever wake an idle server.
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
    timer.is_checking.set(false);
    timer.under_way.set(None);
    timer.fires.set(timer.fires.get() + 1);
    let armed_for = timer.armed_for.replace(u64::MAX);
    if armed_for != u64::MAX {
        let late_us = clock::real()
            .us()
            .saturating_sub(armed_for.saturating_mul(1000));
        timer.late_us_max.set(timer.late_us_max.get().max(late_us));
    }
    if was_set_back(timer) {
        settle(timer);
    }
}
