//! One queue: fetches jobs, calls their receivers, and reports the outcomes to the server.

mod fetch;
mod tell;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use dq_connect::link::pause;
use dq_connect::source::{Source, Trouble, Wire};
use dq_connect::target::Target;
use dq_watch::text::escape;
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::time::{sleep, timeout, Instant};

use crate::answer::Verdict;
use crate::call::{Called, Caller};
use crate::config::QueueConfig;
use crate::hand::{Hand, Job};
use crate::metrics::{Metrics, Running};
use crate::places::{Host, Places};
use crate::stop::Stop;

/// How often a stopped queue checks whether it can continue.
const STOPPED: Duration = Duration::from_secs(5);
/// How long running calls may take when the queue ends.
const DRAIN: Duration = Duration::from_secs(25);
/// How long the server may then take to receive the outcomes.
const FAREWELL: Duration = Duration::from_millis(1500);

pub struct Queue {
    pub config: QueueConfig,
    pub metrics: Arc<Metrics>,
    pub hand: Hand,
    caller: Arc<Caller>,
    source: Source,
    /// A connection for commands that must not wait behind a fetch.
    control: Mutex<Option<Wire>>,
    own: Arc<Semaphore>,
    host: Host,
    /// There are outcomes to send.
    bell: Notify,
    /// Outcomes were sent.
    told: Notify,
    stop: Arc<Stop>,
    /// Troubles reported since the server last answered a fetch.
    reported: std::sync::Mutex<Vec<String>>,
}

impl Queue {
    pub fn new(
        config: QueueConfig,
        caller: Arc<Caller>,
        at: (Target, u32),
        host: Host,
        stop: Arc<Stop>,
        metrics: Arc<Metrics>,
    ) -> Queue {
        Queue {
            own: Arc::new(Semaphore::new(config.concurrency)),
            config,
            metrics,
            hand: Hand::default(),
            caller,
            source: Source::new(at.0, at.1),
            control: Mutex::new(None),
            host,
            bell: Notify::new(),
            told: Notify::new(),
            stop,
            reported: std::sync::Mutex::default(),
        }
    }

    /// Runs until it is stopped, and all calls have ended or their jobs were given back.
    pub async fn run(self: Arc<Queue>) {
        let telling = tokio::spawn(Arc::clone(&self).keep_telling());
        let beating = tokio::spawn(Arc::clone(&self).keep_beating());
        let fetching = tokio::spawn(Arc::clone(&self).keep_fetching());
        self.stop.wait().await;
        let calls_ended = async {
            // A withdrawn fetch may still bring jobs. When all places are free, no call is running.
            let _ = fetching.await;
            tokio::select! {
                _ = self.own.acquire_many(self.config.concurrency as u32) => {}
                () = self.stop.hurried() => {}
            }
        };
        tokio::select! {
            () = calls_ended => {}
            () = sleep(DRAIN) => {}
            () = self.hurried_and_late() => {}
        }
        self.hand.give_back_all();
        self.bell.notify_one();
        let all_told = async {
            while !self.hand.is_empty() {
                self.told.notified().await;
            }
        };
        let _ = timeout(FAREWELL, all_told).await;
        telling.abort();
        beating.abort();
    }

    /// The second limit of the drain: an unreachable server does not answer a withdrawn fetch.
    async fn hurried_and_late(&self) {
        self.stop.hurried().await;
        sleep(FAREWELL).await;
    }

    /// The queue's name on one line, without what a terminal would interpret.
    pub fn shown_name(&self) -> String {
        escape::name(self.config.name.as_bytes())
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.is_set()
    }

    fn start(self: &Arc<Queue>, job: Job, place: Places) {
        let job = Arc::new(job);
        let (queue, called) = (Arc::clone(self), Arc::clone(&job));
        self.host.pace.spend();
        let counted = self.caller.others.one();
        self.hand.begin(job, counted, |number| {
            let call = async move {
                let about = queue.about(&called).await;
                if about.is_over(called.attempt) {
                    let lost = Verdict::Fatal("attempts used up; its workers were lost".to_owned());
                    queue.ended(number, lost);
                    return;
                }
                let alone = match about.runs_alone(called.attempt) {
                    true => Some(queue.alone(number).await),
                    false => None,
                };
                let running = Running::new(&queue.metrics);
                let receiver = queue.config.receiver(about.group.as_deref());
                let begun = Instant::now();
                let call = queue.caller.call(&queue.config, receiver, &called);
                let Called { verdict, well } = call.await;
                queue.host.pace.ended(well);
                queue.metrics.held.store(queue.host.pace.is_open(), Relaxed);
                drop(running);
                queue.metrics.called(&verdict, begun.elapsed());
                queue.ended(number, verdict);
                // After the outcome is known: the fetch that takes the place sends it.
                drop((alone, place));
            };
            tokio::spawn(call).abort_handle()
        });
    }

    async fn alone(&self, number: u64) -> impl Sized + '_ {
        self.hand.uncount(number);
        self.caller.turn_alone().await
    }

    fn ended(&self, number: u64, verdict: Verdict) {
        if self.hand.end(number, verdict) {
            self.bell.notify_one();
        }
    }

    /// The connection besides the one that fetches.
    async fn control(&self) -> Result<Wire, Trouble> {
        let mut control = self.control.lock().await;
        if let Some(wire) = &*control {
            return Ok(wire.clone());
        }
        let (wire, _) = self.source.connect().await?;
        *control = Some(wire.clone());
        Ok(wire)
    }

    /// Reports each trouble once, until the server answers again.
    fn report(&self, why: String, then: &str) {
        let mut reported = self.reported();
        if !reported.contains(&why) {
            eprintln!("dq http: queue {}: {why}; {then}", self.shown_name());
            reported.push(why);
        }
    }

    pub fn reported(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_well(&self) {
        self.metrics.up.store(true, Relaxed);
        if self.metrics.stopped.swap(false, Relaxed) {
            eprintln!("dq http: queue {}: running again", self.shown_name());
        }
        self.reported().clear();
    }

    /// Whether to try again; returns after a pause.
    async fn goes_on(&self, trouble: Trouble, troubles: &mut u32) -> bool {
        *troubles += 1;
        let is_own = matches!(trouble, Trouble::OfQueue(_));
        self.metrics.up.store(is_own, Relaxed);
        match trouble {
            Trouble::Final(why) => {
                self.stop
                    .because(format!("queue {}: {why}", self.shown_name()));
                false
            }
            Trouble::OfQueue(why) => {
                self.metrics.stopped.store(true, Relaxed);
                self.report(why, "this queue is stopped; retrying every 5 s");
                sleep(STOPPED).await;
                true
            }
            Trouble::Passing(why) | Trouble::Refused(why) => {
                self.report(why, "trying again");
                sleep(pause(*troubles)).await;
                true
            }
        }
    }
}
