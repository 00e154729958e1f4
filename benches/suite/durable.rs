//! What keeping and copying a queue adds: the AOF, and a replica.

use std::path::Path;

use super::bench::PIPELINE;
use super::crowd::Crowd;
use super::host::Host;
use super::jobs::dq;
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use crate::support::place::Port;

/// What a job is: added, popped, acknowledged.
#[derive(Clone, Copy, Default)]
struct Life {
    add: Step,
    pop: Step,
    ack: Step,
}

/// Server CPU of one command in us, and what it writes, in bytes.
#[derive(Clone, Copy, Default)]
struct Step {
    us: f64,
    bytes: f64,
}

/// The same server with a different setting each.
struct Hosts {
    jobs: usize,
    plain: Kept,
    aof: Kept,
    replicated: Kept,
    /// Stays as long as the one that it copies.
    _replica: Host,
}

struct Kept {
    host: Host,
    crowd: Crowd,
    written: fn(&mut Host) -> f64,
}

pub fn measure(plan: Plan) -> Part {
    let port = Port::free();
    let master = Host::start_with(|builder| builder.config("port", port.number));
    let replicated = Kept::new(master, Host::replication_offset);
    let mut replica = Host::start();
    replica.follow(port.number);
    let aof = Host::start_with(|builder| {
        builder
            .config("appendonly", "yes")
            .config("auto-aof-rewrite-percentage", 0)
    });
    let hosts = &mut Hosts {
        jobs: plan.commands,
        plain: Kept::new(Host::start(), |_| 0.0),
        aof: Kept::new(aof, |host| {
            bytes_under(&host.folder().join("appendonlydir"))
        }),
        replicated,
        _replica: replica,
    };
    let samples = Samples::take(hosts, plan.rounds, RUNS);
    Part {
        rows: rows(&samples),
        how: format!(
            "  {} jobs (due at once), pipeline {PIPELINE}, 50 clients: server CPU (its process's clock, so with the thread that syncs the\n\
             \x20 AOF) per add, pop and ack, with nothing, with the AOF (appendfsync everysec), and with one replica (which runs on the\n\
             \x20 same core, but is not counted). Bytes: growth of the AOF's files, and of the replication stream, per command.\n\
             \x20 Median of {} rounds.\n",
            plan.commands, plan.rounds
        ),
        ..Part::default()
    }
}

const RUNS: Runs<Hosts, Life> = &[
    ("plain", |hosts| hosts.plain.live(hosts.jobs)),
    ("aof", |hosts| hosts.aof.live(hosts.jobs)),
    ("replica", |hosts| hosts.replicated.live(hosts.jobs)),
];

impl Kept {
    fn new(host: Host, written: fn(&mut Host) -> f64) -> Kept {
        Kept {
            crowd: Crowd::of(&host),
            host,
            written,
        }
    }

    fn live(&mut self, jobs: usize) -> Life {
        self.host.flush();
        Life {
            add: self.step(jobs, dq::add_ready),
            pop: self.step(jobs, dq::pop),
            ack: self.step(jobs, dq::ack),
        }
    }

    fn step(&mut self, jobs: usize, write: fn(&mut Vec<u8>, usize)) -> Step {
        let (clock, before) = (self.host.clock(), (self.written)(&mut self.host));
        let used = clock.us_during(|| self.crowd.run((0, jobs), PIPELINE, write));
        Step {
            us: used / jobs as f64,
            bytes: ((self.written)(&mut self.host) - before) / jobs as f64,
        }
    }
}

fn bytes_under(folder: &Path) -> f64 {
    let files = std::fs::read_dir(folder).expect("the AOF's folder");
    let lengths = files.map(|file| file.and_then(|it| it.metadata()).map_or(0, |it| it.len()));
    lengths.sum::<u64>() as f64
}

/// A command, and its step in a job's life.
type Named = (&'static str, fn(&Life) -> Step);

const STEPS: [Named; 3] = [
    ("DQ.ADD", |life| life.add),
    ("DQ.POP", |life| life.pop),
    ("DQ.ACK", |life| life.ack),
];

fn rows(samples: &Samples<Life>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (kept, other_is) in [("aof", "AOF"), ("replica", "a replica")] {
        for (command, step) in STEPS {
            let us = |run| samples.map(run, |life| step(life).us);
            let what = format!("{command} with {other_is}");
            let pair = (&us(kept)[..], &us("plain")[..]);
            rows.push(Row::paired(what, "without", "us", Goal::Told, pair));
            let bytes = samples.map(kept, |life| step(life).bytes);
            let what = format!("{command}, written to {other_is}");
            rows.push(Row::alone(what, "bytes", Goal::Told, &bytes));
        }
    }
    rows
}
