//! The timeout of a blocking command: seconds as a float, as BLPOP takes them.

use crate::queue::clock::Now;
use crate::server::api::Refusal;

pub fn parsed(seconds: &[u8]) -> Option<f64> {
    std::str::from_utf8(seconds).ok()?.parse().ok()
}

/// The instant at which a wait of so many seconds ends; u64::MAX for 0, which is for ever.
pub fn end_of_wait(seconds: &[u8], now: Now) -> Result<u64, Refusal> {
    const NO_FLOAT: &str = "ERR timeout is not a float or out of range";
    // What most workers say.
    if seconds == b"0" {
        return Ok(u64::MAX);
    }
    let seconds = parsed(seconds).filter(|&seconds| seconds < f64::INFINITY);
    let seconds = seconds.ok_or(Refusal(NO_FLOAT.into()))?;
    if seconds < 0.0 {
        return Err(Refusal("ERR timeout is negative".into()));
    }
    if seconds == 0.0 {
        return Ok(u64::MAX);
    }
    let us = seconds * 1e6;
    if us > (i64::MAX / 2) as f64 {
        return Err(Refusal(NO_FLOAT.into()));
    }
    Ok((now.us() + us.ceil() as u64).div_ceil(1000))
}
