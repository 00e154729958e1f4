//! What needs a look, over all queues, and what they do together.

use std::cmp::Reverse;
use std::sync::Arc;

use dq_watch::model::{clock, QueueKey};
use dq_watch::read::detail::{self, Found};
use dq_watch::read::reply;
use futures_util::future::join_all;
use serde_json::{json, Value as Json};

use super::asked::{about, attended, detail, told};
use super::forecast::whole;
use crate::board::Board;
use crate::core::attention::{usual, Day, Signs};
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
const DAY_MS: i64 = 24 * HOUR_MS;
/// Dead jobs of the last day that are counted.
const DIED: usize = 100;

pub async fn overview(board: &Arc<Board>) -> Result<Json, Failure> {
    let (closer, count, several) = board.reader.signs(CLOSER);
    let others = count - closer.len();
    let closer = closer.into_iter().map(|it| asked(board, it));
    let closer = join_all(closer).await;
    let days = join_all(closer.iter().map(|(key, signs)| day(board, key, signs))).await;
    let mut needy: Vec<_> = closer.iter().zip(days).collect();
    needy.retain(|((_, signs), day)| !signs.reasons(*day).is_empty());
    needy.sort_by_key(|((_, signs), day)| Reverse(signs.rank(*day)));
    let count = needy.len() + others;
    needy.truncate(SHOWN);
    let mut shown = Vec::new();
    for ((key, signs), day) in needy {
        let mut reasons = signs.reasons(day);
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

/// The signs, with whether the clients that have its jobs are connected. A user who may not ask is shown the rest.
async fn asked(board: &Arc<Board>, (key, signs): (QueueKey, Signs)) -> (QueueKey, Signs) {
    if !signs.asks() {
        return (key, signs);
    }
    let is_asked = attended(board, &key).await.ok().flatten();
    (key, signs.with(is_asked.unwrap_or(true)))
}

/// What a queue did in the last day. A user who may not ask when its dead jobs died is shown all of them.
async fn day(board: &Arc<Board>, key: &QueueKey, signs: &Signs) -> Day {
    // What Prometheus keeps says nothing of deaths.
    let past = board.reader.past(key, DAY as i64 * HOUR_MS, HOUR_MS, DAY);
    let mut day = Day {
        usual_us: past.as_ref().ok().and_then(usual),
        seen: past.map_or(0.0, |it| it.died.iter().sum()).round() as u64,
        died: None,
    };
    if signs.has_dead() {
        let mut peek = about(key, "DQ.PEEK", b"DEAD");
        peek.arg("FROM").arg(board.reader.server_ms() - DAY_MS);
        peek.arg("COUNT").arg(DIED).arg("PREFIX").arg(0);
        let values = board.connections.ask(key.clone(), vec![peek]).await;
        let died = values
            .ok()
            .and_then(|it| Some(reply::array(it.first()?)?.len()));
        day.died = died.map(|count| (count as u64, count >= DIED));
    }
    day
}

/// What DQ.EXPLAIN says of ready jobs that wait. A user who may not ask is shown the rest.
async fn explained(board: &Arc<Board>, key: &QueueKey, signs: &Signs) -> Option<String> {
    if !signs.waits() {
        return None;
    }
    let Ok(Found::Settings(settings)) = detail(board, key, detail::Part::Settings).await else {
        return None;
    };
    let why = settings.why.filter(|why| !why.reasons.is_empty())?;
    Some(told(board, key, &why))
}
