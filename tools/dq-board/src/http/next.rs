//! The next runs of a rule that is being typed: computed by the server's own code, with this machine's time zones.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::json;

use super::site::Shared;
use crate::core::{rules, wire};
use dq_serve::answer::json_text;

const RUNS: usize = 5;

pub async fn next(State(site): Shared, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let words = wire::query(&query);
    let text = |name| {
        let bytes = words.get(name).map_or(&[][..], Vec::as_slice);
        std::str::from_utf8(bytes).unwrap_or_default()
    };
    let now = site.board.reader.server_ms().max(0) as u64;
    let runs = match text("every") {
        "" => rules::cron_runs(text("cron"), text("tz"), now, RUNS),
        ms => rules::every_runs(ms, now, RUNS),
    };
    let told = match runs {
        Ok(runs) => json!({ "runs": runs }),
        Err(why) => json!({ "runs": [], "wrong": why }),
    };
    json_text(told.to_string())
}
