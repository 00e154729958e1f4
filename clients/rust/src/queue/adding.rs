//! A job that [`Queue::add`] adds once its options are set.

use super::new_job::{options, IfExists, NewJob, Options};
use super::Queue;
use crate::attempt::OnDead;
use crate::error::Error;
use crate::values;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

/// What [`Queue::add`] returns: set options, then `.await` it. The output is the job's id; `None` if the condition
/// refused the job, usually because a job with this id exists.
#[must_use = "nothing is added until it is awaited"]
pub struct Adding<'a, K = ()> {
    queue: &'a Queue,
    job: NewJob,
    kind: PhantomData<fn() -> K>,
}

impl<'a, K> Adding<'a, K> {
    pub(crate) fn of(queue: &'a Queue, job: NewJob) -> Self {
        let kind = PhantomData;
        Adding { queue, job, kind }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        self.job = self.job.with(change);
        self
    }

    options!();

    pub(crate) async fn waited<R: serde::de::DeserializeOwned>(
        mut self,
        timeout: Duration,
    ) -> Result<Option<R>, Error> {
        self.job
            .options
            .said
            .keep
            .get_or_insert(Duration::from_secs(60));
        let queue = self.queue;
        let given = values::lossy(self.job.given_id().unwrap_or_default());
        let replaces = self.job.options.if_exists == IfExists::OnlyReplace;
        match queue.add_now(self.job).await? {
            Some(id) => queue.wait(id, timeout).await,
            None if replaces => Err(Error::NotFound(given)),
            None => Err(Error::Exists(given)),
        }
    }
}

impl Adding<'_> {
    /// Adds the job and waits until it has ended, as [`Queue::wait`] does. The job is kept for a minute, unless
    /// [`Adding::keep`] says otherwise.
    pub async fn and_wait<R: serde::de::DeserializeOwned>(
        self,
        timeout: Duration,
    ) -> Result<Option<R>, Error> {
        self.waited(timeout).await
    }
}

impl<'a, K> IntoFuture for Adding<'a, K> {
    type Output = Result<Option<String>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.queue.add_now(self.job))
    }
}
