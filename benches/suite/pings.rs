//! What another client feels of a steady load: PINGs at instants fixed beforehand, beside so many lives of
//! jobs in a second.

use super::host::Host;
use super::jobs::{dq, Scripts};
use super::machine::now_ns;
use super::plan::Plan;
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};
use super::stats::percentile;
use super::wire::Connection;

const LIVES_A_SECOND: usize = 40_000;
/// Lives that begin together; then one PING, at some instant before the next ones begin.
const TOGETHER: usize = 10;
const TICK_NS: u64 = 1_000_000_000 * TOGETHER as u64 / LIVES_A_SECOND as u64;

/// us of a PING, by the part of all PINGs that take no longer.
type Felt = [f64; 4];

const PARTS: [(f64, &str); 4] = [
    (0.5, "p50"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

struct Pinged {
    ours: Loaded,
    other: Loaded,
    ticks: usize,
}

/// A server, and those that talk to it.
struct Loaded {
    host: Host,
    scripts: Scripts,
    worker: Connection,
    client: Connection,
    /// Jobs that have lived in it so far.
    lives: usize,
}

pub fn measure(plan: Plan) -> Part {
    let pinged = &mut Pinged {
        ours: Loaded::start(),
        other: Loaded::start(),
        ticks: plan.ping_ticks,
    };
    let samples = Samples::take(pinged, plan.slow_rounds, RUNS);
    let rows = PARTS.iter().enumerate().map(|(at, (_, name))| {
        let pair = (
            &samples.map("dq", |felt| felt[at])[..],
            &samples.map("script", |felt| felt[at])[..],
        );
        let what = format!("PING beside {LIVES_A_SECOND} lives a second, {name}");
        Row::paired(what, "script", "us", Goal::Told, pair)
    });
    Part {
        rows: rows.collect(),
        how: format!(
            "  Every {} us one connection sends {TOGETHER} adds, pops and acks (of one job each, ready at once), and another one PING at some\n\
             \x20 instant before the next ones; {} PINGs a round, each counted from the instant at which it was to be sent. The other:\n\
             \x20 the same lives by three scripts over a sorted set and a hash. {} rounds in turn.\n",
            TICK_NS / 1000,
            plan.ping_ticks,
            plan.slow_rounds
        ),
        ..Part::default()
    }
}

const RUNS: Runs<Pinged, Felt> = &[
    ("dq", |it| {
        it.ours.feel(it.ticks, |_, out, number| {
            dq::add_ready(out, number);
            dq::pop(out, number);
            dq::ack(out, number);
        })
    }),
    ("script", |it| {
        it.other.feel(it.ticks, |scripts, out, number| {
            scripts.add_ready(out, number);
            scripts.pop(out, number);
            scripts.ack(out, number);
        })
    }),
];

impl Loaded {
    fn start() -> Loaded {
        let mut host = Host::start();
        Loaded {
            scripts: Scripts::load(&mut host),
            worker: host.connect(),
            client: host.connect(),
            host,
            lives: 0,
        }
    }

    fn feel(&mut self, ticks: usize, live: fn(&Scripts, &mut Vec<u8>, usize)) -> Felt {
        self.host.wait_until_idle();
        let start = now_ns();
        let mut batch = Vec::new();
        let mut felt = Vec::with_capacity(ticks);
        for tick in 0..ticks as u64 {
            batch.clear();
            (self.lives..self.lives + TOGETHER).for_each(|n| live(&self.scripts, &mut batch, n));
            self.lives += TOGETHER;
            let begin = start + tick * TICK_NS;
            spin_until(begin);
            self.worker.send(&batch);
            // The same instants in every run.
            let ping_at = begin + super::jobs::scattered(tick) % TICK_NS;
            spin_until(ping_at);
            self.client.call(&[b"PING"]);
            felt.push((now_ns() - ping_at) as f64 / 1e3);
            self.worker.receive_done(3 * TOGETHER);
        }
        PARTS.map(|(part, _)| percentile(&felt, part))
    }
}

fn spin_until(instant: u64) {
    while now_ns() < instant {
        std::hint::spin_loop();
    }
}
