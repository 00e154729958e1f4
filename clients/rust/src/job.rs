//! A job as its handler sees it.

use crate::attempt::Attempt;
use crate::codec::{decoded, Codec, Json};
use crate::core::{limit, CancelReason, Delivered, Event, Serial, Suspension};
use crate::envelope::Headers;
use crate::error::{BoxError, Error};
use crate::guard::{clean, Kept, LONGEST_REASON};
use crate::result::{encode, JobResult};
use crate::source::Source;
use crate::values::at_ms;
use crate::verdict::{named, Cancelled};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// One delivery of a job, with its decoded data. A plain `Job` has no decoded data: see [`Job::decode`] and
/// [`Job::payload`].
pub struct Job<T = ()> {
    /// The data that was added.
    pub data: T,
    pub(crate) inner: Arc<Inner>,
}

/// What all clones of a delivery's `Job` share, whatever their type of data.
pub(crate) struct Inner {
    pub delivered: Arc<Delivered>,
    pub max_attempts: u32,
    pub desk: Desk,
    pub attempt: Mutex<Attempt>,
    told: Mutex<Option<CancelReason>>,
    /// Created when somebody first waits to be told.
    listener: OnceLock<watch::Sender<Option<CancelReason>>>,
    /// The handler's task. `None`: `abort` came first, and a task that begins later is aborted.
    task: OnceLock<Option<AbortHandle>>,
    /// What `succeed` or `fail` said of this job of a batch.
    said: Mutex<Option<Said>>,
}

/// What was said of one job of a batch.
pub(crate) type Said = Kept<Result<Option<Vec<u8>>, BoxError>>;

/// Where a job's own commands go.
pub(crate) enum Desk {
    Worker {
        serial: Serial,
        events: UnboundedSender<Event>,
        source: Arc<Source>,
    },
    /// A test without a server.
    Inline(Mutex<Asked>),
}

/// What a job without a server has asked for.
#[derive(Default)]
pub(crate) struct Asked {
    pub suspension: Option<Suspension>,
    /// What needs a server.
    pub lacks: Option<&'static str>,
}

impl<T> Clone for Job<T>
where
    T: Clone,
{
    fn clone(&self) -> Self {
        Job {
            data: self.data.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Job({:?} of {:?}, attempt {})",
            self.id(),
            self.queue(),
            self.attempt()
        )
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn needs_server(what: &str) -> Error {
    Error::Usage(format!("{what} needs a server: see the module testing"))
}

impl Inner {
    pub fn new(delivered: Arc<Delivered>, attempts: u32, desk: Desk) -> Arc<Self> {
        let max_attempts = limit(&delivered, attempts);
        let attempt = Mutex::new(Attempt::of(&delivered.steps));
        Arc::new(Inner {
            delivered,
            max_attempts,
            desk,
            attempt,
            told: Mutex::default(),
            listener: OnceLock::new(),
            task: OnceLock::new(),
            said: Mutex::default(),
        })
    }

    pub fn tell(&self, why: CancelReason) {
        let mut told = lock(&self.told);
        if told.is_none() {
            *told = Some(why);
            if let Some(listener) = self.listener.get() {
                listener.send_replace(*told);
            }
        }
    }

    pub fn told(&self) -> Option<CancelReason> {
        *lock(&self.told)
    }

    fn listen(&self) -> watch::Receiver<Option<CancelReason>> {
        let told = lock(&self.told); // the listener hears whatever is told from here on
        let listener = self.listener.get_or_init(|| watch::Sender::new(*told));
        listener.subscribe()
    }

    pub fn runs_in(&self, task: AbortHandle) {
        if let Err(Some(task)) = self.task.set(Some(task)) {
            task.abort();
        }
    }

    pub fn abort(&self) {
        if let Some(task) = self.task.get_or_init(|| None) {
            task.abort();
        }
    }

    /// Whether `abort` came before its task.
    pub fn is_aborted(&self) -> bool {
        matches!(self.task.get(), Some(None))
    }

    pub fn attempt(&self) -> MutexGuard<'_, Attempt> {
        lock(&self.attempt)
    }

    /// What was said of this job of a batch, once.
    pub fn take_said(&self) -> Option<Said> {
        lock(&self.said).take()
    }

    pub fn send(&self, event: impl FnOnce(Serial) -> Event) {
        if let Desk::Worker { serial, events, .. } = &self.desk {
            _ = events.send(event(*serial));
        }
    }

    pub fn suspend(&self, asked: Suspension) {
        self.attempt().has_ended = true;
        match &self.desk {
            Desk::Inline(desk) => lock(desk).suspension = Some(asked),
            Desk::Worker { .. } => self.send(|serial| Event::Suspended(serial, asked)),
        }
    }

    /// The queue that the job came from; an error in a test without a server.
    pub fn source(&self, what: &'static str) -> Result<&Source, Error> {
        match &self.desk {
            Desk::Worker { source, .. } => Ok(source),
            Desk::Inline(desk) => {
                lock(desk).lacks = Some(what);
                Err(needs_server(what))
            }
        }
    }

    /// What a job without a server has asked for, once.
    pub fn take_asked(&self) -> Asked {
        match &self.desk {
            Desk::Inline(desk) => std::mem::take(&mut *lock(desk)),
            Desk::Worker { .. } => Asked::default(),
        }
    }

    pub fn job(self: &Arc<Self>) -> Job {
        Job {
            data: (),
            inner: self.clone(),
        }
    }

    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let json = self
            .delivered
            .envelope()
            .map_or(self.delivered.payload.as_slice(), |found| {
                found.data.get().as_bytes()
            });
        decoded(&Json, json)
    }
}

impl<T> Job<T> {
    /// The job's id; bytes that are not UTF-8 are replaced ([`Job::id_bytes`] has them).
    pub fn id(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.job.id)
    }

    /// The job's id as bytes.
    pub fn id_bytes(&self) -> &[u8] {
        &self.inner.delivered.job.id
    }

    /// The key that the job came from; of a sharded queue, the shard's key.
    pub fn queue(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.job.key)
    }

    /// The payload that was added, as bytes, envelope included.
    pub fn payload(&self) -> &[u8] {
        &self.inner.delivered.payload
    }

    /// The job's data, decoded. If the handler returns the error, the job is dead at once.
    pub fn decode<D: DeserializeOwned>(&self) -> Result<D, Error> {
        self.inner.decode()
    }

    /// The data that was added by [`Queue::add_with`](crate::Queue::add_with), decoded. If the handler returns the
    /// error, the job is dead at once.
    pub fn decode_with<D: DeserializeOwned>(&self, codec: &impl Codec) -> Result<D, Error> {
        decoded(codec, self.payload())
    }

    /// The kind that the job was added with.
    pub fn kind(&self) -> Option<&str> {
        self.inner.delivered.envelope()?.kind.as_deref()
    }

    /// The headers that the job was added with.
    pub fn headers(&self) -> Headers {
        self.inner
            .delivered
            .envelope()
            .map(|envelope| envelope.headers.clone())
            .unwrap_or_default()
    }

    /// The token of this delivery.
    pub fn token(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.token)
    }

    /// The number of deliveries, this one included.
    pub fn attempt(&self) -> u32 {
        self.inner.delivered.attempt
    }

    /// The least of the limits of the job, its queue and its handler; 0: no limit.
    pub fn max_attempts(&self) -> u32 {
        self.inner.max_attempts
    }

    /// Whether the job is dead if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        0 < self.inner.max_attempts && self.inner.max_attempts <= self.attempt()
    }

    /// When the lease would have expired as it was at delivery. The worker renews it while the handler runs.
    pub fn deadline(&self) -> SystemTime {
        at_ms(self.inner.delivered.deadline_ms)
    }

    /// When the job was due.
    pub fn due(&self) -> SystemTime {
        at_ms(self.inner.delivered.due_ms)
    }

    /// The instant of a recurring job's occurrence, which is equal in all attempts.
    pub fn occurrence(&self) -> SystemTime {
        self.due()
    }

    /// How the jobs ended that this job came after.
    pub fn results(&self) -> Vec<JobResult> {
        self.inner
            .delivered
            .results
            .iter()
            .map(JobResult::of)
            .collect()
    }

    // --- Cancelled

    /// Waits until the handler is told to end, and returns why. A handler that ignores it goes on.
    pub fn cancelled(&self) -> impl Future<Output = CancelReason> + Send + 'static {
        let mut told = self.inner.listen();
        async move {
            let why = match told.wait_for(Option::is_some).await {
                Ok(why) => *why,
                Err(_) => None,
            };
            why.unwrap_or(CancelReason::Stopping) // everything that knew the job has ended
        }
    }

    /// Why the handler was told to end; `None`: it was not.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.inner.told()
    }

    /// Whether the handler was told to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason().is_some()
    }

    /// Whether another worker may have the job. What the handler then returns does not count.
    pub fn is_lost(&self) -> bool {
        self.cancel_reason() == Some(CancelReason::Lost)
    }

    /// The output of a future, unless the handler is told to end meanwhile: then the future is dropped.
    ///
    /// ```no_run
    /// # async fn handler(job: dq_redis::Job) -> Result<(), dq_redis::Cancelled> {
    /// job.unless_cancelled(tokio::time::sleep(std::time::Duration::from_secs(60))).await?;
    /// # Ok(()) }
    /// ```
    pub async fn unless_cancelled<F: Future>(&self, future: F) -> Result<F::Output, Cancelled> {
        tokio::select! {
            biased;
            why = self.cancelled() => Err(Cancelled(why)),
            output = future => Ok(output),
        }
    }

    // --- In a batch

    /// Sets the error of this job of a batch, which may be a [`Decision`](crate::Decision). The other jobs are not
    /// affected.
    pub fn fail(&self, error: impl Into<BoxError>) {
        *lock(&self.inner.said) = Some(Kept::new(Err(named(error))));
    }

    /// Says that this job of a batch succeeded, and sets its result.
    pub fn succeed<R: Serialize>(&self, result: &R) -> Result<(), Error> {
        *lock(&self.inner.said) = Some(Kept::new(Ok(encode(result)?)));
        Ok(())
    }

    // --- Progress

    /// Reports how far the job is, from 0 to 1, with a text, which may be empty. At most one report a second is sent,
    /// and always the last one. `DQ.GET` shows it.
    pub fn progress(&self, fraction: f64, text: &str) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::Usage(format!(
                "progress is a fraction from 0 to 1, not {fraction}"
            )));
        }
        let fraction = (fraction * 1000.0).round() / 1000.0;
        let text = if text.is_empty() {
            fraction.to_string()
        } else {
            format!("{fraction} {text}")
        };
        let text = clean(text, LONGEST_REASON);
        self.inner.send(|serial| Event::Progress(serial, text));
        Ok(())
    }
}
