//! The answers to the questions of the views, from the servers.

mod dead;
mod flow;
mod groups;
mod hill;
mod jobs;
mod recurring;
mod slowest;
mod waiters;
mod walk;

use std::sync::Arc;

use dq_watch::model::QueueKey;
use dq_watch::read::detail::{Detail, Found, Part};
use dq_watch::read::reply;
use dq_watch::text::escape;
use redis::{Cmd, Value};
use serde_json::{json, Value as Json};

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::Question;
use crate::core::wire;
pub use hill::load;
pub use walk::{step, walk, ALL_THAT_ONE_MAY};

pub async fn answer(board: &Arc<Board>, view: &str, question: Question) -> Result<String, Failure> {
    board.shows(&question.key)?;
    let answer = match view {
        "queue" => queue(board, question).await,
        "hill" => hill::hill(board, question).await,
        "jobs" => jobs::jobs(board, question).await,
        "job" => jobs::job(board, question).await,
        "find" => jobs::find(board, question).await,
        "recurring" => recurring::recurring(board, question).await,
        "groups" => groups::groups(board, question).await,
        "died" => dead::died(board, question).await,
        "flow" => flow::flow(board, question).await,
        "slowest" => slowest::slowest(board, question).await,
        "waiters" => waiters::waiters(board, question).await,
        _ => Err(Failure::Unknown("There is no such view.".to_owned())),
    };
    answer.map(|answer| answer.to_string())
}

/// The server's refusal, if it refuses.
pub fn refusal(value: &Value) -> Option<Failure> {
    reply::error(value).map(|error| Failure::Refused(escape::line(error.as_bytes())))
}

fn strange() -> Failure {
    Failure::Lost("an unknown kind of reply".to_owned())
}

fn about(key: &QueueKey, command: &str, id: &[u8]) -> Cmd {
    redis::cmd(command).arg(&key.name).arg(id).to_owned()
}

async fn detail(board: &Arc<Board>, question: &Question, part: Part) -> Result<Found, Failure> {
    let key = question.key.clone();
    let detail = Detail { key, part };
    let commands = detail.commands();
    let values = board.looker.ask(question.key.clone(), commands).await?;
    match detail.found(&values) {
        Found::Refused(error) => Err(Failure::Refused(escape::line(error.as_bytes()))),
        found => Ok(found),
    }
}

async fn queue(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    Ok(json!({ "settings": settings(board, &question).await? }))
}

async fn settings(board: &Arc<Board>, question: &Question) -> Result<Json, Failure> {
    Ok(match detail(board, question, Part::Settings).await? {
        Found::Settings(settings) => wire::settings(&settings),
        _ => Json::Null,
    })
}
