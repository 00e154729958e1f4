//! The memory that queues take: given back when jobs are removed, and reported correctly. Ratios within one run, on one
//! server. `DQ_MEMORY_JOBS=1000000` makes the queues large.

use std::time::Duration;

use crate::scene::{let_pass, Lines, Scene};
use crate::support::{skipped, wait_until, Raw, Reply, Server, PATIENCE};

const ROUNDS: usize = 10;
/// Buffers of clients and the like: little against a few megabytes of jobs.
const NOISE: f64 = 512.0 * 1024.0;

fn jobs() -> usize {
    let jobs = std::env::var("DQ_MEMORY_JOBS").ok();
    jobs.and_then(|jobs| jobs.parse().ok()).unwrap_or(20_000)
}

fn used(server: &Server) -> f64 {
    server.number("memory", "used_memory") as f64
}

/// Runs a line for the numbers from 0 up to `count` on the server: `@` is the number, `?` pads it to a width
/// that its hash decides. A script for each thousand, so that the client costs nothing.
pub fn for_all(client: &mut Raw, count: usize, line: &str) {
    const SCRIPT: &str = "\
        for n = ARGV[1], ARGV[2] - 1 do \
            local words = {} \
            for i = 3, #ARGV do \
                local pad = string.rep('x', n * 7919 % 60) \
                words[i - 2] = string.gsub(string.gsub(ARGV[i], '@', n), '?', pad) \
            end \
            redis.call(unpack(words)) \
        end";
    for from in (0..count).step_by(1000) {
        let (from, to) = (from.to_string(), (from + 1000).min(count).to_string());
        let mut words: Vec<&[u8]> = vec![b"EVAL", SCRIPT.as_bytes(), b"0"];
        words.extend([from.as_bytes(), to.as_bytes()]);
        words.extend(line.split(' ').map(str::as_bytes));
        let reply = client.call(&words);
        assert_eq!(reply, Reply::NullBulk, "{line}");
    }
}

/// AddressSanitizer keeps freed memory for a while.
pub fn is_sanitized(server: &Server) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", server.pid()));
    maps.is_ok_and(|maps| maps.contains("libasan"))
}

/// Round after round of jobs that come and go, by all ways of going.
#[test]
fn rounds_of_jobs_leave_nothing_behind() {
    let server = Server::start();
    let mut client = server.raw();
    let count = jobs();
    // Warm: buffers, the script, the key itself.
    client.says("DQ.CFGSET q", "+OK");
    for_all(&mut client, 1000, "DQ.ADD q warm-@ payload-?");
    client.says("DQ.PURGE q ALL", "1000");
    let_settle(&mut client);
    let before = used(&server);
    let mut rss = Vec::new();
    for round in 0..ROUNDS {
        for_all(&mut client, count, "DQ.ADD q job-@ payload-?");
        let full = used(&server);
        rss.push(server.number("memory", "used_memory_rss") as f64);
        match round % 4 {
            0 => for_all(&mut client, count, "DQ.POP q NOACK"),
            1 => {
                for_all(&mut client, count, "DQ.POP q");
                for_all(&mut client, count, "DQ.ACK q job-@");
            }
            2 => for_all(&mut client, count, "DQ.DEL q job-@"),
            _ => client.says("DQ.PURGE q ALL", &count.to_string()),
        }
        client.says("DQ.LEN q", "0");
        let gone = || used(&server) - before < (0.03 * (full - before)).max(NOISE);
        wait_until("used_memory is given back", PATIENCE, gone);
    }
    // The first rounds fill the allocator's caches; later ones may come while it cleans up.
    let early = rss[..4].iter().copied().fold(0.0, f64::max);
    let late = rss[ROUNDS - 3..].iter().copied().fold(f64::MAX, f64::min);
    println!("resident in each round: {rss:?}");
    assert!(
        is_sanitized(&server) || late < early * 1.1,
        "resident memory grows: {rss:?}"
    );
}

/// Waits until purged jobs are freed.
fn let_settle(client: &mut Raw) {
    let mut last = 0;
    wait_until("memory is at rest", PATIENCE, || {
        let now = client.int("MEMORY USAGE q");
        std::mem::replace(&mut last, now) == now
    });
}

/// What makes a queue of each shape: lines for all numbers, then lines that are run once.
const SHAPES: [(&str, &[&str]); 9] = [
    ("no payload", &["DQ.ADD q @ "]),
    ("small payloads", &["DQ.ADD q job:@ ?"]),
    (
        "large payloads",
        &["DQ.ADD q job:@ ????????????????????????????????????????"],
    ),
    (
        "delayed by priorities",
        &["DQ.ADD q job:@ payload DELAY 9@ PRIORITY @"],
    ),
    ("delivered", &["DQ.ADD q job:@ ?", "DQ.POP q TTR 9000000"]),
    ("with a TTL", &["DQ.ADD q job:@ ? TTL 90000000"]),
    ("with ladders", &["DQ.ADD q job:@ ? BACKOFF 4 1@ 2@ 3@ 4@"]),
    (
        "dead",
        &["DQ.ADD q job:@ ?", "DQ.POP q", "DQ.NACK q job:@ FATAL"],
    ),
    (
        "remembered",
        &[
            "DQ.CFGSET q DEDUPE 90000000",
            "DQ.ADD q job-number-@ x",
            "DQ.POP q NOACK",
        ],
    ),
];

/// MEMORY USAGE compared with what the server has allocated since the queue was created.
#[test]
fn memory_usage_tells_the_truth() {
    let count = jobs() / 2;
    let mut told = Vec::new();
    for (shape, lines) in SHAPES {
        let server = Server::start();
        if !server
            .info("memory", "mem_allocator")
            .starts_with("jemalloc")
        {
            return skipped("MEMORY USAGE reckons with the sizes of jemalloc");
        }
        let mut client = server.raw();
        // Warm, as above.
        for line in lines {
            for_all(
                &mut client,
                10,
                &line.replace(" q ", " warm ").replace(" q", " warm"),
            );
        }
        let before = used(&server);
        for line in lines {
            let times = if line.starts_with("DQ.CFGSET") {
                1
            } else {
                count
            };
            for_all(&mut client, times, line);
        }
        let taken = used(&server) - before;
        let usage = client.int("MEMORY USAGE q SAMPLES 0") as f64;
        let per_job = (taken / count as f64, usage / count as f64);
        told.push(format!(
            "{shape}: {:.0} bytes a job, MEMORY USAGE says {:.0}",
            per_job.0, per_job.1
        ));
        assert!((usage / taken - 1.0).abs() < 0.1, "{told:#?}");
    }
    println!("{told:#?}");
}

/// Large queues are removed while clients wait on them, leases run and due times come: nothing of them returns, and the
/// names can be used again.
#[test]
fn large_queues_go_with_waiters_and_timers() {
    let count = jobs();
    for removal in [
        "UNLINK q",
        "DEL q",
        "FLUSHDB ASYNC",
        "FLUSHALL ASYNC",
        "FLUSHALL SYNC",
    ] {
        // I/O threads keep some memory of each client.
        let server = Server::builder().config("io-threads", 1).start();
        let mut client = server.raw();
        for_all(&mut client, 10, "DQ.ADD warm @ x");
        client.says("FLUSHALL", "+OK");
        let before = used(&server);
        // Nothing is delivered, yet leases end, TTLs and due times come: before, while and after it goes.
        client.says("DQ.PAUSE q", "+OK");
        client.says("DQ.CFGSET q TTR 1000", "+OK");
        for_all(&mut client, 100, "DQ.ADD q leased-@ x");
        client.says("DQ.RESUME q", "+OK");
        client.run("DQ.POP q COUNT 100");
        client.says("DQ.PAUSE q", "+OK");
        for_all(
            &mut client,
            count,
            "DQ.ADD q job-@ payload-? TTL 90000 DELAY 1000",
        );
        let full = used(&server);
        let mut waiting = server.waiting("DQ.BPOP none q 0");
        let mut other = server.waiting("DQ.BPOP other 0");
        client.run(removal);
        assert_eq!(client.int("DQ.LEN q"), 0, "{removal}");
        wait_until("the memory is given back", PATIENCE, || {
            used(&server) - before < (0.05 * (full - before)).max(NOISE)
        });
        // After the leases and due times of the removed jobs.
        let ended = server.number("dq", "dq_timed_out_total");
        let_pass(Duration::from_millis(1100));
        let ended_since = server.number("dq", "dq_timed_out_total") - ended;
        assert_eq!(ended_since, 0, "{removal}");
        assert_eq!(server.blocked(), 2, "{removal}");
        client.says("DQ.ADD q job-1 new", "'job-1'");
        assert_eq!(waiting.delivery().payload, "new", "{removal}");
        client.says("DQ.ADD other job-2 new", "'job-2'");
        assert_eq!(other.delivery().payload, "new", "{removal}");
    }
}

/// The buffer that carries a payload to replicas and AOF is not kept, nor is any other of that size.
#[test]
fn a_large_payload_leaves_nothing_behind() {
    const LARGE: usize = 48 << 20;
    let server = Server::builder().aof().start();
    let mut client = server.raw();
    client.says("DQ.ADD q small x", "'small'");
    let before = used(&server);
    let mut adding = server.raw();
    let large = vec![b'x'; LARGE];
    assert_eq!(
        adding.call(&[b"DQ.ADD", b"q", b"large", &large]),
        Reply::bulk("large")
    );
    drop(adding);
    // No command of ours comes after.
    client.says("DEL q", "1");
    wait_until("its memory is given back", PATIENCE, || {
        used(&server) < before + LARGE as f64 / 4.0
    });
}

/// The terms of jobs are freed with them, even if the queue remains.
#[test]
fn terms_of_jobs_that_went_are_freed() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.CFGSET q", "+OK");
    for_all(&mut client, 10, "DQ.ADD q job:@ x");
    for_all(&mut client, 10, "DQ.DEL q job:@");
    let before = client.int("MEMORY USAGE q");
    const LADDER: &str = "BACKOFF 4 1@ 2@ 3@ 4@";
    for_all(&mut client, 4000, &format!("DQ.ADD q job:@ x {LADDER}"));
    let full = client.int("MEMORY USAGE q");
    client.says("DQ.ADD q stays x", "'stays'");
    for_all(&mut client, 4000, "DQ.DEL q job:@");
    let one = client.int("MEMORY USAGE q");
    client.says("DQ.DEL q stays", "1");
    let none = client.int("MEMORY USAGE q");
    println!("{before} before, {full} full, {one} with one job, {none} with none");
    assert!(none < before + full / 100);
    assert!(one < full / 2, "the ladders are gone though a job stays");
}
