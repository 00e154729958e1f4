//! Many small queues: what one more of them takes, by the jobs in it, and what an add among them costs.

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, zset_and_hash};
use super::machine::now_ms;
use super::plan::Plan;
use super::report::{Goal, Part, Row};

const DAY_MS: u64 = 86_400_000;

/// Jobs in a queue, and what it may take of what a sorted set with a hash takes.
const SHAPES: [(usize, Goal); 7] = [
    (1, Goal::AtMost(1.5, 1.35)),
    (2, Goal::AtMost(1.5, 1.3)),
    (5, Goal::AtMost(1.4, 1.2)),
    (20, Goal::AtMost(1.1, 1.0)),
    (64, Goal::AtMost(1.0, 0.85)),
    (65, Goal::Told),
    (1000, Goal::Told),
];
/// Jobs in all queues of one shape, in about.
const JOBS: usize = 20_000;

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let base = now_ms();
    let (ours, cost) = fill(bench, plan.queues, 1, |out, number| {
        let key = format!("dq:{number:08}");
        dq::add_at(out, key.as_bytes(), number, base + DAY_MS + number as u64);
    });
    bench.host.flush();
    let (other, other_cost) = fill(bench, plan.queues, 2, |out, command| {
        let key = format!("{{{:08}}}", command / 2);
        zset_and_hash::add_alone(out, &key, command);
    });
    let shapes = shapes(bench, base);
    let queues = plan.queues;
    let row = |what: &str, unit, ours: f64, other: f64| {
        let what = format!("{what}, {queues} queues of one job");
        Row::paired(what, "zset + hash", unit, Goal::Told, (&[ours], &[other]))
    };
    let mut rows = vec![
        row("memory per queue", "bytes", ours, other),
        row("first DQ.ADD to a queue", "us", cost, other_cost),
    ];
    rows.extend(shapes);
    Part {
        rows,
        how: format!(
            "  {queues} keys with one far job each: growth of used_memory / keys, the server's own table of keys included; server CPU\n\
             \x20 (INFO cpu) per add that makes such a key, pipeline {PIPELINE}; against ZADD and HSET, each on a key of its own. One run.\n\
             \x20 A queue of so many jobs: the same over queues of {JOBS} jobs in all; and what MEMORY USAGE says of one.\n"
        ),
        ..Part::default()
    }
}

/// What a queue of each shape takes, and what the server says that it takes.
fn shapes(bench: &mut Bench, base: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (jobs, goal) in SHAPES {
        let queues = (JOBS / jobs).max(200);
        bench.host.flush();
        let (ours, _) = fill(bench, queues, jobs, |out, number| {
            let key = format!("dq:{:08}", number / jobs);
            dq::add_at(out, key.as_bytes(), number, base + DAY_MS + number as u64);
        });
        let usage = bench.host.call(&[b"MEMORY", b"USAGE", b"dq:00000007"]);
        let usage = String::from_utf8_lossy(&usage);
        let number = usage.strip_prefix(':').map(str::trim_end);
        let usage = number.and_then(|number| number.parse::<f64>().ok());
        let usage = usage.expect("MEMORY USAGE is a number");
        bench.host.flush();
        let (other, _) = fill(bench, queues, 2 * jobs, |out, command| {
            let key = format!("{{{:08}}}", command / (2 * jobs));
            zset_and_hash::add_alone(out, &key, command);
        });
        let pair = (&[ours][..], &[other][..]);
        let what = format!("a queue of {jobs} job{}", if jobs == 1 { "" } else { "s" });
        rows.push(Row::paired(&what, "zset + hash", "bytes", goal, pair));
        let what = format!("{what}, by MEMORY USAGE");
        let pair = (&[usage][..], &[ours][..]);
        rows.push(Row::paired(what, "taken", "bytes", Goal::Told, pair));
    }
    rows
}

/// Bytes and us per queue.
fn fill(
    bench: &mut Bench,
    queues: usize,
    commands_a_queue: usize,
    mut write: impl FnMut(&mut Vec<u8>, usize),
) -> (f64, f64) {
    bench.host.wait_until_idle();
    let empty = bench.host.used_memory();
    let commands = queues * commands_a_queue;
    let cost = bench.cost(commands, PIPELINE, |_, out, number| write(out, number));
    bench.host.wait_until_memory_rests();
    let bytes = (bench.host.used_memory() - empty) / queues as f64;
    (bytes, cost * commands_a_queue as f64)
}
