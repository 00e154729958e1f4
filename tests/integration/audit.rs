//! dq audit finds no fault in what servers write under any traffic, and finds each fault that is planted there. Skipped
//! unless `DQ_PROGRAM` names the program, as in `make test-audit`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use dq::queue::attr::Attrs;
use dq::queue::codec::{begin, encode};
use dq::queue::effect::{Came, Change, Effect, How, RemovalCause};
use dq::queue::job::Terms;

use crate::scene::Lines;
use crate::support::audit::{assert_faultless, judge, program};
use crate::support::place::{copy_folder, last_aof};
use crate::support::{skipped, wait_until, Builder, Client, Server, PATIENCE};
use crate::traffic::Traffic;

fn is_asked_for() -> bool {
    if program().is_none() {
        skipped("DQ_PROGRAM names no program dq");
    }
    program().is_some()
}

fn builder() -> Builder {
    // Everything is in one increment, unless the test rewrites the file.
    let builder = Server::builder().config("appendonly", "yes");
    builder.config("auto-aof-rewrite-percentage", 0)
}

fn files(server: &Server) -> PathBuf {
    server.folder().join("appendonlydir")
}

/// What was answered must be in the file.
#[track_caller]
fn written(client: &mut Client) {
    wait_until("the AOF is written", PATIENCE, || {
        client.info("persistence", "aof_buffer_length").as_deref() == Some("0")
    });
}

#[track_caller]
fn rewrite(server: &Server, preamble: &str) {
    let mut client = server.raw();
    let set = format!("CONFIG SET aof-use-rdb-preamble {preamble}");
    client.says(&set, "+OK");
    let asked = client.ask("BGREWRITEAOF");
    assert!(asked.starts_with('+'), "{asked}");
    let mut watching = server.connect();
    wait_until("the AOF is rewritten", PATIENCE, || {
        let is = |client: &mut Client, field: &str| client.info("persistence", field);
        is(&mut watching, "aof_rewrite_in_progress").as_deref() == Some("0")
            && is(&mut watching, "aof_rewrite_scheduled").as_deref() == Some("0")
    });
}

#[test]
fn random_traffic_has_no_fault() {
    if !is_asked_for() {
        return;
    }
    for seed in 1..=2 {
        let server = builder().start();
        let mut traffic = Traffic::new(&server, seed);
        traffic.run(2000);
        assert_faultless(&files(&server));
        for preamble in ["yes", "no"] {
            rewrite(&server, preamble);
            traffic.run(700);
            written(&mut server.connect());
            assert_faultless(&files(&server));
        }
        server.assert_no_crash();
    }
}

/// A promoted replica's file has its master's effects, and then its own.
#[test]
fn a_replica_that_is_promoted_has_no_fault() {
    if !is_asked_for() {
        return;
    }
    let (master, mut replica) = (Server::start(), builder().start());
    let mut traffic = Traffic::new(&master, 3);
    traffic.run(200);
    replica.replica_of(&master);
    traffic.run(1000);
    drop(traffic);
    replica.wait_for_link();
    replica.promote();
    Traffic::new(&replica, 4).run(500);
    written(&mut replica.connect());
    assert_faultless(&files(&replica));
    replica.kill();
    replica.restart();
    Traffic::new(&replica, 5).run(300);
    written(&mut replica.connect());
    assert_faultless(&files(&replica));
}

/// Deliveries as fast as the rate allows, and a restart, which empties the windows.
#[test]
fn rates_are_kept() {
    if !is_asked_for() {
        return;
    }
    let mut server = builder().start();
    let mut client = server.raw();
    client.says("DQ.CFGSET q RATE 8 20 GROUPRATE 3 25", "+OK");
    for number in 0..200 {
        client.ask(&format!("DQ.ADD q * x GROUP g{}", number % 4));
    }
    for left in [100, 0] {
        while client.int("DQ.LEN q READY") > left {
            client.ask("DQ.BPOP q 1 COUNT 3");
        }
        written(&mut server.connect());
        server.kill();
        server.restart();
        client = server.raw();
    }
    let program = program().expect("asked for");
    let judged = judge(&program, &["--rates"], &files(&server));
    let text = String::from_utf8_lossy(&judged.stdout);
    assert!(judged.status.success(), "{text}");
    assert!(text.contains(" 200 deliveries"), "{text}");
}

/// Queues among other types, compressed strings, expiring keys and functions.
#[test]
fn a_base_of_all_types_is_read() {
    if !is_asked_for() {
        return;
    }
    let server = builder().config("rdbcompression", "yes").start();
    let mut client = server.raw();
    for line in [
        "SET text x",
        "SETEX number 1000 12345",
        "RPUSH list a b 17",
        "SADD numbers 1 2 3",
        "SADD names a b",
        "ZADD scores 1 a 2.5 b",
        "HSET hash f v",
        "XADD stream * f v",
        "XADD stream * f w",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
        "XADD plain * f v",
        "SELECT 3",
        "DQ.CFGSET q GROUPMAX 1",
        "DQ.ADD q a x GROUP g",
        "DQ.ADD q b x GROUP g",
        "DQ.ADD q rule x EVERY 5000",
        "DQ.POP q TTR 100000",
    ] {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
    // Types and commands that the oldest server does not have.
    for line in [
        "HPEXPIRE hash 1000000 FIELDS 1 f",
        "XADD stream IDMP producer 1 * f v",
        "XADD stream IDMP producer 1 * f v",
        "XADD stream IDMPAUTO other * f v",
        "VADD vectors VALUES 2 1 2 element",
    ] {
        client.ask(line);
    }
    for number in 0..600 {
        client.ask(&format!("HSET large f{number} some-value-of-it"));
        client.ask(&format!("DQ.ADD q job{number} {}", "long".repeat(20)));
    }
    rewrite(&server, "yes");
    client.ask("DQ.ACK q a");
    client.ask("DQ.POP q COUNT 5 TTR 100000");
    written(&mut server.connect());
    assert_faultless(&files(&server));
    // It has read all of it, so it knows which job is missing, and which group is at its limit.
    let again = [reserved(b"b", 2), reserved(b"b", 3)];
    let found = plant(&server, 3, b"q", &again);
    assert!(found.contains("OneLease"), "{found}");
    let found = plant(&server, 3, b"q", &[removed(b"never there")]);
    assert!(found.contains("NothingFromNowhere"), "{found}");
}

/// An effect a little later than everything that a server writes today.
fn reserved(id: &[u8], n: u64) -> Effect<'_> {
    const LATER_MS: u64 = 1 << 41;
    let change = Change::Reserved {
        token: (LATER_MS + n) << 20,
        deadline: LATER_MS + n + 1000,
        lease_ms: 1000,
    };
    Effect::Job { id, change }
}

fn removed(id: &[u8]) -> Effect<'_> {
    let change = Change::Removed {
        cause: RemovalCause::Acked,
        remember: 0,
    };
    Effect::Job { id, change }
}

/// Appends effects to a copy of the server's file; returns dq audit's report.
#[track_caller]
fn plant(server: &Server, db: u32, queue: &[u8], effects: &[Effect<'_>]) -> String {
    let copy = server.folder().join("planted");
    copy_folder(&files(server), &copy.join("appendonlydir"));
    let mut bytes = Vec::new();
    begin(&mut bytes);
    effects.iter().for_each(|it| encode(it, &mut bytes));
    let mut file = fs::File::options()
        .append(true)
        .open(last_aof(&copy))
        .expect("a file");
    for command in [
        &[b"SELECT", &*db.to_string().into_bytes()][..],
        &[b"DQ.APPLY", queue, &bytes],
    ] {
        write!(file, "*{}\r\n", command.len()).expect("written");
        for word in command {
            write!(file, "${}\r\n", word.len()).expect("written");
            file.write_all(word).expect("written");
            file.write_all(b"\r\n").expect("written");
        }
    }
    let output = judge(
        &program().expect("asked for"),
        &[],
        &copy.join("appendonlydir"),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

#[test]
fn what_is_planted_is_noticed() {
    if !is_asked_for() {
        return;
    }
    let server = builder().start();
    Traffic::new(&server, 7).run(300);
    written(&mut server.connect());
    let terms = Terms {
        priority: 0,
        ttr_ms: 1000,
        max_attempts: 0,
        rest: Attrs::NONE,
    };
    let added = |due| {
        Effect::Came(Came {
            id: b"a",
            payload: b"",
            terms: terms.clone(),
            group: None,
            how: How::New { due, expires: 0 },
        })
    };
    for (effects, rule) in [
        (vec![added((1 << 41) + 5), reserved(b"a", 4)], "NeverEarly"),
        (
            vec![added(5), reserved(b"a", 4), reserved(b"a", 5)],
            "OneLease",
        ),
        (vec![added(5), removed(b"a")], "StaleNeverActs"),
        (vec![removed(b"a")], "NothingFromNowhere"),
        (vec![added(5), Effect::Dropped], "NothingLost"),
    ] {
        let found = plant(&server, 9, b"a new one", &effects);
        assert!(found.contains(rule), "{rule}: {found}");
    }
}
