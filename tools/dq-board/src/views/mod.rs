//! The answers to the questions of the views, from the servers.

mod asked;
mod dead;
mod flow;
mod forecast;
mod groups;
mod jobs;
mod overview;
mod recurring;
mod signals;
mod slowest;
mod waiters;
mod walk;
mod whole;
mod workers;

use std::sync::Arc;

use dq_watch::read::detail::{Found, Part};
use dq_watch::text::why::{Hold, Why};
use serde_json::{json, Value as Json};

use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::{Question, Words};
use crate::core::wire;
pub use asked::attended;
pub use forecast::load;
pub use walk::{step, walk, Reading, ALL_THAT_ONE_MAY};

pub async fn answer(board: &Arc<Board>, view: &str, question: Question) -> Result<String, Failure> {
    board.shows(&question.key)?;
    let answer = match view {
        "queue" => queue(board, question).await,
        "forecast" => forecast::forecast(board, question).await,
        "jobs" => jobs::jobs(board, question).await,
        "job" => jobs::job(board, question).await,
        "find" => jobs::find(board, question).await,
        "recurring" => recurring::recurring(board, question).await,
        "groups" => groups::groups(board, question).await,
        "died" => dead::died(board, question).await,
        "whole" => whole::whole(board, question).await,
        "flow" => flow::flow(board, question).await,
        "signals" => signals::signals(board, question).await,
        "slowest" => slowest::slowest(board, question).await,
        "workers" => workers::workers(board, question).await,
        "waiters" => waiters::waiters(board, question).await,
        _ => Err(Failure::Unknown("There is no such view.".to_owned())),
    };
    answer.map(|answer| answer.to_string())
}

/// The answers about all queues together.
pub async fn answer_of_all(
    board: &Arc<Board>,
    view: &str,
    words: Words,
) -> Result<String, Failure> {
    let answer = match view {
        "recurring" => recurring::everywhere(board, words).await,
        "find" => jobs::find_everywhere(board, words).await,
        "overview" => overview::overview(board).await,
        _ => Err(Failure::asked("Which queue?")),
    };
    answer.map(|answer| answer.to_string())
}

async fn queue(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let Found::Settings(settings) = asked::detail(board, &question.key, Part::Settings).await?
    else {
        return Ok(json!({ "settings": null }));
    };
    let why = settings.why.as_ref();
    let why = why.map(|why| asked::explained(board, &question.key, why));
    let hold = why.as_ref().and_then(Why::hold);
    let passes = |hold: &Hold| board.reader.of_row(&question.key, |row| row.passes(hold));
    let hold = hold.filter(|it| passes(it) != Some(true));
    let hold =
        hold.map(|it| json!({ "words": it.words, "until": it.until_ms, "idle": it.is_idle }));
    let line = why.map(|why| why.line(board.reader.server_ms()));
    let groups = groups::holds(board, &question.key, &settings).await;
    Ok(json!({
        "settings": wire::settings(&settings), "why": line, "hold": hold, "groups": groups,
    }))
}
