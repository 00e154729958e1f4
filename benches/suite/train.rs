//! The traffic that a module is built for by `make release-pgo`: what queues are used for, in proportions that keep
//! the usual commands on the usual ways first. A few seconds of it, with nothing measured.

use super::crowd::Crowd;
use super::host::Host;
use super::jobs::{dq, id, payload};
use super::machine::now_ms;
use super::wire::{encode, Connection, Decimal};
use std::process::ExitCode;

/// In one queue: fewer, and more, than such as are prefetched.
const FEW: usize = 5_000;
const MANY: usize = 150_000;
const PIPELINE: usize = 16;
const WAKES: usize = 5_000;
const QUEUES: usize = 2_000;
const BATCH: usize = 50;

pub fn run() -> ExitCode {
    let mut host = Host::start();
    // First nobody reads effects, then an append-only file does.
    live(&host, MANY);
    host.keep_log();
    live(&host, MANY / 4);
    host.restart_us();
    host.end();
    ExitCode::SUCCESS
}

fn live(host: &Host, many: usize) {
    let crowd = &mut Crowd::of(host);
    for count in [FEW, many] {
        crowd.run((0, count), PIPELINE, dq::add_far);
        pass_through(crowd, count / 2, (count, 2 * count));
        crowd.run((0, count / BATCH), PIPELINE, |out, n| {
            dq::delete(out, b"dq", (n * BATCH, (n + 1) * BATCH));
        });
    }
    in_batches(crowd);
    rare(crowd);
    small_queues(crowd);
    wakes(host);
}

/// A job comes, is delivered and acknowledged; that many are there at a time.
fn pass_through(crowd: &mut Crowd, at_once: usize, (first, end): (usize, usize)) {
    for start in (first..end).step_by(at_once) {
        let numbers = (start, end.min(start + at_once));
        crowd.run(numbers, PIPELINE, dq::add_ready);
        crowd.run(numbers, PIPELINE, dq::pop);
        crowd.run(numbers, PIPELINE, dq::ack);
    }
}

fn in_batches(crowd: &mut Crowd) {
    crowd.run((0, FEW), PIPELINE, dq::add_ready);
    crowd.run((0, FEW / BATCH), 1, |out, _| dq::pop_many(out, BATCH));
    crowd.run((0, FEW / BATCH), 1, |out, n| {
        dq::ack_many(out, n * BATCH, BATCH);
    });
}

/// Options, failures, heartbeats, what is looked at: once for twenty of the usual.
fn rare(crowd: &mut Crowd) {
    let numbers = (0, FEW);
    crowd.run(numbers, PIPELINE, |out, n| {
        let (id, priority) = (id(n), Decimal::of(n as u64 % 3));
        let line: &[&[u8]] = &[
            b"DQ.ADD",
            b"rare",
            &id,
            payload(n),
            b"PRIORITY",
            priority.bytes(),
            b"TTR",
            b"60000",
            b"ATTEMPTS",
            b"3",
            b"TTL",
            b"3600000",
        ];
        encode(out, line);
    });
    crowd.run(numbers, PIPELINE, |out, _| {
        encode(out, &[b"DQ.POP", b"rare"])
    });
    let delay: &[&[u8]] = &[b"DELAY", b"3600000"];
    let by_id: [(&[u8], &[&[u8]]); 4] = [
        (b"DQ.TOUCH", &[]),
        (b"DQ.NACK", &[]),
        (b"DQ.GET", &[]),
        (b"DQ.RESCHEDULE", delay),
    ];
    for (command, options) in by_id {
        crowd.run(numbers, PIPELINE, |out, n| {
            encode(out, &[&[command, b"rare"], options, &[&id(n)]].concat());
        });
    }
    crowd.run((0, FEW / BATCH), PIPELINE, |out, _| {
        encode(out, &[b"DQ.LEN", b"rare"]);
    });
    crowd.run((0, FEW / BATCH), PIPELINE, |out, n| {
        dq::delete(out, b"rare", (n * BATCH, (n + 1) * BATCH));
    });
}

/// Queues of three jobs.
fn small_queues(crowd: &mut Crowd) {
    let key = |n: usize| [b"user:", Decimal::of((n % QUEUES) as u64).bytes()].concat();
    let numbers = (0, 3 * QUEUES);
    crowd.run(numbers, PIPELINE, |out, n| {
        dq::add_at(out, &key(n), n, now_ms() - 1);
    });
    crowd.run(numbers, PIPELINE, |out, n| {
        encode(out, &[b"DQ.POP", &key(n)])
    });
    crowd.run(numbers, PIPELINE, |out, n| {
        encode(out, &[b"DQ.ACK", &key(n), &id(n)]);
    });
}

/// Somebody waits: for a job that is ready when it comes, and for one that becomes it.
fn wakes(host: &Host) {
    let (mut waiter, mut producer) = (host.connect(), host.connect());
    let mut wake = |number: usize, delay: &[u8]| {
        waiter.send_command(&[b"DQ.BPOP", b"waited", b"10"]);
        producer.call(&[b"PING"]);
        let id = id(number);
        producer.call(&[b"DQ.ADD", b"waited", &id, payload(number), b"DELAY", delay]);
        waiter.receive_done(1);
        acked(&mut producer, &id);
    };
    for number in 0..WAKES {
        wake(number, if number % 10 == 0 { b"1" } else { b"0" });
    }
}

fn acked(producer: &mut Connection, id: &[u8]) {
    producer.call(&[b"DQ.ACK", b"waited", id]);
}
