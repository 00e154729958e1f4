//! What it costs to tell somebody how a job ended, alone or beside many others; and how soon a worker hears
//! that its job was cancelled.

use std::time::Instant;

use super::host::Host;
use super::jobs::{id, payload};
use super::machine::{raise_open_files, CpuClock};
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::stats::median;
use super::wire::Connection;

const CROWD: usize = 10_000;
/// Files that this process and the server need besides.
const OTHER_FILES: usize = 500;

/// A queue of jobs that somebody has, and who waits for their ends.
struct Waited {
    key: &'static [u8],
    /// Client `n` waits for job `n`: each of them in the crowd, else the next one alone. So the one is as long unused as the
    /// other, and what differs is how many wait beside it.
    clients: Vec<Connection>,
    is_crowd: bool,
    next: usize,
}

struct Ends {
    plan: Plan,
    clock: CpuClock,
    worker: Connection,
    other: Connection,
    waited: [Waited; 2],
}

pub fn measure(plan: Plan) -> Part {
    let count = CROWD.min((raise_open_files() - OTHER_FILES) / 2);
    let host =
        Host::start_with(|builder| builder.config("maxclients", 2 * count + OTHER_FILES / 2));
    let ends = &mut Ends {
        plan,
        clock: host.clock(),
        worker: host.connect(),
        other: host.connect(),
        waited: [
            Waited::of(&host, b"lone", count, false),
            Waited::of(&host, b"crowd", count, true),
        ],
    };
    host.wait_until_idle();
    let samples = Samples::take(ends, plan.slow_rounds, RUNS);
    let pair = (samples.of("crowd"), samples.of("lone"));
    let what = format!("DQ.ACK that is awaited, {count} clients waiting for {count} jobs");
    let cancelled = "from DQ.DEL to the reply of DQ.BTOUCH";
    let soon = Goal::Below(1.0, 0.1);
    Part {
        rows: vec![
            Row::paired(what, "1 waiting", "us", Goal::AtMost(1.3, 1.0), pair),
            Row::alone(cancelled, "ms", soon, samples.of("cancelled")),
        ],
        how: format!(
            "  Two queues of one server hold {count} reserved jobs each. DQ.ACK of a job for whose end one client waits, of another job and\n\
             \x20 another client each time: CPU time of the server until both have their replies. Then that job is added and taken\n\
             \x20 again, and awaited, in the queue with one waiting client the next one. Cancelled: a worker's\n\
             \x20 DQ.BTOUCH waits, another client deletes its job, until the worker has its reply. Median of {} each a round,\n\
             \x20 median of {} rounds.\n",
            plan.wakes_a_round, plan.slow_rounds
        ),
        ..Part::default()
    }
}

const LONE: usize = 0;
const CROWDED: usize = 1;

const RUNS: Runs<Ends, f64> = &[
    ("lone", |ends| ends.round(LONE)),
    ("crowd", |ends| ends.round(CROWDED)),
    ("cancelled", Ends::cancel),
];

impl Ends {
    /// us of server CPU for each ACK.
    fn round(&mut self, of: usize) -> f64 {
        let acks = 0..self.plan.wakes_a_round;
        let costs: Vec<f64> = acks.map(|_| self.ack(of)).collect();
        median(&costs)
    }

    fn ack(&mut self, of: usize) -> f64 {
        let (waited, worker) = (&mut self.waited[of], &mut self.worker);
        let (key, number) = (waited.key, waited.next);
        waited.next = (number + 1) % waited.clients.len();
        let waiter = &mut waited.clients[number];
        let used = self.clock.us_during(|| {
            worker.send_command(&[b"DQ.ACK", key, &id(number)]);
            worker.receive_done(1);
            waiter.receive_done(1);
        });
        reserve(worker, key, number);
        let awaited = [waited.next, number][usize::from(waited.is_crowd)];
        await_end(&mut waited.clients[awaited], key, awaited);
        worker.call(&[b"PING"]);
        used
    }

    /// ms until a worker hears of it.
    fn cancel(&mut self) -> f64 {
        let (worker, other) = (&mut self.worker, &mut self.other);
        let number = self.waited[LONE].clients.len();
        let times: Vec<f64> = (0..self.plan.wakes_a_round)
            .map(|_| {
                let token = reserve(worker, b"lone", number);
                let id = id(number);
                worker.send_command(&[b"DQ.BTOUCH", b"lone", b"10", b"IDS", b"1", &id, &token]);
                other.call(&[b"PING"]);
                let begun = Instant::now();
                other.send_command(&[b"DQ.DEL", b"lone", &id]);
                worker.receive_done(1);
                let taken = begun.elapsed().as_secs_f64() * 1e3;
                other.receive_done(1);
                taken
            })
            .collect();
        median(&times)
    }
}

impl Waited {
    fn of(host: &Host, key: &'static [u8], jobs: usize, is_crowd: bool) -> Waited {
        let worker = &mut host.connect();
        (0..jobs).for_each(|number| drop(reserve(worker, key, number)));
        let mut clients: Vec<_> = (0..jobs).map(|_| host.connect()).collect();
        let waiting = if is_crowd { jobs } else { 1 };
        for (number, client) in clients.iter_mut().take(waiting).enumerate() {
            await_end(client, key, number);
        }
        Waited {
            key,
            clients,
            is_crowd,
            next: 0,
        }
    }
}

/// Adds that job and takes it; returns its token.
fn reserve(worker: &mut Connection, key: &[u8], number: usize) -> Vec<u8> {
    let id = id(number);
    worker.call(&[b"DQ.ADD", key, &id, payload(number)]);
    let reply = worker.call(&[b"DQ.POP", key, b"ID", &id, b"TTR", b"7200000"]);
    // A line of its length, then id, payload and token, each behind a line of its length.
    let token = reply.split(|&byte| byte == b'\n').nth(6);
    token.expect("a delivery").trim_ascii_end().to_vec()
}

fn await_end(client: &mut Connection, key: &[u8], number: usize) {
    client.send_command(&[b"DQ.AWAIT", key, b"0", &id(number)]);
}
