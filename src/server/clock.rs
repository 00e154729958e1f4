//! The only place that reads the server's clock, and the server's source of ids and tokens.
//!
//! With `test-clock yes`, queues follow a clock that stands still until DQ.CLOCK moves it
//! ([`super::test_clock`]). What is not about jobs (blocked clients, the timer itself, slots that
//! move) follows the real clock.

use crate::queue::clock::{Mint, Now};
use crate::queue::job::INSTANT_MAX;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static MINT: RefCell<Mint> = const { RefCell::new(Mint::new()) };
}

/// The unix-ms at which the test clock stands; 0 without one.
static STANDS_AT: AtomicU64 = AtomicU64::new(0);

/// The clock of all queues.
pub fn now() -> Now {
    match STANDS_AT.load(Ordering::Relaxed) {
        0 => real(),
        ms => Now::from_ms(ms),
    }
}

/// The real time. Every command reads it: clock_gettime alone takes half the time of SystemTime and
/// its Duration.
pub fn real() -> Now {
    Now::from_us(read(libc::CLOCK_REALTIME))
}

/// How far the clock is ahead of the monotonic one: it falls when the clock is set back.
pub fn ahead_us() -> i64 {
    real().us().wrapping_sub(read(libc::CLOCK_MONOTONIC)) as i64
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: clocks that every system has, and a valid pointer for the result; so it cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + time.tv_nsec as u64 / 1000
}

/// Called at load: from here on the clock moves only by [`super::test_clock`].
pub fn stand_still() {
    STANDS_AT.store(real().ms().max(1), Ordering::Relaxed);
}

pub fn is_for_tests() -> bool {
    STANDS_AT.load(Ordering::Relaxed) != 0
}

/// Moves the test clock forward to this unix-ms; never back.
pub fn move_to(ms: u64) {
    STANDS_AT.fetch_max(ms.min(INSTANT_MAX), Ordering::Relaxed);
}

/// Lends the mint, the only source of ids and tokens. `draw` must not call the server while the
/// mint is lent.
pub fn with_mint<T>(draw: impl FnOnce(&mut Mint) -> T) -> T {
    MINT.with_borrow_mut(draw)
}
