//! Recurring jobs, with their next runs.

use std::sync::Arc;

use dq_watch::read::detail::get;
use dq_watch::read::reply;
use serde_json::{json, Value as Json};

use super::asked::{about, refusal};
use super::walk::scan;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;
use crate::core::wire;

/// Ids that one step looks at, and how many steps one question may take.
const STEP: usize = 500;
const STEPS: usize = 20;
const FOUND_MAX: usize = 50;
const NEXT_RUNS: usize = 3;

/// Asks of each job in some steps whether it recurs, which costs the server no payload.
pub async fn recurring(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut cursor = question.cursor();
    let all = Filter::default();
    let key = &question.key;
    let mut shown = Vec::new();
    for _ in 0..STEPS {
        let (next, ids) = scan(board, key, &cursor, &all, STEP).await?;
        cursor = next;
        let asked = ids.iter().map(|id| {
            about(key, "DQ.NEXT", id)
                .arg("COUNT")
                .arg(NEXT_RUNS)
                .to_owned()
        });
        let nexts = board
            .connections
            .ask(question.key.clone(), asked.collect())
            .await?;
        if let Some(refused) = nexts.first().and_then(refusal) {
            return Err(refused);
        }
        let of_rules: Vec<(&Vec<u8>, Vec<i64>)> = ids
            .iter()
            .zip(&nexts)
            .filter_map(|(id, next)| Some((id, reply::instants(next).filter(|it| !it.is_empty())?)))
            .collect();
        let gets = of_rules.iter().map(|(id, _)| get(&key.name, id, 0));
        let jobs = board
            .connections
            .ask(question.key.clone(), gets.collect())
            .await?;
        for ((_, next), job) in of_rules.into_iter().zip(&jobs) {
            let Some(mut job) = reply::job(job, 0) else {
                continue;
            };
            if let Some(rule) = &mut job.rule {
                rule.next_ms = next;
                shown.push(wire::job(&job));
            }
        }
        if cursor == "0" || shown.len() >= FOUND_MAX {
            break;
        }
    }
    let more = (cursor != "0").then_some(cursor);
    Ok(json!({ "jobs": shown, "more": more, "now": board.reader.server_ms() }))
}
