//! Spans of jobs, by the global providers. Needs `DQ_MODULE`.

use dq_redis::otel::Telemetry;
use dq_redis::testing::TestServer;
use dq_redis::{snooze, BoxError, Error, Handler, Job, Worker};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt};
use opentelemetry::{global, Context};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use std::time::Duration;

async fn run(job: Job<u32>) -> Result<(), BoxError> {
    assert!(Context::current().span().span_context().is_valid());
    match job.data {
        0 => Ok(()),
        1 => Err("no paper")?,
        2 => Err(snooze(Duration::from_secs(60)))?,
        3 => panic!("too many"),
        _ => Ok(job.sleep("nap", Duration::from_secs(60)).await?),
    }
}

fn event(span: &SpanData) -> Option<&str> {
    span.events.events.first().map(|event| event.name.as_ref())
}

#[tokio::test]
async fn an_attempt_is_a_span_linked_to_its_producers() -> Result<(), Error> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    global::set_tracer_provider(provider);
    global::set_text_map_propagator(TraceContextPropagator::new());
    let telemetry = Telemetry::new();
    let server = TestServer::start().await?;
    let queue = server.queue("q").hooks(telemetry.hooks());
    let worker = Worker::new(&queue)
        .handler(Handler::new(run).backoff([Duration::from_secs(60)]))
        .hooks(telemetry.hooks())
        .layer(telemetry);

    let ends = [
        (Status::Unset, None),
        (Status::error("no paper"), Some("exception")),
        (Status::Unset, Some("exception")),
        (Status::error("panic: too many"), Some("exception")),
        (Status::Unset, Some("suspended")),
    ];
    for (data, (status, said)) in ends.into_iter().enumerate() {
        exporter.reset();
        queue.add(&data).id(data.to_string()).await?;
        assert_eq!(worker.drain().await?, 1);
        let spans = exporter.get_finished_spans().expect("spans");
        let [send, process] = spans.as_slice() else {
            panic!("{spans:?}")
        };
        assert_eq!((&*send.name, &*process.name), ("send q", "process q"));
        let kinds = (send.span_kind.clone(), process.span_kind.clone());
        assert_eq!(kinds, (SpanKind::Producer, SpanKind::Consumer));
        assert_ne!(
            process.span_context.trace_id(),
            send.span_context.trace_id()
        );
        let link = process.links.links.first().expect("a link");
        assert_eq!(link.span_context.span_id(), send.span_context.span_id());
        assert_eq!((&process.status, event(process)), (&status, said), "{data}");
        if data == 3 {
            let job = queue
                .get(data.to_string())
                .await?
                .expect("it is tried again");
            assert_eq!(job.reason.as_deref(), Some("panic: too many"));
        }
    }
    Ok(())
}
