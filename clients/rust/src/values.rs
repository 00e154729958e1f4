//! Reads the server's replies, of RESP2 and RESP3.

use redis::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::VerbatimString { text, .. } => Some(text.into_bytes()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

pub(crate) fn text(value: Value) -> Option<String> {
    bytes(value).map(lossy)
}

pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
}

pub(crate) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Boolean(is) => i64::from(*is),
        Value::BulkString(digits) => std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn duration(value: &Value) -> Duration {
    Duration::from_millis(int(value).max(0) as u64)
}

/// An instant; `None` if there is none.
pub(crate) fn instant(value: &Value) -> Option<SystemTime> {
    match value {
        Value::Int(ms) if *ms >= 0 => Some(at_ms(*ms)),
        _ => None,
    }
}

pub(crate) fn at_ms(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.max(0) as u64)
}

pub(crate) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) | Value::Set(list) => list,
        _ => Vec::new(),
    }
}

/// A map, or a flat list that stands for one.
pub(crate) fn map(value: Value) -> Vec<(String, Value)> {
    let named = |(name, value)| Some((text(name)?, value));
    match value {
        Value::Map(pairs) => pairs.into_iter().filter_map(named).collect(),
        other => {
            let mut flat = list(other).into_iter();
            let mut pairs = Vec::new();
            while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
                pairs.extend(named((name, value)));
            }
            pairs
        }
    }
}

pub(crate) fn pairs(value: Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let flat = match value {
        Value::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(name, value)| [name, value])
            .collect(),
        other => list(other),
    };
    let mut flat = flat.into_iter().filter_map(bytes);
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// Whole milliseconds, rounded up: no wait is shorter than asked for.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Rounded up: nothing comes too early.
pub(crate) fn instant_ms(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, ms)
}

/// Seconds, as the commands' timeouts are written.
pub(crate) fn seconds(wait: Duration) -> String {
    format!("{}", ms(wait) as f64 / 1000.0)
}

/// The text of an error of the server.
pub(crate) fn server_error(error: &redis::ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// The text of any error of redis-rs; of a server's error, without the words that redis-rs adds.
pub(crate) fn error_text(error: &redis::RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        _ => error.to_string(),
    }
}
