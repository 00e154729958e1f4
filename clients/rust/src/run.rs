//! Runs the handler of a batch, with its hooks, and says how it ended.

use crate::core::{CancelReason, End, Event, Serial};
use crate::error::BoxError;
use crate::guard::{guarded, log, text_of, Kept, Panicked};
use crate::hooks::{call, Hooks, Moment};
use crate::job::Inner;
use crate::middleware::{Call, Next, Returned};
use crate::verdict::{judge, panicked, Sorts, Verdict};
use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

/// A handler that takes less until it ends or waits is done before another thread has begun.
const BRIEF: Duration = Duration::from_micros(50);
/// How long others wait at most for one that takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1);

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

/// How the jobs of a batch ended.
type Ends = Vec<(Serial, End)>;

/// Reports how jobs ended, also if the task is aborted.
struct Ending {
    events: UnboundedSender<Event>,
    together: Option<Arc<Together>>,
    ends: Ends,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        let untold = match &self.together {
            Some(together) => together.gather(ends),
            None => Some(ends),
        };
        if let Some(ends) = untold {
            _ = self.events.send(Event::Ended(vec![ends]));
        }
    }
}

/// A batch whose handler is to run.
pub(crate) struct Begin {
    pub work: Arc<Work>,
    pub jobs: Vec<(Serial, Arc<Inner>)>,
    pub events: UnboundedSender<Event>,
    /// Those that begin with it.
    pub together: Option<Arc<Together>>,
}

impl Begin {
    pub fn spawn(self, handlers: &Handle) {
        let Some(first) = self.jobs.first().map(|(_, inner)| inner.clone()) else {
            return;
        };
        first.runs_in(handlers.spawn(attempt(self)).abort_handle());
    }

    /// Runs the handler in this task up to where it first waits. It goes on in a task of its own.
    async fn run(self, handlers: &Handle) {
        let Some(first) = self.jobs.first().map(|(_, inner)| inner.clone()) else {
            return;
        };
        if first.is_aborted() {
            return;
        }
        let mut attempt = Box::pin(attempt(self));
        if poll_fn(|context| Poll::Ready(attempt.as_mut().poll(context)))
            .await
            .is_pending()
        {
            first.runs_in(handlers.spawn(attempt).abort_handle());
        }
    }
}

/// Handlers that begin together, in one task, which wakes their runtime once. Where they take little time until they
/// end or wait, it also runs them, in turn, and tells their ends together: to have other threads do so takes longer. If
/// one takes long nevertheless, [`Together::part`] lets the others begin.
#[derive(Default)]
pub(crate) struct Together(Mutex<Rest>);

#[derive(Default)]
struct Rest {
    begins: VecDeque<Begin>,
    ends: Vec<Ends>,
    is_over: bool,
}

impl Together {
    /// `is_brief`: whether the handlers before them took little time.
    pub fn spawn(begins: Vec<Begin>, is_brief: &Arc<AtomicBool>, handlers: &Handle) -> Arc<Self> {
        let together = Arc::new(Together::default());
        let of = |begin| Begin {
            together: Some(together.clone()),
            ..begin
        };
        let begins: VecDeque<Begin> = begins.into_iter().map(of).collect();
        together.rest().begins = begins;
        handlers.spawn(together.clone().run(is_brief.clone(), handlers.clone()));
        together
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>, is_brief: Arc<AtomicBool>, handlers: Handle) {
        let Some(events) = self.rest().begins.front().map(|begin| begin.events.clone()) else {
            return;
        };
        let (mut begun, mut count) = (Instant::now(), 0);
        while let Some((begin, is_last)) = self.next() {
            // Where they take long, the last one shows whether they still do.
            if is_brief.load(Ordering::Relaxed) || is_last {
                count += 1;
                begin.run(&handlers).await;
            } else {
                begin.spawn(&handlers);
                begun = Instant::now();
            }
        }
        is_brief.store(begun.elapsed() < BRIEF * count, Ordering::Relaxed);
        let (_, ends) = self.part();
        if !ends.is_empty() {
            _ = events.send(Event::Ended(ends));
        }
    }

    fn next(&self) -> Option<(Begin, bool)> {
        let mut rest = self.rest();
        let begin = rest.begins.pop_front()?;
        Some((begin, rest.begins.is_empty()))
    }

    /// Keeps ends to be told with others; returns them if that is over.
    fn gather(&self, ends: Ends) -> Option<Ends> {
        let mut rest = self.rest();
        if rest.is_over {
            return Some(ends);
        }
        rest.ends.push(ends);
        None
    }

    /// Returns those that have not begun, and the ends that were not told. From now on each goes its own way.
    pub fn part(&self) -> (VecDeque<Begin>, Vec<Ends>) {
        let mut rest = self.rest();
        rest.is_over = true;
        (take(&mut rest.begins), take(&mut rest.ends))
    }

    pub fn is_over(&self) -> bool {
        self.rest().is_over
    }
}

async fn attempt(
    Begin {
        work,
        jobs,
        events,
        together,
    }: Begin,
) {
    let ends = jobs
        .iter()
        .map(|(serial, _)| (*serial, End::GivenBack))
        .collect();
    let mut ending = Ending {
        events,
        together,
        ends,
    };
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
