//! Runs handlers on the jobs of one or several queues.

use crate::core::{Member, Settings, IDLE_AFTER};
use crate::error::{BoxError, Error};
use crate::handler::{checked, Handler};
use crate::health::{Health, Probe};
use crate::hooks::Hooks;
use crate::io::Io;
use crate::middleware::{Call, Next, Returned};
use crate::plan::{sources, Place, Plan};
use crate::queue::Queue;
use crate::ruled::Ruled;
use crate::run::Work;
use crate::stopper::Stopper;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

const CONCURRENCY: usize = 10;
const DRAIN: Duration = Duration::from_secs(25);
/// A fetch is then sent again, so a connection that hangs is noticed.
const WAIT: Duration = Duration::from_secs(5);

/// Runs handlers on the jobs of one or several queues.
///
/// ```no_run
/// # use dq_redis::{BoxError, Error, Handler, Job, Queue, Worker};
/// # async fn close(job: Job<u32>) -> Result<(), BoxError> { Ok(()) }
/// # async fn run() -> Result<(), Error> {
/// let queue = Queue::open("redis://localhost", "orders")?;
/// let worker = Worker::new(&queue).handler(Handler::new(close)).concurrency(10);
/// worker.run_until(dq_redis::shutdown()).await?;
/// # Ok(()) }
/// ```
///
/// A clone is the same worker: it has the same health, and is stopped with it.
#[derive(Clone)]
pub struct Worker {
    queues: Vec<(Queue, f64)>,
    is_weighted: bool,
    handlers: Vec<Handler>,
    settings: Settings,
    hooks: Vec<Hooks>,
    around: Vec<Arc<dyn Fn(Next) -> Next + Send + Sync>>,
    health: Health,
    probe: Option<Probe>,
    stopper: Stopper,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("queues", &self.queues)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker of one queue.
    pub fn new(queue: &Queue) -> Self {
        let settings = Settings {
            shapes: Vec::new(),
            concurrency: CONCURRENCY,
            prefetch: 0,
            lease: None,
            drain: DRAIN,
            wait: WAIT,
            idle: IDLE_AFTER,
            is_drained: false,
        };
        Worker {
            queues: vec![(queue.clone(), 1.0)],
            is_weighted: false,
            handlers: Vec::new(),
            settings,
            hooks: Vec::new(),
            around: Vec::new(),
            health: Health::default(),
            probe: None,
            stopper: Stopper::default(),
        }
    }

    /// A worker of several queues in strict order.
    pub fn of<'a>(queues: impl IntoIterator<Item = &'a Queue>) -> Result<Self, Error> {
        Worker::weights(queues.into_iter().map(|queue| (queue, 1.0))).map(|worker| Worker {
            is_weighted: false,
            ..worker
        })
    }

    /// A worker of several queues, each of which comes first in its share of the fetches.
    pub fn weights<'a>(queues: impl IntoIterator<Item = (&'a Queue, f64)>) -> Result<Self, Error> {
        let queues: Vec<_> = queues
            .into_iter()
            .map(|(queue, weight)| (queue.clone(), weight))
            .collect();
        let Some((first, _)) = queues.first() else {
            return Err(Error::usage("the worker has no queue"));
        };
        if queues
            .iter()
            .any(|(_, weight)| !(*weight > 0.0 && weight.is_finite()))
        {
            return Err(Error::usage("weights must be greater than 0"));
        }
        Ok(Worker {
            is_weighted: true,
            ..Worker {
                queues: queues.clone(),
                ..Worker::new(first)
            }
        })
    }

    /// Adds a handler: at most one of each kind, and one without a kind.
    pub fn handler(mut self, handler: Handler) -> Self {
        self.handlers.push(handler);
        self
    }

    /// How many handlers run at a time (default 10).
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.settings.concurrency = concurrency.max(1);
        self
    }

    /// How many more jobs are fetched than can start, so that short handlers need not wait for the network (default
    /// 0).
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.settings.prefetch = prefetch;
        self
    }

    /// The lease of jobs without a TTR of their own or of their queue, and whose kind has no lease. Each handler's
    /// lease goes first.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }

    /// How long handlers may go on when the worker stops (default 25 s).
    pub fn drain_for(mut self, drain: Duration) -> Self {
        self.settings.drain = drain;
        self
    }

    /// How long one fetch waits at the server before it is sent again (default 5 s).
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = wait.max(Duration::from_millis(1));
        self
    }

    /// How long a worker gets nothing before it asks why, for tests of this library.
    #[doc(hidden)]
    pub fn idle_after(mut self, idle: Duration) -> Self {
        self.settings.idle = idle;
        self
    }

    /// Functions that are called around jobs.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Adds a middleware around all handlers, as a function: `async |call, next| next.run(call).await`. What it
    /// returns is the job's result, or the handler's error. The first middleware is outermost.
    pub fn around<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Returned, BoxError>> + Send + 'static,
    {
        let function = Arc::new(function);
        self.around
            .push(Arc::new(move |next| next.around(&function)));
        self
    }

    /// Adds a layer of tower around all handlers. The first one is outermost.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Next> + Send + Sync + 'static,
        L::Service: Service<Call, Response = Returned> + Clone + Send + Sync + 'static,
        <L::Service as Service<Call>>::Future: Send,
        <L::Service as Service<Call>>::Error: Into<BoxError>,
    {
        self.around.push(Arc::new(move |next| next.layer(&layer)));
        self
    }

    /// Tells supervisors whether the worker is healthy. `place` is an address, such as `127.0.0.1:8081`, at which
    /// HTTP requests are answered by 200 or 503. Or it is the path of a file, which is written each second while the
    /// worker is healthy.
    pub fn health(mut self, place: &str) -> Self {
        self.probe = Some(Probe::at(place));
        self
    }

    /// Whether a fetch or a heartbeat was answered in time. It is false before the first one, and while the server
    /// cannot be reached.
    pub fn is_healthy(&self) -> bool {
        self.health.is_good()
    }

    /// The worker's health, to be read from elsewhere.
    pub fn watch_health(&self) -> Health {
        self.health.clone()
    }

    /// A handle that stops the worker from elsewhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Runs the worker until it is stopped ([`Worker::stopper`]). It then stops fetching, gives handlers their time
    /// to end, and gives back the rest, at most [`Worker::drain_for`] and two seconds later. The error is an
    /// [`Error::Configuration`], where waiting would not help. If this future is dropped, the worker stops by itself.
    pub fn run(&self) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let worker = self.clone();
        async move { worker.go(worker.settings.clone()).await.map(|_| ()) }
    }

    /// Runs the worker until a future ends, such as [`shutdown`](crate::shutdown), or the worker is stopped. The worker may
    /// be dropped before: `tokio::spawn(worker.run_until(dq_redis::shutdown()))`.
    pub fn run_until<F: Future<Output = ()>>(
        &self,
        stop: F,
    ) -> impl Future<Output = Result<(), Error>> {
        let (running, stopper) = (self.run(), self.stopper());
        async move {
            let mut running = std::pin::pin!(running);
            tokio::select! {
                biased;
                ended = &mut running => return ended,
                () = stop => stopper.stop(),
            }
            running.await
        }
    }

    /// For tests: handles, one after the other, all jobs that are ready or become ready meanwhile, and returns how
    /// many. The worker must not run at the same time.
    pub async fn drain(&self) -> Result<usize, Error> {
        let settings = Settings {
            is_drained: true,
            concurrency: 1,
            prefetch: 0,
            ..self.settings.clone()
        };
        self.go(settings).await
    }

    async fn go(&self, mut settings: Settings) -> Result<usize, Error> {
        settings.shapes = self
            .handlers
            .iter()
            .map(|handler| handler.shape.clone())
            .collect();
        checked(&self.handlers)?;
        settings.bound()?;
        let mut ruled = Some(Ruled::of(&self.queues[0].0, &self.handlers)?);
        if settings.is_drained {
            if let Some(ruled) = ruled.take() {
                ruled.say().await?;
            }
        }
        let (places, is_weighted) = self.places();
        let plan = Plan {
            settings,
            sources: sources(&self.queues, &places),
            places,
            is_weighted,
            works: self
                .handlers
                .iter()
                .map(|handler| Arc::new(self.work(handler)))
                .collect(),
            health: self.health.clone(),
            probe: self.probe.clone(),
            ruled,
            handlers: tokio::runtime::Handle::current(),
        };
        let (io, running) = Io::start(plan)?;
        let _stop = self.stopper.connect(io.events());
        running.await
    }

    fn work(&self, handler: &Handler) -> Work {
        let next = self
            .around
            .iter()
            .rev()
            .fold(handler.work.clone(), |next, around| around(next));
        Work {
            next,
            sorts: Arc::new(handler.sorts.clone()),
            hooks: self.hooks.clone().into(),
        }
    }

    /// Groups the keys that one `DQ.BPOP` can wait for: in a cluster, those of one slot.
    fn places(&self) -> (Vec<Place>, bool) {
        let mut places: Vec<Place> = Vec::new();
        let mut is_weighted = self.is_weighted;
        for (queue, weight) in &self.queues {
            is_weighted |= queue.is_sharded(); // the shards take turns: none is always first
            for key in queue.keys() {
                let place = queue.server().place_of(key);
                let member = Member {
                    key: key.clone(),
                    weight: *weight,
                };
                match places.iter_mut().find(|(_, known, _)| *known == place) {
                    Some((_, _, members)) => members.push(member),
                    None => places.push((queue.server().clone(), place, vec![member])),
                }
            }
        }
        (places, is_weighted)
    }
}
