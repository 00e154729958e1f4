//! A million jobs: what they take in memory, and what one more of them costs.

use super::bench::{Bench, PIPELINE};
use super::crowd::Crowd;
use super::host::Host;
use super::jobs::{dq, members, zset, zset_and_hash, Scripts, RAW_BYTES};
use super::plan::{Plan, MILLION};
use super::report::{Curve, Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::stats::most;

/// Tables that double are at their best or worst at one size or another: all these are looked at.
const STEP: usize = 50_000;

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let whole = fill(&mut bench.host, 1, members::add_far);
    bench.host.flush();
    let ours = fill(&mut bench.host, 1, dq::add_far);
    let with_hash = fill(&mut bench.host, 2, zset_and_hash::add_far);
    bench.run((0, MILLION), zset::add_far);
    let samples = Samples::take(bench, plan.rounds, RUNS);
    let mut rows = costs(&samples);
    rows.extend(sizes(&ours, &with_hash, &whole));
    Part {
        rows,
        curves: vec![
            curve("bytes per job by jobs: dq", ours),
            curve("bytes per job by jobs: zset + hash", with_hash),
            curve("bytes per job by jobs: zset, payload in the member", whole),
        ],
        how: format!(
            "  Cost: server CPU per command (INFO cpu), pipeline {PIPELINE}: {} far adds, to a queue, a sorted set, and a sorted set\n\
             \x20 with a hash (script), each of which holds {MILLION}, in one server; then, not measured, they are deleted again. Median\n\
             \x20 of {} rounds. Memory: growth of used_memory (INFO memory) / jobs, all clients but one gone, no options but a DELAY;\n\
             \x20 raw: id, payload and 8 bytes of due. Told by the allocator, so one run is enough. Also taken at every {STEP} jobs\n\
             \x20 from half a million on: the worst of these is told.\n",
            plan.commands, plan.rounds
        ),
    }
}

const RUNS: Runs<Bench, f64> = &[
    ("add", |bench| {
        let cost = add_more(bench, |_, out, n| dq::add_far(out, n));
        delete_them(bench, |out, numbers| dq::delete(out, b"dq", numbers));
        cost
    }),
    ("zadd at 1e6", |bench| {
        let cost = add_more(bench, |_, out, n| zset::add_far(out, n));
        delete_them(bench, |out, numbers| zset::remove(out, b"zset", numbers));
        cost
    }),
    ("script at 1e6", |bench| {
        let cost = add_more(bench, Scripts::add_far);
        delete_them(bench, zset_and_hash::remove_due);
        delete_them(bench, zset_and_hash::remove_data);
        cost
    }),
];

fn add_more(bench: &mut Bench, mut write: impl FnMut(&Scripts, &mut Vec<u8>, usize)) -> f64 {
    bench.cost(bench.plan.commands, PIPELINE, |scripts, out, number| {
        write(scripts, out, MILLION + number)
    })
}

fn delete_them(bench: &mut Bench, mut write: impl FnMut(&mut Vec<u8>, (usize, usize))) {
    const AT_ONCE: usize = 100;
    bench.run((0, bench.plan.commands / AT_ONCE), |out, batch| {
        let first = MILLION + batch * AT_ONCE;
        write(out, (first, first + AT_ONCE));
    });
    bench.host.wait_until_idle();
}

fn costs(samples: &Samples<f64>) -> Vec<Row> {
    let row = |other, goal| {
        let pair = (samples.of("add"), samples.of(other));
        Row::paired("DQ.ADD (far) at 1e6 jobs", other, "us", goal, pair)
    };
    vec![
        row("zadd at 1e6", Goal::Better(2.7, 3.5)),
        row("script at 1e6", Goal::Told),
    ]
}

/// Sizes and bytes per job.
type Points = Vec<(f64, f64)>;

/// Adds a million jobs, and takes the bytes per job on the way.
fn fill(
    host: &mut Host,
    commands_a_job: usize,
    mut write: impl FnMut(&mut Vec<u8>, usize),
) -> Points {
    host.wait_until_idle();
    let empty = host.used_memory();
    let mut from = 0;
    let mut points = Vec::new();
    for jobs in (MILLION / 2..=MILLION).step_by(STEP) {
        let numbers = (from * commands_a_job, jobs * commands_a_job);
        Crowd::of(host).run(numbers, PIPELINE, &mut write);
        host.wait_until_idle();
        points.push((jobs as f64, (host.used_memory() - empty) / jobs as f64));
        from = jobs;
    }
    points
}

fn sizes(ours: &Points, with_hash: &Points, whole: &Points) -> Vec<Row> {
    let row = |other, goal, bytes: f64| {
        let what = "memory per job, 1e6 jobs";
        Row::paired(what, other, "bytes", goal, (&[last(ours)], &[bytes]))
    };
    let worst = (&[worst(ours)][..], &[worst(with_hash)][..]);
    let what = "memory per job, worst of 5e5 to 1e6 jobs";
    vec![
        row("zset + hash", Goal::AtMost(0.52, 0.48), last(with_hash)),
        row("raw bytes", Goal::AtMost(1.65, 1.5), RAW_BYTES as f64),
        row("zset, all in the member", Goal::Told, last(whole)),
        Row::paired(what, "zset + hash", "bytes", Goal::Told, worst),
    ]
}

fn last(points: &Points) -> f64 {
    points[points.len() - 1].1
}

fn worst(points: &Points) -> f64 {
    most(&points.iter().map(|point| point.1).collect::<Vec<_>>())
}

fn curve(name: &str, points: Points) -> Curve {
    let name = name.to_owned();
    Curve { name, points }
}
