//! What a job costs the server if one command adds many: beside an add of each, and a sorted set and a hash.

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, far_delay_ms, id, zset_and_hash, PAYLOAD_BYTES};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};

const JOBS: usize = 256_000;
/// Of one command: as many as the libraries put into one.
const TOGETHER: usize = 1000;
const LARGE_JOBS: usize = 10_000;
const LARGE_BYTES: usize = 1024;

struct Hosts {
    plain: Bench,
    aof: Bench,
}

pub fn measure(plan: Plan) -> Part {
    let aof = |builder: crate::support::Builder| {
        builder
            .config("appendonly", "yes")
            .config("auto-aof-rewrite-percentage", 0)
    };
    let hosts = &mut Hosts {
        plain: Bench::start(plan),
        aof: Bench::start_with(plan, aof),
    };
    let samples = Samples::take(hosts, plan.rounds, RUNS);
    let row = |what: &str, ours, other, goal| {
        let what = format!("DQ.MADD of {TOGETHER} jobs, per job{what}");
        Row::paired(
            what,
            other,
            "us",
            goal,
            (samples.of(ours), samples.of(other)),
        )
    };
    let longest: Vec<f64> = (0..plan.rounds).map(|_| large(&mut hosts.plain)).collect();
    let what =
        format!("DQ.MADD of {LARGE_JOBS} jobs of {LARGE_BYTES} bytes, which others wait for");
    Part {
        rows: vec![
            row("", "madd", "add", Goal::Better(3.0, 5.0)),
            row("", "madd", "zadd + hset", Goal::Better(8.0, 14.0)),
            row(", with an AOF", "madd, AOF", "add, AOF", Goal::Better(3.0, 6.0)),
            Row::alone(what, "ms", Goal::Below(5.0, 2.0), &longest),
        ],
        how: format!(
            "  {JOBS} far jobs: DQ.MADD of {TOGETHER}, one command on the way for each of 50 clients; DQ.ADD, and ZADD and HSET of each job,\n\
             \x20 in pipelines of {PIPELINE}. Server CPU (INFO cpu, user + sys of the main thread) per job; AOF: appendfsync everysec.\n\
             \x20 What others wait for: usec of INFO commandstats, of one command. Median of {} rounds in turn.\n",
            plan.rounds
        ),
        ..Part::default()
    }
}

const RUNS: Runs<Hosts, f64> = &[
    ("madd", |hosts| add_together(&mut hosts.plain)),
    ("add", |hosts| add_each(&mut hosts.plain)),
    ("zadd + hset", |hosts| {
        let bench = &mut hosts.plain;
        bench.host.flush();
        let each = bench.cost(2 * JOBS, PIPELINE, |_, out, n| {
            zset_and_hash::add_far(out, n)
        });
        2.0 * each
    }),
    ("madd, AOF", |hosts| add_together(&mut hosts.aof)),
    ("add, AOF", |hosts| add_each(&mut hosts.aof)),
];

fn add_each(bench: &mut Bench) -> f64 {
    bench.host.flush();
    bench.cost(JOBS, PIPELINE, |_, out, n| dq::add_far(out, n))
}

fn add_together(bench: &mut Bench) -> f64 {
    bench.host.flush();
    let each = bench.cost(JOBS / TOGETHER, 1, |_, out, n| {
        dq::add_far_together(out, n * TOGETHER..(n + 1) * TOGETHER, PAYLOAD_BYTES)
    });
    each / TOGETHER as f64
}

/// How long the command of many large jobs takes, in ms.
fn large(bench: &mut Bench) -> f64 {
    bench.host.flush();
    let mut client = bench.host.connect();
    let ids: Vec<_> = (0..LARGE_JOBS).map(id).collect();
    let body = vec![b'x'; LARGE_BYTES];
    let jobs: Vec<_> = ids.iter().map(|id| (&id[..], &body[..])).collect();
    let mut out = Vec::new();
    dq::add_many(&mut out, &jobs, Some(far_delay_ms(0)));
    client.call(&[b"CONFIG", b"RESETSTAT"]);
    client.send(&out);
    client.receive_done(1);
    let stats = client.call(&[b"INFO", b"commandstats"]);
    let stats = String::from_utf8_lossy(stats).to_lowercase();
    let ours = stats.split("cmdstat_dq.madd:calls=1,usec=").nth(1);
    let usec = ours.and_then(|it| it.split(',').next()?.parse::<f64>().ok());
    usec.expect("the command was counted once") / 1e3
}
