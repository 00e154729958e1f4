//! A hundred million jobs in one queue (`JOBS=`), added many in one command, and half as many in a sorted set with a hash,
//! which take as much memory.

use std::env;

use super::{copy, fill, lives, load, one_pair, one_queue, start, write_out, Shape, FIRST_FAR};
use crate::suite::jobs::{dq, far_due_ms, id, payload};
use crate::suite::plan::Plan;
use crate::suite::report::{Goal, Part, Row};
use crate::suite::wire::{encode, Decimal};
use crate::support::place::Port;

const JOBS: usize = 100_000_000;
const QUICK_JOBS: usize = 1_000_000;
/// In one command.
const TOGETHER: usize = 1000;
const PAYLOAD_BYTES: usize = 40;

pub fn measure(plan: Plan) -> Part {
    let whole = one_queue(jobs(plan));
    part(
        plan,
        Shape {
            commands: whole.jobs / TOGETHER,
            pipeline: 1,
            write: add_many,
            ..whole
        },
        "DQ.MADD",
    )
}

pub fn measure_pair(plan: Plan) -> Part {
    let whole = one_pair(jobs(plan) / 2);
    part(
        plan,
        Shape {
            commands: 2 * whole.jobs / TOGETHER,
            pipeline: 1,
            write: add_to_pair,
            ..whole
        },
        "ZADD and HSET",
    )
}

fn jobs(plan: Plan) -> usize {
    let given = env::var("JOBS").ok().filter(|it| !it.is_empty());
    let by_default = if plan.slow_rounds > 2 {
        JOBS
    } else {
        QUICK_JOBS
    };
    given.map_or(by_default, |it| it.parse().expect("JOBS is a number"))
}

fn add_many(out: &mut Vec<u8>, command: usize) {
    dq::add_far_together(out, numbers(command), PAYLOAD_BYTES);
}

fn add_to_pair(out: &mut Vec<u8>, command: usize) {
    let batch = command / 2;
    let jobs: Vec<_> = numbers(batch).map(|it| (id(it), payload(it))).collect();
    let due = Decimal::of(far_due_ms(batch));
    let mut words: Vec<&[u8]> = Vec::new();
    match command % 2 {
        0 => {
            words.extend([&b"ZADD"[..], b"{jobs}due"]);
            words.extend(jobs.iter().flat_map(|(id, _)| [due.bytes(), &id[..]]));
        }
        _ => {
            words.extend([&b"HSET"[..], b"{jobs}data"]);
            words.extend(
                jobs.iter()
                    .flat_map(|(id, payload)| [&id[..], &payload[..PAYLOAD_BYTES]]),
            );
        }
    }
    encode(out, &words);
}

fn numbers(batch: usize) -> std::ops::Range<usize> {
    let first = FIRST_FAR + batch * TOGETHER;
    first..first + TOGETHER
}

fn part(plan: Plan, shape: Shape, add: &str) -> Part {
    let (rows, jobs) = (rows(plan, &shape, add), shape.jobs);
    Part {
        rows,
        how: format!(
            "  {jobs} far jobs with ids of 16 and payloads of {PAYLOAD_BYTES} bytes, {TOGETHER} of them with one due time in one command; then as\n\
             \x20 with ten million jobs (scale). The replica is one of half as many, in another server: both have to fit into memory.\n\
             \x20 One run.\n"
        ),
        ..Part::default()
    }
}

fn rows(plan: Plan, shape: &Shape, add: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut tell =
        |what: String, unit, value| rows.push(Row::alone(what, unit, Goal::Told, &[value]));
    let held = named(shape.jobs);
    let port = Port::free();
    let mut bench = start(plan, port.number);
    let (add_us, bytes) = fill(&mut bench, shape);
    tell(format!("{held}: {add}, per job"), "us", add_us);
    tell(
        format!("{held}: memory"),
        "MB",
        bytes * shape.jobs as f64 / 1e6,
    );
    tell(format!("{held}: memory per job"), "bytes", bytes);
    let live_us = shape
        .live
        .map(|steps| lives(&mut bench, steps))
        .into_iter()
        .flatten();
    for (step, us) in ["an add of a ready job", "a pop", "an acknowledgement"]
        .into_iter()
        .zip(live_us)
    {
        tell(format!("{step} beside {held}"), "us", us);
    }
    let save = write_out(&mut bench, shape, b"BGSAVE", "rdb_bgsave", "rdb");
    tell(format!("{held}: fork"), "ms", save.fork_ms);
    tell(format!("{held}: BGSAVE"), "s", save.seconds);
    tell(
        format!("{held}: copied on write by BGSAVE"),
        "MB",
        save.copied_mb,
    );
    tell(format!("{held}: RDB file"), "MB", save.file_mb);
    let rewrite = write_out(&mut bench, shape, b"BGREWRITEAOF", "aof_rewrite", "aof");
    tell(format!("{held}: BGREWRITEAOF"), "s", rewrite.seconds);
    tell(format!("{held}: load"), "s", load(&mut bench));
    drop(bench);
    let half = &Shape {
        jobs: shape.jobs / 2,
        commands: shape.commands / 2,
        ..*shape
    };
    let mut bench = start(plan, port.number);
    fill(&mut bench, half);
    let (sync_s, takeover_ms) = copy(half, port.number);
    let held = named(half.jobs);
    tell(format!("{held}: full sync of a replica"), "s", sync_s);
    tell(
        format!("{held}: taking over from the master"),
        "ms",
        takeover_ms,
    );
    rows
}

fn named(jobs: usize) -> String {
    format!("{:.0e} jobs", jobs as f64)
}
