//! The timer: never early, late only under load, in small steps, and idle when there is nothing to do.

use std::time::{Duration, Instant};

use crate::probe::{show, Probe};
use crate::scene::{let_pass, now_ms, pair, Delivery, Lines, Scene};
use crate::support::{cluster::Cluster, raw, wait_until, Raw, Reply, Server, PATIENCE};

/// Guards against the module timers of Redis 7.0, whose period overflows above 2,147,483 ms and then spins; and against
/// anything else that would keep the server from sleeping.
#[test]
fn far_deadlines_cost_nothing() {
    const DAY: u64 = 86_400_000;
    let interval = Duration::from_millis(1500);
    for delay in [40 * DAY, 2_147_484, 4_294_968, 365 * 70 * DAY, 3600 * 1000] {
        let (busy, empty) = (Server::start(), Server::start());
        let mut client = busy.raw();
        client.run(&format!("DQ.ADD q delayed x DELAY {delay} TTL {delay}"));
        client.run("DQ.ADD q leased x");
        client.run(&format!("DQ.POP q TTR {delay}"));
        client.run(&format!("DQ.PAUSE paused {delay}"));
        client.run("DQ.ADD paused a x");
        client.run(&format!("DQ.CFGSET once RATE 1 {delay} DEDUPE {delay}"));
        client.run("DQ.ADD once a x");
        client.run("DQ.POP once NOACK");
        client.run("DQ.ADD once b x");
        let waits = [
            busy.waiting("DQ.BPOP q 0"),
            busy.waiting(&format!("DQ.BPOP q none {}", delay / 1000)),
            busy.waiting("DQ.BPOP paused once 0"),
        ];
        let before = (busy.cpu(), empty.cpu());
        let_pass(interval);
        let (of_busy, of_empty) = (busy.cpu() - before.0, empty.cpu() - before.1);
        assert!(
            of_busy < of_empty + interval.as_secs_f64() / 5.0,
            "{delay} ms away: {of_busy} s of CPU in {interval:?}, an empty server {of_empty} s"
        );
        drop(waits);
    }
}

#[test]
fn an_idle_server_does_not_wake_for_its_queues() {
    let server = Server::start();
    let mut client = server.raw();
    for number in 0..2000 {
        client.begin(&format!("DQ.ADD q{} {number} x DELAY 3600000", number % 50));
    }
    (0..2000).for_each(|_| drop(client.read()));
    let _waiting = server.waiting("DQ.BPOP q0 q1 0");
    let fires = server.number("dq", "dq_timer_fires_total");
    let_pass(Duration::from_millis(1200));
    assert!(server.number("dq", "dq_timer_fires_total") <= fires + 1);
}

/// No client and no timer is woken before something fits.
#[test]
fn a_costly_job_costs_no_time_while_it_waits() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("DQ.CFGSET q RATE 3 600000 GROUPRATE 2 600000");
    for (id, group) in [("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")] {
        client.run(&format!("DQ.ADD q {id} x GROUP {group} COST 2"));
    }
    client.run("DQ.POP q");
    let mut waits = server.raw();
    waits.begin("DQ.BPOP q 0.5");
    let fires = || server.number("dq", "dq_timer_fires_total");
    let before = fires();
    assert_eq!(waits.reply(), "nil*");
    let fired = fires() - before;
    assert!(fired <= 4, "{fired} fires");
}

#[test]
fn delays_count_from_the_next_full_millisecond() {
    let mut p = Probe::start();
    for i in 0..50 {
        let before = p.time_us();
        p.run(&format!("DQ.ADD q {i} x DELAY 100000 TTL 200000"));
        let after = p.time_us();
        let get = format!("DQ.GET q {i}");
        let due = p.field_int(&get, "due") as u64;
        let expires = p.field_int(&get, "expires") as u64;
        assert!(
            due * 1000 >= before + 100_000_000,
            "a delay is never shorter"
        );
        assert!(due * 1000 < after + 100_001_000, "nor a millisecond longer");
        assert_eq!(expires, due + 100_000);
    }
}

/// The payload contains the job's due time: no delivery may be earlier.
#[test]
fn never_early() {
    let server = Server::start();
    let mut waiting: Vec<Raw> = (0..8)
        .map(|_| server.waiting("DQ.BPOP q 0 TTR 37"))
        .collect();
    let mut client = server.raw();
    let start = now_ms() + 100;
    for number in 0..400u64 {
        let due = start + number * 7 % 1000;
        client.says(
            &format!("DQ.ADD q {number} {due} AT {due} ATTEMPTS 2"),
            &format!("'{number}'"),
        );
    }
    let mut deadlines = std::collections::HashMap::new();
    let (mut first, mut second) = (0, 0);
    while first + second < 800 {
        for client in &mut waiting {
            let Some(reply) = client.try_read(Duration::from_millis(2)) else {
                continue;
            };
            let now = now_ms();
            let job = Delivery::of(&reply).unwrap_or_else(|| panic!("{}", show(&reply)));
            let due: u64 = job.payload.parse().expect("an instant");
            assert!(now >= due, "{} came {} ms early", job.id, due - now);
            match deadlines.insert(job.id.clone(), job.deadline) {
                None => first += 1,
                Some(lease_end) => {
                    assert!(
                        now >= lease_end,
                        "{} came back before its lease's end",
                        job.id
                    );
                    second += 1;
                }
            }
            client.begin("DQ.BPOP q 0 TTR 37");
        }
    }
    wait_until(
        "all have died of their second lease's end",
        PATIENCE,
        || client.int("DQ.LEN q DEAD") == 400,
    );
    assert_eq!(client.int("DQ.LEN q"), 0);
}

/// A POP before the due time does not find the job, and one at the due time does, whatever the timer has done.
#[test]
fn at_the_millisecond() {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..30 {
        let due = now_ms() + 15;
        client.run(&format!("DQ.ADD q {round} x AT {due}"));
        loop {
            let before = now_ms();
            let found = Delivery::of(&client.run("DQ.POP q")).is_some();
            assert!(!found || now_ms() >= due, "found before {due}");
            assert!(found || before < due, "not found at {before}, due at {due}");
            if found {
                break;
            }
        }
    }
}

/// Guards against an abort of the server: nothing may be replicated from a timer while clients are paused.
#[test]
fn while_clients_are_paused() {
    for kind in ["WRITE", "ALL"] {
        let (master, replica) = pair(Server::builder().aof());
        let mut client = master.raw();
        let mut waiting = master.waiting("DQ.BPOP q 0");
        let mut timed_out = master.waiting("DQ.BPOP none 0.5");
        let gone = master.waiting("DQ.BPOP q none 0 NOACK");
        client.says("DQ.ADD q leased x", "'leased'");
        assert_eq!(waiting.delivery().id, "leased");
        client.run("DQ.TOUCH q leased TTR 300");
        client.says("DQ.ADD q due x DELAY 320", "'due'");
        client.says("DQ.ADD q dies x DELAY 60000 TTL 300", "'dies'");
        client.says("DQ.ADD other dies x DELAY 60000 TTL 300", "'dies'");
        let all_is_due = now_ms() + 320;
        // A pause that also blocks UNPAUSE has to end by itself.
        let pause_ms = if kind == "ALL" { 1500 } else { 3_600_000 };
        let until = now_ms() + pause_ms;
        client.says(&format!("CLIENT PAUSE {pause_ms} {kind}"), "+OK");
        drop(gone);
        let mut waiting = master.raw();
        waiting.begin("DQ.BPOP q 0");
        if kind == "WRITE" {
            // Waits end in time, and queries change nothing.
            let digest = master.digest();
            assert_eq!(timed_out.read(), Reply::NullArray);
            while now_ms() < all_is_due + 500 {
                client.run("DQ.LEN q RESERVED");
                client.run("DQ.STATS q");
                client.run("DQ.SCAN other 0");
            }
            assert_eq!(master.digest(), digest);
            client.says("CLIENT UNPAUSE", "+OK");
            waiting.delivery();
        } else {
            let job = waiting.delivery();
            assert!(now_ms() >= until, "{} was delivered in the pause", job.id);
        }
        wait_until("all is done after the pause", PATIENCE, || {
            client.int("EXISTS other") == 0
        });
        master.assert_followed_by(&[&replica]);
        master.assert_no_crash();
    }
}

/// FAILOVER pauses clients while the replica catches up, and takes the role away at last.
#[test]
fn while_a_failover_goes_on() {
    let (master, replica) = pair(Server::builder().aof().config("repl-timeout", 3600));
    let mut client = master.raw();
    client.says("DQ.ADD q a x DELAY 500", "'a'");
    client.says("DQ.ADD q l x", "'l'");
    client.run("DQ.POP q TTR 500");
    let mut waiting = master.waiting("DQ.BPOP q 0");
    replica.signal("STOP");
    client.says("SET behind x", "+OK");
    client.says("FAILOVER TIMEOUT 1500", "+OK");
    let begun = now_ms();
    let state = || master.info("replication", "master_failover_state");
    assert_eq!(state(), "waiting-for-sync");
    // Due times and lease ends come while it waits; the server must neither write nor die.
    wait_until("the failover is given up", PATIENCE, || {
        state() == "no-failover"
    });
    replica.signal("CONT");
    assert!(["a", "l"].contains(&waiting.delivery().id.as_str()));
    assert!(now_ms() >= begun + 1400);
    replica.wait_for_link();
    master.assert_followed_by(&[&replica]);

    // And one that succeeds, with jobs under way.
    for number in 0..20 {
        client.run(&format!("DQ.ADD q j{number} x DELAY {}", 20 * number));
    }
    let mut waiting = [master.waiting("DQ.BPOP p 0"), master.waiting("DQ.BPOP p 0")];
    client.says("FAILOVER", "+OK");
    wait_until("the roles have changed", PATIENCE, || {
        replica.info("replication", "role") == "master"
            && master.info("replication", "role") == "slave"
    });
    for client in &mut waiting {
        assert!(client.reply().starts_with("-UNBLOCKED "));
    }
    let mut there = replica.raw();
    for _ in 0..20 {
        there.begin("DQ.BPOP q 0");
        there.delivery();
    }
    master.wait_for_link();
    replica.assert_followed_by(&[&master]);
}

/// Guards against an abort, and against lost effects: a shutdown waits for replicas while clients are paused.
#[test]
fn while_shutting_down() {
    let (mut master, replica) = pair(
        Server::builder()
            .aof()
            .config("shutdown-timeout", 2)
            .config("repl-timeout", 3600),
    );
    let mut client = master.raw();
    client.says("DQ.ADD q a x DELAY 600", "'a'");
    client.says("DQ.ADD q l x ATTEMPTS 1", "'l'");
    client.run("DQ.POP q TTR 600");
    let _waiting = master.waiting("DQ.BPOP q 0");
    replica.signal("STOP");
    client.says("SET behind x", "+OK");
    client.begin("SHUTDOWN");
    master.wait_for_end();
    replica.signal("CONT");
    master.assert_no_crash();
    master.restart();
    let mut client = master.raw();
    client.begin("DQ.BPOP q 0");
    assert_eq!(client.delivery().id, "a");
    client.says("DQ.LEN q DEAD", "1");
}

/// The event loop runs within a busy script, but no timer fires there: things are late, but nothing worse.
#[test]
fn while_a_script_is_busy() {
    let (server, replica) = pair(Server::builder().aof().config("busy-reply-threshold", 20));
    let mut client = server.raw();
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let mut second = server.waiting("DQ.BPOP q 0");
    client.says("DQ.ADD leases l x", "'l'");
    client.run("DQ.POP leases TTR 100");
    client.says("DQ.ADD q due x DELAY 100", "'due'");
    // If a script's clock stands still, a number of rounds ends it.
    let busy: &[u8] =
        b"local function ms() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end \
        redis.call('DQ.ADD', KEYS[1], 'of-script', 'x', 'DELAY', 50) \
        local start, n = ms(), 0 repeat n = n + 1 until ms() - start > 700 or n > 1500000 \
        return redis.call('DQ.LEN', KEYS[1])";
    client.send(&raw::encode(&[b"EVAL", busy, b"1", b"q"]));
    let mut other = server.raw();
    wait_until("the script is busy", PATIENCE, || {
        other.ask("GET x").starts_with("-BUSY ")
    });
    // Another client makes the event loop run, and a job becomes due meanwhile.
    let due = now_ms() + 150;
    while now_ms() < due {
        other.ask("GET x");
    }
    assert_eq!(
        client.read(),
        Reply::Integer(2),
        "the script has seen both jobs"
    );
    let mut ids = [waiting.delivery().id, second.delivery().id];
    ids.sort();
    assert_eq!(ids, ["due", "of-script"]);
    wait_until("the lease has ended", PATIENCE, || {
        client.int("DQ.LEN leases READY") == 1
    });
    server.assert_followed_by(&[&replica]);
}

/// Jobs become due, and the timer's descriptor is read, during loading.
#[test]
fn while_loading() {
    let (server, replica) = pair(
        Server::builder()
            .aof()
            .config("key-load-delay", 1000)
            .config("loading-process-events-interval-bytes", 1024),
    );
    let mut client = server.raw();
    for number in 0..1200 {
        client.run(&format!("SET filler{number} {}", "x".repeat(200)));
    }
    client.run("DQ.ADD q l x");
    client.run("DQ.POP q TTR 700");
    client.run("DQ.ADD q d x DELAY 700");
    client.run("DQ.ADD q e x DELAY 60000 TTL 700");
    let due = now_ms() + 690;
    let mut waiting = [
        server.waiting("DQ.BPOP q 0"),
        server.waiting("DQ.BPOP other q 0"),
    ];
    let mut short = server.waiting("DQ.BPOP none 0.7");
    let _leaves = server.waiting("DQ.BPOP q 0");
    client.begin("DEBUG RELOAD");
    let mut other = server.raw();
    wait_until("it loads", PATIENCE, || {
        other.ask("GET x").starts_with("-LOADING ")
    });
    while now_ms() < due {
        other.ask("GET x");
    }
    let _ = other.ask("INFO dq");
    assert_eq!(client.reply(), "+OK");
    for client in &mut waiting {
        client.delivery();
        assert!(now_ms() >= due);
    }
    assert_eq!(short.read(), Reply::NullArray);
    assert_eq!(server.number("dq", "dq_expired_total"), 1);
    server.assert_followed_by(&[&replica]);
}

/// How many leases have ended, as a client sees it while all those of `q` end at once. The server sleeps until they are
/// over, and by then has more commands waiting than it reads at once. So between two reads it decides itself about a
/// step of the timer, whatever else runs on this machine.
fn seen_between_steps(server: &Server, jobs: usize) -> Vec<usize> {
    const LOOKS: usize = 300;
    // Sixteen of them are one read of the server's.
    let look = format!("INFO dq{}\r\n", " ".repeat(1000));
    let (mut taker, mut other) = (server.raw(), server.raw());
    for ms in [1000, 4000, 16_000] {
        let ended = server.number("dq", "dq_timed_out_total");
        let (begun, sleep) = (Instant::now(), Duration::from_millis(ms + 500));
        taker.begin(&format!("DQ.POP q COUNT {jobs} TTR {ms}"));
        taker.begin(&format!("DEBUG SLEEP {}", sleep.as_secs_f64()));
        other.send(look.repeat(LOOKS).as_bytes());
        let is_in_time = begun.elapsed() < sleep;
        let mut seen = vec![0];
        seen.extend((0..LOOKS).map(|_| (timed_out(&other.read()) - ended) as usize));
        seen.push(jobs);
        seen.dedup();
        wait_until("all leases have ended", PATIENCE, || {
            server.number("dq", "dq_timed_out_total") == ended + jobs as u64
        });
        if is_in_time {
            return seen;
        }
        (0..2).for_each(|_| drop(taker.read())); // The machine took longer.
    }
    panic!("asked too late each time");
}

fn timed_out(info: &Reply) -> u64 {
    let Reply::Bulk(text) = info else {
        panic!("{info:?}");
    };
    let text = String::from_utf8_lossy(text);
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix("dq_timed_out_total:"));
    values
        .next()
        .and_then(|value| value.parse().ok())
        .expect("the field")
}

/// No other client stalls: what is due at once is carried out in steps, each replicated by itself, and other clients'
/// commands run in between.
#[test]
fn much_at_once_is_done_in_steps() {
    const JOBS: usize = 20_000;
    const LARGEST_STEP: usize = 2000;
    let (server, replica) = pair(
        Server::builder()
            .config("appendonly", "yes")
            .config("appendfsync", "no")
            .config("no-appendfsync-on-rewrite", "yes"),
    );
    let mut client = server.raw();
    for number in 0..JOBS {
        client.begin(&format!("DQ.ADD q {number} x"));
        if number % 1000 == 999 {
            (0..1000).for_each(|_| drop(client.read()));
        }
    }
    let applied = server.count_in_aof("DQ.APPLY");
    let seen = seen_between_steps(&server, JOBS);
    println!("seen from outside: {seen:?}");
    let steps = server.count_in_aof("DQ.APPLY") - applied - 1;
    assert!(
        steps >= JOBS / LARGEST_STEP,
        "{JOBS} leases ended in {steps} steps"
    );
    assert!(seen.len() > 3, "nobody was served in between: {seen:?}");
    server.assert_followed_by(&[&replica]);
    // The same with 20,000 that vanish, and with clients waiting for some of them.
    let (mut ms, line) = (3000, "DQ.BPOP q 0 COUNT 7");
    let (at, mut waiting) = loop {
        server.wait_for_blocked(0);
        client.run("DQ.PURGE q ALL");
        let at = now_ms() + ms;
        for number in 0..JOBS {
            client.begin(&format!("DQ.ADD q {number} x AT {at}"));
            if number % 1000 == 999 {
                (0..1000).for_each(|_| drop(client.read()));
            }
        }
        let mut waiting: Vec<Raw> = (0..50).map(|_| server.raw()).collect();
        waiting.iter_mut().for_each(|client| client.begin(line));
        wait_until("they wait", PATIENCE, || {
            server.blocked() == 50 || now_ms() >= at
        });
        if now_ms() < at {
            break (at, waiting);
        }
        ms *= 4; // The machine took longer.
    };
    for client in &mut waiting {
        let Reply::Array(parts) = client.read() else {
            panic!("nothing");
        };
        assert!(now_ms() >= at);
        assert!(matches!(&parts[1], Reply::Array(jobs) if jobs.len() == 7));
    }
    server.assert_followed_by(&[&replica]);
}

/// Many queues with something to do at the same instant.
#[test]
fn many_queues_at_once() {
    const QUEUES: usize = 3000;
    let (server, replica) = pair(Server::builder().aof().config("appendfsync", "no"));
    let mut client = server.raw();
    let at = now_ms() + 1500;
    for number in 0..QUEUES {
        client.begin(&format!("SELECT {}", number % 16));
        client.begin(&format!("DQ.ADD q{number} a x"));
        client.begin(&format!("DQ.POP q{number} TTR 1200"));
        client.begin(&format!("DQ.ADD q{number} b x AT {at} TTL 4000"));
        if number % 100 == 99 {
            (0..400).for_each(|_| drop(client.read()));
        }
    }
    wait_until("all leases have ended", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") as usize == QUEUES
    });
    wait_until("all TTLs are past", PATIENCE, || {
        server.number("dq", "dq_expired_total") as usize == QUEUES
    });
    server.assert_followed_by(&[&replica]);
}

/// What delays the server itself: DEBUG SLEEP, a slow command. Everything is late, then done at once.
#[test]
fn after_the_server_slept() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    let mut waiting: Vec<Raw> = (0..10).map(|_| server.waiting("DQ.BPOP q 0")).collect();
    let mut nils: Vec<Raw> = (0..10)
        .map(|n| server.waiting(&format!("DQ.BPOP none 1.{}", 2 + n % 3)))
        .collect();
    for number in 0..10 {
        client.run(&format!("DQ.ADD q {number} x DELAY {}", 1200 + number));
    }
    client.says("DEBUG SLEEP 2", "+OK");
    for (number, client) in waiting.iter_mut().enumerate() {
        assert_eq!(
            client.delivery().id,
            number.to_string(),
            "in the order of their dues"
        );
    }
    nils.iter_mut()
        .for_each(|client| assert_eq!(client.read(), Reply::NullArray));
    server.assert_followed_by(&[&replica]);
}

/// CLUSTER FAILOVER pauses the master's clients as FAILOVER does, and gives slots away.
#[test]
fn while_a_cluster_fails_over() {
    let mut cluster = Cluster::start(3);
    let master = cluster.node_of("q");
    let replica = cluster.add_replica(master, Server::builder());
    wait_until("all know the replica, and so vote for it", PATIENCE, || {
        let knows = |node: &Server| node.raw().ask("CLUSTER NODES").contains("slave");
        cluster.nodes.iter().all(knows)
    });
    let mut client = cluster.nodes[master].raw();
    for number in 0..60 {
        client.run(&format!("DQ.ADD q {number} x DELAY {}", 30 * number));
    }
    client.says("DQ.ADD q leased x", "'leased'");
    client.run("DQ.POP q ID leased TTR 400");
    let mut consumer = cluster.nodes[master].raw();
    let mut waiting = cluster.nodes[master].waiting("DQ.BPOP {q}none 0");
    cluster.nodes[replica].raw().says("CLUSTER FAILOVER", "+OK");
    let mut taken = 0;
    loop {
        consumer.begin("DQ.BPOP q 0");
        let reply = consumer.read();
        match Delivery::of(&reply) {
            Some(_) => taken += 1,
            None => {
                break assert!(
                    matches!(&reply, Reply::Error(text) if text.starts_with("MOVED ") || text.starts_with("UNBLOCKED "))
                )
            }
        }
    }
    let ended = waiting.reply();
    assert!(
        ended.starts_with("-MOVED ") || ended.starts_with("-UNBLOCKED "),
        "{ended}"
    );
    wait_until("the replica serves", PATIENCE, || {
        cluster.nodes[replica].info("replication", "role") == "master"
            && cluster.nodes[master].info("replication", "role") == "slave"
    });
    let mut there = cluster.nodes[replica].raw();
    while taken < 61 {
        there.begin("DQ.BPOP q 20");
        there.delivery();
        taken += 1;
    }
    cluster.nodes[master].wait_for_link();
    cluster.nodes[replica].assert_followed_by(&[&cluster.nodes[master]]);
}

/// Its job came in time, and only the server was late.
#[test]
fn after_a_standstill_a_client_is_served_before_its_wait_ends() {
    let server = Server::start();
    let mut client = server.raw();
    // Work that comes first, more than the timer does at a time.
    for number in 0..5000 {
        client.begin(&format!("DQ.ADD other {number} x TTL 300"));
    }
    (0..5000).for_each(|_| drop(client.read()));
    client.run("DQ.ADD q a x DELAY 300");
    let mut waiting = server.waiting("DQ.BPOP q nothing 0.8");
    let mut late = server.waiting("DQ.BPOP nothing 0.8");
    client.run("DEBUG SLEEP 1.5");
    assert_eq!(waiting.delivery().id, "a");
    assert_eq!(late.reply(), "nil*");
}

/// Payloads are copied for waiting clients in steps, so that other clients are served in between.
#[test]
fn large_payloads_that_are_due_at_once_are_handed_out_in_turns() {
    const CLIENTS: usize = 64;
    let server = Server::start();
    let mut client = server.raw();
    let payload = vec![b'x'; 1 << 20];
    client.run("DQ.PAUSE q");
    for number in 0..CLIENTS {
        client.call(&[b"DQ.ADD", b"q", number.to_string().as_bytes(), &payload]);
    }
    let mut waiting: Vec<Raw> = (0..CLIENTS)
        .map(|_| server.waiting("DQ.BPOP q 0"))
        .collect();
    let before = server.number("dq", "dq_timer_fires_total");
    client.run("DQ.RESUME q");
    for waiting in &mut waiting {
        assert_eq!(waiting.delivery().payload.len(), payload.len());
    }
    let fires = server.number("dq", "dq_timer_fires_total") - before;
    assert!(fires >= 16, "{CLIENTS} MB in {fires} times");
}
