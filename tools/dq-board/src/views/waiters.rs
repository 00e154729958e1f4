//! Which blocked jobs wait for a job: the server only says what each one waits for, so all are searched.

use std::sync::Arc;

use dq_watch::read::detail::{After, Found, Job, Part, State};
use serde_json::{json, Value as Json};

use super::asked;
use super::walk::walk_on;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::filter::Filter;
use crate::core::question::Question;
use crate::core::wire;

/// Jobs shown.
const SHOWN: usize = 50;

pub async fn waiters(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let id = question.bytes("id").to_vec();
    let Found::Job(of) = asked::detail(board, &question.key, Part::Job(id)).await? else {
        return Ok(json!({ "jobs": [], "count": 0, "seen": 0, "more": null, "callback": null }));
    };
    let (mut jobs, mut count, mut callback) = (Vec::new(), 0, None);
    let filter = Filter::of_state(State::Blocked);
    let each = |job: Job| {
        if let Some(After::Group(name)) = job.after.as_ref().filter(|_| callback.is_none()) {
            callback = (of.group.as_ref() == Some(name)).then(|| wire::named(&job.id));
        }
        if waits_for(&job, &of) {
            count += 1;
            if jobs.len() < SHOWN {
                jobs.push(wire::named(&job.id));
            }
        }
    };
    let walked = walk_on(board, &question, &filter, each).await?;
    Ok(json!({
        "jobs": jobs, "count": count, "seen": walked.found, "more": walked.more, "callback": callback,
    }))
}

fn waits_for(job: &Job, of: &Job) -> bool {
    match &job.after {
        None => false,
        Some(After::Jobs { ids, .. }) => ids.contains(&of.id),
        // A job that has ended no longer holds up those that wait for its group.
        Some(After::Group(name)) => {
            of.group.as_ref() == Some(name) && of.state != "dead" && of.state != "done"
        }
    }
}
