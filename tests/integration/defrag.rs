//! Active defragmentation of queues. Only a server with the jemalloc that comes with Redis knows it:
//! `make defrag`.

use std::time::{Duration, Instant};

use crate::memory::for_all;
use crate::scene::{Lines, Scene};
use crate::support::{poll, skipped, wait_until, Raw, Server, PATIENCE};

const JOBS: usize = 120_000;

/// A server whose defragmentation can be switched on, and on small heaps.
fn server() -> Option<(Server, Server)> {
    let server = Server::start();
    let mut client = server.raw();
    if client.ask("CONFIG SET activedefrag yes").starts_with('-') {
        skipped("this server has no active defragmentation");
        return None;
    }
    client.says("CONFIG SET activedefrag no", "+OK");
    client.says("CONFIG SET active-defrag-ignore-bytes 1mb", "+OK");
    client.says("CONFIG SET active-defrag-threshold-lower 5", "+OK");
    client.says("CONFIG SET active-defrag-cycle-min 60", "+OK");
    client.says("CONFIG SET active-defrag-cycle-max 75", "+OK");
    let replica = Server::start();
    replica.replica_of(&server);
    Some((server, replica))
}

/// Jobs of all kinds, three of four of which are removed again, in random places.
fn leave_holes(client: &mut Raw, key: &str) {
    let fill = |client: &mut Raw, line: &str| for_all(client, JOBS / 4, &line.replace("KEY", key));
    client.says(&format!("DQ.CFGSET {key} DEDUPE 90000000"), "+OK");
    fill(
        client,
        "DQ.ADD KEY l@ payload-of-a-job-? TTR 90000000 PRIORITY -1",
    );
    fill(client, "DQ.POP KEY");
    fill(
        client,
        "DQ.ADD KEY a@ payload-of-a-job-? DELAY 9000000 TTL 90000000",
    );
    // Each in a group of its own, except a few groups with many jobs.
    fill(client, "DQ.ADD KEY b@ payload-of-a-job-? GROUP of-@");
    fill(client, "DQ.ADD KEY g@ payload-of-a-job-? GROUP few");
    fill(
        client,
        "DQ.ADD KEY c@ payload-of-a-job-? PRIORITY @ DELAY 9@",
    );
    // At random, as pages that are all equally full would not be worth moving.
    let script = "for n = 0, ARGV[1] - 1 do if math.random(4) > 1 then \
        redis.call('DQ.ACK', KEYS[1], 'l' .. n) \
        redis.call('DQ.DEL', KEYS[1], 'a' .. n, 'b' .. n, 'c' .. n, 'g' .. n) end end";
    let count = (JOBS / 4).to_string();
    let call: [&[u8]; 5] = [
        b"EVAL",
        script.as_bytes(),
        b"1",
        key.as_bytes(),
        count.as_bytes(),
    ];
    client.call(&call);
}

/// Pages in use relative to bytes in use.
fn fragmentation(server: &Server) -> f64 {
    let bytes = |field| server.number("memory", field) as f64;
    bytes("allocator_active") / bytes("allocator_allocated")
}

#[test]
fn fragmented_queues_are_moved_together() {
    let Some((server, replica)) = server() else {
        return;
    };
    let mut client = server.raw();
    leave_holes(&mut client, "q");
    // Small queues go at once, without a cursor.
    for_all(&mut client, 200, "DQ.ADD small:@ a payload-?");
    let digest = server.digest();
    let before = fragmentation(&server);
    assert!(before > 1.3, "hardly fragmented: {before}");
    // It does not improve by itself.
    let better = |by: f64| fragmentation(&server) - 1.0 < (before - 1.0) * by;
    assert!(poll(Duration::from_secs(1), || better(0.9).then_some(())).is_none());
    client.says("CONFIG SET activedefrag yes", "+OK");
    let start = Instant::now();
    wait_until("pages are full again", PATIENCE * 2, || better(0.5));
    println!(
        "{before} -> {} in {:?}",
        fragmentation(&server),
        start.elapsed()
    );
    assert!(server.number("stats", "active_defrag_key_hits") > 0);
    assert_eq!(server.digest(), digest);
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(server.digest(), digest);
    server.assert_followed_by(&[&replica]);
}

/// Between the steps anything may happen to a queue, including its deletion.
#[test]
fn traffic_goes_on_meanwhile() {
    let Some((server, replica)) = server() else {
        return;
    };
    let mut client = server.raw();
    // Even small queues in steps.
    client.says("CONFIG SET active-defrag-max-scan-fields 1", "+OK");
    client.says("CONFIG SET activedefrag yes", "+OK");
    for (round, removal) in ["DEL", "DQ.PURGE", "RENAME"].into_iter().enumerate() {
        leave_holes(&mut client, "big");
        let mut traffic = crate::traffic::Traffic::new(&server, 7 + round as u64);
        let start = server.number("stats", "active_defrag_hits");
        wait_until("much has moved under traffic", PATIENCE * 2, || {
            // On small queues, which come and go; and on the large one.
            traffic.run(50);
            client.run("DQ.POP big COUNT 5 NOACK");
            client.run("DQ.ADD big * a-payload PRIORITY -2");
            client.run("DQ.POP big TTR 20");
            client.run("DQ.PURGE big DEAD");
            server.number("stats", "active_defrag_hits") > start + 1000
        });
        client.run(&match removal {
            "DEL" => "DEL big".to_owned(),
            "DQ.PURGE" => "DQ.PURGE big ALL".to_owned(),
            _ => "RENAME big elsewhere".to_owned(),
        });
        traffic.run(500);
        server.assert_followed_by(&[&replica]);
    }
    server.assert_no_crash();
}
