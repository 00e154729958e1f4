//! Parts of a server's replies, RESP2 and RESP3 alike. What is not as expected is None.

use redis::Value;

/// An error reply, as the server wrote it.
pub fn error(value: &Value) -> Option<String> {
    let Value::ServerError(error) = value else {
        return None;
    };
    Some(match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    })
}

/// Where the key is, as a cluster's node says: `MOVED 3999 127.0.0.1:6381`.
pub fn moved_to(error: &str) -> Option<&str> {
    error.strip_prefix("MOVED ")?.split(' ').nth(1)
}

pub fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::SimpleString(text) => Some(text.clone().into_bytes()),
        Value::VerbatimString { text, .. } => Some(text.clone().into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

pub fn text(value: &Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub fn array(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) | Value::Set(values) => Some(values),
        _ => None,
    }
}

/// The server's clock, as TIME tells it.
pub fn time_ms(value: &Value) -> Option<i64> {
    let [seconds, micros] = array(value)? else {
        return None;
    };
    Some(int(seconds)? * 1000 + int(micros)? / 1000)
}
