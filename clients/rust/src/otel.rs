//! OpenTelemetry: spans and metrics by the semantic conventions for messaging, by the global providers. Feature `otel`.
//!
//! ```no_run
//! # use dq_redis::{otel::Telemetry, Error, Handler, Job, Queue, Worker};
//! # async fn run(handler: Handler) -> Result<(), Error> {
//! let telemetry = Telemetry::new();
//! let queue = Queue::open("redis://localhost", "orders")?.hooks(telemetry.hooks());
//! let worker = Worker::new(&queue).handler(handler).hooks(telemetry.hooks()).layer(telemetry);
//! # worker.run().await }
//! ```
//!
//! The producer's context travels in the job's headers. Each attempt is a span of its own that is *linked* to the
//! producer's: a child would keep that trace open for as long as the job waits, which may be months.

use crate::envelope::Headers;
use crate::error::{BoxError, Error, Suspended};
use crate::guard::{guarded, name_of, text_of, Panicked};
use crate::hooks::Hooks;
use crate::job::Job;
use crate::middleware::{Call, Next, Returned};
use crate::verdict::Decision;
use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::metrics::{Counter, Histogram};
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::{FutureExt, Link, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// Spans and metrics of a program's jobs.
#[derive(Clone)]
pub struct Telemetry(Arc<Instruments>);

struct Instruments {
    tracer: BoxedTracer,
    sent: Counter<u64>,
    consumed: Counter<u64>,
    lost: Counter<u64>,
    duration: Histogram<f64>,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry")
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Telemetry::new()
    }
}

fn about(queue: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.system", "dq"),
        KeyValue::new("messaging.destination.name", queue.to_owned()),
    ]
}

impl Telemetry {
    /// Uses the global providers and propagator, as they are when this is called.
    pub fn new() -> Self {
        let meter = global::meter("dq");
        let counter = |name| meter.u64_counter(name).with_unit("{message}").build();
        Telemetry(Arc::new(Instruments {
            tracer: global::tracer("dq"),
            sent: counter("messaging.client.sent.messages"),
            consumed: counter("messaging.client.consumed.messages"),
            lost: counter("dq.client.lost.messages"),
            duration: meter
                .f64_histogram("messaging.process.duration")
                .with_unit("s")
                .build(),
        }))
    }

    /// Hooks for queues, which add jobs, and for workers, which may lose some. A worker needs the layer, too.
    pub fn hooks(&self) -> Hooks {
        let (adding, losing) = (self.clone(), self.clone());
        Hooks::new()
            .adding(move |queue, headers| adding.send(queue, headers))
            .lost(move |job| {
                losing.0.lost.add(1, &about(&job.queue()));
                async {}
            })
    }

    fn send(&self, queue: &str, headers: &mut Headers) {
        let mut attributes = about(queue);
        self.0.sent.add(1, &attributes);
        attributes.push(KeyValue::new("messaging.operation.type", "send"));
        let builder = self.0.tracer.span_builder(format!("send {queue}"));
        let builder = builder
            .with_kind(SpanKind::Producer)
            .with_attributes(attributes);
        let context = Context::current();
        let span = self.0.tracer.build_with_context(builder, &context);
        let context = context.with_span(span);
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&context, &mut Writing(headers));
        });
        context.span().end();
    }

    fn begin(&self, job: &Job) -> Context {
        let headers = job.headers();
        let producer = global::get_text_map_propagator(|propagator| {
            propagator.extract_with_context(&Context::new(), &Reading(&headers))
        });
        let producer = producer.span().span_context().clone();
        let queue = job.queue();
        let mut attributes = about(&queue);
        self.0.consumed.add(1, &attributes);
        attributes.extend([
            KeyValue::new("messaging.operation.type", "process"),
            KeyValue::new("messaging.message.id", job.id().into_owned()),
            KeyValue::new("dq.attempt", i64::from(job.attempt())),
        ]);
        let mut builder = self.0.tracer.span_builder(format!("process {queue}"));
        builder = builder
            .with_kind(SpanKind::Consumer)
            .with_attributes(attributes);
        if producer.is_valid() {
            builder = builder.with_links(vec![Link::new(producer, Vec::new(), 0)]);
        }
        let alone = Context::new();
        let span = self.0.tracer.build_with_context(builder, &alone);
        Context::current().with_span(span)
    }

    fn end(&self, job: &Job, context: &Context, seconds: f64, error: Option<&BoxError>) {
        let span = context.span();
        let mut attributes = about(&job.queue());
        match error {
            Some(error) if is_suspended(error) => span.add_event("suspended", Vec::new()),
            Some(error) => {
                let text = text_of(error.as_ref());
                attributes.push(KeyValue::new("error.type", name_of(error.as_ref())));
                span.add_event(
                    "exception",
                    vec![KeyValue::new("exception.message", text.clone())],
                );
                if !error.is::<Decision>() {
                    span.set_status(Status::error(text));
                }
            }
            None => {}
        }
        if job.is_lost() {
            span.add_event("lost", Vec::new());
            span.set_status(Status::error("lost"));
        }
        self.0.duration.record(seconds, &attributes);
        span.end();
    }
}

fn is_suspended(error: &BoxError) -> bool {
    let library = error.downcast_ref::<Error>();
    error.is::<Suspended>() || matches!(library, Some(Error::Suspended(_)))
}

struct Writing<'a>(&'a mut Headers);

impl Injector for Writing<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key.to_owned(), value);
    }
}

struct Reading<'a>(&'a Headers);

impl Extractor for Reading<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// A layer around handlers: each attempt is a span, which is current in the handler; in a batch, the span of the last
/// job is.
impl Layer<Next> for Telemetry {
    type Service = Traced;

    fn layer(&self, next: Next) -> Traced {
        Traced {
            telemetry: self.clone(),
            next,
        }
    }
}

/// A handler with its spans.
#[derive(Clone, Debug)]
pub struct Traced {
    telemetry: Telemetry,
    next: Next,
}

impl Service<Call> for Traced {
    type Response = Returned;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Returned, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let telemetry = self.telemetry.clone();
        let begun = call
            .jobs()
            .iter()
            .map(|job| (job.clone(), telemetry.begin(job)));
        let begun: Vec<(Job, Context)> = begun.collect();
        let current = begun
            .last()
            .map_or_else(Context::current, |(_, context)| context.clone());
        let began = Instant::now();
        let next = self.next.clone();
        Box::pin(async move {
            let ended = guarded(|| next.run(call).with_context(current)).await;
            let seconds = began.elapsed().as_secs_f64();
            let end = |error: Option<&BoxError>| {
                for (job, context) in &begun {
                    telemetry.end(job, context, seconds, error);
                }
            };
            match ended {
                Ok(ended) => {
                    end(ended.as_ref().err());
                    ended
                }
                Err(Panicked(said)) => {
                    end(Some(&Panicked(said.clone()).into()));
                    resume_unwind(Box::new(said))
                }
            }
        })
    }
}
