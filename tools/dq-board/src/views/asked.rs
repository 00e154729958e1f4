//! What several views ask the server for, and how it refuses.

use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{Detail, Found, Part};
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::{Cmd, Value};
use serde_json::Value as Json;

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::Question;
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

pub async fn detail(board: &Arc<Board>, question: &Question, part: Part) -> Result<Found, Failure> {
    let key = question.key.clone();
    let detail = Detail { key, part };
    let commands = detail.commands();
    let ask = |commands| board.connections.ask(question.key.clone(), commands);
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

pub async fn settings(board: &Arc<Board>, question: &Question) -> Result<Json, Failure> {
    Ok(match detail(board, question, Part::Settings).await? {
        Found::Settings(settings) => wire::settings(&settings),
        _ => Json::Null,
    })
}
