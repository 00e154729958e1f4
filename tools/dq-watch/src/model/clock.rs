//! The clock by which the past is written down.

use std::time::{SystemTime, UNIX_EPOCH};

/// Of this machine.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
