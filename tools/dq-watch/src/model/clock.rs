//! The clock by which history is recorded.

use std::time::{SystemTime, UNIX_EPOCH};

/// This machine's clock, unix-ms.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
