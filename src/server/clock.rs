//! The one place that reads the server's clock, and what is drawn from it for the whole server.

use crate::queue::clock::{Mint, Now};
use std::cell::RefCell;

thread_local! {
    static MINT: RefCell<Mint> = const { RefCell::new(Mint::new()) };
}

/// Every command asks: clock_gettime itself takes half the time of SystemTime and its Duration.
pub fn now() -> Now {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock that every system has, and a place for its answer; it cannot fail so.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Now::from_us(seconds * 1_000_000 + time.tv_nsec as u64 / 1000)
}

/// Ids and tokens come from here alone. `draw` must not call the server: the mint is lent meanwhile.
pub fn with_mint<T>(draw: impl FnOnce(&mut Mint) -> T) -> T {
    MINT.with_borrow_mut(draw)
}
