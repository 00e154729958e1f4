//! Many small queues: what one more of them takes, and what an add among them costs.

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, zset_and_hash};
use super::machine::now_ms;
use super::plan::Plan;
use super::report::{Goal, Part, Row};

const DAY_MS: u64 = 86_400_000;

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
    let queues = plan.queues;
    let row = |what: &str, unit, ours: f64, other: f64| {
        let what = format!("{what}, {queues} queues of one job");
        Row::paired(what, "zset + hash", unit, Goal::Told, (&[ours], &[other]))
    };
    Part {
        rows: vec![
            row("memory per queue", "bytes", ours, other),
            row("first DQ.ADD to a queue", "us", cost, other_cost),
        ],
        how: format!(
            "  {queues} keys with one far job each: growth of used_memory / keys, the server's own table of keys included; server CPU\n\
             \x20 (INFO cpu) per add that makes such a key, pipeline {PIPELINE}; against ZADD and HSET, each on a key of its own. One run.\n"
        ),
        ..Part::default()
    }
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
    bench.host.wait_until_idle();
    let bytes = (bench.host.used_memory() - empty) / queues as f64;
    (bytes, cost * commands_a_queue as f64)
}
