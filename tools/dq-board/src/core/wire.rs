//! Bytes and figures as the browser gets them. Names and ids may be any bytes: they are sent percent-encoded, and also
//! as text that is safe to show.

use std::collections::HashMap;
use std::fmt::Write;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use dq_watch::model::lateness::Late;
use dq_watch::model::row::{Measured, Row};
use dq_watch::model::stats::{ACKED, ADDED, DELIVERED};
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{After, Attempt, Cut, Group, Job, PeekedJob, Settings, Step};
use dq_watch::read::said::{self, Said};
use dq_watch::read::shares::Share;
use dq_watch::text::escape;
use serde_json::{json, Value};

use super::attention::Signs;

/// Bars of the sparkline.
const TREND: usize = 30;

pub fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(byte.into());
            }
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

pub fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

/// The query part of a URL. Values may be any bytes.
pub fn query(text: &str) -> HashMap<&str, Vec<u8>> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name, decoded(value))).collect()
}

/// The name under which the browser asks for a queue.
pub fn name_of(key: &QueueKey) -> String {
    format!("{}:{}", key.db, encoded(&key.name))
}

/// The queue of a name from a query, which is already decoded.
pub fn key_of_bytes(name: &[u8]) -> Option<QueueKey> {
    let colon = name.iter().position(|&byte| byte == b':')?;
    let db = std::str::from_utf8(&name[..colon]).ok()?.parse().ok()?;
    Some(QueueKey::new(db, &name[colon + 1..]))
}

pub fn key_of(name: &str) -> Option<QueueKey> {
    let (db, name) = name.split_once(':')?;
    Some(QueueKey::new(db.parse().ok()?, decoded(name)))
}

fn late(late: Option<Late>) -> Value {
    match late {
        None => Value::Null,
        Some(Late::AtMost(us)) => us.into(),
        // Negative: later than that.
        Some(Late::Over(us)) => (-(us as i64)).into(),
    }
}

fn rate(per_second: f64) -> f64 {
    (per_second * 10.0).round() / 10.0
}

/// A row of the table.
pub fn row(row: &Row, now: std::time::Instant, several_dbs: bool) -> Value {
    let mut shown = json!({
        "key": name_of(&row.key),
        "name": escape::name(&row.key.name),
        "node": row.node,
    });
    if several_dbs {
        shown["db"] = row.key.db.into();
    }
    if row.gone {
        shown["gone"] = true.into();
    }
    if let Some(refusal) = &row.refusal {
        shown["refusal"] = escape::line(refusal.as_bytes()).into();
    }
    let look = Signs::of(row, false, now).weight();
    if look > 0.0 && !row.gone {
        shown["look"] = ((look * 1e5).round() / 1e5).into();
    }
    let Some(stats) = &row.stats else {
        return shown;
    };
    let trend = row.history.delivered.values();
    let trend = &trend[trend.len().saturating_sub(TREND)..];
    shown["jobs"] = json!(stats.jobs);
    shown["rates"] = json!([ADDED, DELIVERED, ACKED].map(|of| rate(row.rates[of])));
    shown["late"] = json!([0.5, 0.99].map(|share| late(row.percentile(share, now))));
    shown["oldest"] = json!(stats.oldest_ready_ms);
    shown["next"] = json!(stats.next_due);
    shown["waiting"] = stats.waiting_clients.into();
    shown["paused"] = stats.paused.into();
    shown["recurring"] = stats.recurring.into();
    shown["groups"] = stats.groups.into();
    if stats.rate_used > 0 {
        shown["rateUsed"] = stats.rate_used.into();
    }
    shown["bytes"] = stats.bytes.into();
    shown["doneBytes"] = stats.done_bytes.into();
    shown["totals"] = json!(stats.totals);
    if trend.iter().any(|&rate| rate > 0.0) {
        shown["trend"] = trend.iter().map(|&value| rate(value)).collect();
    }
    shown
}

pub fn settings(settings: &Settings) -> Value {
    json!({
        "ttr": settings.ttr_ms,
        "attempts": settings.attempts,
        "backoff": settings.backoff_ms,
        "maxlen": settings.maxlen,
        "maxbytes": settings.maxbytes,
        "deadlen": settings.deadlen,
        "dedupe": settings.dedupe_ms,
        "maxreserved": settings.maxreserved,
        "rate": [settings.rate.0, settings.rate.1],
        "groupmax": settings.groupmax,
        "grouprate": [settings.grouprate.0, settings.grouprate.1],
        "groupfifo": settings.groupfifo,
        "donelen": settings.donelen,
        "donettl": settings.donettl_ms,
        "donebytes": settings.donebytes,
        "history": settings.history,
    })
}

/// An id, encoded as the browser asks for it and as it is shown.
pub fn named(id: &[u8]) -> Value {
    json!({ "id": encoded(id), "name": escape::name(id) })
}

/// The beginning of a payload, in one line.
fn line(cut: &Cut) -> String {
    let mut text = escape::line(&cut.bytes);
    if cut.is_cut() {
        text.push('…');
    }
    text
}

pub fn group(group: &Group, own: &Share) -> Value {
    json!({
        "weight": own.weight,
        "max": own.max,
        "rate": own.rate.map(|(count, ms)| [count, ms]),
        "maxlen": own.maxlen,
        "paused": own.paused,
        "used": own.rate_used,
        "id": encoded(&group.name),
        "name": escape::name(&group.name),
        "waiting": group.waiting,
        "reserved": group.reserved,
    })
}

pub fn peeked(job: &PeekedJob) -> Value {
    json!({
        "id": encoded(&job.id),
        "name": escape::name(&job.id),
        "payload": line(&job.payload),
        "length": job.payload.length,
        "at": job.at_ms,
        "attempts": job.attempts,
        "priority": job.priority,
    })
}

/// A job as in a list, with what only reading it shows.
pub fn listed(peeked_job: &PeekedJob, job: &Job) -> Value {
    let mut shown = peeked(peeked_job);
    shown["reason"] = job.reason.as_deref().map(escape::text).into();
    shown["result"] = job.result.as_ref().map(line).into();
    shown["ran"] = job.ran_ms().into();
    shown["after"] = job.after.as_ref().map(After::text).into();
    shown
}

/// A job as in a list of jobs that were found, in any state.
pub fn found(job: &Job) -> Value {
    let peeked_job = PeekedJob {
        id: job.id.clone(),
        payload: job.payload.clone(),
        at_ms: job.at_ms(),
        attempts: job.attempts,
        priority: job.priority,
    };
    let mut shown = listed(&peeked_job, job);
    shown["state"] = job.state.as_str().into();
    shown["group"] = job.group.as_deref().map(escape::name).into();
    shown["label"] = job.label().map(escape::name).into();
    shown
}

/// How many workers there seem to be, and how long a job takes them.
pub fn measured(measured: Measured) -> Value {
    json!({ "workers": measured.workers, "ms": (measured.ms * 10.0).round() / 10.0 })
}

/// A payload: text if it is valid UTF-8, else base64.
fn payload(cut: &Cut) -> Value {
    let whole = match std::str::from_utf8(&cut.bytes) {
        Ok(text) => Some(text),
        // Only the character at the cut is incomplete.
        Err(error) if cut.is_cut() && error.error_len().is_none() => {
            std::str::from_utf8(&cut.bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    let length = (!cut.or_more).then_some(cut.length);
    let mut shown = json!({ "length": length, "shown": cut.bytes.len() });
    match whole {
        Some(text) => shown["text"] = text.into(),
        None => shown["base64"] = STANDARD.encode(&cut.bytes).into(),
    }
    shown
}

/// Of the jobs that a job waits for, so many are shown.
pub const WAITS: usize = 100;

/// What the job was told to wait for, and how that ended.
fn waits(job: &Job) -> Value {
    let ids = match &job.after {
        Some(After::Jobs { ids, .. }) => ids.as_slice(),
        _ => &[],
    };
    // The results also name jobs that have not ended.
    let jobs: Vec<Value> = match job.results.as_slice() {
        [] => ids.iter().take(WAITS).map(|id| named(id)).collect(),
        results => {
            let ended = results.iter().take(WAITS).map(|ended| {
                let mut shown = named(&ended.id);
                shown["outcome"] = json!(ended.outcome);
                let shows: fn(&Cut) -> String = match ended.outcome.as_deref() {
                    Some("dead") => |reason| escape::text(&reason.bytes),
                    _ => line,
                };
                shown["value"] = ended.value.as_ref().map(shows).into();
                shown
            });
            ended.collect()
        }
    };
    let (on_dead, group) = match &job.after {
        Some(After::Jobs { on_dead, .. }) => (Some(on_dead), None),
        Some(After::Group(name)) => (None, Some(escape::name(name))),
        None => (None, None),
    };
    let count = job.results.len().max(ids.len());
    json!({ "jobs": jobs, "count": count, "onDead": on_dead, "group": group })
}

fn attempt(it: &Attempt) -> Value {
    json!({ "attempts": it.attempts, "started": it.started_ms, "ended": it.ended_ms, "how": it.text(escape::text) })
}

fn step(step: &Step) -> Value {
    json!({ "name": escape::name(&step.name), "value": line(&step.value) })
}

fn said(it: &Said) -> Value {
    match &it.value {
        said::Value::Number(number) => json!({ "name": it.name, "number": number }),
        said::Value::Millis(ms) => json!({ "name": it.name, "ms": ms }),
        said::Value::Text(text) => json!({ "name": it.name, "text": escape::line(text) }),
    }
}

pub fn job(job: &Job) -> Value {
    let bytes = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(escape::line);
    let mut shown = json!({
        "id": encoded(&job.id),
        "name": escape::name(&job.id),
        "payload": payload(&job.payload),
        "state": job.state,
        "priority": job.priority,
        "due": job.due_ms,
        "deadline": job.deadline_ms,
        "ttr": job.ttr_ms,
        "attempts": job.attempts,
        "maxAttempts": job.max_attempts,
        "backoff": job.backoff_ms,
        "expires": job.expires_ms,
        "token": job.token,
        "failed": job.failed_ms,
        "reason": job.reason.as_deref().map(escape::text),
        "history": job.history.iter().map(attempt).collect::<Vec<_>>(),
        "client": bytes(&job.client),
        "group": bytes(&job.group),
        "successor": job.successor.as_ref().map(payload),
        "started": job.started_ms,
        "finished": job.finished_ms,
        "ran": job.ran_ms(),
        "result": job.result.as_ref().map(payload),
        "progress": bytes(&job.progress),
        "awaits": bytes(&job.awaits),
        "signal": job.awaits.as_deref().map(named),
        "waits": waits(job),
        "steps": job.steps.iter().map(step).collect::<Vec<_>>(),
        "said": job.said.iter().map(said).collect::<Vec<_>>(),
    });
    if let Some(rule) = &job.rule {
        shown["rule"] = json!({
            "text": escape::line(rule.when.text().as_bytes()),
            "until": rule.until_ms,
            "times": rule.times,
            "grace": rule.grace_ms,
            "jitter": rule.jitter_ms,
            "occurrence": rule.occurrence_ms,
            "runs": rule.runs,
            "next": rule.next_ms,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_travel() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), all);
        assert!(encoded(&all).is_ascii());
        let key = QueueKey::new(3, all);
        assert_eq!(key_of(&name_of(&key)), Some(key));
        for strange in ["%", "%2", "%zz", "a%"] {
            assert_eq!(decoded(strange), strange.as_bytes());
        }
        assert_eq!(query("a=%00%ff&b=&c")["a"], [0, 255]);
        assert_eq!(key_of("x"), None);
    }

    #[test]
    fn payloads_are_text_unless_they_are_not() {
        let cut = |bytes: &[u8], longest| payload(&Cut::of(bytes, longest));
        assert_eq!(cut("é".as_bytes(), 10)["text"], "é");
        assert_eq!(cut("aé".as_bytes(), 2)["text"], "a");
        assert_eq!(cut(b"\xff", 10)["base64"], "/w==");
        assert_eq!(cut("é".as_bytes()[..1].as_ref(), 10)["base64"], "ww==");
    }
}
