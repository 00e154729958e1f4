//! Metrics for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use dq_watch::text::escape;

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
    running: AtomicU64,
    /// Whether the server answers.
    pub up: AtomicBool,
    /// Whether this queue alone is stopped.
    pub stopped: AtomicBool,
    /// Whether calls to its host are held back.
    pub held: AtomicBool,
}

impl Metrics {
    pub fn called(&self, verdict: &Verdict, took: Duration) {
        let outcome = match verdict {
            Verdict::Done(_) => &self.done,
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

/// Counts a running call, until this is dropped.
pub struct Running(Arc<Metrics>);

impl Running {
    pub fn new(metrics: &Arc<Metrics>) -> Running {
        metrics.running.fetch_add(1, Relaxed);
        Running(Arc::clone(metrics))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

/// A queue's name, and its metrics.
pub type Shown<'a> = (&'a str, &'a Metrics);

/// A metric with one value for each queue: name, kind, help, value.
type Single = (&'static str, &'static str, &'static str, fn(&Shown) -> u64);

const SINGLES: [Single; 7] = [
    ("in_flight", "gauge", "Calls running now.", |it| {
        it.1.running.load(Relaxed)
    }),
    (
        "retries_total",
        "counter",
        "Calls after which the job waits for another.",
        |it| it.1.again.load(Relaxed),
    ),
    (
        "lost_total",
        "counter",
        "Jobs that were deleted, or went to another worker, during their call.",
        |it| it.1.lost.load(Relaxed),
    ),
    (
        "given_back_total",
        "counter",
        "Jobs given back when the program stopped.",
        |it| it.1.given_back.load(Relaxed),
    ),
    ("up", "gauge", "1 while the server answers.", |it| {
        u64::from(it.1.up.load(Relaxed))
    }),
    (
        "stopped",
        "gauge",
        "1 while this queue alone is stopped: see the log.",
        |it| u64::from(it.1.stopped.load(Relaxed)),
    ),
    (
        "breaker_open",
        "gauge",
        "1 while calls to its host are held back.",
        |it| u64::from(it.1.held.load(Relaxed)),
    ),
];

pub fn text(queues: &[Shown]) -> String {
    let mut text = String::new();
    head(&mut text, "calls_total", "counter", "Calls by outcome.");
    for (queue, metrics) in queues {
        calls(&mut text, &label(queue), metrics);
    }
    head(&mut text, "call_seconds", "histogram", "Duration of calls.");
    for (queue, metrics) in queues {
        seconds(&mut text, &label(queue), metrics);
    }
    for (name, kind, help, value) in SINGLES {
        head(&mut text, name, kind, help);
        for shown in queues {
            let _ = writeln!(
                text,
                "dq_push_{name}{{{}}} {}",
                label(shown.0),
                value(shown)
            );
        }
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        text,
        "# HELP dq_push_{name} {help}\n# TYPE dq_push_{name} {kind}"
    );
}

/// Escapes control characters: not every reader of the format accepts them.
fn label(queue: &str) -> String {
    let escaped = escape::name(queue.as_bytes())
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    format!("queue=\"{escaped}\"")
}

fn calls(text: &mut String, label: &str, metrics: &Metrics) {
    for (outcome, count) in [
        ("done", &metrics.done),
        ("again", &metrics.again),
        ("fatal", &metrics.fatal),
    ] {
        let count = count.load(Relaxed);
        let _ = writeln!(
            text,
            "dq_push_calls_total{{{label},outcome=\"{outcome}\"}} {count}"
        );
    }
}

fn seconds(text: &mut String, label: &str, metrics: &Metrics) {
    let mut below = 0;
    for (bound, count) in BOUNDS_MS.iter().zip(&metrics.buckets) {
        below += count.load(Relaxed);
        let bound = *bound as f64 / 1e3;
        let _ = writeln!(
            text,
            "dq_push_call_seconds_bucket{{{label},le=\"{bound}\"}} {below}"
        );
    }
    let outcomes = [&metrics.done, &metrics.again, &metrics.fatal];
    // The counters change one after the other: the sum must not be less than its parts.
    let all = outcomes
        .iter()
        .map(|it| it.load(Relaxed))
        .sum::<u64>()
        .max(below);
    let sum = metrics.micros.load(Relaxed) as f64 / 1e6;
    let _ = writeln!(
        text,
        "dq_push_call_seconds_bucket{{{label},le=\"+Inf\"}} {all}"
    );
    let _ = writeln!(text, "dq_push_call_seconds_sum{{{label}}} {sum}");
    let _ = writeln!(text, "dq_push_call_seconds_count{{{label}}} {all}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_prometheus_reads_them() {
        let metrics = Arc::new(Metrics::default());
        let _running = [(); 3].map(|()| Running::new(&metrics));
        metrics.called(&Verdict::Done(None), Duration::from_millis(7));
        metrics.called(
            &Verdict::Again(None, String::new()),
            Duration::from_secs(100),
        );
        let text = text(&[("a\"b", &metrics)]);
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

    #[test]
    fn a_name_cannot_break_its_line() {
        for (name, shown) in [
            ("a\nb\r\0", r"a\\nb\\r\\x00"),
            ("a\u{2028}\u{85}", r"a\\u{2028}\\u{85}"),
            ("\"} 1", "\\\"} 1"),
        ] {
            assert_eq!(label(name), format!("queue=\"{shown}\""));
        }
    }
}
