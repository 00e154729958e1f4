//! Who works: connections, each with the jobs that were delivered to it, by the end of the lease.

use std::sync::Arc;

use dq_watch::read::detail::{
    by_client, Found, Job, Page, Part, PeekedJob, State, AT_WORK, IN_LINE_MAX,
};
use dq_watch::text::escape;
use serde_json::{json, Value as Json};

use super::asked::detail;
use crate::board::Board;
use crate::core::failure::Failure;
use crate::core::question::Question;
use crate::core::wire;

pub async fn workers(board: &Arc<Board>, question: Question) -> Result<Json, Failure> {
    let page = Page {
        from_ms: question.number("from").unwrap_or(0),
        skip: question.number("skip").unwrap_or(0).min(IN_LINE_MAX * 2),
    };
    let now = board.reader.server_ms();
    let part = Part::Jobs {
        state: State::Reserved,
        page,
        count: AT_WORK,
        read: true,
    };
    let (found, mut read) = match detail(board, &question.key, part).await? {
        Found::Read(found, read) => (found, read),
        _ => Default::default(),
    };
    let more = page.next(State::Reserved, &found, AT_WORK);
    let more = more.map(|page| json!({ "from": page.from_ms, "skip": page.skip }));
    let count = found.len();
    let jobs = by_client(found, &mut read);
    let clients = jobs
        .chunk_by(|(_, a), (_, b)| a.client == b.client)
        .map(|jobs| {
            let name = jobs[0].1.client.as_deref().map(escape::line);
            json!({ "name": name, "jobs": jobs.iter().map(held).collect::<Vec<_>>() })
        });
    Ok(json!({ "clients": clients.collect::<Vec<_>>(), "read": count, "more": more, "now": now }))
}

fn held((_, job): &(PeekedJob, Job)) -> Json {
    let mut shown = wire::named(&job.id);
    shown["since"] = job.started_ms.into();
    shown["until"] = job.deadline_ms.into();
    shown["attempts"] = job.attempts.into();
    shown
}
