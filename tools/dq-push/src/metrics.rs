//! What Prometheus reads.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::answer::Verdict;

const BOUNDS_MS: [u64; 13] = [
    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
];

#[derive(Default)]
pub struct Metrics {
    done: AtomicU64,
    again: AtomicU64,
    fatal: AtomicU64,
    pub lost: AtomicU64,
    pub given_back: AtomicU64,
    buckets: [AtomicU64; BOUNDS_MS.len()],
    micros: AtomicU64,
    /// The server answers.
    pub up: AtomicBool,
}

impl Metrics {
    pub fn called(&self, verdict: &Verdict, took: Duration) {
        let outcome = match verdict {
            Verdict::Done => &self.done,
            Verdict::Again(..) => &self.again,
            Verdict::Fatal(_) => &self.fatal,
        };
        outcome.fetch_add(1, Relaxed);
        let millis = took.as_millis();
        if let Some(at) = BOUNDS_MS
            .iter()
            .position(|&bound| millis <= u128::from(bound))
        {
            self.buckets[at].fetch_add(1, Relaxed);
        }
        self.micros.fetch_add(took.as_micros() as u64, Relaxed);
    }
}

/// A queue's name, its figures, and the calls that go on.
pub type Shown<'a> = (&'a str, &'a Metrics, usize);

pub fn text(queues: &[Shown]) -> String {
    let mut text = String::new();
    family(
        &mut text,
        queues,
        "calls_total",
        "counter",
        "Calls that ended, by what followed.",
        |out, label, metrics, _| {
            for (outcome, count) in [
                ("done", &metrics.done),
                ("again", &metrics.again),
                ("fatal", &metrics.fatal),
            ] {
                let _ = writeln!(
                    out,
                    "dq_push_calls_total{{{label},outcome=\"{outcome}\"}} {}",
                    count.load(Relaxed)
                );
            }
        },
    );
    family(
        &mut text,
        queues,
        "call_seconds",
        "histogram",
        "How long calls took.",
        |out, label, metrics, _| {
            let mut sum = 0;
            for (bound, count) in BOUNDS_MS.iter().zip(&metrics.buckets) {
                sum += count.load(Relaxed);
                let _ = writeln!(
                    out,
                    "dq_push_call_seconds_bucket{{{label},le=\"{}\"}} {sum}",
                    *bound as f64 / 1e3
                );
            }
            let all = metrics.done.load(Relaxed)
                + metrics.again.load(Relaxed)
                + metrics.fatal.load(Relaxed);
            let seconds = metrics.micros.load(Relaxed) as f64 / 1e6;
            let _ = writeln!(
                out,
                "dq_push_call_seconds_bucket{{{label},le=\"+Inf\"}} {}",
                all.max(sum)
            );
            let _ = writeln!(out, "dq_push_call_seconds_sum{{{label}}} {seconds}");
            let _ = writeln!(
                out,
                "dq_push_call_seconds_count{{{label}}} {}",
                all.max(sum)
            );
        },
    );
    let single =
        |text: &mut String, name: &str, kind, help, value: &dyn Fn(&Metrics, usize) -> u64| {
            family(
                text,
                queues,
                name,
                kind,
                help,
                |out, label, metrics, running| {
                    let _ = writeln!(out, "dq_push_{name}{{{label}}} {}", value(metrics, running));
                },
            );
        };
    single(
        &mut text,
        "in_flight",
        "gauge",
        "Calls that go on.",
        &|_, running| running as u64,
    );
    single(
        &mut text,
        "retries_total",
        "counter",
        "Calls after which the job waits for another.",
        &|it, _| it.again.load(Relaxed),
    );
    single(
        &mut text,
        "lost_total",
        "counter",
        "Jobs that the server gave to others, or that went, during their call.",
        &|it, _| it.lost.load(Relaxed),
    );
    single(
        &mut text,
        "given_back_total",
        "counter",
        "Jobs given back when the program stopped.",
        &|it, _| it.given_back.load(Relaxed),
    );
    single(
        &mut text,
        "up",
        "gauge",
        "1 while the server answers.",
        &|it, _| u64::from(it.up.load(Relaxed)),
    );
    text
}

fn family(
    text: &mut String,
    queues: &[Shown],
    name: &str,
    kind: &str,
    help: &str,
    mut lines: impl FnMut(&mut String, &str, &Metrics, usize),
) {
    let _ = writeln!(
        text,
        "# HELP dq_push_{name} {help}\n# TYPE dq_push_{name} {kind}"
    );
    for (queue, metrics, running) in queues {
        let escaped = queue
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        lines(text, &format!("queue=\"{escaped}\""), metrics, *running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.called(&Verdict::Done, Duration::from_millis(7));
        metrics.called(
            &Verdict::Again(None, String::new()),
            Duration::from_secs(100),
        );
        let text = text(&[("a\"b", &metrics, 3)]);
        for line in [
            "# TYPE dq_push_calls_total counter",
            "dq_push_calls_total{queue=\"a\\\"b\",outcome=\"done\"} 1",
            "dq_push_calls_total{queue=\"a\\\"b\",outcome=\"fatal\"} 0",
            "dq_push_call_seconds_bucket{queue=\"a\\\"b\",le=\"0.005\"} 0",
            "dq_push_call_seconds_bucket{queue=\"a\\\"b\",le=\"0.01\"} 1",
            "dq_push_call_seconds_bucket{queue=\"a\\\"b\",le=\"60\"} 1",
            "dq_push_call_seconds_bucket{queue=\"a\\\"b\",le=\"+Inf\"} 2",
            "dq_push_call_seconds_sum{queue=\"a\\\"b\"} 100.007",
            "dq_push_in_flight{queue=\"a\\\"b\"} 3",
            "dq_push_retries_total{queue=\"a\\\"b\"} 1",
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
