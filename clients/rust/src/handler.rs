//! Handlers: functions with the settings for their jobs.

use crate::core::{Fill, Shape};
use crate::error::{BoxError, Error};
use crate::job::{Inner, Job};
use crate::middleware::{Call, Next, Returned};
use crate::queue::NewJob;
use crate::result::encode;
use crate::verdict::{named, Sorts, Unencodable};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A function with the settings for its jobs.
///
/// ```no_run
/// # use dq_redis::{Handler, Job};
/// # use std::time::Duration;
/// # #[derive(serde::Deserialize)] struct Order { number: u32 }
/// async fn close(job: Job<Order>) -> Result<(), std::io::Error> {
///     println!("closed order {}", job.data.number);
///     Ok(())
/// }
///
/// let handler = Handler::new(close).attempts(5).lease(Duration::from_secs(30));
/// ```
#[derive(Clone)]
pub struct Handler {
    pub(crate) shape: Shape,
    pub(crate) sorts: Sorts,
    pub(crate) work: Next,
    pub(crate) rule: Option<NewJob>,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handler({:?})", self.shape)
    }
}

impl Handler {
    /// A handler from an async function of a job with its decoded data.
    ///
    /// `Ok`: the job is done, and what the function returns, unless it is `()` or `None`, is its result. After an
    /// error, the job is tried again: by its own backoff, else the handler's, else the server's `default-backoff`.
    /// A [`Decision`](crate::Decision) as the error decides otherwise. If the payload cannot be decoded, the job is
    /// dead at once. A function of a plain `Job` gets the payload undecoded.
    pub fn new<T, R, E, F, Fut>(function: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
        F: Fn(Job<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        Handler::of(Next::new(move |call: Call| {
            let function = function.clone();
            async move {
                let Some(job) = call.jobs().first() else {
                    return Ok(Returned::nothing());
                };
                let job = typed(job.inner.clone())?;
                returned(function(job).await)
            }
        }))
    }

    /// A handler from a function that blocks its thread, as it computes or does I/O itself: each call has a thread.
    pub fn blocking<T, R, E, F>(function: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        E: Into<BoxError> + 'static,
        F: Fn(Job<T>) -> Result<R, E> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        Handler::of(Next::new(move |call: Call| {
            let function = function.clone();
            async move {
                let Some(job) = call.jobs().first() else {
                    return Ok(Returned::nothing());
                };
                let inner = job.inner.clone();
                let work = move || returned(function(typed(inner)?));
                match tokio::task::spawn_blocking(work).await {
                    Ok(ended) => ended,
                    Err(failed) if failed.is_panic() => {
                        std::panic::resume_unwind(failed.into_panic())
                    }
                    Err(failed) => Err(failed.into()),
                }
            }
        }))
    }

    /// A handler from an async function of up to `size` jobs at a time. [`Job::fail`] fails one of them,
    /// [`Job::succeed`] gives one a result; an error fails all for which neither was called. A job whose payload
    /// cannot be decoded is dead, and not among them.
    pub fn batch<T, E, F, Fut>(size: usize, function: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        E: Into<BoxError> + 'static,
        F: Fn(Vec<Job<T>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        let function = Arc::new(function);
        let mut made = Handler::of(Next::new(move |call: Call| {
            let function = function.clone();
            async move {
                let mut jobs = Vec::with_capacity(call.jobs().len());
                for job in call.jobs() {
                    match typed(job.inner.clone()) {
                        Ok(job) => jobs.push(job),
                        Err(error) => job.fail(error),
                    }
                }
                match jobs.is_empty() {
                    true => Ok(Returned::nothing()),
                    false => returned(function(jobs).await),
                }
            }
        }));
        made.shape.batch = size.max(1);
        made
    }

    fn of(work: Next) -> Self {
        Handler {
            shape: Shape::default(),
            sorts: Sorts::default(),
            work,
            rule: None,
        }
    }

    /// The kind of jobs that the handler takes; without one, it takes all jobs that no other handler of the worker
    /// takes.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.shape.kind = Some(kind.into());
        self
    }

    /// Has a job of the kind come again: each worker adds it to its first queue when it starts, as
    /// [`Queue::cron`](crate::Queue::cron) and [`Queue::every`](crate::Queue::every) do. It is a job of [`NewJob::cron`] or
    /// [`NewJob::every`]; its id is the kind, unless it has another. Other workers may have the same rule; when none has it any
    /// more, delete the job.
    pub fn rule(mut self, job: NewJob) -> Self {
        self.rule = Some(job);
        self
    }

    /// After how many deliveries a job is dead (0: no limit). The least of this, the job's own limit and its queue's
    /// counts.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.shape.attempts = attempts;
        self
    }

    /// The waits after the 1st, 2nd, ... failure; the last one repeats. The job's own backoff goes first.
    pub fn backoff(mut self, steps: impl IntoIterator<Item = Duration>) -> Self {
        self.shape.backoff = steps.into_iter().collect();
        self
    }

    /// How long a job stays with a worker that crashed. Slow handlers need no longer lease: the worker renews it.
    /// With a kind, it holds for all jobs of that kind; without one, for jobs without a TTR of their own or of their
    /// queue. Default: the worker's lease for such jobs, else the job's TTR, one minute unless the job or its queue
    /// says otherwise.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.shape.lease = Some(lease);
        self
    }

    /// Waits for a batch: until so many jobs are ready, or for so long since the first was. All handlers of the worker
    /// must take batches; of several the least number and the shortest wait hold.
    pub fn fill(mut self, jobs: usize, wait: Duration) -> Self {
        self.shape.fill = Some(Fill { jobs, wait });
        self
    }

    /// How long the handler may run. After that it is told to end ([`Job::cancelled`]), and its attempt has failed.
    /// Default: without limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.shape.timeout = Some(timeout);
        self
    }

    /// Which errors are tried again; all others are final. Given more than once: any of them.
    pub fn retry_on(
        mut self,
        which: impl Fn(&(dyn std::error::Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sorts.retry.push(Arc::new(which));
        self
    }

    /// Which errors are final: the job is dead. As in `.give_up_on(dq_redis::is::<ParseError>)`.
    pub fn give_up_on(
        mut self,
        which: impl Fn(&(dyn std::error::Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sorts.give_up.push(Arc::new(which));
        self
    }
}

/// An error unless these can be the handlers of one worker.
pub(crate) fn checked(all: &[Handler]) -> Result<(), Error> {
    let mut kinds = std::collections::BTreeSet::new();
    for handler in all {
        if !kinds.insert(&handler.shape.kind) {
            return Err(Error::usage(match &handler.shape.kind {
                Some(kind) => format!("two handlers for jobs of kind {kind}"),
                None => "two handlers without a kind: name the kind of all but one".into(),
            }));
        }
    }
    match kinds.is_empty() {
        true => Err(Error::usage("the worker has no handler")),
        false => Ok(()),
    }
}

/// Decodes the data, but for a plain `Job`.
pub(crate) fn typed<T: DeserializeOwned + 'static>(inner: Arc<Inner>) -> Result<Job<T>, Error> {
    let nothing = (Box::new(()) as Box<dyn Any>).downcast::<T>();
    let data = match nothing {
        Ok(nothing) => *nothing,
        Err(_) => inner.decode()?,
    };
    Ok(Job { data, inner })
}

fn returned<R: Serialize, E: Into<BoxError>>(ended: Result<R, E>) -> Result<Returned, BoxError> {
    let value = ended.map_err(named)?;
    match encode(&value) {
        Ok(value) => Ok(Returned(value)),
        Err(Error::Encode(error)) => Err(Box::new(Unencodable(error))),
        Err(error) => Err(error.into()),
    }
}
