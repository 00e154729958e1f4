//! Writing a million jobs to an RDB file, and reading them back.

use super::bench::PIPELINE;
use super::crowd::Crowd;
use super::host::Host;
use super::jobs::{dq, zset_and_hash};
use super::plan::{Plan, MILLION};
use super::report::{Goal, Part, Row};
use super::rounds::{Runs, Samples};

struct Hosts {
    ours: Host,
    other: Host,
}

/// Save and load, in ms.
type Pair = (f64, f64);

pub fn measure(plan: Plan) -> Part {
    let hosts = &mut Hosts {
        ours: Host::start(),
        other: Host::start(),
    };
    Crowd::of(&hosts.ours).run((0, MILLION), PIPELINE, dq::add_far);
    Crowd::of(&hosts.other).run((0, 2 * MILLION), PIPELINE, zset_and_hash::add_far);
    let samples = Samples::take(hosts, plan.snapshot_rounds, RUNS);
    let row = |what, goal, part: fn(&Pair) -> f64| {
        let pair = (
            &samples.map("dq", part)[..],
            &samples.map("zset + hash", part)[..],
        );
        Row::paired(what, "zset + hash", "ms", goal, pair)
    };
    Part {
        rows: vec![
            row("RDB of 1e6 jobs: save + load", Goal::Better(2.0, 4.0), |pair| pair.0 + pair.1),
            row("RDB: SAVE", Goal::Told, |pair| pair.0),
            row("RDB: load", Goal::Told, |pair| pair.1),
        ],
        how: format!(
            "  CPU time: SAVE by INFO cpu (main thread); loading by the CPU clock of a server started anew on that file, until it\n\
             \x20 serves (its start, some ms, included). Defaults of the server: with compression and checksum. Median of {} rounds.\n",
            plan.snapshot_rounds
        ),
        ..Part::default()
    }
}

const RUNS: Runs<Hosts, Pair> = &[
    ("dq", |hosts| save_and_load(&mut hosts.ours, b"dq")),
    ("zset + hash", |hosts| {
        save_and_load(&mut hosts.other, b"{jobs}data")
    }),
];

fn save_and_load(host: &mut Host, key: &[u8]) -> Pair {
    host.wait_until_idle();
    let before = host.main_thread_us();
    host.call(&[b"SAVE"]);
    let saved = host.main_thread_us() - before;
    let loaded = host.restart_us();
    assert_eq!(host.call(&[b"EXISTS", key]), b":1\r\n", "all is back");
    (saved / 1e3, loaded / 1e3)
}
