//! What the server does to keys without asking the module, with deadlines set and clients waiting.
//!
//! The next deadline is kept by database and name. So none of these commands may leave a deadline that fires for a name
//! with other contents, or a queue that the timer has lost.

use std::time::Duration;

use crate::probe::{show, Probe};
use crate::scene::{let_pass, now_ms, pair, Delivery, Dice, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

/// A queue with every kind of deadline, in `soon_ms`; ids say what each job is for. Returns the first instant at which
/// one of its jobs may be delivered.
fn armed(client: &mut Raw, key: &str, soon_ms: u64) -> u64 {
    client.says(&format!("DQ.ADD {key} lease x"), "'lease'");
    client.says(&format!("DQ.ADD {key} dies x ATTEMPTS 1"), "'dies'");
    let Reply::Array(popped) = client.run(&format!("DQ.POP {key} COUNT 2 TTR {soon_ms}")) else {
        panic!("nothing popped");
    };
    let lease = Delivery::of(&popped[0]).expect("a delivery");
    client.says(
        &format!("DQ.ADD {key} expires x DELAY 60000 TTL {soon_ms}"),
        "'expires'",
    );
    client.says(
        &format!("DQ.ADD {key} delayed x DELAY {soon_ms}"),
        "'delayed'",
    );
    lease.deadline
}

/// A busy machine may need more time for what is to happen before the first deadline.
const SOON_MS: [u64; 3] = [500, 3_000, 15_000];

/// Waits until the server itself has carried out everything that was due in the queue. Checked by INFO's totals, as
/// commands on the queue would carry it out.
#[track_caller]
fn becomes_settled(server: &Server, totals: (u64, u64, u64)) {
    let (timed_out, died, expired) = totals;
    wait_until("leases, lives and TTLs end by themselves", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") >= timed_out
            && server.number("dq", "dq_died_total") >= died
            && server.number("dq", "dq_expired_total") >= expired
    });
    assert_eq!(
        (
            server.number("dq", "dq_timed_out_total"),
            server.number("dq", "dq_died_total"),
            server.number("dq", "dq_expired_total")
        ),
        totals
    );
}

fn totals(server: &Server) -> (u64, u64, u64) {
    (
        server.number("dq", "dq_timed_out_total"),
        server.number("dq", "dq_died_total"),
        server.number("dq", "dq_expired_total"),
    )
}

/// After these commands the queue `q` is gone: nothing fires any more, no client gets a job, and what gets the name
/// later is a queue of its own.
#[test]
fn what_is_gone_fires_no_more() {
    let ways = [
        "DEL q",
        "UNLINK q",
        "SET q x",
        "SET q x|DEL q|RPUSH q x",
        "FLUSHDB",
        "FLUSHDB ASYNC",
        "FLUSHALL",
        "FLUSHALL ASYNC",
        "PEXPIRE q 50",
        "PEXPIREAT q 1",
        "EXPIRE q -1",
        "SWAPDB 0 3|SELECT 3|FLUSHDB|SELECT 0",
        "SET s x|RENAME s q",
        "SET s x|COPY s q REPLACE",
        "SELECT 1|SET s x|SELECT 0|MULTI|DEL q|SET s y|RENAME s q|EXEC",
        "SORT none STORE q",
        "SINTERSTORE q none",
    ];
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for way in ways {
        let (before, until, mut waiting) = goes_in_time(&server, &mut client, way);
        let_pass(Duration::from_millis(until.saturating_sub(now_ms()) + 80));
        assert_eq!(totals(&server), before, "{way}");
        assert_eq!(waiting.try_read(Duration::ZERO), None, "{way}");
        client.says("DEL q", if client_holds(&server, "q") { "1" } else { "0" });
        client.says("DQ.ADD q delayed new DELAY 30", "'delayed'");
        let got = waiting.delivery();
        assert_eq!((got.payload.as_str(), got.attempts), ("new", 1), "{way}");
        server.assert_followed_by(&[&replica]);
    }
    server.wait_for_blocked(0);
}

/// Removes a queue with deadlines while a client waits, before the first is reached: a busy machine may need more time
/// for that. Returns the earlier totals, the instant at which its first job would have come, and the waiting client.
#[track_caller]
fn goes_in_time(server: &Server, client: &mut Raw, way: &str) -> ((u64, u64, u64), u64, Raw) {
    for soon_ms in SOON_MS {
        client.says("FLUSHALL", "+OK");
        server.wait_for_blocked(0);
        let before = totals(server);
        let until = armed(client, "q", soon_ms);
        let waiting = waits_or_is_late(server, until);
        for line in way.split('|') {
            let reply = client.ask(line);
            assert!(!reply.starts_with('-'), "{line} -> {reply}");
        }
        if now_ms() < until {
            return (before, until, waiting);
        }
    }
    panic!("never in time: {way}");
}

fn waits_or_is_late(server: &Server, until: u64) -> Raw {
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP q 0");
    wait_until("it waits, or is late", PATIENCE, || {
        server.blocked() == 1 || now_ms() >= until
    });
    waiting
}

fn client_holds(server: &Server, key: &str) -> bool {
    server.raw().int(&format!("EXISTS {key}")) == 1
}

#[test]
fn a_queue_kept_for_its_waiting_clients_takes_no_other_ones_place() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 3600000", "'a'");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    client.says("DQ.DEL q a", "1");
    client.says("DQ.ADD p b x", "'b'");
    for options in ["REPLACE", ""] {
        let target = if options.is_empty() { "none" } else { "p" };
        let reply = client.ask(&format!("COPY q {target} {options}"));
        assert!(!reply.starts_with('1'), "{reply}");
    }
    client.says("DQ.LEN p", "1");
    client.says("EXISTS none", "0");
    client.says("DQ.ADD q c x", "'c'");
    assert_eq!(waiting.delivery().id, "c");
    client.says("COPY q p REPLACE", "1");
}

/// After these commands the queue is elsewhere with its deadlines; a client waits there.
#[test]
fn deadlines_go_on_under_the_new_name() {
    // way, database, name
    let ways = [
        ("RENAME q p", 0, "p"),
        ("RENAMENX q p", 0, "p"),
        ("SET p x|RENAME q p", 0, "p"),
        ("DQ.ADD p other x DELAY 60000|RENAME q p", 0, "p"),
        ("RENAME q p|RENAME p o|RENAME o q", 0, "q"),
        ("MOVE q 1", 1, "q"),
        ("MOVE q 1|SWAPDB 0 1", 0, "q"),
        ("SWAPDB 0 1", 1, "q"),
        ("SWAPDB 0 1|SWAPDB 1 2", 2, "q"),
        ("SWAPDB 0 1|SELECT 1|RENAME q p|MOVE p 4|SELECT 0", 4, "p"),
        ("COPY q p|DEL q", 0, "p"),
        ("COPY q p DB 2|DEL q", 2, "p"),
        (
            "DQ.ADD p other x DELAY 60000|COPY q p REPLACE|UNLINK q",
            0,
            "p",
        ),
        ("DEBUG RELOAD", 0, "q"),
        ("RENAME q p|DEBUG RELOAD", 0, "p"),
        // On Valkey 9.1 the database that is selected in their events is the client's.
        ("MULTI|MOVE q 1|EXEC", 1, "q"),
        ("MULTI|COPY q p DB 1|DEL q|EXEC", 1, "p"),
        ("MULTI|RENAME q p|MOVE p 1|SWAPDB 1 2|EXEC", 2, "p"),
    ];
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for (way, db, name) in ways {
        client.says("FLUSHALL", "+OK");
        let (timed_out, died, expired) = totals(&server);
        let until = armed(&mut client, "q", 500);
        for line in way.split('|') {
            let reply = client.ask(line);
            assert!(!reply.starts_with('-'), "{line} -> {reply}");
        }
        let mut waiting = server.raw();
        waiting.says(&format!("SELECT {db}"), "+OK");
        waiting.begin(&format!("DQ.BPOP {name} 0 COUNT 1"));
        let got = waiting.reply();
        assert!(now_ms() >= until, "{way}: early");
        assert!(
            got.contains("'lease'") || got.contains("'delayed'"),
            "{way}: {got}"
        );
        becomes_settled(&server, (timed_out + 2, died + 1, expired + 1));
        let mut there = server.raw();
        there.says(&format!("SELECT {db}"), "+OK");
        there.says(&format!("DQ.LEN {name} DEAD"), "1");
        there.says(&format!("DQ.GET {name} expires"), "nil$");
        there.begin(&format!("DQ.BPOP {name} 0"));
        there.delivery();
        server.assert_followed_by(&[&replica]);
    }
}

#[test]
fn restored_queues_are_looked_after() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for (before, options) in [
        ("", vec!["0"]),
        ("SET q x", vec!["0", "REPLACE"]),
        ("DQ.ADD q old x DELAY 200", vec!["0", "REPLACE"]),
        ("", vec!["60000"]),
        ("", vec!["0", "IDLETIME", "5"]),
    ] {
        client.says("FLUSHALL", "+OK");
        let (timed_out, died, expired) = totals(&server);
        armed(&mut client, "o", 500);
        let Reply::Bulk(payload) = client.run("DUMP o") else {
            panic!("no dump");
        };
        client.says("DEL o", "1");
        let mut waiting = server.waiting("DQ.BPOP q 0 NOACK");
        if !before.is_empty() {
            client.run(before);
        }
        let mut words: Vec<&[u8]> = vec![b"RESTORE", b"q", options[0].as_bytes(), &payload];
        words.extend(options[1..].iter().map(|word| word.as_bytes()));
        assert_eq!(
            client.call(&words),
            Reply::Simple("OK".into()),
            "{options:?}"
        );
        assert_ne!(waiting.delivery().id, "old");
        becomes_settled(&server, (timed_out + 2, died + 1, expired + 1));
        server.assert_followed_by(&[&replica]);
    }
    // Refused commands have no effect; an expired key no longer exists.
    client.says("FLUSHALL", "+OK");
    armed(&mut client, "o", 500);
    let Reply::Bulk(payload) = client.run("DUMP o") else {
        panic!("no dump");
    };
    client.says("SET q x", "+OK");
    let refused = client.call(&[b"RESTORE", b"q", b"0", &payload]);
    assert!(
        show(&refused).starts_with("-BUSYKEY "),
        "{}",
        show(&refused)
    );
    let past = client.call(&[b"RESTORE", b"q", b"1", &payload, b"REPLACE", b"ABSTTL"]);
    assert_eq!(past, Reply::Simple("OK".into()));
    client.says("EXISTS q", "0");
    client.says("DQ.LEN q", "0");
}

#[test]
fn copies_have_leases_of_their_own() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    client.begin("DQ.POP q TTR 300");
    let lease = client.delivery();
    client.says("COPY q p", "1");
    client.says("COPY q q DB 1", "1");
    assert_eq!(
        client.ask("DEBUG DIGEST-VALUE q"),
        client.ask("DEBUG DIGEST-VALUE p")
    );
    // Each queue accepts the token by itself.
    client.says(&format!("DQ.ACK q WITHTOKENS a {}", lease.token), "1");
    client.says("DQ.LEN p RESERVED", "1");
    client.begin("DQ.BPOP p 0");
    let again = client.delivery();
    assert!(now_ms() >= lease.deadline);
    assert!(again.token.parse::<u64>().unwrap() > lease.token.parse::<u64>().unwrap());
    client.says(&format!("DQ.ACK p WITHTOKENS a {}", lease.token), "0");
    client.says("SELECT 1", "+OK");
    client.begin("DQ.BPOP q 0");
    assert_eq!(client.delivery().attempts, 2);
    server.assert_followed_by(&[&replica]);
}

#[test]
fn migrate_takes_leases_and_deadlines_along() {
    let start = || Server::builder().aof().start();
    let in_time = SOON_MS.into_iter().find_map(|soon_ms| {
        let (source, target) = (start(), start());
        let mut client = source.raw();
        let until = armed(&mut client, "q", soon_ms);
        client.says("DQ.CFGSET q MAXLEN 10 DEDUPE 60000", "+OK");
        let digest = client.ask("DEBUG DIGEST-VALUE q");
        let left_behind = waits_or_is_late(&source, until);
        let waiting = target.waiting("DQ.BPOP q 0");
        let migrate = |how| format!("MIGRATE 127.0.0.1 {} q 0 60000 {how}", target.port());
        client.says(&migrate("COPY"), "+OK");
        let copied = target.raw().ask("DEBUG DIGEST-VALUE q");
        client.says(&migrate("REPLACE"), "+OK");
        client.says("EXISTS q", "0");
        (now_ms() < until).then(|| assert_eq!(copied, digest))?;
        Some((source, client, left_behind, target, waiting))
    });
    let (source, mut client, mut left_behind, target, mut waiting) =
        in_time.expect("never in time");
    assert!(["lease", "delayed"].contains(&waiting.delivery().id.as_str()));
    becomes_settled(&target, (2, 1, 1));
    assert_eq!(totals(&source), (0, 0, 0), "the source has let go of it");
    assert_eq!(left_behind.try_read(Duration::ZERO), None);
    client.says("DQ.ADD q late x", "'late'");
    assert_eq!(left_behind.delivery().id, "late");
}

/// As docs/cluster.md says.
#[test]
fn migrate_of_more_than_the_target_takes_leaves_the_queue() {
    let source = Server::start();
    let target = Server::builder()
        .config("proto-max-bulk-len", "1mb")
        .start();
    let mut client = source.raw();
    // The server compresses what repeats.
    let mut dice = Dice::new(1);
    let payload: Vec<u8> = (0..1 << 20).map(|_| dice.next() as u8).collect();
    client.call(&[b"DQ.ADD", b"big", b"a", &payload]);
    client.says("DQ.ADD first a x", "'a'");
    let migrate = |keys: &str| format!("MIGRATE 127.0.0.1 {} {keys}", target.port());
    let mut there = target.raw();
    let before = client.run("DUMP big");
    for line in ["big 0 60000", "\"\" 0 60000 KEYS first big"] {
        // Which error, depends on what the source had written when the target cut the connection: the target's, IOERR,
        // or BUSYKEY for `first`, where the source has sent all a second time.
        let refused = client.ask(&migrate(line));
        assert!(refused.starts_with('-'), "{refused}");
        assert!(client.run("DUMP big") == before, "another queue: {refused}");
        there.says("EXISTS big", "0");
    }
    there.says("CONFIG SET proto-max-bulk-len 2mb", "+OK");
    client.says(&migrate("\"\" 0 60000 REPLACE KEYS first big"), "+OK");
    client.says("EXISTS first big", "0");
    there.says("EXISTS first big", "2");
    assert!(there.run("DUMP big") == before, "another queue");
}

#[test]
fn evicted_queues_are_forgotten() {
    let (server, replica) = pair(
        Server::builder()
            .aof()
            .config("maxmemory-policy", "allkeys-random"),
    );
    let mut client = server.raw();
    for number in 0..300 {
        client.run(&format!("DQ.ADD q{number} a x DELAY 300"));
        client.run(&format!("DQ.ADD q{number} b x"));
        client.run(&format!("DQ.POP q{number} TTR 300"));
    }
    let armed_until = now_ms() + 300;
    let mut waiting = server.waiting("DQ.BPOP nobody 0");
    let used = server.number("memory", "used_memory");
    client.says(&format!("CONFIG SET maxmemory {}", used - 100_000), "+OK");
    client.says("CONFIG SET maxmemory-samples 10", "+OK");
    client.run("SET s x");
    client.says("CONFIG SET maxmemory 0", "+OK");
    let evicted = server.number("stats", "evicted_keys");
    assert!(evicted > 0);
    wait_until("the rest is looked after", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") > 0
            && server.number("dq", "dq_jobs_reserved") == 0
    });
    assert!(now_ms() >= armed_until - 300);
    assert!(server.number("dq", "dq_timed_out_total") <= 300);
    server.assert_followed_by(&[&replica]);
    client.run("DQ.ADD nobody n x");
    assert_eq!(waiting.delivery().id, "n");
}

#[test]
fn expire_works_as_on_any_key() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 2500", "'a'");
    client.says("DQ.ADD q b x", "'b'");
    client.run("DQ.POP q TTR 2500");
    client.says("PEXPIRE q 100", "1");
    let mut waiting = server.waiting("DQ.BPOP q 0");
    wait_until("the key expires", PATIENCE, || client.int("EXISTS q") == 0);
    let_pass(Duration::from_millis(2500));
    assert_eq!(waiting.try_read(Duration::ZERO), None);
    assert_eq!(totals(&server), (0, 0, 0));
    // PERSIST in time keeps the key, and RENAME keeps its expiry.
    client.says("DQ.ADD p a x DELAY 150", "'a'");
    client.run("MULTI");
    client.run("PEXPIRE p 100");
    client.run("PERSIST p");
    client.says("EXEC", "[ 1 1 ]");
    client.begin("DQ.BPOP p 0");
    assert_eq!(client.delivery().id, "a");
    client.says("PEXPIRE p 60000", "1");
    client.says("RENAME p r", "+OK");
    assert!(client.int("PTTL r") > 0);
    client.says("DQ.ACK r a", "1");
    client.says("EXISTS r", "0");
    client.says("DQ.ADD r a x", "'a'");
    client.says("PTTL r", "-1");
    server.assert_followed_by(&[&replica]);
    drop(waiting);
}

#[test]
fn commands_of_other_types_are_mistakes() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    let digest = client.ask("DEBUG DIGEST");
    for line in [
        "GET q",
        "APPEND q x",
        "INCR q",
        "LPUSH q x",
        "LPOP q",
        "SADD q x",
        "SMEMBERS q",
        "ZADD q 1 x",
        "ZRANGE q 0 -1",
        "HSET q a b",
        "HGETALL q",
        "XADD q * a b",
        "XLEN q",
        "SORT q",
        "PFADD q x",
        "GETRANGE q 0 1",
        "SETBIT q 1 1",
        "GEOADD q 1 1 x",
        "LMOVE q r LEFT LEFT",
        "BLPOP q 0.01",
        "SINTERSTORE r q",
        "ZUNIONSTORE r 1 q",
        "GETDEL q",
        "GETEX q",
        "SETRANGE q 0 x",
        "BITCOUNT q",
    ] {
        let reply = client.ask(line);
        assert!(reply.starts_with("-WRONGTYPE "), "{line} -> {reply}");
    }
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    client.says("TYPE q", "+dq-queue1");
    client.says("SCAN 0 TYPE dq-queue1", "[ '0' [ 'q' ] ]");
    assert!(client.int("MEMORY USAGE q") > 100);
    assert!(!client.ask("OBJECT ENCODING q").starts_with('-'));
    assert_eq!(client.int("OBJECT REFCOUNT q"), 1);
    client.says("TOUCH q", "1");
}

#[test]
fn a_flush_while_many_wait_and_much_is_armed() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    for flush in ["FLUSHALL", "FLUSHALL ASYNC", "FLUSHDB", "FLUSHDB ASYNC"] {
        for queue in 0..20 {
            for job in 0..50 {
                let delay = 1000 + job % 60;
                client.begin(&format!("DQ.ADD q{queue} {job} x DELAY {delay}"));
            }
            (0..50).for_each(|_| drop(client.read()));
            client.run(&format!("DQ.RESCHEDULE q{queue} DELAY 0 1 2 3 4 5"));
            client.run(&format!("DQ.POP q{queue} COUNT 5 TTR {}", 50 + queue));
        }
        let mut waiting: Vec<Raw> = (0..20)
            .map(|queue| server.waiting(&format!("DQ.BPOP w{queue} 0")))
            .collect();
        client.says(flush, "+OK");
        client.says("DBSIZE", "0");
        for (queue, client_waiting) in waiting.iter_mut().enumerate() {
            client.run(&format!("DQ.ADD w{queue} {queue} x DELAY 40"));
            assert_eq!(client_waiting.delivery().id, queue.to_string(), "{flush}");
            client.run(&format!("DQ.ACK w{queue} {queue}"));
        }
        server.wait_for_blocked(0);
    }
    server.assert_followed_by(&[&replica]);
}

#[test]
fn tokens_grow_whatever_happens_to_the_queue() {
    let mut p = Probe::start();
    let mut last = 0;
    let steps = [
        "PING",
        "DEL q",
        "FLUSHALL",
        "UNLINK q",
        "DQ.PURGE q ALL",
        "RENAME q q2",
        "RENAME q2 q",
        "COPY q2 q REPLACE",
        "DEBUG RELOAD",
        "SWAPDB 0 1",
        "SWAPDB 0 1",
    ];
    for step in steps {
        for i in 0..50 {
            p.run(&format!("DQ.ADD q {i} x REPLACE TTR 100000"));
            let token = p.pop_token(&format!("DQ.POP q ID {i}"));
            assert!(token > last, "{token} after {last}, {step}");
            last = token;
        }
        p.run("COPY q q2 REPLACE");
        let reply = p.ask(step);
        assert!(!reply.starts_with('-'), "{step}: {reply}");
    }
}
