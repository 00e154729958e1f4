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

/// Whether clients take a queue's jobs. What is not known yet, or may have changed, the server is asked. None: it has not
/// been read yet, or a replica does not see it.
pub async fn attended(board: &Arc<Board>, key: &QueueKey) -> Result<Option<bool>, Failure> {
    if board.reader.of_row(key, Row::leases_tell) != Some(true) {
        return Ok(board.reader.of_row(key, Row::is_attended).flatten());
    }
    let ask = |commands| board.connections.ask(key.clone(), commands);
    let peeked = ask(vec![why::first(&key.name, "RESERVED")]).await?;
    let owners = why::owners(&key.name, &peeked[0]);
    let is_owned = why::are_owned(&ask(owners).await?);
    board.reader.owned(key, is_owned);
    Ok(Some(is_owned))
}

/// What DQ.EXPLAIN says, with what the readings before add.
pub fn explained(board: &Arc<Board>, key: &QueueKey, why: &Why) -> Why {
    let explained = board.reader.of_row(key, |row| row.explained(why));
    explained.unwrap_or_else(|| why.clone())
}

pub fn told(board: &Arc<Board>, key: &QueueKey, why: &Why) -> String {
    explained(board, key, why).line(board.reader.server_ms())
}
