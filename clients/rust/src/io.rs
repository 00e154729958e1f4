//! Executes the core's actions, in a thread of its own: heartbeats go on whatever handlers do to their threads.

use crate::core::{
    Action, BySerial, Core, Delivered, Event, JobKey, Line, Name, Owner, Running, Serial, Settings,
    SERVER_TTR,
};
use crate::dead_hook::DeadHook;
use crate::error::Error;
use crate::guard::{catch, log};
use crate::hooks::{call, Moment};
use crate::job::{Desk, Inner};
use crate::line::{Connection, Order};
use crate::plan::{Place, Plan};
use crate::run::{Begin, Together, PATIENCE};
use crate::said::say;
use crate::source::Source;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long the hooks of lost jobs may take when the worker ends.
const LAST_HOOKS: Duration = Duration::from_millis(500);

/// The workers of this process: each must know which jobs the others run.
static WORKERS: LazyLock<Mutex<HashMap<u64, UnboundedSender<Event>>>> =
    LazyLock::new(Mutex::default);
static RUNNING: LazyLock<Arc<Running>> = LazyLock::new(Arc::default);
static LAST: AtomicU64 = AtomicU64::new(0);

fn workers() -> std::sync::MutexGuard<'static, HashMap<u64, UnboundedSender<Event>>> {
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the workers of this process; those that stop already end their drain.
pub(crate) fn stop_all() {
    workers()
        .values()
        .for_each(|worker| _ = worker.send(Event::Stop));
}

pub(crate) struct Io {
    number: u64,
    core: Core,
    plan: Plan,
    sender: UnboundedSender<Event>,
    lines: HashMap<Line, UnboundedSender<Order>>,
    jobs: BySerial<Arc<Inner>>,
    begins: Vec<Begin>,
    /// Handlers that were started together, and until when one may hold up the others.
    begun: Vec<(Arc<Together>, Instant)>,
    is_brief: Arc<AtomicBool>,
    losses: JoinSet<()>,
    dead_hook: Option<DeadHook>,
    /// Until when hooks may go on after a stop: a second one ends that.
    drained: Option<Instant>,
    /// For each connection on which something was written at last: when it is.
    lasts: Vec<oneshot::Receiver<()>>,
    handled: usize,
}

/// A handle to a running worker.
pub(crate) struct Started(UnboundedSender<Event>);

impl Started {
    pub fn events(&self) -> UnboundedSender<Event> {
        self.0.clone()
    }
}

impl Io {
    /// Starts it. The future ends with it, and returns how many jobs were handled.
    pub fn start(
        plan: Plan,
    ) -> Result<(Started, impl Future<Output = Result<usize, Error>>), Error> {
        let (sender, events) = unbounded_channel();
        let (ended, ends) = oneshot::channel();
        let started = Started(sender.clone());
        let failed =
            |error: std::io::Error| Error::Connection(format!("no thread for the worker: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let work = move || {
            let mut io = Io::new(plan, sender);
            let result = runtime.block_on(io.run(events));
            _ = catch(move || drop(io)); // it holds handlers and middleware, which are the user's
            runtime.shutdown_background();
            _ = ended.send(result);
        };
        std::thread::Builder::new()
            .name("dq-worker".into())
            .spawn(work)
            .map_err(failed)?;
        let running = async {
            ends.await
                .unwrap_or_else(|_| Err(Error::Connection("the worker's thread has ended".into())))
        };
        Ok((started, running))
    }

    fn new(plan: Plan, sender: UnboundedSender<Event>) -> Self {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        workers().insert(number, sender.clone());
        let places = plan
            .places
            .iter()
            .map(|(_, place, members)| (place.clone(), members.clone()))
            .collect();
        let core = Core::new(
            number,
            plan.settings.clone(),
            places,
            plan.is_weighted,
            RUNNING.clone(),
            Instant::now(),
        );
        Io {
            number,
            core,
            plan,
            sender,
            lines: HashMap::new(),
            jobs: BySerial::default(),
            begins: Vec::new(),
            begun: Vec::new(),
            is_brief: Arc::default(),
            losses: JoinSet::new(),
            dead_hook: None,
            drained: None,
            lasts: Vec::new(),
            handled: 0,
        }
    }

    async fn run(&mut self, mut events: UnboundedReceiver<Event>) -> Result<usize, Error> {
        let probe = self
            .plan
            .probe
            .clone()
            .map(|probe| tokio::spawn(probe.run(self.plan.health.clone())));
        if let Some(ruled) = self.plan.ruled.take() {
            let events = self.sender.clone();
            tokio::spawn(async move {
                if let Err(error) = ruled.say().await {
                    _ = events.send(Event::Unfit(error));
                }
            });
        }
        self.dead_hook = self.start_dead_hook();
        let result = self.work(&mut events).await;
        for written in std::mem::take(&mut self.lasts) {
            _ = written.await;
        }
        self.plan.health.is_good_until(None);
        if let Some(probe) = probe {
            probe.abort();
        }
        workers().remove(&self.number);
        for (serial, inner) in &self.jobs {
            inner.abort(); // its handler was told, and its job is given back
            log!(
                warn,
                delivery = serial,
                "a handler goes on after its worker has stopped: its task is aborted"
            );
        }
        for inner in self.jobs.values() {
            let job: &JobKey = &inner.delivered.job;
            for (_, place, _) in &self.plan.places {
                RUNNING.end(RUNNING.place(place), job);
            }
        }
        let hooks = async { while self.losses.join_next().await.is_some() {} };
        _ = tokio::time::timeout(LAST_HOOKS, hooks).await;
        if let Some(hook) = self.dead_hook.take() {
            let Settings {
                drain, is_drained, ..
            } = self.plan.settings;
            let all = is_drained.then(|| Instant::now() + drain);
            let by = self.drained.or(all).max(Some(Instant::now() + LAST_HOOKS));
            let second = async { while !matches!(events.recv().await, Some(Event::Stop)) {} };
            hook.end(by.unwrap_or_else(Instant::now), second).await;
        }
        result.map(|()| self.handled)
    }

    fn start_dead_hook(&self) -> Option<DeadHook> {
        let Plan {
            settings,
            sources,
            places,
            works,
            handlers,
            ..
        } = &self.plan;
        let of_link = |((.., members), sources): (&Place, &Vec<Arc<Source>>)| {
            let keys = members.iter().map(|member| member.key.clone());
            keys.zip(sources.iter().cloned()).collect()
        };
        let keys = places.iter().zip(sources).map(of_link).collect();
        let every = (!settings.is_drained).then(|| settings.shortest_lease().unwrap_or(SERVER_TTR));
        DeadHook::start(&works.first()?.hooks, keys, every, handlers)
    }

    async fn work(&mut self, events: &mut UnboundedReceiver<Event>) -> Result<(), Error> {
        loop {
            let now = Instant::now();
            self.part(now);
            self.core.advance(now);
            while let Some(action) = self.core.next_action() {
                if let Some(result) = self.carry_out(action) {
                    return result;
                }
            }
            self.begin();
            self.plan.health.is_good_until(self.core.is_healthy_until());
            let parts = self.begun.iter().map(|(_, at)| *at);
            let wakes = parts.chain(self.core.wakes_at(now)).min();
            let mut next = match wakes {
                Some(at) => tokio::time::timeout_at(at.into(), events.recv())
                    .await
                    .unwrap_or(None),
                None => events.recv().await,
            };
            let mut has_ended = false;
            while let Some(event) = next {
                has_ended |= matches!(event, Event::Ended(_));
                self.hear(event);
                next = events.try_recv().ok();
                if next.is_none() && has_ended && self.core.is_at_work() {
                    // Other handlers may be ending: wait for them, so that one fetch takes all places, if handlers
                    // run on this core, too.
                    std::thread::yield_now();
                    has_ended = false;
                    next = events.try_recv().ok();
                }
            }
        }
    }

    fn hear(&mut self, event: Event) {
        if let Event::Ended(all) = &event {
            for (serial, _) in all.iter().flatten() {
                self.handled += 1;
                self.jobs.remove(serial);
            }
        }
        if matches!(event, Event::Stop) {
            let drain = match self.drained {
                None => self.plan.settings.drain,
                Some(_) => Duration::ZERO,
            };
            self.drained = Some(Instant::now() + drain);
        }
        self.core.on(event, Instant::now());
    }

    fn carry_out(&mut self, action: Action) -> Option<Result<(), Error>> {
        match action {
            Action::Send {
                line,
                turn,
                commands,
                last,
                within,
            } => {
                let order = Order::Send {
                    turn,
                    commands,
                    last,
                    within,
                };
                _ = self.line(line).send(order);
            }
            Action::Close(line) => _ = self.line(line).send(Order::Close),
            Action::Last(line, commands) => {
                let (written, is_written) = oneshot::channel();
                _ = self.line(line).send(Order::Last { commands, written });
                self.lasts.push(is_written);
            }
            Action::Start { handler, jobs } => self.start_handler(handler, jobs),
            Action::Tell(serial, why) => {
                if let Some(inner) = self.jobs.get(&serial) {
                    inner.tell(why);
                }
            }
            Action::Died(link, of) => {
                if let Some(hook) = &self.dead_hook {
                    hook.answered(link, &of);
                }
            }
            Action::Lost(serial, of) => {
                let inner = self
                    .jobs
                    .get(&serial)
                    .cloned()
                    .unwrap_or_else(|| Inner::new(of, 0, Desk::Inline(Default::default())));
                let hooks = self
                    .plan
                    .works
                    .first()
                    .map(|work| work.hooks.clone())
                    .unwrap_or_default();
                let job = inner.job();
                log!(warn, job = %job.id(), queue = %job.queue(), "lost a job: its lease expired, or it was deleted or replaced");
                let told = async move { call(&hooks, Moment::Lost, &job).await };
                self.losses.spawn_on(told, &self.plan.handlers);
            }
            Action::LoseOther(Owner { worker, serial }) => {
                if let Some(other) = workers().get(&worker) {
                    _ = other.send(Event::Gone(serial));
                }
            }
            Action::Say(said) => say(&said),
            Action::Finish(result) => {
                self.begin();
                return Some(result);
            }
        }
        None
    }

    fn start_handler(&mut self, handler: usize, jobs: Vec<(Serial, usize, Arc<Delivered>)>) {
        let attempts = self.plan.settings.shapes[handler].attempts;
        let mut inners = Vec::with_capacity(jobs.len());
        for (serial, link, delivered) in jobs {
            let desk = Desk::Worker {
                serial,
                events: self.sender.clone(),
                source: self.source_of(link, &delivered.job),
            };
            let inner = Inner::new(delivered, attempts, desk);
            self.jobs.insert(serial, inner.clone());
            inners.push((serial, inner));
        }
        self.begins.push(Begin {
            work: self.plan.works[handler].clone(),
            jobs: inners,
            events: self.sender.clone(),
            together: None,
        });
    }

    fn begin(&mut self) {
        let mut begins = std::mem::take(&mut self.begins);
        match begins.len() {
            0 => {}
            1 => begins.remove(0).spawn(&self.plan.handlers),
            _ => {
                let begun = Together::spawn(begins, &self.is_brief, &self.plan.handlers);
                self.begun.push((begun, Instant::now() + PATIENCE));
            }
        }
    }

    /// Has those begin that one which takes long holds up.
    fn part(&mut self, now: Instant) {
        self.begun.retain(|(together, _)| !together.is_over());
        for (together, _) in self.begun.extract_if(.., |(_, at)| *at <= now) {
            self.is_brief.store(false, Ordering::Relaxed);
            let (begins, ends) = together.part();
            for begin in begins {
                begin.spawn(&self.plan.handlers);
            }
            _ = self.sender.send(Event::Ended(ends));
        }
    }

    /// The queue of a job that came by that link: other servers may have a queue of that name, too.
    fn source_of(&self, link: usize, job: &JobKey) -> Arc<Source> {
        let members = &self.plan.places[link].2;
        let at = members.iter().position(|member| member.key == job.key);
        self.plan.sources[link][at.unwrap_or(0)].clone()
    }

    fn line(&mut self, line: Line) -> &UnboundedSender<Order> {
        self.lines.entry(line).or_insert_with(|| {
            let (server, _, members) = &self.plan.places[line.link];
            let key = match line.name {
                Name::Listener(at) => &members[at].key,
                _ => &members[0].key,
            };
            let (orders, receiver) = unbounded_channel();
            let connection = Connection {
                line,
                server: server.clone(),
                key: key.to_vec(),
                events: self.sender.clone(),
            };
            tokio::spawn(connection.run(receiver));
            orders
        })
    }
}
