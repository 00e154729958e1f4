//! The probe of the behaviour suite (clients/suite/README.md).

mod args;
mod call;
mod groups;
mod handlers;
mod hostile;
mod said;

use dq_redis::{BoxError, Handler, Hooks, NewJob, Queue, Server, Stopper, TestJob, Worker};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

/// An event, on a line of its own.
pub fn emit(event: &str, mut fields: Value) {
    fields["event"] = event.into();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{fields}")
        .and_then(|()| out.flush())
        .expect("the driver reads");
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Order {
    r#do: String,
    queue: String,
    url: Option<String>,
    cluster: Option<String>,
    sentinels: Vec<String>,
    master: String,
    name: String,
    shards: Option<usize>,
    queues: Vec<String>,
    weights: Option<Vec<f64>>,
    concurrency: Option<usize>,
    prefetch: Option<usize>,
    drain_ms: Option<u64>,
    wait_ms: Option<u64>,
    lease_ms: Option<u64>,
    idle_ms: Option<u64>,
    dead: bool,
    hooks: Value,
    around: Value,
    handlers: Vec<handlers::Given>,
    method: String,
    args: Value,
    tag: Option<String>,
    data: Value,
    kind: Option<String>,
}

struct Probe {
    queues: HashMap<String, Queue>,
    stopper: Stopper,
    worker: Option<Arc<Worker>>,
    terminated: watch::Receiver<bool>,
}

impl Probe {
    fn queue(&mut self, order: &Order) -> Result<(), BoxError> {
        let server = if let Some(cluster) = &order.cluster {
            Server::cluster([cluster.as_str()])?
        } else if !order.sentinels.is_empty() {
            let urls: Vec<String> = order
                .sentinels
                .iter()
                .map(|address| format!("redis://{address}"))
                .collect();
            Server::sentinel(
                urls.iter().map(String::as_str),
                &order.master,
                "redis://any",
            )?
        } else {
            Server::open(order.url.as_deref().unwrap_or_default())?
        };
        let queue = Queue::on(&server, &order.name).shards(order.shards.unwrap_or(0));
        self.queues.insert(order.queue.clone(), queue);
        emit("made", json!({}));
        Ok(())
    }

    fn start(&mut self, order: &Order) -> Result<(), BoxError> {
        let queues: Vec<&Queue> = order
            .queues
            .iter()
            .filter_map(|name| self.queues.get(name))
            .collect();
        let mut worker = match &order.weights {
            Some(weights) => Worker::weights(queues.into_iter().zip(weights.iter().copied()))?,
            None => Worker::of(queues)?,
        };
        for handler in made(&order.handlers) {
            worker = worker.handler(handler);
        }
        worker = worker
            .concurrency(order.concurrency.unwrap_or(10))
            .prefetch(order.prefetch.unwrap_or(0));
        if let Some(drain) = order.drain_ms {
            worker = worker.drain_for(ms(drain));
        }
        if let Some(wait) = order.wait_ms {
            worker = worker.wait(ms(wait));
        }
        if let Some(lease) = order.lease_ms {
            worker = worker.lease(ms(lease));
        }
        if let Some(idle) = order.idle_ms {
            worker = worker.idle_after(ms(idle));
        }
        if order.dead {
            worker = worker.hooks(Hooks::new().dead(handlers::died));
        }
        match &order.hooks {
            Value::Bool(true) => worker = worker.hooks(reports()),
            Value::String(_) => worker = worker.hooks(hostile::hooks()),
            _ => {}
        }
        match &order.around {
            Value::Bool(true) => worker = worker.around(handlers::around),
            Value::String(_) => {
                worker = worker.around(|_, _| async { Err("a middleware that throws".into()) })
            }
            _ => {}
        }
        self.stopper = worker.stopper();
        let worker = Arc::new(worker);
        self.worker = Some(worker.clone());
        emit("running", json!({}));
        let mut terminated = self.terminated.clone();
        tokio::spawn(async move {
            let stop = async { _ = terminated.wait_for(|is| *is).await };
            if let Err(error) = worker.run_until(stop).await {
                emit(
                    "error",
                    json!({ "type": "Error", "message": error.to_string() }),
                );
            }
            emit("stopped", json!({}));
            if *terminated.borrow() {
                std::process::exit(0);
            }
        });
        Ok(())
    }

    async fn obey(&mut self, order: Order) -> Result<(), BoxError> {
        match order.r#do.as_str() {
            "queue" => self.queue(&order)?,
            "worker" => self.start(&order)?,
            "stop" => self.stopper.stop(),
            "health" => {
                let is = self
                    .worker
                    .as_ref()
                    .is_some_and(|worker| worker.is_healthy());
                emit("answer", json!({ "value": is }));
            }
            "inline" => {
                let mut job = NewJob::new(&order.data);
                if let Some(kind) = order.kind {
                    job = job.kind(kind);
                }
                let run = TestJob::of(job).run(made(&order.handlers)).await?;
                let waits = run
                    .waits
                    .iter()
                    .map(|wait| wait.map(|it| it.as_millis() as u64));
                let value = json!({
                    "state": run.state.word(), "result": run.decode::<Value>()?, "reason": run.reason,
                    "attempts": run.attempts, "waits": waits.collect::<Vec<_>>(),
                });
                emit("answer", json!({ "value": value }));
            }
            "call" => {
                let queue = self.queues[&order.queue].clone();
                let tag = order.tag.clone();
                let calling = async move {
                    match call::call(&queue, &order.method, &order.args).await {
                        Ok(value) => emit("answer", json!({ "value": value, "tag": order.tag })),
                        Err(error) => refused(&error, order.tag),
                    }
                };
                match tag {
                    Some(_) => drop(tokio::spawn(calling)),
                    None => calling.await,
                }
            }
            other => return Err(format!("no order {other}").into()),
        }
        Ok(())
    }
}

fn made(given: &[handlers::Given]) -> Vec<Handler> {
    match given {
        [] => vec![handlers::make(&handlers::Given::default())],
        given => given.iter().map(handlers::make).collect(),
    }
}

fn refused(error: &BoxError, tag: Option<String>) {
    let message = error.to_string();
    let mut fields = match error.downcast_ref::<dq_redis::Error>() {
        Some(dq_redis::Error::JobFailed {
            outcome, reason, ..
        }) => {
            json!({ "error": "JobFailed", "outcome": outcome.name(), "reason": reason, "message": message })
        }
        Some(dq_redis::Error::TimedOut { .. }) => json!({ "error": "timeout" }),
        _ => json!({ "error": message }),
    };
    fields["tag"] = tag.into();
    emit("refused", fields);
}

fn reports() -> Hooks {
    let of = |event: &'static str| {
        move |job: dq_redis::Job| async move { emit(event, json!({ "job": job.id() })) }
    };
    Hooks::new()
        .before(of("before"))
        .after(of("after"))
        .lost(of("lost"))
        .failed(|job, error| async move {
            emit("failed", json!({ "job": job.id(), "error": error }));
        })
}

#[tokio::main(worker_threads = 6)]
async fn main() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let (terminate, terminated) = watch::channel(false);
    tokio::spawn(async move {
        dq_redis::shutdown().await;
        terminate.send_replace(true);
    });
    emit(
        "ready",
        json!({ "language": "rust", "version": env!("CARGO_PKG_RUST_VERSION") }),
    );
    let mut probe = Probe {
        queues: HashMap::new(),
        stopper: Stopper::default(),
        worker: None,
        terminated,
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let obeyed = match serde_json::from_str(&line) {
            Ok(order) => probe.obey(order).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = obeyed {
            refused(&error, None);
        }
    }
    std::process::exit(0); // a handler may hang
}
