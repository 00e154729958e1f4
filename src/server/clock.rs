//! The one place that reads the server's clock, and what is drawn from it for the whole server.

use crate::queue::clock::{Mint, Now};
use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    static MINT: RefCell<Mint> = const { RefCell::new(Mint::new()) };
}

pub fn now() -> Now {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Now::from_us(since_epoch.map_or(0, |since| since.as_micros() as u64))
}

/// Ids and tokens come from here alone. `draw` must not call the server: the mint is lent meanwhile.
pub fn with_mint<T>(draw: impl FnOnce(&mut Mint) -> T) -> T {
    MINT.with_borrow_mut(draw)
}
