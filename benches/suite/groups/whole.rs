//! What is done to a queue of a million groups as a whole, against one without groups: what it costs the server, and
//! how long another client's PING waits meanwhile.

use std::thread;

use crate::suite::bench::Bench;
use crate::suite::jobs::dq;
use crate::suite::machine::{now_ms, now_ns, sleep_ms, sleep_until_ns};
use crate::suite::plan::{Plan, MILLION};
use crate::suite::report::{Goal, Row};
use crate::suite::rounds::{Runs, Samples};
use crate::suite::stats::percentile;
use crate::suite::wire::Connection;

/// PINGs are sent so often, whether or not the one before was answered in time.
const PING_EVERY_NS: u64 = 1_000_000;
/// From the beginning of each work on, at least.
pub const WATCHED_MS: u64 = 2000;

/// One work of another client. What DUMP gave is kept for RESTORE.
type Work = fn(&mut Connection, &mut Vec<u8>);

const WORKS: [(&str, Work); 5] = [
    ("COPY", |client, _| {
        client.call(&[b"COPY", b"dq", b"copy"]);
    }),
    ("UNLINK", |client, _| {
        client.call(&[b"UNLINK", b"copy"]);
    }),
    ("DUMP", |client, dump| {
        *dump = payload_of(client.call(&[b"DUMP", b"dq"])).to_vec();
    }),
    ("RESTORE", |client, dump| {
        client.call(&[b"RESTORE", b"restored", b"0", dump]);
    }),
    ("AOF rewrite", |client, _| {
        client.call(&[b"BGREWRITEAOF"]);
        while is_rewriting(client) {
            sleep_ms(20);
        }
    }),
];

/// ms: the server's CPU time, and how late PINGs were answered.
#[derive(Clone, Copy, Default)]
struct Felt {
    cpu: f64,
    p99: f64,
    p999: f64,
}

type All = [Felt; WORKS.len()];

const RUNS: Runs<Bench, All> = &[
    ("plain", |bench| all(bench, dq::add_ready)),
    ("groups", |bench| all(bench, dq::add_to_group)),
];

pub fn rows(bench: &mut Bench, plan: Plan) -> Vec<Row> {
    // By commands, as where slots are moved: an RDB in front of it is written as BGSAVE does.
    bench
        .host
        .call(&[b"CONFIG", b"SET", b"aof-use-rdb-preamble", b"no"]);
    let samples = Samples::take(bench, plan.stall_rounds, RUNS);
    let row = |at: usize, what: String, part: fn(&Felt) -> f64| {
        let of = |run| samples.map(run, |all: &All| part(&all[at]));
        let pair = (&of("groups")[..], &of("plain")[..]);
        Row::paired(what, "without groups", "ms", Goal::Told, pair)
    };
    let works = WORKS.iter().enumerate();
    let rows = works.flat_map(|(at, (work, _))| {
        [
            row(at, format!("{work}, 1e6 groups"), |it| it.cpu),
            row(at, format!("PING's p99 during {work}"), |it| it.p99),
            row(at, format!("PING's p99.9 during {work}"), |it| it.p999),
        ]
    });
    rows.collect()
}

fn all(bench: &mut Bench, add: fn(&mut Vec<u8>, usize)) -> All {
    bench.host.flush();
    bench.run((0, MILLION), add);
    let mut dump = Vec::new();
    let felt = WORKS.map(|(_, work)| {
        bench.host.wait_until_idle();
        felt(bench, work, &mut dump)
    });
    for key in [&b"dq"[..], b"restored"] {
        let len = bench.host.call(&[b"DQ.LEN", key]);
        assert!(len.starts_with(format!(":{MILLION}\r").as_bytes()));
    }
    felt
}

/// While a work goes on in a thread of its own.
fn felt(bench: &Bench, work: Work, dump: &mut Vec<u8>) -> Felt {
    let (mut worker, mut pinger) = (bench.host.connect(), bench.host.connect());
    let (clock, from_ms) = (bench.host.clock(), now_ms());
    let mut late = Vec::new();
    let us = clock.us_during(|| {
        thread::scope(|scope| {
            let works = scope.spawn(|| work(&mut worker, dump));
            let mut at = now_ns();
            while !works.is_finished() || now_ms() < from_ms + WATCHED_MS {
                sleep_until_ns(at);
                pinger.call(&[b"PING"]);
                late.push((now_ns() - at) as f64 / 1e6);
                at += PING_EVERY_NS;
            }
        });
    });
    Felt {
        cpu: us / 1e3,
        p99: percentile(&late, 0.99),
        p999: percentile(&late, 0.999),
    }
}

/// Of a bulk string as it stands on the wire.
fn payload_of(reply: &[u8]) -> &[u8] {
    let head = reply.iter().position(|&byte| byte == b'\n');
    let head = head.expect("a bulk string begins with its length") + 1;
    &reply[head..reply.len() - 2]
}

fn is_rewriting(client: &mut Connection) -> bool {
    let info = client.call(&[b"INFO", b"persistence"]);
    let info = String::from_utf8_lossy(info);
    assert!(
        info.contains("aof_last_bgrewrite_status:ok"),
        "a rewrite failed"
    );
    ["in_progress:1", "scheduled:1"]
        .iter()
        .any(|busy| info.contains(&format!("aof_rewrite_{busy}")))
}
