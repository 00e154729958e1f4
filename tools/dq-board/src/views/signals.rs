//! Jobs that wait for a signal, by its name.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use dq_watch::read::detail::Job;
use serde_json::{json, Value as Json};

use super::walk::walk_on;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;
use crate::core::wire;

/// Names, and jobs of each, that are shown.
const NAMES: usize = 50;
const JOBS: usize = 20;

pub async fn signals(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut names: BTreeMap<Vec<u8>, (usize, Vec<Json>)> = BTreeMap::new();
    let each = |job: Job| {
        let Some(name) = job.awaits else { return };
        let (count, jobs) = names.entry(name).or_default();
        *count += 1;
        if jobs.len() < JOBS {
            let mut shown = wire::named(&job.id);
            shown["due"] = job.due_ms.into();
            shown["state"] = job.state.into();
            jobs.push(shown);
        }
    };
    let filter = Filter::awaiting();
    let walked = walk_on(board, &question, &filter, each).await?;
    let kinds = names.len();
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(_, (count, _))| Reverse(*count));
    let shown = names.iter().take(NAMES).map(|(name, (count, jobs))| {
        let mut shown = wire::named(name);
        (shown["count"], shown["jobs"]) = ((*count).into(), json!(jobs));
        shown
    });
    let signals: Vec<Json> = shown.collect();
    Ok(json!({ "signals": signals, "kinds": kinds, "seen": walked.found, "more": walked.more }))
}
