//! Who works: connections, each with the jobs that were delivered to it, by the end of the lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq_watch::read::detail::{Found, Job, Page, Part, State};
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::asked::detail;
use super::walk::Reading;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::Question;
use crate::core::wire;

/// Jobs that one question reads; the others are counted, by the figures of the queue.
const STEP: usize = 500;

pub async fn workers(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let page = Page {
        from_ms: question.number("from").unwrap_or(0),
        skip: question.number("skip").unwrap_or(0),
    };
    let part = Part::Jobs {
        state: State::Reserved,
        page,
        count: STEP,
    };
    let found = match detail(board, &question, part).await? {
        Found::Jobs(found) => found,
        _ => Vec::new(),
    };
    let more = page.next(State::Reserved, &found, STEP);
    let ids: Vec<Vec<u8>> = found.into_iter().map(|job| job.id).collect();
    let (jobs, read) = Reading::default()
        .jobs(board, &question.key, &ids, true)
        .await?;
    // Those of one client are side by side; where it is not known they come last.
    let mut clients: BTreeMap<(bool, Vec<u8>), Vec<Json>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.state == "reserved") {
        let name = job.client.clone();
        let place = (name.is_none(), name.unwrap_or_default());
        clients.entry(place).or_default().push(held(job));
    }
    let shown = clients.into_iter().map(|((is_unknown, name), jobs)| {
        let name = (!is_unknown).then(|| escape::line(&name));
        json!({ "name": name, "jobs": jobs })
    });
    let more = more.map(|page| json!({ "from": page.from_ms, "skip": page.skip }));
    Ok(json!({ "clients": shown.collect::<Vec<_>>(), "read": read, "more": more }))
}

fn held(job: &Job) -> Json {
    let mut shown = wire::named(&job.id);
    shown["since"] = job.started_ms.into();
    shown["until"] = job.deadline_ms.into();
    shown["attempts"] = job.attempts.into();
    shown
}
