//! Which blocked jobs wait for one: the server tells of each what it waits for, so they are looked through.

use std::sync::Arc;

use dq_watch::read::detail::{After, Found, Job, Part, State};
use serde_json::{json, Value as Json};

use crate::api::{Board, Question};
use crate::{views, walk, wire};

/// Jobs shown.
const SHOWN: usize = 50;

pub async fn waiters(board: &Arc<Board>, question: Question) -> Result<Json, String> {
    let id = question.bytes("id").to_vec();
    let Found::Job(of) = views::detail(board, &question, Part::Job(id)).await? else {
        return Ok(json!({ "jobs": [], "count": 0, "seen": 0, "more": null }));
    };
    let (mut jobs, mut count) = (Vec::new(), 0);
    let walked = walk::walk(board, &question, State::Blocked, |job| {
        if waits_for(&job, &of) {
            count += 1;
            if jobs.len() < SHOWN {
                jobs.push(wire::named(&job.id));
            }
        }
    })
    .await?;
    Ok(json!({ "jobs": jobs, "count": count, "seen": walked.seen, "more": walked.more }))
}

fn waits_for(job: &Job, of: &Job) -> bool {
    match &job.after {
        None => false,
        Some(After::Jobs { ids, .. }) => ids.contains(&of.id),
        // A group waits for none that has ended.
        Some(After::Group(name)) => {
            of.group.as_ref() == Some(name) && of.state != "dead" && of.state != "done"
        }
    }
}
