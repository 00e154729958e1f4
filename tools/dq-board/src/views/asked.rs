//! What several views ask the server for, and how it refuses.

use std::sync::Arc;

use dq_watch::model::row::Row;
use dq_watch::model::QueueKey;
use dq_watch::read::detail::{Detail, Found, Part};
use dq_watch::read::{reply, why};
use dq_watch::text::escape;
use dq_watch::text::why::Why;
use redis::{Cmd, Value};
use serde_json::Value as Json;

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::wire;

/// The server's refusal, if it refuses.
pub fn refusal(value: &Value) -> Option<Failure> {
    reply::error(value).map(|error| Failure::Refused(escape::line(error.as_bytes())))
}

pub fn strange() -> Failure {
    Failure::Lost("an unknown kind of reply".to_owned())
}

pub fn about(key: &QueueKey, command: &str, id: &[u8]) -> Cmd {
    redis::cmd(command).arg(&key.name).arg(id).to_owned()
}

pub async fn detail(board: &Arc<Board>, key: &QueueKey, part: Part) -> Result<Found, Failure> {
    let key = key.clone();
    let detail = Detail { key, part };
    let commands = detail.commands();
    let ask = |commands| board.connections.ask(detail.key.clone(), commands);
    let mut values = ask(commands).await?;
    let more = detail.more(&values);
    if !more.is_empty() {
        values.extend(ask(more).await?);
    }
    match detail.found(&values) {
        Found::Refused(error) => Err(Failure::Refused(escape::line(error.as_bytes()))),
        found => Ok(found),
    }
}

pub async fn settings(board: &Arc<Board>, key: &QueueKey) -> Result<Json, Failure> {
    Ok(match detail(board, key, Part::Settings).await? {
        Found::Settings(settings) => wire::settings(&settings),
        _ => Json::Null,
    })
}

/// Whether clients take a queue's jobs: some wait for them, were delivered some lately, or have some and are connected.
/// None: it has not been read yet.
pub async fn attended(board: &Arc<Board>, key: &QueueKey) -> Result<Option<bool>, Failure> {
    let is_asked = board.reader.of_row(key, Row::is_asked);
    if is_asked != Some(false) {
        return Ok(is_asked);
    }
    let ask = |commands| board.connections.ask(key.clone(), commands);
    let peeked = ask(vec![why::first(&key.name, "RESERVED")]).await?;
    let owners = why::owners(&key.name, &peeked[0]);
    Ok(Some(why::are_owned(&ask(owners).await?)))
}

/// The words for what DQ.EXPLAIN says, to which the readings before may add that workers are busy.
pub fn told(board: &Arc<Board>, key: &QueueKey, why: &Why) -> String {
    let is_busy = why.is_busy || board.reader.of_row(key, Row::is_asked) == Some(true);
    let why = Why {
        is_busy,
        ..why.clone()
    };
    why.line(board.reader.server_ms())
}
