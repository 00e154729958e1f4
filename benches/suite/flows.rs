//! Jobs after others, many of them: a chain, two layers of which each job of the second is after all of the first, a million
//! after one job, and a batch of a million with a job after all of it.

use std::time::Instant;

use super::bench::PIPELINE;
use super::crowd::Crowd;
use super::host::Host;
use super::jobs::{dq, id, payload};
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::stats::most;
use super::wire::{encode, Connection, Decimal};

const QUEUE: &[u8] = b"dq";
const CHAIN: usize = 100_000;
/// As many as one command may name.
const LAYER: usize = 1000;
const AT_ONCE: usize = 100;

/// One server for each shape, so that each begins with empty memory.
struct Flow {
    host: Host,
    client: Connection,
    empty: f64,
}

pub fn measure(plan: Plan) -> Part {
    let million = if plan.slow_rounds > 2 {
        MILLION
    } else {
        MILLION / 10
    };
    Part {
        rows: [costs(), chain(), layers(), after_one(million, plan.stall_rounds), batch(million)].into_iter().flatten().collect(),
        how: format!(
            "  Each once, in a server of its own. Chain: {CHAIN} jobs, each after the one before; then each is taken and acknowledged\n\
             \x20 by one client, one after the other. Layers: {LAYER} jobs, then {LAYER} that name all of these, the ends of which\n\
             \x20 come in commands of {AT_ONCE}. After one: {million} jobs name one, which is acknowledged; PINGs by another client until\n\
             \x20 none is blocked: the longest by the CPU time of the server between its sending and its reply, worst of a round, least of\n\
             \x20 {} rounds. Batch: {million} jobs of a group, and one AFTER GROUP; POP and ACK of {AT_ONCE} by one client.\n",
            plan.stall_rounds
        ),
        ..Part::default()
    }
}

/// What AFTER adds to DQ.ADD.
fn costs() -> Vec<Row> {
    const ROUNDS: usize = 5;
    let flow = &mut Flow::start();
    let mut round = |write: fn(&mut Vec<u8>, usize)| {
        flow.host.flush();
        add_first(&mut flow.client);
        let used = flow.cpu_us(|flow| flow.fill((1, CHAIN), write));
        used / CHAIN as f64
    };
    let (plain, after): (Vec<f64>, Vec<f64>) = (0..ROUNDS)
        .map(|_| {
            (
                round(dq::add_ready),
                round(|out, number| add(out, number, &[0])),
            )
        })
        .unzip();
    let goal = Goal::AtMost(1.4, 1.2);
    vec![Row::paired(
        "DQ.ADD ... AFTER 1",
        "DQ.ADD",
        "us",
        goal,
        (&after, &plain),
    )]
}

fn chain() -> Vec<Row> {
    let mut flow = Flow::start();
    add_first(&mut flow.client);
    let added =
        flow.cpu_us(|flow| flow.fill((1, CHAIN), |out, number| add(out, number, &[number - 1])));
    let bytes = flow.bytes() / CHAIN as f64;
    let run = flow.cpu_us(|flow| {
        for number in 0..CHAIN {
            flow.pop(1);
            flow.client.call(&[b"DQ.ACK", QUEUE, &id(number)]);
        }
    });
    assert_eq!(flow.blocked(), 0);
    let what = |text| format!("a chain of {CHAIN}: {text}");
    vec![
        told(what("DQ.ADD"), "us", added / CHAIN as f64),
        told(what("memory per job"), "bytes", bytes),
        told(
            what("DQ.POP and DQ.ACK, one at a time"),
            "us",
            run / CHAIN as f64,
        ),
    ]
}

fn layers() -> Vec<Row> {
    let mut flow = Flow::start();
    let first: Vec<usize> = (0..LAYER).collect();
    flow.fill((0, LAYER), dq::add_ready);
    flow.fill((LAYER, LAYER + 1), |out, number| add(out, number, &[0]));
    let jobs = flow.bytes();
    let added = flow.cpu_us(|flow| {
        flow.fill((LAYER + 1, 2 * LAYER), |out, number| {
            add(out, number, &first)
        })
    });
    let edges = ((LAYER - 1) * LAYER) as f64;
    // What the jobs of the second layer take by themselves is known from those of the first.
    let bytes = (flow.bytes() - jobs - jobs / LAYER as f64 * (LAYER - 1) as f64) / edges;
    let begun = Instant::now();
    flow.run(LAYER);
    flow.wait_until_free();
    let what = |text| format!("{LAYER} jobs after each of {LAYER}: {text}");
    vec![
        told(what("DQ.ADD, for each that it names"), "us", added / edges),
        Row::alone(
            what("memory of an edge"),
            "bytes",
            Goal::Below(16.0, 16.0),
            &[bytes],
        ),
        told(
            what("from the first DQ.POP until all are free"),
            "ms",
            ms(begun),
        ),
    ]
}

/// A million jobs freed by one end, each figure of a round.
#[derive(Default)]
struct Freed {
    bytes: Vec<f64>,
    ack: Vec<f64>,
    /// The longest PING beside: by what the server computed meanwhile, and by the clock.
    worst_cpu: Vec<f64>,
    worst: Vec<f64>,
    free: Vec<f64>,
}

fn after_one(jobs: usize, rounds: usize) -> Vec<Row> {
    let mut freed = Freed::default();
    (0..rounds).for_each(|_| freed.round(jobs));
    let what = |text| format!("{jobs} jobs after one: {text}");
    let short = Goal::Below(5.0, 1.0);
    let row = |text, unit, goal, values: &[f64]| Row::alone(what(text), unit, goal, values);
    vec![
        row("memory per job", "bytes", Goal::Told, &freed.bytes),
        row("its DQ.ACK", "ms", short, &freed.ack),
        row("the longest PING beside", "ms", short, &freed.worst_cpu).least(),
        row("the same by the clock", "ms", Goal::Told, &freed.worst),
        row("until all are free", "ms", Goal::Told, &freed.free),
    ]
}

impl Freed {
    fn round(&mut self, jobs: usize) {
        let mut flow = Flow::start();
        add_first(&mut flow.client);
        flow.fill((1, jobs + 1), |out, number| add(out, number, &[0]));
        self.bytes.push(flow.bytes() / jobs as f64);
        flow.pop(1);
        let (mut other, clock) = (flow.host.connect(), flow.host.clock());
        let begun = Instant::now();
        flow.client.call(&[b"DQ.ACK", QUEUE, &id(0)]);
        self.ack.push(ms(begun));
        let (mut cpu, mut pings) = (vec![], vec![]);
        // Asks rarely: PINGs are what is measured.
        while pings.len() % AT_ONCE > 0 || flow.blocked() > 0 {
            let sent = Instant::now();
            let used_us = clock.us_during(|| {
                other.call(&[b"PING"]);
            });
            cpu.push(used_us / 1e3);
            pings.push(ms(sent));
        }
        self.free.push(ms(begun));
        self.worst_cpu.push(most(&cpu));
        self.worst.push(most(&pings));
    }
}

fn batch(jobs: usize) -> Vec<Row> {
    let mut flow = Flow::start();
    flow.fill((0, jobs), |out, number| {
        encode(
            out,
            &[
                b"DQ.ADD",
                QUEUE,
                &id(number),
                payload(number),
                b"GROUP",
                b"batch",
            ],
        );
    });
    flow.client.call(&[
        b"DQ.ADD",
        QUEUE,
        b"callback",
        b"x",
        b"AFTER",
        b"GROUP",
        b"batch",
    ]);
    let bytes = flow.bytes() / jobs as f64;
    let run = flow.cpu_us(|flow| flow.run(jobs));
    let begun = Instant::now();
    let taken = flow.client.call(&[b"DQ.BPOP", QUEUE, b"60000"]);
    assert!(
        taken.windows(8).any(|word| word == b"callback"),
        "the callback is next"
    );
    let what = |text| format!("a batch of {jobs}: {text}");
    vec![
        told(what("memory per job"), "bytes", bytes),
        told(what("DQ.POP and DQ.ACK, per job"), "us", run / jobs as f64),
        told(
            what("from the last DQ.ACK to the callback's delivery"),
            "ms",
            ms(begun),
        ),
    ]
}

fn told(what: String, unit: &'static str, value: f64) -> Row {
    Row::alone(what, unit, Goal::Told, &[value])
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn add_first(client: &mut Connection) {
    client.call(&[b"DQ.ADD", QUEUE, &id(0), payload(0)]);
}

/// Appends the command that adds a job which is after these.
fn add(out: &mut Vec<u8>, number: usize, after: &[usize]) {
    let count = Decimal::of(after.len() as u64);
    let (own, names): (_, Vec<_>) = (id(number), after.iter().map(|&number| id(number)).collect());
    let mut words = vec![
        b"DQ.ADD",
        QUEUE,
        &own,
        payload(number),
        b"AFTER",
        count.bytes(),
    ];
    words.extend(names.iter().map(|name| &name[..]));
    encode(out, &words);
}

impl Flow {
    fn start() -> Flow {
        let mut host = Host::start();
        let client = host.connect();
        host.wait_until_idle();
        let empty = host.used_memory();
        Flow {
            host,
            client,
            empty,
        }
    }

    fn fill(&mut self, numbers: (usize, usize), write: impl FnMut(&mut Vec<u8>, usize)) {
        Crowd::of_one(&self.host).run(numbers, PIPELINE, write);
    }

    fn cpu_us(&mut self, work: impl FnOnce(&mut Flow)) -> f64 {
        let clock = self.host.clock();
        clock.us_during(|| work(self))
    }

    fn bytes(&mut self) -> f64 {
        self.host.wait_until_idle();
        self.host.used_memory() - self.empty
    }

    fn pop(&mut self, count: usize) {
        let count = Decimal::of(count as u64);
        self.client
            .call(&[b"DQ.POP", QUEUE, b"COUNT", count.bytes()]);
    }

    /// Takes and acknowledges so many from number 0 on.
    fn run(&mut self, jobs: usize) {
        for first in (0..jobs).step_by(AT_ONCE) {
            self.pop(AT_ONCE);
            let mut acks = Vec::new();
            dq::ack_many(&mut acks, first, AT_ONCE);
            self.client.send(&acks);
            self.client.receive_done(1);
        }
    }

    fn blocked(&mut self) -> usize {
        let reply = self.client.call(&[b"DQ.LEN", QUEUE, b"BLOCKED"]);
        let digits = std::str::from_utf8(reply)
            .ok()
            .map(|text| text.trim_start_matches(':').trim());
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    }

    fn wait_until_free(&mut self) {
        while self.blocked() > 0 {}
    }
}
