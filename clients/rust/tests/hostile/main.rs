//! The worst that Rust can make, wherever a worker calls what is not its own, and a logger that always panics: after
//! each, the same worker does a hundred good jobs. Needs `DQ_MODULE`.

mod acts;

use acts::{named, order, step, Answer, Data, Order, Sour, SourError, ACTS};
use dq_redis::testing::TestServer;
use dq_redis::{
    BoxError, Call, Codec, Error, Handler, Hooks, Job, Json, NewJob, Next, Queue, Returned, State,
    TestJob, Worker,
};
use serde::Serialize;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tower::{Layer, Service};
use tracing::{span, subscriber, Event, Metadata, Subscriber};

const PATIENCE: Duration = Duration::from_secs(60);
const GOOD: usize = 100;

// --- Where they are called

/// What it is to do here.
fn act_at(job: &Job, place: &str) -> Option<usize> {
    let order: Order = job.decode().ok()?;
    (order.place == place).then_some(order.act)
}

fn act(job: &Job, n: usize) -> Result<Answer, BoxError> {
    ACTS[n % ACTS.len()](job)
}

/// As a hook: what was made is dropped there.
fn hook(place: &'static str) -> impl Fn(Job) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    move |job| {
        if let Some(n) = act_at(&job, &format!("{place}, before it awaits")) {
            drop(act(&job, n));
        }
        Box::pin(async move {
            if let Some(n) = act_at(&job, place) {
                tokio::task::yield_now().await;
                drop(act(&job, n));
            }
        })
    }
}

fn hooks() -> Hooks {
    let failed = hook("on_failure");
    Hooks::new()
        .before(hook("before"))
        .after(hook("after"))
        .failed(move |job, _| failed(job))
        .lost(hook("on_loss"))
}

async fn around(call: Call, next: Next) -> Result<Returned, BoxError> {
    let job = call.jobs()[0].clone();
    if let Some(n) = act_at(&job, "around") {
        return Ok(Returned::of(&act(&job, n)?)?);
    }
    let ended = next.run(call).await;
    match act_at(&job, "around, afterwards") {
        Some(n) => Ok(Returned::of(&act(&job, n)?)?),
        None => ended,
    }
}

/// It is dropped with the worker.
#[derive(Clone)]
struct Layered(Next, #[allow(dead_code)] Arc<Sour>);

struct OneLayer;

impl Layer<Next> for OneLayer {
    type Service = Layered;

    fn layer(&self, next: Next) -> Layered {
        Layered(next, Arc::new(Sour))
    }
}

impl Service<Call> for Layered {
    type Response = Returned;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Returned, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if let Some(n) = act_at(&call.jobs()[0], "layer") {
            let answer = act(&call.jobs()[0], n);
            return Box::pin(async move { Ok(Returned::of(&answer?)?) });
        }
        Box::pin(self.0.run(call))
    }
}

fn count(runs: &Mutex<HashMap<String, usize>>, job: &Job) {
    let mut all = runs.lock().unwrap_or_else(PoisonError::into_inner);
    *all.entry(job.id().into_owned()).or_default() += 1;
}

// --- The worker

struct World {
    queue: Queue,
    done: Arc<AtomicUsize>,
    runs: Arc<Mutex<HashMap<String, usize>>>,
    _server: TestServer,
}

impl World {
    async fn new() -> World {
        let server = TestServer::start().await.expect("a server");
        World {
            queue: server.queue("orders"),
            done: Arc::default(),
            runs: Arc::default(),
            _server: server,
        }
    }

    fn handlers(&self) -> Vec<Handler> {
        let (done, runs) = (self.done.clone(), self.runs.clone());
        let plain = move |job: Job| {
            let (done, runs) = (done.clone(), runs.clone());
            async move {
                if let Some(n) = act_at(&job, "good") {
                    done.fetch_add(1, Ordering::Relaxed);
                    return Ok(Answer::Number(n as f64));
                }
                count(&runs, &job);
                if let Some(n) = act_at(&job, "step") {
                    step(&job, n).await?;
                }
                if act_at(&job, "on_loss").is_some() {
                    job.cancelled().await;
                }
                if act_at(&job, "on_failure").is_some() {
                    return Err("to be told".into());
                }
                match act_at(&job, "handler") {
                    Some(n) => act(&job, n),
                    None => Ok(Answer::Number(0.0)),
                }
            }
        };
        let batch = |jobs: Vec<Job>| async move {
            for job in &jobs {
                if let Some(n) = act_at(job, "batch") {
                    if let Err(error) = act(job, n) {
                        job.fail(error);
                    }
                }
            }
            Ok::<_, BoxError>(())
        };
        let blocking = |job: Job| match act_at(&job, "blocking") {
            Some(n) => act(&job, n),
            None => Ok(Answer::Number(0.0)),
        };
        let typed = |job: Job<Data>| async move {
            match job.data {
                Data::Good => Err("it is good"),
                Data::Sour(_) => Ok(()),
            }
        };
        let sorts = |_: &(dyn std::error::Error + 'static)| -> bool { std::panic::panic_any(Sour) };
        vec![
            Handler::new(plain),
            Handler::batch(5, batch).kind("batch"),
            Handler::blocking(blocking).kind("blocking"),
            Handler::new(typed).kind("typed"),
            Handler::new(|_: Job| async { Err::<(), _>("of no sort") })
                .retry_on(sorts)
                .give_up_on(sorts)
                .kind("sorts"),
        ]
    }

    /// The worker takes it, and once, and lets it go; then it does the good ones.
    async fn survives(&self, id: &str, bad: NewJob, is_lost: bool) {
        let ladder = [PATIENCE * 60];
        let bad = bad.id(id).attempts(3).backoff(ladder);
        self.queue.add_many([bad]).await.expect("it is added");
        if is_lost {
            self.until(id, "it runs", || async {
                let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
                runs.contains_key(id)
            })
            .await;
            assert_eq!(self.queue.delete([id]).await.expect("it is deleted"), 1);
        }
        self.until(id, "the worker has let it go", || async {
            let found = self.queue.get(id).await.expect("an answer");
            found.is_none_or(|job| !matches!(job.state, State::Ready | State::Reserved))
        })
        .await;
        let before = self.done.load(Ordering::Relaxed);
        let good = (0..GOOD).map(|n| NewJob::new(&order("good", n)));
        self.queue.add_many(good).await.expect("they are added");
        self.until(id, "good jobs are done", || async {
            self.done.load(Ordering::Relaxed) == before + GOOD
        })
        .await;
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(runs.get(id).is_none_or(|runs| *runs == 1), "{id} in a loop");
    }

    async fn until<Fut: Future<Output = bool>>(&self, id: &str, what: &str, is: impl Fn() -> Fut) {
        let comes = async {
            while !is().await {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, comes).await;
        assert!(came.is_ok(), "not after {id}: {what}");
    }

    async fn reason(&self, id: &str) -> String {
        let found = self.queue.get(id).await.expect("an answer");
        found.and_then(|job| job.reason).unwrap_or_default()
    }
}

/// A logger that panics.
struct Angry;

static LOGGED: AtomicUsize = AtomicUsize::new(0);

impl Subscriber for Angry {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        panic!("no span")
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        LOGGED.fetch_add(1, Ordering::Relaxed);
        std::panic::panic_any(Sour)
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn be_angry() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| subscriber::set_global_default(Angry).expect("it is the first one"));
}

async fn sweep(world: &World, cases: Vec<(String, NewJob, bool)>) {
    be_angry();
    let layered = Worker::new(&world.queue).hooks(hooks()).around(around);
    let worker = world
        .handlers()
        .into_iter()
        .fold(layered.layer(OneLayer).concurrency(2), |worker, handler| {
            worker.handler(handler)
        });
    let stopper = worker.stopper();
    let running = tokio::spawn(worker.run());
    for (id, bad, is_lost) in cases {
        world.survives(&id, bad, is_lost).await;
    }
    stopper.stop();
    let ended = running.await.expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    assert!(LOGGED.load(Ordering::Relaxed) > 0, "nothing was logged");
    assert_eq!(
        world.queue.len_of(State::Reserved).await.expect("a number"),
        0
    );
}

fn cases(place: &str, kind: Option<&str>, acts: usize) -> Vec<(String, NewJob, bool)> {
    let case = |n| {
        let job = NewJob::new(&order(place, n));
        let job = match kind {
            Some(kind) => job.kind(kind),
            None => job,
        };
        (format!("{place}:{n}"), job, place.starts_with("on_loss"))
    };
    (0..acts).map(case).collect()
}

#[tokio::test]
async fn whatever_a_handler_does() {
    let world = World::new().await;
    let mut all = cases("handler", None, ACTS.len());
    all.extend(cases("step", None, 7));
    all.extend(cases("batch", Some("batch"), ACTS.len()));
    all.extend(cases("blocking", Some("blocking"), ACTS.len()));
    all.extend(cases("typed", Some("typed"), 4));
    all.extend(cases("sorts", Some("sorts"), 1));
    sweep(&world, all).await;
    for n in 20..25 {
        let reason = world.reason(&format!("handler:{n}")).await;
        assert!(reason.starts_with("result cannot be encoded"), "{reason}");
    }
    assert!(world.reason("handler:10").await.contains("and so on"));
    let reason = world.reason("step:0").await;
    assert!(reason.contains("does not know the number NaN"), "{reason}");
}

#[tokio::test]
async fn whatever_a_hook_does() {
    let world = World::new().await;
    let mut all = Vec::new();
    for place in [
        "before",
        "before, before it awaits",
        "after",
        "after, before it awaits",
        "on_failure",
        "on_loss",
    ] {
        all.extend(cases(place, None, ACTS.len()));
    }
    sweep(&world, all).await;
}

#[tokio::test]
async fn whatever_is_around() {
    let world = World::new().await;
    let mut all = Vec::new();
    for place in ["around", "around, afterwards", "layer"] {
        all.extend(cases(place, None, ACTS.len()));
    }
    sweep(&world, all).await;
}

/// Also where the panics are the producer's.
#[tokio::test]
async fn what_json_does_not_know_is_not_added() {
    struct Angrily;
    impl Codec for Angrily {
        fn encode<T: Serialize + ?Sized>(&self, _: &T) -> Result<Vec<u8>, BoxError> {
            Err(SourError(Sour).into())
        }
        fn decode<T: serde::de::DeserializeOwned>(&self, _: &[u8]) -> Result<T, BoxError> {
            std::panic::panic_any(Sour)
        }
    }
    be_angry();
    let world = World::new().await;
    let queue = world
        .queue
        .clone()
        .hooks(Hooks::new().adding(|_, _| std::panic::panic_any(Sour)));
    for number in [f64::NAN, f64::INFINITY] {
        let refused = [
            queue.add(&number).await,
            queue.add(&Some(vec![number])).kind("a kind").await,
            queue.add(&named("a", number as f32)).await,
            queue.add_with(&Json, &number).await,
            queue.add_with(&Angrily, &number).await,
        ];
        for each in refused {
            assert!(matches!(each, Err(Error::Encode(_))), "{each:?}");
        }
        let signal = queue.signal("a", "b", &number).await;
        assert!(matches!(signal, Err(Error::Encode(_))), "{signal:?}");
    }
    assert_eq!(queue.len().await.expect("a number"), 0);
    let added = queue.add(&Some(1.5)).header("a", "b").id("x").await;
    assert_eq!(added.expect("its hook does no harm").as_deref(), Some("x"));
    let handler = Handler::new(|_: Job| async { Ok::<_, Error>(f64::NAN) });
    let run = TestJob::new(&1).run([handler]).await.expect("a handler");
    assert_eq!(run.state, State::Dead, "{run:?}");
}

/// As one says "no limit".
#[tokio::test]
async fn settings_may_be_as_large_as_they_get() {
    be_angry();
    let world = World::new().await;
    let done = world.done.clone();
    let count = move |_: Job| {
        done.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Error>(()) }
    };
    let handler = Handler::new(count)
        .attempts(u32::MAX)
        .backoff([Duration::MAX])
        .lease(Duration::MAX)
        .timeout(Duration::MAX);
    let worker = Worker::new(&world.queue)
        .handler(handler)
        .concurrency(usize::MAX)
        .prefetch(usize::MAX)
        .lease(Duration::MAX)
        .wait(Duration::MAX)
        .drain_for(Duration::MAX);
    let stopper = worker.stopper();
    let running = tokio::spawn(worker.run());
    world
        .survives("large", NewJob::new(&order("good", 0)), false)
        .await;
    stopper.stop();
    let ended = running.await.expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
}
