//! What a command costs the server: into an empty queue, and one at a time.

use super::bench::{Bench, PIPELINE};
use super::jobs::{dq, floor, members, zset, Scripts};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::wire::encode;

const ADDS: usize = 250_000;
const POPS: usize = 100_000;
/// Jobs per command in the batch forms.
const BATCH: usize = 50;

pub fn measure(plan: Plan) -> Part {
    let bench = &mut Bench::start(plan);
    bench.host.load_floor();
    let adds = Samples::take(bench, plan.rounds, ADDING);
    let pairs = Samples::take(bench, plan.rounds, DELIVERING);
    let singles = Samples::take(bench, plan.rounds, ONE_AT_A_TIME);
    let mut rows = adding(&adds);
    rows.extend(delivering(&pairs));
    rows.extend(one_at_a_time(&singles));
    Part {
        rows,
        how: format!(
            "  Server CPU per command: INFO cpu, user + sys of the main thread, difference / commands. 50 clients on a unix socket,\n\
             \x20 driven by one thread; ids of {} bytes, payloads of {}; FLUSHALL before each; all run in turn, median of {} rounds.\n\
             \x20 far: due in an hour to a day, at random (ZADD: such scores, the id as member, no payload). ready: no DELAY (ZADD:\n\
             \x20 rising scores). Pipeline {PIPELINE}: {ADDS} adds; {POPS} pops, then as many acks. Pipeline 1: {} commands.\n\
             \x20 script: EVALSHA of ZADD + HSET; ZPOPMIN, ZADD to a processing set, HGET; ZREM + HDEL. lean script: no hash, the\n\
             \x20 payload in the member; ZPOPMIN, ZADD; ZREM. nothing: a module's commands of the same arguments and replies that\n\
             \x20 open the key and do no more (benches/floor). As fast as: within {:.0} %.\n",
            super::jobs::ID_BYTES,
            super::jobs::PAYLOAD_BYTES,
            plan.rounds,
            plan.commands,
            (AS_FAST - 1.0) * 100.0,
        ),
        ..Part::default()
    }
}

const ADDING: Runs<Bench, f64> = &[
    ("add far", |bench| {
        add(bench, |_, out, n| dq::add_far(out, n))
    }),
    ("zadd far", |bench| {
        add(bench, |_, out, n| zset::add_far(out, n))
    }),
    ("script far", |bench| add(bench, Scripts::add_far)),
    ("ping", |bench| add(bench, |_, out, _| ping(out))),
    ("nothing far", |bench| {
        add(bench, |_, out, n| floor::add_far(out, n))
    }),
    ("add ready", |bench| {
        add(bench, |_, out, n| dq::add_ready(out, n))
    }),
    ("zadd ready", |bench| {
        add(bench, |_, out, n| zset::add_ready(out, n))
    }),
];

fn add(bench: &mut Bench, write: impl FnMut(&Scripts, &mut Vec<u8>, usize)) -> f64 {
    bench.host.flush();
    bench.cost(ADDS, PIPELINE, write)
}

fn ping(out: &mut Vec<u8>) {
    encode(out, &[b"PING"]);
}

fn adding(adds: &Samples<f64>) -> Vec<Row> {
    let row = |ours, other, goal| {
        let what = format!("DQ.ADD ({ours}), pipeline {PIPELINE}, into an empty queue");
        let ours = format!("add {ours}");
        let samples = (adds.of(&ours), adds.of(other));
        Row::paired(what, other, "us", goal, samples)
    };
    vec![
        row("far", "zadd far", Goal::Better(1.4, 1.7)),
        row("far", "script far", Goal::Better(4.5, 5.0)),
        row("far", "ping", Goal::AtMost(4.0, 3.3)),
        row("ready", "zadd ready", Goal::Told),
        row("far", "nothing far", Goal::Told),
        Row::paired(
            "nothing, with DQ.ADD's arguments".to_owned(),
            "ping",
            "us",
            Goal::Told,
            (adds.of("nothing far"), adds.of("ping")),
        ),
    ]
}

/// Pop and ack, in us per job.
type Pair = (f64, f64);

const DELIVERING: Runs<Bench, Pair> = &[
    ("dq", |bench| {
        refill(bench, |_, out, n| dq::add_ready(out, n));
        let pop = bench.cost(POPS, PIPELINE, |_, out, n| dq::pop(out, n));
        (pop, bench.cost(POPS, PIPELINE, |_, out, n| dq::ack(out, n)))
    }),
    ("script", |bench| {
        refill(bench, Scripts::add_ready);
        let pop = bench.cost(POPS, PIPELINE, Scripts::pop);
        (pop, bench.cost(POPS, PIPELINE, Scripts::ack))
    }),
    ("lean script", |bench| {
        refill(bench, |_, out, n| members::add_ready(out, n));
        let pop = bench.cost(POPS, PIPELINE, Scripts::pop_member);
        (pop, bench.cost(POPS, PIPELINE, Scripts::ack_member))
    }),
    ("nothing", |bench| {
        bench.host.flush();
        let pop = bench.cost(POPS, PIPELINE, |_, out, n| floor::pop(out, n));
        let ack = bench.cost(POPS, PIPELINE, |_, out, n| floor::ack(out, n));
        (pop, ack)
    }),
    ("batch", |bench| {
        refill(bench, |_, out, n| dq::add_ready(out, n));
        let pop = bench.cost(POPS / BATCH, 1, |_, out, _| dq::pop_many(out, BATCH));
        let ack = bench.cost(POPS / BATCH, 1, |_, out, n| {
            dq::ack_many(out, n * BATCH, BATCH)
        });
        (pop / BATCH as f64, ack / BATCH as f64)
    }),
];

fn refill(bench: &mut Bench, mut write: impl FnMut(&Scripts, &mut Vec<u8>, usize)) {
    bench.host.flush();
    let scripts = &bench.scripts;
    bench
        .crowd
        .run((0, POPS), PIPELINE, |out, n| write(scripts, out, n));
}

fn delivering(pairs: &Samples<Pair>) -> Vec<Row> {
    let row = |what: &str, ours, other, goal, part: fn(&Pair) -> f64| {
        let samples = (&pairs.map(ours, part)[..], &pairs.map(other, part)[..]);
        Row::paired(what, other, "us", goal, samples)
    };
    let both = |pair: &Pair| pair.0 + pair.1;
    let gate = Goal::Better(6.0, 8.0);
    let many = format!("POP COUNT {BATCH} + ACK of {BATCH} ids, per job");
    vec![
        row("DQ.POP + DQ.ACK", "dq", "lean script", gate, both),
        row("DQ.POP", "dq", "lean script", Goal::Told, |pair| pair.0),
        row("DQ.ACK", "dq", "lean script", Goal::Told, |pair| pair.1),
        row("DQ.POP + DQ.ACK", "dq", "script", Goal::Told, both),
        row("DQ.POP + DQ.ACK", "dq", "nothing", Goal::Told, both),
        row(
            "nothing, with DQ.POP's and DQ.ACK's replies",
            "nothing",
            "lean script",
            Goal::Told,
            both,
        ),
        row(&many, "batch", "dq", Goal::Told, both),
    ]
}

const ONE_AT_A_TIME: Runs<Bench, f64> = &[
    ("add", |bench| single(bench, dq::add_far)),
    ("zadd", |bench| single(bench, zset::add_far)),
    ("ping", |bench| single(bench, |out, _| ping(out))),
];

fn single(bench: &mut Bench, mut write: impl FnMut(&mut Vec<u8>, usize)) -> f64 {
    bench.host.flush();
    bench.cost(bench.plan.commands, 1, |_, out, n| write(out, n))
}

/// "As fast as" is what differs by less than this: the spread of the rounds is not smaller.
const AS_FAST: f64 = 1.05;

fn one_at_a_time(singles: &Samples<f64>) -> Vec<Row> {
    let row = |other, goal| {
        let samples = (singles.of("add"), singles.of(other));
        Row::paired("DQ.ADD (far), pipeline 1", other, "us", goal, samples)
    };
    vec![
        row("zadd", Goal::AtMost(AS_FAST, f64::NEG_INFINITY)),
        row("ping", Goal::AtMost(f64::INFINITY, AS_FAST)),
    ]
}
