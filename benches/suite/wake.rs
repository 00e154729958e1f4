//! What it costs to wake one client, alone or in a long line.

use std::collections::VecDeque;

use super::host::Host;
use super::jobs::{id, payload};
use super::machine::{now_ms, raise_open_files, sleep_until_ns, CpuClock};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::stats::median;
use super::wire::{Connection, Decimal};

const CROWD: usize = 10_000;
/// Files that this process and the server need besides.
const OTHER_FILES: usize = 500;

/// Clients that wait on a key, the longest waiting first.
struct Line {
    key: &'static [u8],
    waiting: VecDeque<Connection>,
}

struct Lines {
    plan: Plan,
    clock: CpuClock,
    producer: Connection,
    number: usize,
    lone: Line,
    crowd: Line,
}

pub fn measure(plan: Plan) -> Part {
    let count = CROWD.min(raise_open_files() - OTHER_FILES);
    let host = Host::start_with(|builder| builder.config("maxclients", count + OTHER_FILES / 2));
    let lines = &mut Lines {
        plan,
        clock: host.clock(),
        producer: host.connect(),
        number: 0,
        lone: Line::of(&host, b"lone", 1),
        crowd: Line::of(&host, b"crowd", count),
    };
    host.wait_until_idle();
    let samples = Samples::take(lines, plan.slow_rounds, RUNS);
    let pair = (samples.of("crowd"), samples.of("lone"));
    let what = format!("one wake-up, {count} clients waiting on the key");
    Part {
        rows: vec![Row::paired(what, "1 waiting", "us", Goal::AtMost(1.5, 1.1), pair)],
        how: format!(
            "  A job is added that is due some ms later, and only one client is to be woken for it: CPU time of the server from 1 ms\n\
             \x20 before the due to 1 ms after it, reply read; then that client waits again, last in line. Both lines are of one\n\
             \x20 server, on two keys. Median of {} wakes a round, median of {} rounds.\n",
            plan.wakes_a_round, plan.slow_rounds
        ),
        ..Part::default()
    }
}

const RUNS: Runs<Lines, f64> = &[
    ("lone", |lines| lines.round(|lines| &mut lines.lone)),
    ("crowd", |lines| lines.round(|lines| &mut lines.crowd)),
];

impl Lines {
    fn round(&mut self, line: fn(&mut Lines) -> &mut Line) -> f64 {
        let wakes = 0..self.plan.wakes_a_round;
        let costs: Vec<f64> = wakes.map(|_| self.wake(line)).collect();
        median(&costs)
    }

    fn wake(&mut self, line: fn(&mut Lines) -> &mut Line) -> f64 {
        const AHEAD_MS: u64 = 4;
        self.number += 1;
        let (key, due) = (line(self).key, now_ms() + AHEAD_MS);
        let (id, at) = (id(self.number), Decimal::of(due));
        let payload = payload(self.number);
        self.producer
            .call(&[b"DQ.ADD", key, &id, payload, b"AT", at.bytes()]);
        sleep_until_ns((due - 1) * 1_000_000);
        let clock = self.clock;
        let used = clock.us_during(|| {
            line(self).waiting[0].receive_done(1);
            sleep_until_ns((due + 1) * 1_000_000);
        });
        self.producer.call(&[b"DQ.ACK", key, &id]);
        line(self).send_to_the_end();
        used
    }
}

impl Line {
    fn of(host: &Host, key: &'static [u8], count: usize) -> Line {
        let mut line = Line {
            key,
            waiting: (0..count).map(|_| host.connect()).collect(),
        };
        (0..count).for_each(|_| line.send_to_the_end());
        line
    }

    fn send_to_the_end(&mut self) {
        let mut client = self.waiting.pop_front().expect("somebody waits");
        client.send_command(&[b"DQ.BPOP", self.key, b"0"]);
        self.waiting.push_back(client);
    }
}
