//! What the harness has a system do, for systems that are used from Rust: as python/program.py.

mod apalis_system;
mod dq;
mod dq_library;
mod seen;

use apalis_system::Apalis;
use dq::Dq;
use dq_library::DqLibrary;
use seen::Seen;
use serde_json::{json, Value};
use std::future::Future;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const AHEAD_MS: u64 = 2000;
const BATCH: usize = 100;
const PAYLOAD_BYTES: usize = 64;
const WARM_UP: Duration = Duration::from_millis(500);
const CONCURRENCY: usize = 10;

pub struct Job {
    number: usize,
    payload: String,
    /// 0: at once.
    due_ms: u64,
}

trait System {
    async fn add(&mut self, job: Job);
    async fn add_many(&mut self, jobs: Vec<Job>);
    async fn work(self, seen: Seen, is_ready: impl FnOnce());
}

fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_micros() as u64
}

fn now_s() -> f64 {
    now_us() as f64 / 1e6
}

fn tell(facts: Value) {
    let mut out = io::stdout().lock();
    writeln!(out, "{facts}").unwrap();
    out.flush().unwrap();
}

fn payload(due_ms: u64, number: usize, size: usize) -> String {
    format!("{:x<size$}", format!("{due_ms} {number} "))
}

fn far(number: usize, size: usize) -> Job {
    let due_ms = now_us() / 1000 + 3_600_000 + number as u64;
    Job {
        number,
        payload: payload(due_ms, number, size),
        due_ms,
    }
}

fn due(number: usize) -> Job {
    Job {
        number,
        payload: payload(0, number, PAYLOAD_BYTES),
        due_ms: 0,
    }
}

async fn add_all(system: &mut impl System, count: usize, make: impl Fn(usize) -> Job) {
    let mut first = 0;
    while first < count {
        let end = count.min(first + BATCH);
        system.add_many((first..end).map(&make).collect()).await;
        first = end;
    }
}

async fn add(system: &mut impl System, how: &str, seconds: u64) {
    let mut number = 0;
    let mut before = 0;
    let mut took = Duration::ZERO;
    for long in [WARM_UP, Duration::from_secs(seconds)] {
        before = number;
        let began = Instant::now();
        while began.elapsed() < long {
            if how == "single" {
                system.add(far(number, PAYLOAD_BYTES)).await;
                number += 1;
                continue;
            }
            system
                .add_many(
                    (number..number + BATCH)
                        .map(|at| far(at, PAYLOAD_BYTES))
                        .collect(),
                )
                .await;
            number += BATCH;
        }
        took = began.elapsed();
    }
    tell(json!({"jobs": number - before, "seconds": took.as_secs_f64(), "jobs_in_all": number}));
}

async fn warm_up(system: &mut impl System, count: usize) {
    add_all(system, count, due).await;
    if count > 0 {
        io::stdin().read_line(&mut String::new()).unwrap();
    }
}

async fn ready(system: &mut impl System, count: usize, warm: usize) {
    warm_up(system, warm).await;
    let began = now_s();
    add_all(system, count, |number| due(warm + number)).await;
    tell(json!({"began": began}));
}

async fn paced(system: &mut impl System, count: usize, seconds: u64, warm: usize) {
    warm_up(system, warm).await;
    let first_ms = now_us() / 1000 + 100;
    for number in 0..count {
        let at_ms = first_ms + number as u64 * seconds * 1000 / count as u64;
        tokio::time::sleep(Duration::from_micros(
            (at_ms * 1000).saturating_sub(now_us()),
        ))
        .await;
        let (number, due_ms) = (warm + number, at_ms + AHEAD_MS);
        system
            .add(Job {
                number,
                payload: payload(due_ms, number, PAYLOAD_BYTES),
                due_ms,
            })
            .await;
    }
    tell(json!({"jobs": count}));
}

async fn run(mut system: impl System, task: &str, words: &[String]) {
    let number = |at: usize| words[at].parse::<usize>().unwrap();
    match task {
        "add" => add(&mut system, &words[0], number(1) as u64).await,
        "fill" => {
            add_all(&mut system, number(0), |n| far(n, number(1))).await;
            tell(json!({"jobs": number(0)}));
        }
        "ready" => ready(&mut system, number(0), number(1)).await,
        "paced" => paced(&mut system, number(0), number(1) as u64, number(2)).await,
        "work" => {
            let seen = Seen::new(number(0), number(1));
            system.work(seen, || tell(json!({"ready": true}))).await;
        }
        _ => panic!("no task {task}"),
    }
}

fn main() {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let url = format!("redis://127.0.0.1:{}", std::env::var("BENCH_PORT").unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(with(&words[0], &url, &words[1], &words[2..]));
}

async fn with(system: &str, url: &str, task: &str, words: &[String]) {
    let asked: std::pin::Pin<Box<dyn Future<Output = ()> + '_>> = match system {
        "dq" => Box::pin(run(Dq::open(url).await, task, words)),
        "dq_library" => Box::pin(run(DqLibrary::open(url).await, task, words)),
        "apalis" => Box::pin(run(Apalis::open(url).await, task, words)),
        _ => panic!("no system {system}"),
    };
    asked.await;
}
