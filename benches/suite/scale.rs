//! Ten million jobs, in one queue and in a million of them: what they take, and what saving, copying and
//! taking over such a server costs.

use std::time::{Duration, Instant};

pub mod huge;

use super::bench::{Bench, PIPELINE};
use super::host::Host;
use super::jobs::{dq, zset_and_hash, Scripts};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::wire::Connection;
use crate::support::place::Port;

/// The jobs of each of many queues.
const JOBS_A_QUEUE: usize = 3;
/// The numbers below are those of jobs that are ready (see `Scripts::add_ready`).
const FIRST_FAR: usize = 1_000_000;
/// How long a server may take to read its file.
const LOADS: Duration = Duration::from_secs(300);

/// What is held, and by whom.
struct Shape {
    jobs: usize,
    commands: usize,
    pipeline: usize,
    write: fn(&mut Vec<u8>, usize),
    /// Steps of the lives of jobs that are ready, beside those that are held.
    live: Option<[Write; 3]>,
    /// Adds one more, and takes one: what a client wants of a server that has just taken over.
    serve: fn(&mut Connection),
}

type Write = fn(&Scripts, &mut Vec<u8>, usize);

/// What one shape was seen to take.
#[derive(Default)]
struct Held {
    bytes: f64,
    add_us: f64,
    live_us: [f64; 3],
    save: Written,
    rewrite: Written,
    load_s: f64,
    sync_s: f64,
    takeover_ms: f64,
}

/// One way to the disk.
#[derive(Default, Clone, Copy)]
struct Written {
    fork_ms: f64,
    seconds: f64,
    copied_mb: f64,
    file_mb: f64,
}

pub fn measure(plan: Plan) -> Part {
    let (jobs, queues) = (plan.grow_to, plan.grow_to / 10);
    let one = [hold(plan, &one_queue(jobs)), hold(plan, &one_pair(jobs))];
    let many = [
        hold(plan, &queues_of(queues)),
        hold(plan, &pairs_of(queues)),
    ];
    let mut rows = rows(&format!("{:.0e} jobs", jobs as f64), &one);
    let name = format!("{:.0e} queues of {JOBS_A_QUEUE} jobs", queues as f64);
    rows.extend(rows_of(&name, &many));
    Part {
        rows,
        how: format!(
            "  {jobs} far jobs in one queue against a sorted set with a hash, then {queues} queues of {JOBS_A_QUEUE} such jobs against as many\n\
             \x20 sorted sets with hashes. Server CPU (INFO cpu) per add (both commands of the other), pipeline {PIPELINE}; {} lives of ready\n\
             \x20 jobs beside them (the other: by scripts). used_memory per job once it rests. BGSAVE and BGREWRITEAOF: fork by INFO, time by\n\
             \x20 the clock until it is done, pages copied on write while as many lives as above go on (one queue only), size of the\n\
             \x20 RDB file. Load: CPU time of a server started on that file. Full sync: by the clock, from REPLICAOF to a link that is up,\n\
             \x20 both on one core. Taking over: by the clock, from REPLICAOF NO ONE to the reply of the second of an add and a pop.\n\
             \x20 One run.\n",
            plan.commands
        ),
        ..Part::default()
    }
}

fn one_queue(jobs: usize) -> Shape {
    Shape {
        jobs,
        commands: jobs,
        pipeline: PIPELINE,
        write: |out, number| dq::add_far(out, FIRST_FAR + number),
        live: Some([
            |_, out, number| dq::add_ready(out, number),
            |_, out, number| dq::pop(out, number),
            |_, out, number| dq::ack(out, number),
        ]),
        serve: serve_dq,
    }
}

fn one_pair(jobs: usize) -> Shape {
    Shape {
        jobs,
        commands: 2 * jobs,
        pipeline: PIPELINE,
        write: |out, command| zset_and_hash::add_far(out, 2 * FIRST_FAR + command),
        live: Some([Scripts::add_ready, Scripts::pop, Scripts::ack]),
        serve: serve_zset,
    }
}

fn queues_of(queues: usize) -> Shape {
    Shape {
        jobs: queues * JOBS_A_QUEUE,
        commands: queues * JOBS_A_QUEUE,
        pipeline: PIPELINE,
        write: |out, number| {
            let key = format!("dq:{:08}", number / JOBS_A_QUEUE);
            dq::add_far_to(out, key.as_bytes(), FIRST_FAR + number);
        },
        live: None,
        serve: serve_dq,
    }
}

fn pairs_of(queues: usize) -> Shape {
    Shape {
        jobs: queues * JOBS_A_QUEUE,
        commands: 2 * queues * JOBS_A_QUEUE,
        pipeline: PIPELINE,
        write: |out, command| {
            let key = format!("{{{:08}}}", command / (2 * JOBS_A_QUEUE));
            zset_and_hash::add_alone(out, &key, 2 * FIRST_FAR + command);
        },
        live: None,
        serve: serve_zset,
    }
}

fn serve_dq(client: &mut Connection) {
    client.call(&[b"DQ.ADD", b"new", b"id", b"payload"]);
    client.call(&[b"DQ.POP", b"new"]);
}

fn serve_zset(client: &mut Connection) {
    client.call(&[b"ZADD", b"new", b"1", b"id"]);
    client.call(&[b"ZPOPMIN", b"new"]);
}

fn hold(plan: Plan, shape: &Shape) -> Held {
    let port = Port::free();
    let bench = &mut start(plan, port.number);
    let (add_us, bytes) = fill(bench, shape);
    let live_us = shape
        .live
        .map_or([f64::NAN; 3], |steps| lives(bench, steps));
    let save = write_out(bench, shape, b"BGSAVE", "rdb_bgsave", "rdb");
    let rewrite = write_out(bench, shape, b"BGREWRITEAOF", "aof_rewrite", "aof");
    let (sync_s, takeover_ms) = copy(shape, port.number);
    Held {
        bytes,
        add_us,
        live_us,
        save,
        rewrite,
        load_s: load(bench),
        sync_s,
        takeover_ms,
    }
}

fn start(plan: Plan, port: u16) -> Bench {
    Bench::start_with(plan, |builder| {
        builder
            .config("port", port)
            .config("repl-diskless-sync-delay", 0)
            .patience(LOADS)
    })
}

/// us and bytes of a job.
fn fill(bench: &mut Bench, shape: &Shape) -> (f64, f64) {
    let empty = bench.host.used_memory();
    let command_us = bench.cost(shape.commands, shape.pipeline, |_, out, n| {
        (shape.write)(out, n)
    });
    bench.host.wait_until_memory_rests();
    let bytes = (bench.host.used_memory() - empty) / shape.jobs as f64;
    let commands_a_job = shape.commands as f64 / shape.jobs as f64;
    (command_us * commands_a_job, bytes)
}

/// s until a server has read what this one has.
fn load(bench: &mut Bench) -> f64 {
    bench.host.call(&[b"SAVE"]);
    bench.host.restart_us() / 1e6
}

/// us of each step.
fn lives(bench: &mut Bench, steps: [Write; 3]) -> [f64; 3] {
    let count = bench.plan.commands;
    steps.map(|step| bench.cost(count, PIPELINE, step))
}

/// Starts a child that writes all data, and lets lives go on beside it.
fn write_out(bench: &mut Bench, shape: &Shape, command: &[u8], job: &str, name: &str) -> Written {
    let is_busy =
        |host: &mut Host| host.info_number("persistence", &format!("{job}_in_progress")) > 0.0;
    bench.host.wait_until_idle();
    let start = Instant::now();
    bench.host.call(&[command]);
    assert!(is_busy(&mut bench.host), "a child writes");
    let fork_ms = bench.host.info_number("stats", "latest_fork_usec") / 1e3;
    if let Some(steps) = shape.live {
        lives(bench, steps);
    }
    while is_busy(&mut bench.host) {
        super::machine::sleep_ms(5);
    }
    let file = bench.host.folder().join("dump.rdb");
    Written {
        fork_ms,
        seconds: start.elapsed().as_secs_f64(),
        copied_mb: bench
            .host
            .info_number("persistence", &format!("{name}_last_cow_size"))
            / 1e6,
        file_mb: file.metadata().map_or(f64::NAN, |it| it.len() as f64 / 1e6),
    }
}

/// A replica is made, and takes over: s and ms.
fn copy(shape: &Shape, port: u16) -> (f64, f64) {
    let mut replica = Host::start();
    let start = Instant::now();
    replica.follow(port);
    let synced = start.elapsed().as_secs_f64();
    replica.wait_until_idle();
    let mut client = replica.connect();
    let start = Instant::now();
    client.call(&[b"REPLICAOF", b"NO", b"ONE"]);
    (shape.serve)(&mut client);
    (synced, start.elapsed().as_secs_f64() * 1e3)
}

fn rows(held: &str, pair: &[Held; 2]) -> Vec<Row> {
    let mut rows = rows_of(held, pair);
    for (step, name) in ["DQ.ADD (ready)", "DQ.POP", "DQ.ACK"]
        .into_iter()
        .enumerate()
    {
        rows.push(row(&format!("{name} beside {held}"), "us", pair, |it| {
            it.live_us[step]
        }));
    }
    for (name, part) in [
        ("BGSAVE", (|it| it.save.copied_mb) as fn(&Held) -> f64),
        ("BGREWRITEAOF", |it| it.rewrite.copied_mb),
    ] {
        rows.push(row(
            &format!("copied on write by {name}, {held}"),
            "MB",
            pair,
            part,
        ));
    }
    rows
}

/// What it is, in which unit, and where it stands.
type Figure = (&'static str, &'static str, fn(&Held) -> f64);

fn rows_of(held: &str, pair: &[Held; 2]) -> Vec<Row> {
    let parts: [Figure; 9] = [
        ("memory per job", "bytes", |it| it.bytes),
        ("DQ.ADD (far), filling it", "us", |it| it.add_us),
        ("fork", "ms", |it| it.save.fork_ms),
        ("BGSAVE", "s", |it| it.save.seconds),
        ("RDB file", "MB", |it| it.save.file_mb),
        ("load", "s", |it| it.load_s),
        ("BGREWRITEAOF", "s", |it| it.rewrite.seconds),
        ("full sync of a replica", "s", |it| it.sync_s),
        ("taking over from the master", "ms", |it| it.takeover_ms),
    ];
    let named = parts.map(|(name, unit, part)| row(&format!("{name}, {held}"), unit, pair, part));
    named.into()
}

fn row(
    what: &str,
    unit: &'static str,
    [ours, other]: &[Held; 2],
    part: impl Fn(&Held) -> f64,
) -> Row {
    Row::paired(
        what,
        "zset + hash",
        unit,
        Goal::Told,
        (&[part(ours)], &[part(other)]),
    )
}
