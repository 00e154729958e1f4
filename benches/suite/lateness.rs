//! From the due to the job in the client's hand, against a client that sleeps until then and asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::host::Host;
use super::jobs::{id, payload, scattered};
use super::machine::{now_ms, now_ns, set_timer_slack_ns, sleep_until_ns, us_since, CpuClock};
use super::plan::Plan;
use super::report::{Curve, Goal, Part, Row};
use super::rounds::Samples;
use super::stats::percentile;
use super::wire::{encode, Connection, Decimal};

/// What the server is kept busy with in the second part.
const LOAD: f64 = 0.6;

struct Clients {
    plan: Plan,
    worker: Connection,
    producer: Connection,
    number: usize,
    /// Lateness in us of all due times, and of all that was asked for by a sleeping client.
    dues: Vec<f64>,
    floors: Vec<f64>,
}

/// p50 and p99 of one round, in us: ours, and the floor.
#[derive(Clone, Copy)]
struct Round {
    p50: (f64, f64),
    p99: (f64, f64),
}

pub fn measure(plan: Plan) -> Part {
    let host = Host::start();
    let (idle, mut curves) = rounds(&host, plan, "idle");
    let load = Load::start(&host);
    let (loaded, more) = rounds(&host, plan, "under load");
    let share = load.stop();
    curves.extend(more);
    let row = |name: &str, samples: &Samples<Round>, goal, part: fn(&Round) -> (f64, f64)| {
        let ours = samples.map("round", |round| part(round).0);
        let other = samples.map("round", |round| part(round).1);
        Row::paired(
            format!("lateness {name}"),
            "sleeper + PING",
            "us",
            goal,
            (&ours, &other),
        )
    };
    Part {
        rows: vec![
            row("idle, p50", &idle, Goal::AtMost(1.1, 0.6), |round| round.p50),
            row("idle, p99", &idle, Goal::AtMost(1.5, 1.2), |round| round.p99),
            row("under load, p50", &loaded, Goal::Told, |round| round.p50),
            row("under load, p99", &loaded, Goal::AtMost(1.3, 1.1), |round| round.p99),
        ],
        curves,
        how: format!(
            "  A client waits in DQ.BPOP; another adds a job that is due on a whole millisecond 2 to 6 ms ahead, from any moment within\n\
             \x20 one: from that instant to the reply read. In turn with it, the floor: a client sleeps until such an instant\n\
             \x20 (clock_nanosleep, absolute, the system's usual slack of 50 us), then PING and its reply. {} due times, as many floors a\n\
             \x20 round, percentiles within the round, median of {} rounds. Load: one more client, SET in pipelines of {}, at a pace\n\
             \x20 that keeps the server's core busy ({:.0} % of CPU measured meanwhile, in all). A plain timer of the module API is\n\
             \x20 not measured: the module uses one only where there is no timerfd.\n",
            plan.dues_a_round,
            plan.slow_rounds,
            Load::PIPELINE,
            share * 100.0,
        ),
    }
}

fn rounds(host: &Host, plan: Plan, name: &str) -> (Samples<Round>, Vec<Curve>) {
    let clients = &mut Clients {
        plan,
        worker: host.connect(),
        producer: host.connect(),
        number: 0,
        dues: Vec::new(),
        floors: Vec::new(),
    };
    let samples = Samples::take(clients, plan.slow_rounds, &[("round", Clients::round)]);
    let curves = vec![
        distribution(
            format!("lateness {name}, us by percentile: dq"),
            &clients.dues,
        ),
        distribution(
            format!("lateness {name}, us by percentile: floor"),
            &clients.floors,
        ),
    ];
    (samples, curves)
}

fn distribution(name: String, values: &[f64]) -> Curve {
    let percents = [
        1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 100.0,
    ];
    let points = percents.map(|percent| (percent, percentile(values, percent / 100.0)));
    Curve {
        name,
        points: points.to_vec(),
    }
}

impl Clients {
    fn round(&mut self) -> Round {
        let first = self.dues.len();
        for _ in 0..self.plan.dues_a_round {
            let (due, floor) = (self.due(), self.floor());
            self.dues.push(due);
            self.floors.push(floor);
        }
        let of = |part| {
            let percentile = |values: &[f64]| percentile(&values[first..], part);
            (percentile(&self.dues), percentile(&self.floors))
        };
        Round {
            p50: of(0.5),
            p99: of(0.99),
        }
    }

    /// Some milliseconds ahead, after a pause that ends anywhere within one.
    fn next_instant(&mut self) -> u64 {
        self.number += 1;
        let random = scattered(self.number as u64);
        sleep_until_ns(now_ns() + random % 1_000_000);
        now_ms() + 2 + (random >> 32) % 5
    }

    fn due(&mut self) -> f64 {
        loop {
            if let Some(late) = self.try_due() {
                return late;
            }
        }
    }

    /// None where the job was added too late to be due after that.
    fn try_due(&mut self) -> Option<f64> {
        self.worker.send_command(&[b"DQ.BPOP", b"late", b"0"]);
        let due = self.next_instant();
        let (id, payload) = (id(self.number), payload(self.number));
        let at = Decimal::of(due);
        self.producer
            .call(&[b"DQ.ADD", b"late", &id, payload, b"AT", at.bytes()]);
        let was_early = us_since(due) < 0.0;
        self.worker.receive_done(1);
        let late = us_since(due);
        self.producer.call(&[b"DQ.ACK", b"late", &id]);
        was_early.then_some(late)
    }

    fn floor(&mut self) -> f64 {
        let instant = self.next_instant();
        sleep_until_ns(instant * 1_000_000);
        self.producer.call(&[b"PING"]);
        us_since(instant)
    }
}

/// A client of its own thread that keeps the server busy for a part of the time.
struct Load {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    clock: CpuClock,
    began: (u64, f64),
}

impl Load {
    const PIPELINE: usize = 128;

    fn start(host: &Host) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let (clock, seen) = (host.clock(), Arc::clone(&is_over));
        let connection = host.connect();
        Load {
            is_over,
            thread: thread::spawn(move || keep_busy(connection, clock, &seen)),
            clock,
            began: (now_ns(), clock.us()),
        }
    }

    /// Ends it; returns the part of the time that the server was busy.
    fn stop(self) -> f64 {
        let used = (self.clock.us() - self.began.1) / ((now_ns() - self.began.0) as f64 / 1e3);
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the load ends in good order");
        used
    }
}

fn keep_busy(mut connection: Connection, clock: CpuClock, is_over: &AtomicBool) {
    const WARM_UP: usize = 200;
    /// Batches that could not be sent in time and are sent later, at most.
    const MADE_UP_FOR: u64 = 5;
    set_timer_slack_ns(1);
    let mut batch = Vec::new();
    for number in 0..Load::PIPELINE {
        encode(&mut batch, &[b"SET", &id(number), payload(number)]);
    }
    let mut set_all = || {
        connection.send(&batch);
        connection.receive_done(Load::PIPELINE);
    };
    let cost_us = clock.us_during(|| (0..WARM_UP).for_each(|_| set_all())) / WARM_UP as f64;
    let pause_ns = (cost_us / LOAD * 1e3) as u64;
    let mut next = now_ns();
    while !is_over.load(Ordering::Relaxed) {
        set_all();
        next = (next + pause_ns).max(now_ns() - MADE_UP_FOR * pause_ns);
        sleep_until_ns(next);
    }
}
