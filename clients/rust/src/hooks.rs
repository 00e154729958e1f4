//! Hooks for logging, metrics and tracing.

use crate::envelope::Headers;
use crate::guard::{catch, guarded, log};
use crate::job::Job;
use crate::queue::job_info::JobInfo;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A hook that takes longer is left behind.
const PATIENCE: Duration = Duration::from_secs(5);

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;
type OfJob = Arc<dyn Fn(Job) -> Boxed + Send + Sync>;
type OfFailure = Arc<dyn Fn(Job, String) -> Boxed + Send + Sync>;
type OfDeath = Arc<dyn Fn(String, JobInfo) -> Boxed + Send + Sync>;
type OfHeaders = Arc<dyn Fn(&str, &mut Headers) + Send + Sync>;

/// Functions that are called around jobs. They must not take long. A hook that panics is logged, and changes nothing.
#[derive(Clone, Default)]
pub struct Hooks {
    adding: Option<OfHeaders>,
    before: Option<OfJob>,
    after: Option<OfJob>,
    failed: Option<OfFailure>,
    lost: Option<OfJob>,
    dead: Option<OfDeath>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

fn boxed<F, Fut>(hook: F) -> OfJob
where
    F: Fn(Job) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |job| Box::pin(hook(job)))
}

impl Hooks {
    /// No hooks.
    pub fn new() -> Self {
        Hooks::default()
    }

    /// Called before a job is added to a queue, with the queue's name and the job's headers, which it may change. For
    /// [`Queue::hooks`](crate::Queue::hooks).
    pub fn adding(mut self, hook: impl Fn(&str, &mut Headers) + Send + Sync + 'static) -> Self {
        self.adding = Some(Arc::new(hook));
        self
    }

    /// Called before a job's handler.
    pub fn before<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.before = Some(boxed(hook));
        self
    }

    /// Called when the job's handler has succeeded.
    pub fn after<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.after = Some(boxed(hook));
        self
    }

    /// Called when the job's handler has returned an error, or a [`Decision`](crate::Decision), with the error's
    /// text.
    pub fn failed<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Job, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.failed = Some(Arc::new(move |job, error| Box::pin(hook(job, error))));
        self
    }

    /// Called when another worker may have the job: its lease expired before it was acknowledged, or it was deleted
    /// or replaced.
    pub fn lost<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.lost = Some(boxed(hook));
        self
    }

    /// Called with the queue's name and the job when one has died: its attempts are used up, its handler gave it up, or a job
    /// that it was after died.
    ///
    /// Called by the worker that the server told, for one job at a time, in a thread of its own. If the job died with its lease
    /// or with another one, each worker that has this hook finds that, at the latest a lease later: a job may be told of more
    /// than once. Not found is what died before the worker's start, and what the queue's `DEADLEN` took before. A worker that
    /// stops waits for this hook as for handlers.
    pub fn dead<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(String, JobInfo) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.dead = Some(Arc::new(move |queue, job| Box::pin(hook(queue, job))));
        self
    }

    pub(crate) fn hear_deaths(&self) -> bool {
        self.dead.is_some()
    }

    pub(crate) async fn died(&self, queue: &str, job: JobInfo) {
        let Some(hook) = self.dead.clone() else {
            return;
        };
        let (id, queue) = (job.id.clone(), queue.to_owned());
        if let Err(error) = guarded(move || hook(queue, job)).await {
            log!(error, hook = "dead", job = id, %error, "a hook failed");
        }
    }

    /// If a hook panics, what it has set is dropped.
    pub(crate) fn call_adding(&self, queue: &str, headers: &mut Headers) {
        let Some(hook) = &self.adding else { return };
        let mut changed = headers.clone();
        match catch(|| hook(queue, &mut changed)) {
            Ok(()) => *headers = changed,
            Err(panicked) => {
                log!(error, hook = "adding", queue, error = %panicked, "a hook failed, adding the job as it was")
            }
        }
    }
}

/// When the hooks of a worker are called.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    Before,
    After,
    Failed(String),
    Lost,
}

pub(crate) async fn call(all: &[Hooks], moment: Moment, job: &Job) {
    for hooks in all {
        let (name, made): (&str, Option<Box<dyn FnOnce() -> Boxed + Send>>) = match &moment {
            Moment::Before => ("before", of_job(&hooks.before, job)),
            Moment::After => ("after", of_job(&hooks.after, job)),
            Moment::Lost => ("lost", of_job(&hooks.lost, job)),
            Moment::Failed(error) => {
                let (job, error) = (job.clone(), error.clone());
                let made = hooks
                    .failed
                    .clone()
                    .map(|hook| -> Box<dyn FnOnce() -> Boxed + Send> {
                        Box::new(move || hook(job, error))
                    });
                ("failed", made)
            }
        };
        let Some(made) = made else { continue };
        let said = match tokio::time::timeout(PATIENCE, guarded(made)).await {
            Ok(Ok(())) => continue,
            Ok(Err(panicked)) => panicked.to_string(),
            Err(_) => "it takes too long: it is left behind".to_owned(),
        };
        log!(error, hook = name, job = %job.id(), error = said, "a hook failed");
    }
}

fn of_job(hook: &Option<OfJob>, job: &Job) -> Option<Box<dyn FnOnce() -> Boxed + Send>> {
    let (hook, job) = (hook.clone()?, job.clone());
    Some(Box::new(move || hook(job)))
}
