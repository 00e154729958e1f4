//! Runs handlers without a server, for tests.

use crate::core::{Delivered, End, JobKey, Terms, SERVER_TTR};
use crate::error::Error;
use crate::guard::{guarded, Kept};
use crate::handler::Handler;
use crate::job::{Desk, Inner};
use crate::keys::new_id;
use crate::middleware::Call;
use crate::queue::NewJob;
use crate::result::{decode, encode};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs handlers at once, in the test's own task, without a server. Sleeps are over at once. To wait for jobs, a
/// handler needs a server (see the module `testing`).
///
/// ```
/// # use dq_redis::{Error, Handler, Inline, Job};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// async fn double(job: Job<u32>) -> Result<u32, Error> {
///     Ok(2 * job.data)
/// }
///
/// let result: Option<u32> = Inline::new([Handler::new(double)]).run(&21).await.unwrap();
/// assert_eq!(result, Some(42));
/// # }
/// ```
#[derive(Debug)]
pub struct Inline {
    handlers: Vec<Handler>,
    signals: BTreeMap<String, Vec<u8>>,
}

impl Inline {
    /// Runs jobs with these handlers.
    pub fn new(handlers: impl IntoIterator<Item = Handler>) -> Self {
        Inline {
            handlers: handlers.into_iter().collect(),
            signals: BTreeMap::new(),
        }
    }

    /// Sets a signal, which the jobs find.
    pub fn signal<V: Serialize + ?Sized>(mut self, name: &str, value: &V) -> Result<Self, Error> {
        self.signals
            .insert(name.to_owned(), encode(value)?.unwrap_or_default());
        Ok(self)
    }

    /// Runs the handler of a job with this data, and returns the job's result.
    pub async fn run<T: Serialize + ?Sized, R: DeserializeOwned>(
        &self,
        data: &T,
    ) -> Result<Option<R>, Error> {
        self.run_job(NewJob::new(data)).await
    }

    /// Runs the handler of a job with a kind, headers or an id. The error is [`Error::JobFailed`] with the reason
    /// that the job would have, or [`Error::Suspended`] if it waits for a signal.
    pub async fn run_job<R: DeserializeOwned>(&self, job: NewJob) -> Result<Option<R>, Error> {
        let id = job.given_id().unwrap_or_else(new_id);
        let key: Arc<[u8]> = b"inline".as_slice().into();
        let terms = Terms {
            ttr: SERVER_TTR,
            max_attempts: 0,
            wait: None,
        };
        let mut delivered = Delivered::new(
            JobKey {
                key,
                id: id.clone().into(),
            },
            job.payload()?,
            terms,
        );
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as i64);
        (delivered.due_ms, delivered.deadline_ms) = (now, now + SERVER_TTR.as_millis() as i64);
        let kind = delivered
            .envelope()
            .and_then(|envelope| envelope.kind.clone());
        let of_kind = |kind: &Option<String>| {
            self.handlers
                .iter()
                .find(|handler| handler.shape.kind == *kind)
        };
        let Some(handler) = of_kind(&kind).or_else(|| of_kind(&None)) else {
            return Err(Error::Usage(format!(
                "no handler for jobs of kind {}",
                kind.unwrap_or_default()
            )));
        };
        let inner = Inner::new(Arc::new(delivered), handler.shape.attempts, Desk::Inline);
        inner.attempt().kept.extend(self.signals.clone());
        let ended = guarded(|| handler.work.run(Call(vec![inner.job()]))).await;
        let ended = Kept::new(ended);
        let end = match ended.get() {
            Some(ended) => crate::run::end_of(&handler.sorts, &inner, false, ended).0,
            None => End::GivenBack,
        };
        match end {
            End::Done(result) => result.as_deref().map(decode).transpose(),
            End::Suspended => Err(crate::Suspended.into()),
            End::Failed { reason, .. } | End::GaveUp { reason } => Err(failed(id, Some(reason))),
            End::Snoozed { reason, .. } => Err(failed(id, reason)),
            End::GivenBack => Err(failed(id, None)),
        }
    }
}

fn failed(id: Vec<u8>, reason: Option<String>) -> Error {
    Error::JobFailed {
        id: crate::values::lossy(id),
        outcome: crate::Outcome::Dead,
        reason,
    }
}
