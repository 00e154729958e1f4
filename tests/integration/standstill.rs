//! After a standstill of the server: overdue jobs are shown and purged as what they have become, at once, however many
//! they are and whatever the timer has done.

use crate::probe::packed;
use crate::scene::Lines;
use crate::support::{wait_until, Raw, Server, PATIENCE};

const STATES: [&str; 4] = ["DELAYED", "READY", "RESERVED", "DEAD"];

/// Adds so many jobs and reserves them for a while.
fn reserve(client: &mut Raw, key: &str, count: usize, options: &str) {
    let add = format!(
        "for i = 1, {count} do redis.call('DQ.ADD', KEYS[1], ARGV[1] .. i, 'x' {options}) end"
    );
    client.call(&[b"EVAL", add.as_bytes(), b"1", key.as_bytes(), b"j"]);
    client.run(&format!("DQ.POP {key} COUNT {count} TTR 1500"));
}

/// Sleeps past all leases; what is asked next is answered before the timer fires.
fn after_a_standstill(client: &mut Raw, lines: &[String]) -> Vec<String> {
    let sleep = packed("DEBUG SLEEP 2");
    let lines_packed = lines.iter().map(|line| packed(line));
    let all: Vec<Vec<u8>> = [sleep].into_iter().chain(lines_packed).collect();
    client.send(&all.concat());
    client.read();
    lines.iter().map(|_| client.reply()).collect()
}

fn lens(key: &str) -> Vec<String> {
    let lens = STATES.iter().map(|state| format!("DQ.LEN {key} {state}"));
    lens.chain([format!("DQ.LEN {key}")]).collect()
}

/// Half of them have no attempt left.
fn half_dying(client: &mut Raw, key: &str, count: usize) {
    reserve(client, key, count, ", 'ATTEMPTS', i % 2");
}

#[test]
fn lengths_are_those_of_the_instant() {
    for count in [20_000, 100_000] {
        let server = Server::start();
        let mut client = server.raw();
        half_dying(&mut client, "q", count);
        client.run("DQ.ADD q held x");
        client.run("DQ.POP q TTR 1000000");
        let half = (count / 2).to_string();
        let live = (count / 2 + 1).to_string();
        let said = after_a_standstill(&mut client, &lens("q"));
        assert_eq!(said, ["0", &half, "1", &half, &live]);
    }
}

#[test]
fn stats_and_looks_agree() {
    let server = Server::start();
    let mut client = server.raw();
    half_dying(&mut client, "q", 20_000);
    let lines = ["DQ.STATS q", "DQ.PEEK q RESERVED COUNT 100000"].map(String::from);
    let said = after_a_standstill(&mut client, &lines);
    for field in [
        "'delayed' 0",
        "'ready' 10000",
        "'reserved' 0",
        "'dead' 10000",
    ] {
        assert!(said[0].contains(field), "{field} in {}", said[0]);
    }
    assert_eq!(said[1], "[ ]");
}

#[test]
fn a_purge_takes_all_of_its_state() {
    for count in [20_000, 100_000] {
        for (state, others) in [("READY", "DEAD"), ("DEAD", "READY")] {
            let mut master = Server::builder().aof().start();
            let replica = Server::start();
            replica.follow(&master);
            let mut client = master.raw();
            half_dying(&mut client, "q", count);
            let half = (count / 2).to_string();
            let lines = [
                format!("DQ.PURGE q {state}"),
                format!("DQ.LEN q {state}"),
                format!("DQ.LEN q {others}"),
                "DQ.PURGE q RESERVED".into(),
            ];
            let said = after_a_standstill(&mut client, &lines);
            assert_eq!(said, [&half, "0", &half, "0"], "{state} of {count}");
            // The timer ends what is left of the leases.
            wait_until("the leases end", PATIENCE, || {
                client.ask("DQ.PEEK q RESERVED") == "[ ]" && replica.digest() == master.digest()
            });
            let digest = master.digest();
            master.restart();
            assert_eq!(master.digest(), digest, "as the AOF tells it");
        }
    }
}

/// All jobs of one group have died, so it holds none.
#[test]
fn groups_hold_what_is_theirs_at_that_instant() {
    for count in [20_000, 90_000] {
        let server = Server::start();
        let mut client = server.raw();
        let options = ", 'ATTEMPTS', i % 2, 'GROUP', 'g' .. i % 2";
        reserve(&mut client, "q", count, options);
        let lines = [
            "DQ.LEN q GROUP g0",
            "DQ.LEN q GROUP g1",
            "DQ.GROUPS q 0",
            "DQ.STATS q",
        ];
        let said = after_a_standstill(&mut client, &lines.map(String::from));
        let half = (count / 2).to_string();
        assert_eq!(said[..2], [half.clone(), "0".into()]);
        assert_eq!(said[2], format!("[ '0' [ [ 'g0' {half} 0 ] ] ]"));
        assert!(said[3].contains("'groups' 1 "), "{}", said[3]);
    }
}

/// A TTL that has ended removes a job from every state.
#[test]
fn jobs_whose_ttl_is_over_are_in_no_state() {
    let server = Server::start();
    let mut client = server.raw();
    reserve(&mut client, "q", 20_000, ", 'TTL', 1700, 'ATTEMPTS', i % 2");
    let said = after_a_standstill(&mut client, &lens("q"));
    assert_eq!(said, ["0", "0", "0", "0", "0"]);
    let add = "for i = 1, 20000 do redis.call('DQ.ADD', KEYS[1], '*', 'x', 'TTL', 1500, 'DELAY', i % 2 * 5000) end";
    client.call(&[b"EVAL", add.as_bytes(), b"1", b"q"]);
    let lines = ["DQ.LEN q", "DQ.PURGE q READY", "DQ.PURGE q DELAYED"].map(String::from);
    assert_eq!(after_a_standstill(&mut client, &lines), ["0", "0", "0"]);
}

/// Nobody carries out the end of a lease while writes are paused: what asks is told of the instant all the same.
#[test]
fn looks_agree_while_writes_are_paused() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.ADD q again x");
    client.run("DQ.ADD q dies x ATTEMPTS 1");
    client.run("DQ.POP q COUNT 2 TTR 500");
    client.says("CLIENT PAUSE 600000 WRITE", "+OK");
    wait_until("the leases are over", PATIENCE, || {
        client.ask("DQ.LEN q RESERVED") == "0"
    });
    for (id, state) in [("again", "ready"), ("dies", "dead")] {
        let job = client.ask(&format!("DQ.GET q {id}"));
        assert!(job.contains(&format!("'state' '{state}'")), "{job}");
        for none in ["'deadline' nil", "'started' nil", "'client' nil"] {
            assert!(job.contains(none), "{job}");
        }
    }
    client.says("DQ.EXPLAIN q again", "[ [ 'idle' 1 nil$ ] ]");
    client.says("DQ.EXPLAIN q dies", "[ [ 'dead' nil$ nil$ ] ]");
    client.says("DQ.EXPLAIN q", "[ [ 'idle' 1 nil$ ] ]");
    let stats = client.ask("DQ.STATS q");
    assert!(stats.contains("'ready' 1 'reserved' 0 'dead' 1"), "{stats}");
    assert!(!stats.contains("'oldest-ready-ms' nil"), "{stats}");
    client.says("CLIENT UNPAUSE", "+OK");
    wait_until("the timer has ended them", PATIENCE, || {
        client.ask("DQ.GET q dies").contains("'lease\\x20ended'")
    });
    client.says("DQ.LEN q DEAD", "1");
}

/// More than one step takes: what waits for a group that this empties comes, wherever the queue is read again.
#[test]
fn a_large_purge_frees_what_waits_for_its_group() {
    let mut master = Server::builder().aof().start();
    let replica = Server::start();
    replica.follow(&master);
    let mut client = master.raw();
    let fill =
        "for i = 1, 50000 do redis.call('DQ.ADD', KEYS[1], '*', 'x', 'GROUP', 'g' .. i % 2) end";
    client.call(&[b"EVAL", fill.as_bytes(), b"1", b"q"]);
    for group in ["g0", "g1"] {
        client.run(&format!("DQ.ADD q of-{group} x AFTER GROUP {group}"));
    }
    client.says("DQ.LEN q BLOCKED", "2");
    client.says("DQ.PURGE q READY", "50000");
    wait_until("both are ready", PATIENCE, || {
        client.ask("DQ.LEN q READY") == "2"
    });
    replica.wait_for_offset_of(&master);
    replica.assert_same_data_as(&master);
    let digest = master.digest();
    for preamble in ["yes", "no"] {
        let mut client = master.raw();
        client.says(
            &format!("CONFIG SET aof-use-rdb-preamble {preamble}"),
            "+OK",
        );
        wait_until("a rewrite has begun", PATIENCE, || {
            client.ask("BGREWRITEAOF").contains("started")
        });
        wait_until("the AOF is rewritten", PATIENCE, || {
            master.info("persistence", "aof_rewrite_in_progress") == "0"
        });
        master.restart();
        assert_eq!(master.digest(), digest, "preamble {preamble}");
    }
}
