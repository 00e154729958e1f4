//! Kinds of jobs, declared once.

use crate::error::{BoxError, Error};
use crate::handler::Handler;
use crate::job::Job;
use crate::queue::{Adding, NewJob, Queue};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

/// A kind of jobs, declared once: what its jobs hold, what they come to, and the options that they have by default. Who
/// adds them and who handles them has the same types.
///
/// ```no_run
/// # use dq_redis::{BoxError, Job, Kind, Queue, Worker};
/// # use std::time::Duration;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Order { number: u32 }
/// static CHARGE: Kind<Order, String> = Kind::new("charge").defaults(|job| job.attempts(5));
///
/// async fn charge(job: Job<Order>) -> Result<String, BoxError> {
///     Ok(format!("receipt {}", job.data.number))
/// }
/// # async fn example(queue: Queue) -> Result<(), BoxError> {
/// let worker = Worker::new(&queue).handler(CHARGE.handler(charge));
/// let minute = Duration::from_secs(60);
/// CHARGE.add(&queue, &Order { number: 17 }).delay(minute).await?;
/// let receipt = CHARGE.add(&queue, &Order { number: 18 }).and_wait(minute).await?;
/// # let _: Option<String> = receipt; Ok(()) }
/// ```
pub struct Kind<T: ?Sized, R = ()> {
    name: &'static str,
    defaults: fn(NewJob) -> NewJob,
    types: PhantomData<fn(&T) -> R>,
}

impl<T: ?Sized, R> Clone for Kind<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, R> Copy for Kind<T, R> {}

impl<T: ?Sized, R> fmt::Debug for Kind<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({:?})", self.name)
    }
}

impl<T: ?Sized, R> Kind<T, R> {
    /// A kind of this name, usually as a `static`.
    pub const fn new(name: &'static str) -> Self {
        Kind {
            name,
            defaults: |job| job,
            types: PhantomData,
        }
    }

    /// The options that its jobs have unless they say otherwise.
    pub const fn defaults(self, options: fn(NewJob) -> NewJob) -> Self {
        Kind {
            defaults: options,
            ..self
        }
    }

    /// The kind's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T: Serialize + ?Sized, R> Kind<T, R> {
    /// A job for [`Queue::add_many`], [`Queue::chain`], [`Queue::join`] and [`Job::spawn`].
    pub fn job(&self, data: &T) -> NewJob {
        (self.defaults)(NewJob::new(data)).kind(self.name)
    }

    /// Adds a job, as [`Queue::add`] does.
    pub fn add<'a>(&self, queue: &'a Queue, data: &T) -> Adding<'a, Kind<T, R>> {
        Adding::of(queue, self.job(data))
    }
}

impl<T: ?Sized, R: DeserializeOwned> Adding<'_, Kind<T, R>> {
    /// Adds the job and waits for its result, as [`Queue::wait`] does. The job is kept for a minute, unless
    /// [`Adding::keep`] says otherwise.
    pub async fn and_wait(self, timeout: Duration) -> Result<Option<R>, Error> {
        self.waited(timeout).await
    }
}

impl<T: ?Sized, R: DeserializeOwned> Kind<T, R> {
    /// Waits for the end of such a job, as [`Queue::wait`] does.
    pub async fn wait(
        &self,
        queue: &Queue,
        id: impl AsRef<[u8]>,
        timeout: Duration,
    ) -> Result<Option<R>, Error> {
        queue.wait(id, timeout).await
    }

    /// The result of such a job, as [`Queue::result`] reads it.
    pub async fn result(&self, queue: &Queue, id: impl AsRef<[u8]>) -> Result<Option<R>, Error> {
        queue.result(id).await
    }
}

impl<T: DeserializeOwned + Send + 'static, R: Serialize + 'static> Kind<T, R> {
    /// The handler of its jobs: see [`Handler::new`].
    pub fn handler<E, F, Fut>(&self, function: F) -> Handler
    where
        E: Into<BoxError> + 'static,
        F: Fn(Job<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        Handler::new(function).kind(self.name)
    }

    /// A handler that blocks its thread: see [`Handler::blocking`].
    pub fn blocking<E, F>(&self, function: F) -> Handler
    where
        E: Into<BoxError> + 'static,
        F: Fn(Job<T>) -> Result<R, E> + Send + Sync + 'static,
    {
        Handler::blocking(function).kind(self.name)
    }

    /// A handler of up to `size` jobs at a time: see [`Handler::batch`].
    pub fn batch<E, F, Fut>(&self, size: usize, function: F) -> Handler
    where
        E: Into<BoxError> + 'static,
        F: Fn(Vec<Job<T>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
    {
        Handler::batch(size, function).kind(self.name)
    }
}
