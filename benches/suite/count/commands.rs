//! What is counted, in this order: each in the queue as those before have left it.

use super::{Counts, Figures, Table, ADD, COMMANDS, JOBS, PIPELINE};
use crate::suite::callgrind::Counted;
use crate::suite::crowd::Crowd;
use crate::suite::host::Host;
use crate::suite::jobs::{dq, floor, id, payload, zset, Scripts};
use crate::suite::wire::{encode, Connection};

/// Blocking and waking, one pair at a time.
const WAKES: usize = 500;

struct Counting<'a> {
    counted: &'a mut Counted,
    crowd: Crowd,
    table: Table,
}

pub fn count(counted: &mut Counted) -> Table {
    counted.host.load_floor();
    // Under Valgrind on a busy machine a minute can pass between POP and ACK.
    let reply = counted
        .host
        .call(&[b"CONFIG", b"SET", b"dq.default-ttr", b"3600000"]);
    assert_eq!(reply, b"+OK\r\n");
    let crowd = Crowd::of_one(&counted.host);
    let mut counting = Counting {
        counted,
        crowd,
        table: Table::new(),
    };
    counting.groups("a group of each");
    counting.run((0, (JOBS + COMMANDS) / 10), |out, n| {
        dq::set_group(out, 10 * n)
    });
    counting.groups("1 in 10 set");
    counting.single_commands();
    counting.nack();
    counting.steps();
    counting.long_steps();
    counting.show_files();
    counting.wakes();
    counting.with_aof();
    counting.table
}

impl Counting<'_> {
    fn run(&mut self, numbers: (usize, usize), write: impl FnMut(&mut Vec<u8>, usize)) {
        self.crowd.run(numbers, PIPELINE, write);
    }

    /// Of as many commands, one for each of so many numbers from this one on.
    fn count(&mut self, name: &str, first: usize, write: impl Fn(&mut Vec<u8>, usize)) {
        let crowd = &mut self.crowd;
        let numbers = (first, first + COMMANDS);
        let counts = (self.counted).during(|_| crowd.run(numbers, PIPELINE, write));
        self.enter(name, Figures::of(counts, COMMANDS));
    }

    fn enter(&mut self, name: &str, figures: Figures) {
        self.table.insert(name.to_owned(), figures);
    }

    /// Among as many groups of one ready job as are added.
    fn groups(&mut self, which: &str) {
        self.run((0, JOBS), dq::add_to_group);
        self.count(&format!("DQ.ADD, {which}"), JOBS, dq::add_to_group);
        self.count(&format!("DQ.POP, {which}"), 0, dq::pop);
        self.count(&format!("DQ.ACK, {which}"), 0, dq::ack);
        self.counted.host.flush();
    }

    /// Among as many jobs as are added.
    fn single_commands(&mut self) {
        let scripts = &Scripts::load(&mut self.counted.host);
        self.run((0, JOBS), dq::add_far);
        self.run((0, JOBS), zset::add_far);
        self.run((0, JOBS), |out, n| scripts.add_far(out, n));
        self.count("PING", 0, |out, _| encode(out, &[b"PING"]));
        self.count(ADD, JOBS, dq::add_far);
        self.count("FLOOR.ADD", JOBS, floor::add_far);
        self.count("ZADD", JOBS, zset::add_far);
        self.count("script of ZADD and HSET", JOBS, |out, n| {
            scripts.add_far(out, n);
        });
        // Those of before stay, far in the future; their ids are not these.
        let ready = JOBS + COMMANDS;
        self.count("DQ.ADD, ready", ready, dq::add_ready);
        self.count("DQ.POP", ready, dq::pop);
        self.count("DQ.ACK", ready, dq::ack);
        self.count("FLOOR.POP", ready, floor::pop);
        self.count("FLOOR.ACK", JOBS, floor::ack);
    }

    /// Of jobs that are to be tried again in an hour.
    fn nack(&mut self) {
        let first = 2 * COMMANDS + JOBS;
        self.reserve(first);
        self.count("DQ.NACK", first, |out, n| {
            encode(out, &[b"DQ.NACK", b"dq", &id(n), b"DELAY", b"3600000"]);
        });
    }

    /// Adds ready jobs with these ids, and takes them.
    fn reserve(&mut self, first: usize) {
        let numbers = (first, first + COMMANDS);
        self.run(numbers, dq::add_ready);
        self.run(numbers, dq::pop);
    }

    /// Of a job that somebody has: what keeps its lease, and what is kept with it.
    fn steps(&mut self) {
        let first = 3 * COMMANDS + JOBS;
        self.reserve(first);
        let mut client = self.counted.host.connect();
        let numbers = first..first + COMMANDS;
        let tokens: Vec<_> = numbers.map(|n| token_of(&mut client, &id(n))).collect();
        let token = |n: usize| &tokens[n - first][..];
        self.count("a lease kept by DQ.TOUCH", first, |out, n| {
            encode(out, &[b"DQ.TOUCH", b"dq", &id(n), b"TOKEN", token(n)]);
        });
        self.count("64 bytes kept by DQ.STEP", first, |out, n| {
            let value = &[b'v'; 64];
            encode(
                out,
                &[b"DQ.STEP", b"dq", &id(n), token(n), b"charge", value],
            );
        });
    }

    /// The last steps that a job may have, beside the first ones of others.
    fn long_steps(&mut self) {
        const MOST: usize = 1000;
        const COUNT: usize = 20;
        // Those of before stay, and those with an AOF are still to come.
        let far = |n: usize| n + 9 * COMMANDS;
        let id = |n: usize| id(far(n));
        let numbers = (0, COUNT + 1);
        let crowd = &mut self.crowd;
        crowd.run(numbers, 1, |out, n| dq::add_ready(out, far(n)));
        crowd.run(numbers, 1, dq::pop);
        let mut client = self.counted.host.connect();
        let tokens: Vec<_> = (0..=COUNT).map(|n| token_of(&mut client, &id(n))).collect();
        let step = |out: &mut Vec<u8>, job: usize, n: usize| {
            let name = format!("step-{n:03}");
            let (token, value) = (&tokens[job], [b'v'; 10_000]);
            encode(
                out,
                &[b"DQ.STEP", b"dq", &id(job), token, name.as_bytes(), &value],
            );
        };
        let counted = &mut self.counted;
        let first = counted.during(|_| crowd.run((0, COUNT), 1, |out, n| step(out, n, MOST - 1)));
        crowd.run((0, MOST - COUNT), 1, |out, n| step(out, COUNT, n));
        let numbers = (MOST - COUNT, MOST);
        let last = counted.during(|_| crowd.run(numbers, 1, |out, n| step(out, COUNT, n)));
        let figures = |counts: Counts| Figures::of(counts, COUNT);
        self.enter("10 KB by DQ.STEP, a job's first", figures(first));
        self.enter("10 KB by DQ.STEP, its thousandth", figures(last));
    }

    /// What someone reads who follows a plain job through the code.
    fn show_files(&mut self) {
        let numbers = (8 * COMMANDS, 9 * COMMANDS);
        let crowd = &mut self.crowd;
        let mut files = self.counted.files_during(COMMANDS, |_| {
            crowd.run(numbers, PIPELINE, dq::add_ready);
            crowd.run(numbers, PIPELINE, |out, _| {
                encode(out, &[b"DQ.BPOP", b"dq", b"0"]);
            });
            crowd.run(numbers, PIPELINE, dq::ack);
        });
        files.sort();
        println!(
            "{} files have a part in a plain DQ.ADD, DQ.BPOP and DQ.ACK: {}",
            files.len(),
            files.join(" ")
        );
    }

    /// Without what it costs to know that the client waits.
    fn wakes(&mut self) {
        let waits: [(&str, usize, Wake); 5] = [
            ("of that alone", 0, |_, producer, _| is_served(producer)),
            ("BZPOPMIN that waits, and its ZADD", 0, wake_by_zset),
            ("DQ.BPOP that waits, and its DQ.ADD", 0, wake_by_dq),
            ("DQ.BPOP and DQ.ADD beside 1 with FILL", 1, wake_by_dq),
            ("DQ.BPOP and DQ.ADD beside 999 with FILL", 999, wake_by_dq),
        ];
        let (mut alone, mut filling) = (None, Vec::new());
        for (name, filled, wake) in waits {
            let host = &self.counted.host;
            filling.resize_with(filled, || wait_to_fill(host));
            let (mut waiter, mut producer) = (host.connect(), host.connect());
            let mut wakes = |(first, end)| {
                for number in first..end {
                    wake(&mut waiter, &mut producer, number);
                }
            };
            wakes((0, WAKES / 10));
            let counts = self.counted.during(|_| wakes((WAKES, 2 * WAKES)));
            let figures = Figures::of(counts, WAKES);
            let Some(alone) = alone else {
                alone = Some(figures);
                continue;
            };
            self.enter(name, figures.less(alone));
        }
    }

    /// The last: what reads effects once is taken to go on reading.
    fn with_aof(&mut self) {
        self.counted.host.keep_log();
        let fresh = 4 * COMMANDS + JOBS;
        self.count("DQ.ADD, delayed, with an AOF", fresh, dq::add_far);
        self.count("ZADD, with an AOF", fresh, zset::add_far);
        self.count("SET, with an AOF", fresh, |out, n| {
            encode(out, &[b"SET", &id(n), payload(n)]);
        });
    }
}

/// Of the current delivery.
fn token_of(client: &mut Connection, id: &[u8]) -> Vec<u8> {
    let job = client.call(&[b"DQ.GET", b"dq", id]);
    let mut lines = job.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| *line == b"token");
    lines.nth(1).expect("a token").to_vec()
}

/// A client is there before the job. The server reads two clients in no certain order, unless it has answered
/// the one after the other one has written.
type Wake = fn(waiter: &mut Connection, producer: &mut Connection, number: usize);

fn is_served(producer: &mut Connection) {
    producer.call(&[b"PING"]);
}

fn wake_by_dq(waiter: &mut Connection, producer: &mut Connection, number: usize) {
    waiter.send_command(&[b"DQ.BPOP", b"waited", b"0", b"NOACK"]);
    is_served(producer);
    producer.send_command(&[b"DQ.ADD", b"waited", &id(number), payload(number)]);
    waiter.receive_done(1);
    producer.receive_done(1);
}

/// A client that waits for so many jobs that it stays.
fn wait_to_fill(host: &Host) -> Connection {
    let mut client = host.connect();
    let words = b"DQ.BPOP waited 0 COUNT 50 FILL 50 3600000".split(|&byte| byte == b' ');
    client.send_command(&words.collect::<Vec<_>>());
    client
}

fn wake_by_zset(waiter: &mut Connection, producer: &mut Connection, number: usize) {
    waiter.send_command(&[b"BZPOPMIN", b"zwaited", b"0"]);
    is_served(producer);
    producer.send_command(&[b"ZADD", b"zwaited", b"1", &id(number)]);
    waiter.receive_done(1);
    producer.receive_done(1);
}
