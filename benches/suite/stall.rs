//! What another client feels when a million jobs fall due, or as many leases or occurrences end, in one
//! millisecond.

use super::bench::Bench;
use super::jobs::dq;
use super::machine::{now_ms, now_ns, sleep_until_ns, CpuClock};
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::wire::{Connection, Decimal};

/// How long the other client is watched from that instant on.
const WATCHED_MS: u64 = 800;
const WORKERS: usize = 100;

/// The longest of many PINGs in ms: by what the server computed meanwhile, and by the clock.
#[derive(Clone, Copy)]
pub struct Worst {
    pub cpu: f64,
    pub wall: f64,
}

pub struct Stall {
    pub bench: Bench,
    /// What is prepared takes less than this.
    ahead_ms: u64,
}

impl Stall {
    pub fn start(plan: Plan) -> Stall {
        Stall {
            bench: Bench::start(plan),
            ahead_ms: 2000,
        }
    }
}

pub fn measure(plan: Plan) -> Part {
    let stall = &mut Stall::start(plan);
    let runs = if plan.also_leases { RUNS } else { &RUNS[..2] };
    let samples = Samples::take(stall, plan.stall_rounds, runs);
    let row = |what, run, goal, part: fn(&Worst) -> f64| {
        let pair = (&samples.map(run, part)[..], &samples.map("quiet", part)[..]);
        Row::paired(what, "without them", "ms", goal, pair).least()
    };
    let gate = Goal::More(1.0, 0.3);
    let mut rows = vec![
        row("worst PING, 1e6 jobs due in 1 ms", "dues", gate, |it| {
            it.cpu
        }),
        row("the same by the clock", "dues", Goal::Told, |it| it.wall),
    ];
    if plan.also_leases {
        for (what, run) in [
            ("worst PING, 1e6 leases end at once", "leases"),
            ("worst PING, 1e6 occurrences with JITTER", "occurrences"),
        ] {
            rows.push(row(what, run, Goal::Told, |it| it.cpu));
        }
    }
    Part {
        rows,
        how: format!(
            "  {MILLION} jobs of one due (full run: also as many leases, ending within a few ms of each other, and as many\n\
             \x20 occurrences, ended by GRACE at once) in a queue for which\n\
             \x20 {WORKERS} clients wait; one more client sends PING after PING for {WATCHED_MS} ms from that instant on; against the same on\n\
             \x20 an empty server. Counted is the CPU time of the server between a PING sent and its reply read (the process's clock):\n\
             \x20 what the server itself makes the client wait for, however busy the machine. Worst of a round, least of {} rounds.\n",
            plan.stall_rounds
        ),
        ..Part::default()
    }
}

/// On an empty server.
pub const QUIET: (&str, fn(&mut Stall) -> Worst) = ("quiet", |stall| {
    stall.bench.host.flush();
    watch(stall.bench.host.connect(), stall.bench.host.clock())
});

const RUNS: Runs<Stall, Worst> = &[
    QUIET,
    ("dues", |stall| {
        at_once(stall, |bench, due| {
            bench.run((0, MILLION), |out, n| dq::add_at(out, b"dq", n, due));
        })
    }),
    ("leases", |stall| {
        at_once(stall, |bench, end| {
            bench.run((0, MILLION), dq::add_ready);
            lease_all(bench, end);
        })
    }),
    ("occurrences", |stall| {
        at_once(stall, |bench, end| {
            bench.run((0, MILLION), |out, n| dq::add_skipped_at(out, n, end));
        })
    }),
];

/// Prepares a queue for an instant ahead, far enough for that to be done by then, and watches.
pub fn at_once(stall: &mut Stall, prepare: impl Fn(&mut Bench, u64)) -> Worst {
    let bench = &mut stall.bench;
    let instant = loop {
        bench.host.flush();
        let instant = now_ms() + stall.ahead_ms;
        prepare(bench, instant);
        if now_ms() + 100 < instant {
            break instant;
        }
        stall.ahead_ms *= 2;
    };
    let workers: Vec<Connection> = (0..WORKERS).map(|_| waiting(bench)).collect();
    let (client, clock) = (bench.host.connect(), bench.host.clock());
    sleep_until_ns((instant - 1) * 1_000_000);
    let worst = watch(client, clock);
    drop(workers);
    worst
}

fn waiting(bench: &Bench) -> Connection {
    let mut worker = bench.host.connect();
    worker.send_command(&[b"DQ.BPOP", b"dq", b"0"]);
    worker
}

/// Takes all jobs, with leases that end at that instant.
fn lease_all(bench: &mut Bench, end: u64) {
    const AT_ONCE: usize = 1000;
    let mut client = bench.host.connect();
    let count = Decimal::of(AT_ONCE as u64);
    for _ in 0..MILLION / AT_ONCE {
        let ttr = Decimal::of(end.saturating_sub(now_ms()).max(1));
        client.call(&[
            b"DQ.POP",
            b"dq",
            b"COUNT",
            count.bytes(),
            b"TTR",
            ttr.bytes(),
        ]);
    }
}

fn watch(mut client: Connection, clock: CpuClock) -> Worst {
    let mut worst = Worst {
        cpu: 0.0,
        wall: 0.0,
    };
    let end = now_ms() + WATCHED_MS;
    while now_ms() < end {
        let sent = now_ns();
        let cpu_us = clock.us_during(|| {
            client.call(&[b"PING"]);
        });
        worst.cpu = worst.cpu.max(cpu_us / 1e3);
        worst.wall = worst.wall.max((now_ns() - sent) as f64 / 1e6);
    }
    worst
}
