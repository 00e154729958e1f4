//! What needs a look, over all queues, and what they do together.

use std::sync::Arc;

use dq_watch::model::{clock, QueueKey};
use dq_watch::read::why::{self, Of};
use serde_json::{json, Value as Json};

use super::forecast::whole;
use crate::board::Board;
use crate::core::attention::Signs;
use crate::core::course::{Part, EACH_MS};
use crate::core::failure::Failure;
use crate::core::history::HOUR_MS;
use crate::core::wire;
use dq_watch::text::escape;

/// Queues whose history is read, and those that are shown.
const CLOSER: usize = 50;
const SHOWN: usize = 8;
/// Hours that are one day at least.
const DAY: usize = 25;

pub async fn overview(board: &Arc<Board>) -> Result<Json, Failure> {
    let (closer, count, several) = board.reader.signs(CLOSER);
    let others = count - closer.len();
    let mut needy = Vec::new();
    for (key, signs) in &closer {
        // What Prometheus keeps says nothing of deaths.
        let day = board
            .reader
            .past(key, DAY as i64 * HOUR_MS, HOUR_MS, DAY)
            .ok();
        let reasons = signs.reasons(day.as_ref());
        if !reasons.is_empty() {
            needy.push((key, signs, reasons));
        }
    }
    let count = needy.len() + others;
    needy.truncate(SHOWN);
    let mut shown = Vec::new();
    for (key, signs, mut reasons) in needy {
        reasons.extend(explained(board, key, signs).await);
        let mut queue =
            json!({ "key": wire::name_of(key), "name": escape::name(&key.name), "why": reasons });
        if several {
            queue["db"] = key.db.into();
        }
        shown.push(queue);
    }
    let hour = board.reader.hour();
    let all = |of: fn(&Part) -> f64| {
        let values: Vec<f64> = hour.iter().map(|it| it.as_ref().map_or(0.0, of)).collect();
        whole(&values)
    };
    Ok(json!({
        "count": count,
        "queues": shown,
        "each": EACH_MS,
        "delivered": all(|it| it.delivered),
        "failed": all(|it| it.failed),
        "ready": all(|it| it.ready as f64),
        "shifts": shifts(board),
        "known": hour.iter().map(Option::is_some).collect::<Vec<_>>(),
    }))
}

/// When workers came and went in the last hour.
fn shifts(board: &Arc<Board>) -> Vec<Json> {
    let ago = |at: i64| clock::now_ms() - at;
    let all = board.reader.all_shifts().into_iter();
    let hour = all.filter(|it| ago(it.from_ms) < HOUR_MS);
    let shown = hour.map(|it| json!({ "ago": ago(it.from_ms), "came": it.came, "went": it.went }));
    shown.collect()
}

/// What DQ.EXPLAIN says of ready jobs that wait. A user who may not ask is shown the rest.
async fn explained(board: &Arc<Board>, key: &QueueKey, signs: &Signs) -> Option<String> {
    if !signs.waits() {
        return None;
    }
    let commands = why::commands(&key.name, Of::Queue);
    let values = board.connections.ask(key.clone(), commands).await.ok()?;
    let why = why::read(&values, Of::Queue, None).ok()??;
    (!why.reasons.is_empty()).then(|| why.line(board.reader.server_ms()))
}
