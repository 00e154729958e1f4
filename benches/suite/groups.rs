//! Many tenants in one queue: how fair it is, what a million of them cost, and what else a client feels of them.

pub mod shares;
mod whole;

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, id, payload};
use super::machine::sleep_ms;
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::wire::encode;

const SMALL: usize = 1000;
const TENANTS: usize = 100_000;

/// Server CPU per command, in us.
#[derive(Clone, Copy)]
struct Costs {
    add: f64,
    pop: f64,
    ack: f64,
}

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    let rounds = rounds_of_the_small(bench);
    let memory = [
        memory_of(bench, dq::add_to_group),
        memory_of(bench, add_to_queue),
    ];
    let samples = Samples::take(bench, plan.slow_rounds, COSTS);
    let row = |what: &str, part: fn(&Costs) -> f64| {
        let pair = (
            &samples.map("groups", part)[..],
            &samples.map("plain", part)[..],
        );
        Row::paired(what, "without groups", "us", Goal::AtMost(1.5, 1.2), pair)
    };
    let stalls = Samples::take(bench, plan.stall_rounds, STALLS);
    let stall = |what: &str, run| {
        Row::alone(
            what,
            "ms",
            Goal::Below(10.0, 1.0),
            &stalls.map(run, |&ms| ms),
        )
        .least()
    };
    let mut rows = vec![
        Row::alone(
            "rounds until 1000 groups of one job are served beside one of 1e6",
            "rounds",
            Goal::Below(2.0, 1.0),
            &[rounds],
        ),
        row("DQ.ADD, 1e6 groups of one job", |it| it.add),
        row("DQ.POP, 1e6 groups of one job", |it| it.pop),
        row("DQ.ACK, 1e6 groups of one job", |it| it.ack),
        Row::paired(
            "memory per tenant of one job",
            "a queue of each",
            "bytes",
            Goal::Told,
            (&memory[..1], &memory[1..]),
        ),
        stall("DQ.CFGSET GROUPMAX, 1e6 groups", "max"),
        stall("DQ.CFGSET GROUPFIFO, 1e6 groups", "fifo"),
        stall("DQ.PURGE READY, 1e6 groups, one job stays", "purge"),
    ];
    rows.extend(whole::rows(bench, plan));
    Part {
        rows,
        how: format!(
            "  One group of {MILLION} ready jobs and {SMALL} of one, added after it: a round is {} deliveries. {MILLION} groups of one ready job\n\
             \x20 against as many jobs without a group, CPU time of the server, {} rounds in turn. Memory: {TENANTS} tenants. One command at\n\
             \x20 {MILLION} groups: CPU time of the server from its sending to its reply, least of {} rounds. COPY and the others: CPU\n\
             \x20 time of the server for {} ms from the command on, or until it is done, a PING every millisecond included; and how late\n\
             \x20 these were answered. The AOF is rewritten as commands, by a child on the server's core that is not counted.\n",
            SMALL + 1,
            plan.slow_rounds,
            plan.stall_rounds,
            whole::WATCHED_MS
        ),
        ..Part::default()
    }
}

fn add_to_queue(out: &mut Vec<u8>, number: usize) {
    let id = id(number);
    encode(out, &[b"DQ.ADD", &id, &id, payload(number)]);
}

fn rounds_of_the_small(bench: &mut Bench) -> f64 {
    const AT_ONCE: usize = 91;
    bench.host.flush();
    bench.run((0, MILLION), |out, number| {
        let id = id(number);
        encode(
            out,
            &[b"DQ.ADD", b"dq", &id, b"of the big one", b"GROUP", b"big"],
        );
    });
    bench.run((MILLION, MILLION + SMALL), |out, number| {
        let id = id(number);
        encode(
            out,
            &[b"DQ.ADD", b"dq", &id, b"of a small one", b"GROUP", &id],
        );
    });
    let (mut served, mut delivered) = (0, 0);
    while served < SMALL {
        let mut words = Vec::new();
        dq::pop_many(&mut words, AT_ONCE);
        let mut client = bench.host.connect();
        client.send(&words);
        let reply = client.receive();
        let small = b"of a small one";
        served += reply.windows(small.len()).filter(|it| it == small).count();
        delivered += AT_ONCE;
        assert!(delivered < MILLION, "small groups are not served");
    }
    delivered as f64 / (SMALL + 1) as f64
}

fn memory_of(bench: &mut Bench, add: fn(&mut Vec<u8>, usize)) -> f64 {
    bench.host.flush();
    bench.host.wait_until_memory_rests();
    let before = bench.host.used_memory();
    bench.run((0, TENANTS), add);
    let used = bench.host.used_memory() - before;
    used / TENANTS as f64
}

const COSTS: Runs<Bench, Costs> = &[PLAIN, GROUPS];
const PLAIN: (&str, fn(&mut Bench) -> Costs) =
    ("plain", |bench| costs(bench, |_| (), dq::add_ready));
const GROUPS: (&str, fn(&mut Bench) -> Costs) =
    ("groups", |bench| costs(bench, |_| (), dq::add_to_group));

fn costs(bench: &mut Bench, prepare: fn(&mut Bench), add: fn(&mut Vec<u8>, usize)) -> Costs {
    bench.host.flush();
    prepare(bench);
    bench.host.wait_until_memory_rests();
    Costs {
        add: bench.cost(MILLION, PIPELINE, |_, out, number| add(out, number)),
        pop: bench.cost(MILLION, PIPELINE, |_, out, number| dq::pop(out, number)),
        ack: bench.cost(MILLION, PIPELINE, |_, out, number| dq::ack(out, number)),
    }
}

const STALLS: Runs<Bench, f64> = &[
    ("max", |bench| {
        stall(bench, &[b"DQ.CFGSET", b"dq", b"GROUPMAX", b"1"])
    }),
    ("fifo", |bench| {
        stall(bench, &[b"DQ.CFGSET", b"dq", b"GROUPFIFO", b"1"])
    }),
    ("purge", |bench| {
        stall(bench, &[b"DQ.PURGE", b"dq", b"READY"])
    }),
];

/// ms of one command.
fn stall(bench: &mut Bench, command: &[&[u8]]) -> f64 {
    bench.host.flush();
    bench.run((0, MILLION), dq::add_to_group);
    bench.run((MILLION, MILLION + 1), dq::add_far);
    sleep_ms(100);
    let (mut client, clock) = (bench.host.connect(), bench.host.clock());
    let us = clock.us_during(|| {
        client.call(command);
    });
    us / 1e3
}
