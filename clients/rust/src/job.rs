//! A job as its handler sees it.

use crate::attempt::Attempt;
use crate::codec::{decoded, Codec, Json};
use crate::core::{Delivered, Event, Serial, Why};
use crate::envelope::Headers;
use crate::error::{BoxError, Error};
use crate::guard::Kept;
use crate::result::{encode, Before};
use crate::server::Server;
use crate::values::at_ms;
use crate::verdict::{named, Told};
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

/// One delivery of a job, with its decoded data. Without a type (`Job`) nothing was decoded: see [`Job::decode`] and
/// [`Job::payload`].
pub struct Job<T = ()> {
    /// What was added.
    pub data: T,
    pub(crate) inner: Arc<Inner>,
}

/// What is shared by all faces of a delivery.
pub(crate) struct Inner {
    pub delivered: Arc<Delivered>,
    pub max_attempts: u32,
    pub desk: Desk,
    pub attempt: Mutex<Attempt>,
    told: Mutex<Option<Why>>,
    /// Once somebody waits for it.
    ear: OnceLock<watch::Sender<Option<Why>>>,
    /// Its task; none is to be begun any more where that was said first.
    task: OnceLock<Option<AbortHandle>>,
    /// Of a batch: what `succeed` and `fail` said.
    said: Mutex<Option<Said>>,
}

/// What was said of one job of a batch.
pub(crate) type Said = Kept<Result<Option<Vec<u8>>, BoxError>>;

/// Where a job's own commands go.
pub(crate) enum Desk {
    Worker {
        serial: Serial,
        events: UnboundedSender<Event>,
        server: Server,
    },
    /// A test without a server.
    Inline,
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

impl Inner {
    pub fn new(delivered: Arc<Delivered>, attempts: u32, desk: Desk) -> Arc<Self> {
        let max_attempts = if delivered.terms.max_attempts > 0 {
            delivered.terms.max_attempts
        } else {
            attempts
        };
        let attempt = Mutex::new(Attempt::of(&delivered.steps));
        Arc::new(Inner {
            delivered,
            max_attempts,
            desk,
            attempt,
            told: Mutex::default(),
            ear: OnceLock::new(),
            task: OnceLock::new(),
            said: Mutex::default(),
        })
    }

    pub fn tell(&self, why: Why) {
        let mut told = lock(&self.told);
        if told.is_none() {
            *told = Some(why);
            if let Some(ear) = self.ear.get() {
                ear.send_replace(*told);
            }
        }
    }

    pub fn told(&self) -> Option<Why> {
        *lock(&self.told)
    }

    fn listen(&self) -> watch::Receiver<Option<Why>> {
        let told = lock(&self.told); // what is told from here on, the ear hears
        let ear = self.ear.get_or_init(|| watch::Sender::new(*told));
        ear.subscribe()
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

    pub fn attempt(&self) -> MutexGuard<'_, Attempt> {
        lock(&self.attempt)
    }

    /// Of a batch.
    pub fn take_said(&self) -> Option<Said> {
        lock(&self.said).take()
    }

    pub fn send(&self, event: impl FnOnce(Serial) -> Event) {
        if let Desk::Worker { serial, events, .. } = &self.desk {
            _ = events.send(event(*serial));
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
    /// The job's id; bytes that are no UTF-8 are replaced ([`Job::id_bytes`] has them).
    pub fn id(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.job.id)
    }

    /// The job's id.
    pub fn id_bytes(&self) -> &[u8] {
        &self.inner.delivered.job.id
    }

    /// The key that it came from; of a sharded queue, the shard's.
    pub fn queue(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.job.key)
    }

    /// What was added, as bytes, envelope included.
    pub fn payload(&self) -> &[u8] {
        &self.inner.delivered.payload
    }

    /// What was added, decoded. A handler that returns the error has its job dead at once.
    pub fn decode<D: DeserializeOwned>(&self) -> Result<D, Error> {
        self.inner.decode()
    }

    /// What was added by [`Queue::add_with`](crate::Queue::add_with), decoded. A handler that returns the error has its
    /// job dead at once.
    pub fn decode_with<D: DeserializeOwned>(&self, codec: &impl Codec) -> Result<D, Error> {
        decoded(codec, self.payload())
    }

    /// The kind that it was added with.
    pub fn kind(&self) -> Option<&str> {
        self.inner.delivered.envelope()?.kind.as_deref()
    }

    /// The headers that it was added with.
    pub fn headers(&self) -> Headers {
        self.inner
            .delivered
            .envelope()
            .map(|envelope| envelope.headers.clone())
            .unwrap_or_default()
    }

    /// Names this delivery.
    pub fn token(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.inner.delivered.token)
    }

    /// Counts deliveries, this one included.
    pub fn attempt(&self) -> u32 {
        self.inner.delivered.attempt
    }

    /// The limit of the job, else of its handler; 0: none.
    pub fn max_attempts(&self) -> u32 {
        self.inner.max_attempts
    }

    /// Whether the job is dead if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        0 < self.inner.max_attempts && self.inner.max_attempts <= self.attempt()
    }

    /// When the lease ended at delivery. The worker renews it while the handler runs.
    pub fn deadline(&self) -> SystemTime {
        at_ms(self.inner.delivered.deadline_ms)
    }

    /// When the job was due.
    pub fn due(&self) -> SystemTime {
        at_ms(self.inner.delivered.due_ms)
    }

    /// Of a recurring job, the instant of its occurrence, the same in all attempts.
    pub fn occurrence(&self) -> SystemTime {
        self.due()
    }

    /// How the jobs ended that this one was after.
    pub fn results(&self) -> Vec<Before> {
        self.inner
            .delivered
            .results
            .iter()
            .map(Before::of)
            .collect()
    }

    // --- Told to end

    /// Waits until the handler is told to end, and why. A handler that takes no notice goes on.
    pub fn told(&self) -> impl Future<Output = Why> + Send + 'static {
        let mut told = self.inner.listen();
        async move {
            let why = match told.wait_for(Option::is_some).await {
                Ok(why) => *why,
                Err(_) => None,
            };
            why.unwrap_or(Why::Stopping) // all that knew the job have ended
        }
    }

    /// Whether, and why.
    pub fn is_told(&self) -> Option<Why> {
        self.inner.told()
    }

    /// Another worker may have the job: the end of its handler will not count.
    pub fn is_lost(&self) -> bool {
        self.is_told() == Some(Why::Lost)
    }

    /// The output of a future, unless the handler is told to end meanwhile: then the future is dropped.
    ///
    /// ```no_run
    /// # async fn handler(job: dq_redis::Job) -> Result<(), dq_redis::Told> {
    /// job.unless_told(tokio::time::sleep(std::time::Duration::from_secs(60))).await?;
    /// # Ok(()) }
    /// ```
    pub async fn unless_told<F: Future>(&self, future: F) -> Result<F::Output, Told> {
        tokio::select! {
            biased;
            why = self.told() => Err(Told(why)),
            output = future => Ok(output),
        }
    }

    // --- In a batch

    /// In a batch: this job failed (or is to be retried, snoozed, given up), whatever becomes of the others.
    pub fn fail(&self, error: impl Into<BoxError>) {
        *lock(&self.inner.said) = Some(Kept::new(Err(named(error))));
    }

    /// In a batch: the result of this job.
    pub fn succeed<R: Serialize>(&self, result: &R) -> Result<(), Error> {
        *lock(&self.inner.said) = Some(Kept::new(Ok(encode(result)?)));
        Ok(())
    }

    // --- Progress

    /// How far the work has come, from 0 to 1, and a text, which may be empty. Sent at most once a second, and the last
    /// one always. `DQ.GET` shows it.
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
        self.inner.send(|serial| Event::Progress(serial, text));
        Ok(())
    }
}
