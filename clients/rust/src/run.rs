//! Runs the handler of a batch, with its hooks, and says how it ended.

use crate::core::{CancelReason, End, Event, Serial};
use crate::error::BoxError;
use crate::guard::{guarded, log, text_of, Kept, Panicked};
use crate::hooks::{call, Hooks, Moment};
use crate::job::Inner;
use crate::middleware::{Call, Next, Returned};
use crate::verdict::{judge, panicked, Sorts, Verdict};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

/// A handler with its middleware and hooks.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub next: Next,
    pub sorts: Arc<Sorts>,
    pub hooks: Arc<[Hooks]>,
}

impl std::fmt::Debug for Sorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sorts")
    }
}

/// Reports how jobs ended, also if the task is aborted.
struct Ending {
    events: UnboundedSender<Event>,
    ends: Vec<(Serial, End)>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        _ = self
            .events
            .send(Event::Ended(std::mem::take(&mut self.ends)));
    }
}

/// A batch whose handler is to run.
pub(crate) struct Begin {
    pub work: Arc<Work>,
    pub jobs: Vec<(Serial, Arc<Inner>)>,
    pub events: UnboundedSender<Event>,
}

impl Begin {
    pub fn spawn(self, handlers: &Handle) {
        let Some(first) = self.jobs.first().map(|(_, inner)| inner.clone()) else {
            return;
        };
        first.runs_in(handlers.spawn(attempt(self)).abort_handle());
    }
}

async fn attempt(Begin { work, jobs, events }: Begin) {
    let ends = jobs
        .iter()
        .map(|(serial, _)| (*serial, End::GivenBack))
        .collect();
    let mut ending = Ending { events, ends };
    for (_, inner) in &jobs {
        call(&work.hooks, Moment::Before, &inner.job()).await;
    }
    let call_of = Call(jobs.iter().map(|(_, inner)| inner.job()).collect());
    let ended = Kept::new(guarded(|| work.next.run(call_of)).await);
    let one_waits = jobs.iter().any(|(_, inner)| inner.attempt().has_ended);
    for ((_, inner), (_, end)) in jobs.iter().zip(&mut ending.ends) {
        if let Some(ended) = ended.get() {
            *end = finish(&work, inner, one_waits, ended).await;
        }
    }
}

type Ended = Result<Result<Returned, BoxError>, Panicked>;

/// The end of one job: by what `succeed` or `fail` said of it, else by how its batch ended. `one_waits`: one job of
/// the batch is suspended. If the job failed, also the error's text, and whether the handler meant it, as a
/// [`Decision`](crate::Decision).
pub(crate) fn end_of(
    sorts: &Sorts,
    inner: &Inner,
    one_waits: bool,
    ended: &Ended,
) -> (End, Option<(String, bool)>) {
    let alone = inner.take_said();
    if inner.attempt().has_ended {
        return (End::Suspended, None);
    }
    let (verdict, text) = match (alone.as_ref().and_then(Kept::get), ended) {
        (Some(Ok(result)), _) => return (End::Done(result.clone()), None),
        (Some(Err(error)), _) | (None, Ok(Err(error))) => {
            (judge(error, sorts, one_waits), text_of(error.as_ref()))
        }
        (None, Ok(Ok(returned))) => return (End::Done(returned.0.clone()), None),
        (None, Err(raised)) => (panicked(raised, sorts), raised.to_string()),
    };
    let Verdict { end, is_meant } = verdict;
    (end, Some((text, is_meant)))
}

async fn finish(work: &Work, inner: &Arc<Inner>, one_waits: bool, ended: &Ended) -> End {
    let (end, failure) = end_of(&work.sorts, inner, one_waits, ended);
    let job = inner.job();
    match failure {
        None if end == End::Suspended => {}
        None => call(&work.hooks, Moment::After, &job).await,
        Some((text, is_meant)) => {
            if !is_meant && matches!(inner.told(), None | Some(CancelReason::Timeout)) {
                log!(warn, job = %job.id(), queue = %job.queue(), attempt = job.attempt(), error = text, "a job failed");
            }
            if end != End::Suspended {
                call(&work.hooks, Moment::Failed(text), &job).await;
            }
        }
    }
    end
}
