//! What answers are made of: bounded, with nothing in them that hides what it is.

use std::time::{Duration, UNIX_EPOCH};

use dq_watch::read::detail::Cut;
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::Value as Reply;
use serde_json::{json, Value};

/// Bytes of an answer's list.
const LIST_MAX: usize = 32 * 1024;
/// Bytes of a reason, and of whatever else others wrote in a few words.
const REASON_MAX: usize = 256;
/// Bytes of a payload, a result or a step.
pub const PAYLOAD_MAX: usize = 1024;

/// The rows of a list, as many as were asked for and an answer holds.
#[derive(Default)]
pub struct Rows {
    what: &'static str,
    limit: usize,
    rows: Vec<Value>,
    bytes: usize,
    /// Where the list goes on after the last row, and whether it does.
    next: String,
    is_cut: bool,
}

impl Rows {
    pub fn of(what: &'static str, limit: usize) -> Rows {
        Rows {
            what,
            limit,
            ..Rows::default()
        }
    }

    /// Whether there was room for it. `next`: where the list goes on after it.
    pub fn push(&mut self, row: Value, next: impl Fn() -> String) -> bool {
        self.bytes += row.to_string().len() + 1;
        let is_full = self.rows.len() == self.limit || self.bytes > LIST_MAX;
        self.is_cut = is_full && !self.rows.is_empty();
        if !self.is_cut {
            self.rows.push(row);
            self.next = next();
        }
        !self.is_cut
    }

    pub fn answer(self, note: Option<&str>) -> Value {
        let next = self.is_cut.then_some(self.next);
        lean(json!({ self.what: self.rows, "next": next, "note": note }))
    }
}

/// Without members that say nothing.
pub fn lean(mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    value
}

/// An instant, in UTC.
pub fn instant(ms: i64) -> Value {
    let since = Duration::from_millis(ms.max(0) as u64);
    json!(humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string())
}

pub fn name(bytes: &[u8]) -> Value {
    json!(escape::name(bytes))
}

/// A few words that others wrote.
pub fn reason(bytes: &[u8]) -> Value {
    of_others(&Cut::of(bytes, REASON_MAX))
}

/// What others wrote.
pub fn of_others(cut: &Cut) -> Value {
    let mut said = json!({ "of_others": escape::line(&cut.bytes) });
    if cut.is_cut() || cut.or_more {
        said["cut_after_bytes"] = cut.bytes.len().into();
    }
    said
}

/// The first value, which must not be an error.
pub fn answered(values: &[Reply]) -> Result<&Reply, String> {
    let value = values.first().ok_or("no answer")?;
    match reply::error(value) {
        Some(error) => Err(escape::line(error.as_bytes())),
        None => Ok(value),
    }
}
