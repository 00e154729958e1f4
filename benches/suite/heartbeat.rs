//! What a worker's heartbeat costs for each job that it holds: many touched by one command, and one by one.

use super::bench::{Bench, PIPELINE};
use super::jobs::dq;
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::wire::{encode, Decimal};

/// In the worker's hands.
const HELD: usize = 1000;
const SMALL: usize = 10_000;

/// Id and token of each.
type Held = Vec<[Vec<u8>; 2]>;

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let rows = [SMALL, MILLION].map(|jobs| {
        bench.host.flush();
        bench.run((0, HELD), dq::add_ready);
        bench.run((HELD, jobs), dq::add_far);
        let held = take(bench);
        let rounds = 3 * plan.rounds;
        let samples: Vec<_> = (0..rounds).map(|round| beat(bench, &held, round)).collect();
        let (many, single): (Vec<f64>, Vec<f64>) = samples.into_iter().unzip();
        let what = format!(
            "DQ.TOUCH IDS {HELD}, per job, {jobs:.0e} jobs",
            jobs = jobs as f64
        );
        let goal = Goal::AtMost(1.0 / 3.0, 0.3);
        Row::paired(what, "DQ.TOUCH of each", "us", goal, (&many, &single))
    });
    Part {
        rows: rows.into(),
        how: format!(
            "  {HELD} jobs are reserved by POP COUNT {HELD}, the others are due in hours. In turn each gets a new lease, once by one\n\
             \x20 command and once by one each, pipeline {PIPELINE}: server time by INFO commandstats / {HELD}, which leaves out reading\n\
             \x20 commands and writing replies. Median of {} rounds.\n",
            3 * plan.rounds
        ),
        ..Part::default()
    }
}

fn take(bench: &mut Bench) -> Held {
    let count = Decimal::of(HELD as u64);
    let reply = bench.host.call(&[
        b"DQ.POP",
        b"dq",
        b"COUNT",
        count.bytes(),
        b"TTR",
        b"7200000",
    ]);
    // Each job's lines: its length, then each text behind its own length, two numbers.
    let lines: Vec<&[u8]> = reply.split(|&byte| byte == b'\n').collect();
    let line = |at: usize| lines[at].trim_ascii_end().to_vec();
    let firsts = (1..lines.len() - 1).step_by(9);
    let held: Held = firsts.map(|at| [line(at + 2), line(at + 6)]).collect();
    assert_eq!(held.len(), HELD, "all that are ready");
    held
}

/// us per job of many at once, and of one by one; each has its leases of another length.
fn beat(bench: &mut Bench, held: &Held, round: usize) -> (f64, f64) {
    let ttr = |half: usize| Decimal::of(10_000_000 + (2 * round + half) as u64 * 60_000);
    let before = touch_us(bench);
    bench.run((0, 1), |out, _| {
        let (ttr, count) = (ttr(0), Decimal::of(HELD as u64));
        let mut line: Vec<&[u8]> = vec![b"DQ.TOUCH", b"dq", b"IDS", count.bytes()];
        line.extend(held.iter().flatten().map(|word| &word[..]));
        line.extend([&b"TTR"[..], ttr.bytes()]);
        encode(out, &line);
    });
    let between = touch_us(bench);
    bench.run((0, HELD), |out, number| {
        let ([id, token], ttr) = (&held[number], ttr(1));
        let line: &[&[u8]] = &[b"DQ.TOUCH", b"dq", id, b"TOKEN", token, b"TTR", ttr.bytes()];
        encode(out, line);
    });
    let after = touch_us(bench);
    let per_job = |us: f64| us / HELD as f64;
    (per_job(between - before), per_job(after - between))
}

/// Spent in all calls of DQ.TOUCH so far.
fn touch_us(bench: &mut Bench) -> f64 {
    let stats = bench.host.call(&[b"INFO", b"commandstats"]);
    let stats = String::from_utf8_lossy(&stats).to_lowercase();
    let of_touch = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_dq.touch:"));
    let us = of_touch.and_then(|line| line.split_once("usec=")?.1.split(',').next());
    us.map_or(0.0, |us| us.parse().expect("a number"))
}
