//! Groups with settings of their own: what they cost, whether each gets its share, and what others feel of pauses that
//! end together. And what clients that wait for a batch cost those that do not.

use std::collections::VecDeque;

use super::{costs, Costs, GROUPS, PLAIN, SMALL, TENANTS};
use crate::suite::bench::Bench;
use crate::suite::jobs::{dq, id};
use crate::suite::machine::{now_ms, now_ns, sleep_ms, sleep_until_ns};
use crate::suite::plan::{Plan, MILLION};
use crate::suite::report::{Goal, Part, Row};
use crate::suite::rounds::{Runs, Samples};
use crate::suite::stall::{at_once, Stall, Worst, QUIET};
use crate::suite::stats::percentile;
use crate::suite::wire::{encode, Connection, Decimal};

const FILLING: usize = 1000;
const BATCH: usize = 50;
const TICK_NS: u64 = 500_000;
const JOBS_A_TICK: usize = 10;
const TICKS: usize = 4000;

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let costs = Samples::take(bench, plan.slow_rounds, COSTS);
    let mut rows = Vec::new();
    for (other, bound) in [("plain", 1.5), ("groups", 1.1)] {
        let other_is = if other == "plain" {
            "without groups"
        } else {
            "without settings"
        };
        let mut row = |command, part: fn(&Costs) -> f64| {
            let what = format!("{command}, 1e6 groups, 1e5 with settings");
            let pair = (&costs.map("shares", part)[..], &costs.map(other, part)[..]);
            rows.push(Row::paired(
                what,
                other_is,
                "us",
                Goal::AtMost(bound, 1.0),
                pair,
            ));
        };
        row("DQ.ADD", |it| it.add);
        row("DQ.POP", |it| it.pop);
        row("DQ.ACK", |it| it.ack);
    }
    let alone = |what, unit, goal, value| Row::alone(what, unit, goal, &[value]);
    let bytes = Goal::Below(64.0, 64.0);
    rows.push(alone(
        "settings of a group",
        "bytes",
        bytes,
        settings_bytes(bench),
    ));
    let what = "largest deviation from its weight, 1000 groups, 1e6 deliveries";
    rows.push(alone(what, "%", Goal::Below(2.0, 1.0), deviation(bench)));
    rows.extend(pauses(plan));
    rows.extend(fills(bench, plan));
    Part {
        rows,
        how: format!(
            "  {MILLION} groups of one ready job, one in ten with WEIGHT, MAX, RATE and MAXLEN, against as many groups and as many\n\
             \x20 jobs without a group, as in `groups`. Settings: {TENANTS} groups with a job each, before and after DQ.GROUPSET. Shares:\n\
             \x20 weights of 1 to 10, groups that are never empty. Pauses: of {TENANTS} groups with a ready job each, ending within a few\n\
             \x20 ms, as `stall` has it. Batches: {JOBS_A_TICK} jobs every {} us; 10 clients wait for one each, with {FILLING} that\n\
             \x20 fill beside them or none; or 5 do, and what they leave goes to those that fill, {BATCH} at a time, or to POP COUNT\n\
             \x20 {BATCH}. A wait is counted from the ADD. {} rounds in turn.\n",
            TICK_NS / 1000,
            plan.slow_rounds
        ),
        ..Part::default()
    }
}

const COSTS: Runs<Bench, Costs> = &[
    PLAIN,
    GROUPS,
    ("shares", |bench| {
        costs(bench, set_one_in_ten, dq::add_to_group)
    }),
];

fn set_one_in_ten(bench: &mut Bench) {
    bench.run((0, MILLION / 10), |out, number| {
        dq::set_group(out, 10 * number)
    });
}

fn settings_bytes(bench: &mut Bench) -> f64 {
    bench.host.flush();
    bench.run((0, TENANTS), dq::add_to_group);
    bench.host.wait_until_memory_rests();
    let before = bench.host.used_memory();
    bench.run((0, TENANTS), dq::set_group);
    (bench.host.used_memory() - before) / TENANTS as f64
}

/// In percent, of the group that comes off worst or best.
fn deviation(bench: &mut Bench) -> f64 {
    const AT_ONCE: usize = 1000;
    let weight = |group: usize| 1 + group % 10;
    let all: usize = (0..SMALL).map(weight).sum();
    let rounds = MILLION.div_ceil(all) + 1;
    bench.host.flush();
    let name = |group: usize| format!("group-{group:04}").into_bytes();
    let mut added = 0;
    for group in 0..SMALL {
        let (name, weight) = (name(group), Decimal::of(weight(group) as u64));
        bench
            .host
            .call(&[b"DQ.GROUPSET", b"dq", &name, b"WEIGHT", weight.bytes()]);
        let jobs = rounds * (1 + group % 10);
        bench.run((added, added + jobs), |out, number| {
            encode(
                out,
                &[b"DQ.ADD", b"dq", &id(number), &name, b"GROUP", &name],
            );
        });
        added += jobs;
    }
    let mut given = vec![0_u32; SMALL];
    let mut client = bench.host.connect();
    let mut pop = Vec::new();
    dq::pop_many(&mut pop, AT_ONCE);
    for _ in 0..MILLION / AT_ONCE {
        client.send(&pop);
        let reply = client.receive();
        for (at, _) in reply
            .windows(6)
            .enumerate()
            .filter(|(_, it)| it == b"group-")
        {
            let digits = std::str::from_utf8(&reply[at + 6..at + 10]).expect("digits");
            given[digits.parse::<usize>().expect("a number")] += 1;
        }
    }
    let share = |group| MILLION as f64 * weight(group) as f64 / all as f64;
    let off = |(group, &given): (usize, &u32)| (f64::from(given) / share(group) - 1.0).abs();
    100.0 * given.iter().enumerate().map(off).fold(0.0, f64::max)
}

fn pauses(plan: Plan) -> Vec<Row> {
    const RUNS: Runs<Stall, Worst> = &[QUIET, ("pauses", |stall| at_once(stall, pause_all))];
    let samples = Samples::take(&mut Stall::start(plan), plan.stall_rounds, RUNS);
    let row = |what, goal, part: fn(&Worst) -> f64| {
        let pair = (
            &samples.map("pauses", part)[..],
            &samples.map("quiet", part)[..],
        );
        Row::paired(what, "without them", "ms", goal, pair).least()
    };
    let what = "worst PING, 1e5 pauses of groups end";
    vec![
        row(what, Goal::More(2.0, 0.3), |it| it.cpu),
        row("the same by the clock", Goal::Told, |it| it.wall),
    ]
}

fn pause_all(bench: &mut Bench, end_ms: u64) {
    bench.run((0, TENANTS), dq::add_to_group);
    bench.run((0, TENANTS), |out, number| {
        let ms = Decimal::of(end_ms.saturating_sub(now_ms()).max(1));
        encode(
            out,
            &[b"DQ.PAUSE", b"dq", ms.bytes(), b"GROUP", &id(number)],
        );
    });
}

/// us of waits, and how often the timer fired in a tick.
#[derive(Clone, Copy)]
struct Felt {
    p50: f64,
    p99: f64,
    fires: f64,
}

const FILLS: Runs<Bench, Felt> = &[
    ("alone", |bench| stream(bench, 0, JOBS_A_TICK)),
    ("beside", |bench| stream(bench, FILLING, JOBS_A_TICK)),
    ("drained", |bench| stream(bench, 0, JOBS_A_TICK / 2)),
    ("filled", |bench| stream(bench, FILLING, JOBS_A_TICK / 2)),
    ("filled by few", |bench| stream(bench, 10, JOBS_A_TICK / 2)),
];

fn fills(bench: &mut Bench, plan: Plan) -> Vec<Row> {
    let samples = Samples::take(bench, plan.slow_rounds, FILLS);
    let row = |what, ours, (other, other_is), unit, part: fn(&Felt) -> f64| {
        let pair = (&samples.map(ours, part)[..], &samples.map(other, part)[..]);
        Row::paired(what, other_is, unit, Goal::AtMost(1.25, 1.05), pair)
    };
    let (alone, drained) = (("alone", "without them"), ("drained", "POP COUNT"));
    let few = ("filled by few", "10 of them");
    vec![
        row(
            "wait beside 1000 with FILL, p50",
            "beside",
            alone,
            "us",
            |it| it.p50,
        ),
        row(
            "wait beside 1000 with FILL, p99",
            "beside",
            alone,
            "us",
            |it| it.p99,
        ),
        row(
            "wait while 1000 with FILL are served, p99",
            "filled",
            drained,
            "us",
            |it| it.p99,
        ),
        row(
            "timer fires a tick, 1000 with FILL",
            "filled",
            few,
            "",
            |it| it.fires,
        ),
    ]
}

fn wait_for_one(client: &mut Connection) {
    client.send_command(&[b"DQ.BPOP", b"dq", b"0", b"NOACK"]);
}

fn wait_for_batch(client: &mut Connection) {
    let words = b"DQ.BPOP dq 0 COUNT 50 FILL 50 60000 NOACK".split(|&byte| byte == b' ');
    client.send_command(&words.collect::<Vec<_>>());
}

/// A stream of jobs for `plain` clients that wait for one each; `filling` ones get the rest, or POP COUNT if there is none.
fn stream(bench: &mut Bench, filling: usize, plain: usize) -> Felt {
    bench.host.flush();
    let mut fill: VecDeque<Connection> = (0..filling).map(|_| bench.host.connect()).collect();
    fill.iter_mut().for_each(wait_for_batch);
    let mut plain: Vec<Connection> = (0..plain).map(|_| bench.host.connect()).collect();
    plain.iter_mut().for_each(wait_for_one);
    let (mut adder, mut drain) = (bench.host.connect(), bench.host.connect());
    while bench.host.info_number("clients", "blocked_clients") < (filling + plain.len()) as f64 {
        sleep_ms(1);
    }
    let fires = |bench: &mut Bench| bench.host.info_number("dq", "dq_timer_fires_total");
    let (before, mut at) = (fires(bench), now_ns());
    let (mut waits, mut adds) = (Vec::new(), Vec::new());
    // Jobs that are ready, and clients that wait because none was.
    let (mut ready, mut waiting) = (0, plain.len());
    for tick in 0..TICKS {
        at += TICK_NS;
        sleep_until_ns(at);
        adds.clear();
        (0..JOBS_A_TICK).for_each(|job| dq::add_ready(&mut adds, JOBS_A_TICK * tick + job));
        let sent = now_ns();
        adder.send(&adds);
        for client in &mut plain {
            client.receive();
            waits.push((now_ns() - sent) as f64 / 1e3);
        }
        adder.receive_done(JOBS_A_TICK);
        ready += JOBS_A_TICK - waiting;
        if ready >= BATCH {
            ready -= BATCH;
            match fill.pop_front() {
                Some(mut client) => {
                    client.receive();
                    wait_for_batch(&mut client);
                    fill.push_back(client);
                }
                None => drop(drain.call(&[b"DQ.POP", b"dq", b"COUNT", b"50", b"NOACK"])),
            }
        }
        plain.iter_mut().for_each(wait_for_one);
        waiting = plain.len().saturating_sub(ready);
        ready -= plain.len() - waiting;
    }
    let fires = fires(bench) - before;
    Felt {
        p50: percentile(&waits, 0.5),
        p99: percentile(&waits, 0.99),
        fires: fires / TICKS as f64,
    }
}
