//! The reasons of dead jobs, counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq_watch::read::detail::{Job, State};
use serde_json::{json, Value as Json};

use super::walk::walk_on;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;
use crate::core::reasons;

/// Reasons shown.
const REASONS: usize = 12;

pub async fn died(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let filter = Filter::of_state(State::Dead);
    let each = |job: Job| {
        *counts
            .entry(reasons::of(job.reason.as_deref()))
            .or_default() += 1
    };
    let walked = walk_on(board, &question, &filter, each).await?;
    let kinds = counts.len();
    let mut reasons: Vec<(String, usize)> = counts.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons.truncate(REASONS);
    let (seen, more) = (walked.found, walked.more);
    Ok(json!({ "reasons": reasons, "kinds": kinds, "seen": seen, "more": more }))
}
