//! What was delivered, and what is coming.

use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::reply;
use redis::Value;
use serde_json::{json, Value as Json};

use super::{about, refusal, strange};
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::Question;
use crate::core::scale::Load;
use crate::core::wire;

/// Bars of the hill, for each width of the window.
const ZOOMS: [(&str, i64, usize); 6] = [
    ("minute", 60_000, 60),
    ("hour", 3_600_000, 120),
    ("day", 86_400_000, 96),
    ("week", 604_800_000, 84),
    ("month", 2_592_000_000, 90),
    ("year", 31_536_000_000, 73),
];

pub async fn hill(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let zoom = question.text("zoom");
    let (_, span, parts) = *ZOOMS
        .iter()
        .find(|it| it.0 == zoom)
        .ok_or_else(|| Failure::asked("There is no such zoom."))?;
    let now = board.reader.server_ms();
    let ask = |from: i64, to: i64, parts: usize| {
        let mut forecast = redis::cmd("DQ.FORECAST");
        forecast.arg(&question.key.name);
        forecast
            .arg("FROM")
            .arg(from)
            .arg("TO")
            .arg(to)
            .arg("BUCKETS")
            .arg(parts)
            .to_owned()
    };
    // What is due already stands before the hill, and what comes later behind it.
    let last = 4_398_046_511_103;
    let commands = vec![
        ask(now, now + span, parts),
        ask(0, now, 1),
        ask(now + span, last, 1),
    ];
    let values = board.looker.ask(question.key.clone(), commands).await?;
    let counts = |value: &Value| match refusal(value) {
        Some(refused) => Err(refused),
        None => reply::instants(value).ok_or_else(strange),
    };
    let past = board.reader.past(&question.key, span, parts);
    let past = past.map_err(Failure::Lost)?;
    let mut shown = json!({
        "now": now,
        "span": span,
        "dues": counts(&values[0])?,
        "due": counts(&values[1])?[0],
        "later": counts(&values[2])?[0],
        "past": past.delivered.iter().map(|count| count.round()).collect::<Vec<_>>(),
        "failed": past.failed.iter().map(|count| count.round()).collect::<Vec<_>>(),
        "late": past.late_us.iter().map(|&us| (us > 0).then_some(us)).collect::<Vec<_>>(),
        "known": past.known,
        "since": board.since_ms,
        "measured": board.reader.measured(&question.key).map(wire::measured),
    });
    if zoom == "minute" {
        shown["past"] = json!(board.reader.seconds(&question.key, parts));
    }
    Ok(shown)
}

/// What is to be done now and until then. A queue that does not exist has nothing to do.
pub async fn load(board: &Arc<Board>, key: &QueueKey, ahead_ms: i64) -> Result<Load, Failure> {
    let now = board.reader.server_ms();
    let mut forecast = about(key, "DQ.FORECAST", b"FROM");
    forecast.arg(now).arg("TO").arg(now + ahead_ms);
    forecast.arg("BUCKETS").arg(1);
    let commands = vec![
        about(key, "DQ.LEN", b"READY"),
        about(key, "DQ.LEN", b"RESERVED"),
        forecast,
    ];
    let values = board.looker.ask(key.clone(), commands).await?;
    if let Some(refused) = values.iter().find_map(refusal) {
        return Err(refused);
    }
    let count = |value: &Value| reply::int(value).map(|it| it.max(0) as u64);
    let coming = reply::instants(&values[2]).and_then(|counts| counts.first().copied());
    Ok(Load {
        ready: count(&values[0]).ok_or_else(strange)?,
        reserved: count(&values[1]).ok_or_else(strange)?,
        coming: coming.ok_or_else(strange)?.max(0) as u64,
    })
}
