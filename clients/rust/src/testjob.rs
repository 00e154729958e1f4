//! A job without a server, for tests of handlers.

use crate::core::{self, Before, Delivered, End, JobKey, Suspension, Terms, SERVER_TTR};
use crate::error::{Error, Outcome};
use crate::guard::{guarded, Kept};
use crate::handler::{checked, typed, Handler};
use crate::job::{needs_server, Desk, Inner, Job};
use crate::middleware::Call;
use crate::queue::{NewJob, State};
use crate::result::{decode, encode};
use crate::run::end_of;
use crate::values::{instant_ms, lossy};
use redis::{Arg, Cmd};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Of one job: a handler that sleeps under a new name each time would never end.
const MOST_RUNS: usize = 100;

type Steps = BTreeMap<String, Vec<u8>>;

/// A job without a server, for tests of handlers.
///
/// ```
/// # use dq_redis::{BoxError, Handler, Job, State, TestJob};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
/// async fn close(job: Job<u32>) -> Result<String, BoxError> {
///     let by: Option<String> = job.wait("signed").await?;
///     Ok(format!("{} for {}", job.data, by.unwrap_or_default()))
/// }
///
/// let order = TestJob::new(&17).attempt(3).signal("signed", "Ada")?;
/// assert_eq!(close(order.job()?).await?, "17 for Ada");
/// let run = order.run([Handler::new(close).attempts(5)]).await?;
/// assert_eq!((run.state, run.attempts), (State::Done, 3));
/// # Ok(()) }
/// ```
///
/// [`Job::step`] runs what it is given, sleeps and waits for signals end the attempt as always, and what needs a server
/// says so.
#[derive(Clone, Debug)]
pub struct TestJob {
    job: NewJob,
    attempt: u32,
    queue: String,
    results: Vec<Before>,
    signals: Steps,
}

/// What became of a [`TestJob`].
#[derive(Debug)]
#[non_exhaustive]
pub struct TestRun {
    /// `Done`, `Dead`, `Blocked` (it waits for a signal) or `Delayed` (it was tried 100 times).
    pub state: State,
    /// What its handler returned, encoded.
    pub result: Option<Vec<u8>>,
    /// Why it failed last.
    pub reason: Option<String>,
    /// How often it was tried. Sleeps, waits and snoozes do not count.
    pub attempts: u32,
    /// How long it waited each time: after failures (`None`: as the server says), in sleeps, and for signals that did not
    /// come.
    pub waits: Vec<Option<Duration>>,
    /// The job of each delivery.
    pub jobs: Vec<Job>,
}

impl TestRun {
    /// What its handler returned; `None` without a result.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        self.result.as_deref().map(decode).transpose()
    }
}

impl TestJob {
    /// A job with this data.
    pub fn new<T: Serialize + ?Sized>(data: &T) -> Self {
        TestJob::of(NewJob::new(data))
    }

    /// This job, with its id (default: 1), kind, headers, attempts and backoff.
    pub fn of(job: NewJob) -> Self {
        TestJob {
            job,
            attempt: 1,
            queue: "test".to_owned(),
            results: Vec::new(),
            signals: Steps::new(),
        }
    }

    /// Which attempt it is (default: the first).
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt.max(1);
        self
    }

    /// The name of its queue (default: test).
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queue = name.into();
        self
    }

    /// The result of a job that it is after, and that is done.
    pub fn result<V: Serialize + ?Sized>(mut self, id: &str, value: &V) -> Result<Self, Error> {
        let done = Some(Outcome::Done.name().to_owned());
        self.results.push((id.into(), done, encode(value)?));
        Ok(self)
    }

    /// How a job ended that it is after, and that is not done, and why.
    pub fn failed(mut self, id: &str, outcome: Outcome, reason: &str) -> Self {
        let outcome = Some(outcome.name().to_owned());
        self.results.push((id.into(), outcome, Some(reason.into())));
        self
    }

    /// A signal that has come.
    pub fn signal<V: Serialize + ?Sized>(mut self, name: &str, value: &V) -> Result<Self, Error> {
        let value = encode(value)?.unwrap_or_default();
        self.signals.insert(name.to_owned(), value);
        Ok(self)
    }

    /// The job, with all its signals, for a call of its handler. A plain `Job` has no decoded data.
    pub fn job<T: DeserializeOwned + 'static>(&self) -> Result<Job<T>, Error> {
        typed(self.delivery(self.attempt, 0, &self.signals)?)
    }

    /// Runs the handler of the job's kind until the job is done, dead, or waits for a signal. A job without a kind has that of
    /// the only handler.
    ///
    /// After a failure it is tried again, as its limits and backoff say, but at once. So is a sleep over, and a wait for a
    /// signal, if that has come or the wait has a timeout. A handler's own timeout does not hold.
    ///
    /// The error says that no handler takes the job, or what needs a server.
    pub async fn run(&self, handlers: impl IntoIterator<Item = Handler>) -> Result<TestRun, Error> {
        let handlers: Vec<Handler> = handlers.into_iter().collect();
        let mut test = self.clone();
        let handler = test.handler(&handlers)?;
        let mut steps = Steps::new();
        let mut run = TestRun {
            state: State::Delayed,
            result: None,
            reason: None,
            attempts: 0,
            waits: Vec::new(),
            jobs: Vec::new(),
        };
        while run.jobs.len() < MOST_RUNS {
            let inner = test.delivery(test.attempt, handler.shape.attempts, &steps)?;
            run.jobs.push(inner.job());
            run.attempts = test.attempt;
            let ended = Kept::new(guarded(|| handler.work.run(Call(vec![inner.job()]))).await);
            let end = match ended.get() {
                Some(ended) => end_of(&handler.sorts, &inner, false, ended).0,
                None => End::GivenBack,
            };
            let commands = answer(handler, &inner, &end)?;
            steps.clone_from(&inner.attempt().kept);
            if let End::Done(result) = end {
                (run.result, run.reason, run.state) = (result, None, State::Done);
                return Ok(run);
            }
            if !commands
                .iter()
                .all(|it| test.obey(&words(it), &inner, &mut steps, &mut run))
            {
                return Ok(run);
            }
        }
        Ok(run)
    }

    fn handler<'a>(&mut self, all: &'a [Handler]) -> Result<&'a Handler, Error> {
        checked(all)?;
        let given = self.job.given().0.map(str::to_owned);
        if let (None, [Handler { shape, .. }]) = (&given, all) {
            if let Some(kind) = &shape.kind {
                self.job = self.job.clone().kind(kind);
                return Ok(&all[0]);
            }
        }
        let of_kind = |kind: &Option<String>| all.iter().find(|it| it.shape.kind == *kind);
        of_kind(&given).or_else(|| of_kind(&None)).ok_or_else(|| {
            let kind = given.as_deref().unwrap_or_default();
            let kinds = all.iter().filter_map(|it| it.shape.kind.as_deref());
            let hint = core::nearest(kind, kinds).map(|kind| format!(": did it mean {kind:?}?"));
            let hint = hint.unwrap_or_default();
            Error::Usage(format!("no handler for jobs of kind {kind:?}{hint}"))
        })
    }

    fn delivery(&self, attempt: u32, limit: u32, steps: &Steps) -> Result<Arc<Inner>, Error> {
        let (_, max_attempts, backoff) = self.job.given();
        let wait = |steps: &[Duration]| {
            let last = steps.len().checked_sub(1)?;
            Some(steps[last.min(attempt as usize - 1)])
        };
        let terms = Terms {
            ttr: SERVER_TTR,
            max_attempts,
            wait: backoff.and_then(wait),
        };
        let job = JobKey {
            key: self.queue.as_bytes().into(),
            id: self.job.given_id().unwrap_or_else(|| b"1".into()).into(),
        };
        let now = instant_ms(SystemTime::now()) as i64;
        let mut made = Delivered::new(job, self.job.payload()?, terms);
        made.token = b"1".into();
        made.attempt = attempt;
        (made.due_ms, made.deadline_ms) = (now, now + SERVER_TTR.as_millis() as i64);
        made.results.clone_from(&self.results);
        made.steps = steps
            .iter()
            .map(|(name, value)| (name.clone().into(), value.clone()))
            .collect();
        Ok(Inner::new(
            Arc::new(made),
            limit,
            Desk::Inline(Default::default()),
        ))
    }

    /// Does what the server does with a command that ends an attempt. False: the job is over, or blocked.
    fn obey(
        &mut self,
        words: &[Vec<u8>],
        of: &Inner,
        steps: &mut Steps,
        run: &mut TestRun,
    ) -> bool {
        let text = |at: usize| lossy(words[at].clone());
        if words[0] == b"DQ.STEP" {
            steps.insert(text(4), words[5].clone());
            return true;
        }
        let mut rest = &words[6..]; // DQ.NACK key id TOKEN token mode
        let mut option = |name: &str| match rest {
            [word, value, after @ ..] if word == name.as_bytes() => {
                rest = after;
                Some(lossy(value.clone()))
            }
            _ => None,
        };
        let (signal, delay, reason) = (option("AWAIT"), option("DELAY"), option("REASON"));
        run.reason = reason.or(run.reason.take());
        match &*text(5) {
            "FATAL" => {
                run.state = State::Dead;
                return false;
            }
            "FAIL" => self.attempt += 1,
            _ => run.attempts -= 1,
        }
        if let Some((name, value)) = signal
            .as_ref()
            .and_then(|name| self.signals.get_key_value(name))
        {
            steps.insert(name.clone(), value.clone());
        } else if signal.is_some() && delay.is_none() {
            run.state = State::Blocked;
            return false;
        } else {
            let delay = delay
                .and_then(|ms| ms.parse().ok())
                .map(Duration::from_millis);
            run.waits.push(delay.or(of.delivered.terms.wait));
        }
        true
    }
}

/// What is said to the server of an attempt that ended; an error if it needed one.
fn answer(handler: &Handler, inner: &Inner, end: &End) -> Result<Vec<Cmd>, Error> {
    let asked = inner.take_asked();
    if let Some(what) = asked.lacks {
        return Err(needs_server(what));
    }
    if let Some(Suspension(commands, _)) = asked.suspension {
        return Ok(commands);
    }
    let mut commands = Vec::new();
    core::Outcome::ended(0, &inner.delivered, &handler.shape, end.clone()).write(&mut commands);
    Ok(commands)
}

fn words(command: &Cmd) -> Vec<Vec<u8>> {
    let word = |word: Arg<&[u8]>| match word {
        Arg::Simple(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    command.args_iter().map(word).collect()
}

/// Ran handlers without a server.
#[deprecated(note = "TestJob::new(&data).run(handlers) runs handlers without a server")]
#[derive(Debug)]
pub struct Inline(());

#[allow(deprecated, missing_docs)]
impl Inline {
    pub fn new(_: impl IntoIterator<Item = Handler>) -> Self {
        Inline(())
    }

    pub fn signal<V: ?Sized>(self, _: &str, _: &V) -> Result<Self, Error> {
        Err(gone())
    }

    pub async fn run<T: ?Sized, R>(&self, _: &T) -> Result<Option<R>, Error> {
        Err(gone())
    }

    pub async fn run_job<R>(&self, _: NewJob) -> Result<Option<R>, Error> {
        Err(gone())
    }
}

fn gone() -> Error {
    let why = "Inline is gone: dq_redis::TestJob runs handlers without a server, and the module testing starts one";
    Error::usage(why)
}
