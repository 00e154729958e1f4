//! Clients that wait in DQ.AWAIT for jobs to end: what they are told, and when.

use std::time::Duration;

use crate::probe::{fits, packed, Probe};
use crate::scene::{let_pass, now_ms, pair, Lines, Scene};
use crate::support::{wait_until, Raw, Server, PATIENCE};

const NIL: &str = "nil*";

#[track_caller]
pub fn told(client: &mut Raw, expected: &str) -> String {
    let reply = client.reply();
    assert!(fits(&reply, expected), "{reply} is not {expected}");
    reply
}

/// The instant, after the outcome and the value, in the first line of a reply.
fn at(reply: &str) -> u64 {
    let word = reply.split(' ').nth(5).expect("an instant");
    word.parse().unwrap_or_else(|_| panic!("{reply}"))
}

#[track_caller]
pub fn pop(client: &mut Raw, line: &str) -> String {
    client.begin(line);
    client.delivery().token
}

#[test]
fn what_is_over_is_told_at_once() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.AWAIT none 0 a b
        [ [ 'a' 'unknown' nil$ nil$ nil$ ] [ 'b' 'unknown' nil$ nil$ nil$ ] ]
        3> DQ.AWAIT none 0 a
        [ [ 'a' 'unknown' nil nil nil ] ]",
    );
    for id in ["dead", "ready", "late"] {
        p.run(&format!("DQ.ADD q {id} x"));
    }
    p.run("DQ.POP q ID dead");
    let before = p.time_ms();
    p.run("DQ.NACK q dead FATAL REASON broken");
    let reply = p.ask("DQ.AWAIT q 0 ready dead gone dead");
    let dead = "[ 'dead' 'dead' 'broken' ? 1 ]";
    let expected = format!("[ {dead} [ 'gone' 'unknown' nil$ nil$ nil$ ] {dead} ]");
    assert!(fits(&reply, &expected), "{reply}");
    assert!(at(&reply) >= before && at(&reply) <= p.time_ms());
    p.says("DQ.AWAIT q 0.01 ready late ready", NIL);
    p.says3("DQ.AWAIT q 0.01 ready", "nil");
    // Empty and too long ids are no jobs.
    let long = "x".repeat(1025);
    p.says(
        &format!("DQ.AWAIT q 0 \"\" {long}"),
        &format!("[ [ '' 'unknown' nil$ nil$ nil$ ] [ '{long}' 'unknown' nil$ nil$ nil$ ] ]"),
    );
    p.run("SET s x");
    p.says(
        "DQ.AWAIT s 0 a",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    p.says("DQ.AWAIT q -1 a", "-ERR timeout is negative");
    p.says(
        "DQ.AWAIT q x a",
        "-ERR timeout is not a float or out of range",
    );
    p.says(
        "DQ.AWAIT q 0",
        "-ERR wrong number of arguments for 'dq.await' command",
    );
}

/// Every way in which a job ends, by a command or by time.
#[test]
fn how_a_job_ends() {
    let server = Server::start();
    let mut client = server.raw();
    let ways = [
        ("DQ.POP q", "DQ.ACK q a", "'done' nil$ ? 1"),
        ("DQ.LEN q", "DQ.POP q NOACK", "'done' nil$ ? 1"),
        (
            "DQ.POP q",
            "DQ.NACK q a FATAL REASON bad",
            "'dead' 'bad' ? 1",
        ),
        ("DQ.POP q", "DQ.NACK q a FATAL", "'dead' nil$ ? 1"),
        ("DQ.POP q", "DQ.DEL q a", "'deleted' nil$ ? 1"),
        ("DQ.LEN q", "DQ.DEL q b a", "'deleted' nil$ ? 0"),
        ("DQ.LEN q", "DQ.PURGE q READY", "'deleted' nil$ ? 0"),
        ("DQ.POP q", "DQ.PURGE q RESERVED", "'deleted' nil$ ? 1"),
        ("DQ.POP q", "DQ.PURGE q ALL", "'deleted' nil$ ? 1"),
        ("DQ.ADD q a y NEXT", "DQ.POP q NOACK", "'done' nil$ ? 1"),
        ("DQ.POP q", "DEL q", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "UNLINK q", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "FLUSHALL", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "FLUSHDB ASYNC", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "RENAME q r", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "MOVE q 3", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "SWAPDB 0 5", "'unknown' nil$ nil$ nil$"),
        ("DQ.POP q", "PEXPIRE q 0", "'unknown' nil$ nil$ nil$"),
    ];
    for (before, end, expected) in ways {
        client.run("FLUSHALL");
        client.says("DQ.ADD q a x", "'a'");
        client.run(before);
        let mut waiting = [0, 1].map(|_| server.waiting("DQ.AWAIT q 0 a"));
        let began = now_ms();
        client.run(end);
        for waiting in &mut waiting {
            let reply = told(waiting, &format!("[ [ 'a' {expected} ] ]"));
            if !expected.starts_with("'unknown") {
                assert!((began..=now_ms()).contains(&at(&reply)), "{end}: {reply}");
            }
        }
        server.wait_for_blocked(0);
    }
}

#[test]
fn what_time_ends() {
    let server = Server::start();
    let mut client = server.raw();
    for (add, expected) in [
        (
            "DQ.ADD q a x ATTEMPTS 1 TTR 60",
            "'dead' 'lease\\x20ended' ? 1",
        ),
        ("DQ.ADD q a x TTL 60 TTR 60", "'expired' nil$ ? 1"),
    ] {
        let token = {
            client.says(add, "'a'");
            client.begin("DQ.POP q");
            client.delivery()
        };
        let mut waiting = server.waiting("DQ.AWAIT q 0 a");
        let reply = told(&mut waiting, &format!("[ [ 'a' {expected} ] ]"));
        if add.contains("ATTEMPTS") {
            assert_eq!(at(&reply), token.deadline);
        }
        client.run("DEL q");
    }
    client.says("DQ.ADD q a x TTL 80 DELAY 1000000", "'a'");
    let words = client.words("DQ.GET q a");
    let place = words.iter().position(|word| word == "expires");
    let expires: u64 = words[place.expect("a field") + 1]
        .parse()
        .expect("an instant");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    let reply = told(&mut waiting, "[ [ 'a' 'expired' nil$ ? 0 ] ]");
    assert_eq!(at(&reply), expires);
}

/// No end of a job: a lease's end, a NACK, or another job in its place.
#[test]
fn what_does_not_end_a_job() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x TTR 30", "'a'");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    for line in [
        "DQ.POP q TTR 10",
        "DQ.BPOP q 5",
        "DQ.NACK q a REASON again",
        "DQ.RESCHEDULE q DELAY 100000 a",
        "DQ.ADD q a y XX",
        "DQ.ADD q a z REPLACE",
        "DQ.POP q",
        "DQ.TOUCH q a TTR 100000",
        "DQ.ADD q a n NEXT",
        "DQ.DEL q UNRESERVED a",
        "DQ.ADD q b y",
        "DQ.DEL q b",
        "DQ.PURGE q READY",
        "RENAME q r",
        "SET q x",
        "RENAME r q",
    ] {
        if line == "RENAME q r" {
            // In one transaction, as otherwise an end in between would be seen.
            client.run("MULTI");
        }
        client.run(line);
    }
    client.run("EXEC");
    assert_eq!(waiting.try_read(Duration::from_millis(30)), None);
    // The job ends, and its successor takes its place.
    client.says("DQ.ACK q a", "1");
    told(&mut waiting, "[ [ 'a' 'done' nil$ ? 1 ] ]");
    client.says("DQ.LEN q READY", "1");
    // A job that dies has ended, even though its successor takes its place.
    pop(&mut client, "DQ.POP q");
    client.says("DQ.ADD q a n NEXT", "'a'");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("DQ.NACK q a FATAL REASON bad", "'dead'");
    told(&mut waiting, "[ [ 'a' 'dead' 'bad' ? 1 ] ]");
    client.says("DQ.AWAIT q 0.01 a", NIL);
}

#[test]
fn of_a_recurring_job_the_occurrence() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x EVERY 1000 AT 1");
    let mut waiting = p.server.waiting("DQ.AWAIT q 0 a");
    p.run("DQ.POP q");
    p.run("DQ.ACK q a");
    told(&mut waiting, "[ [ 'a' 'done' nil$ ? 1 ] ]");
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    let mut waiting = p.server.waiting("DQ.AWAIT q 0 a");
    p.run("DQ.POP q");
    p.run("DQ.NACK q a FATAL REASON bad");
    told(&mut waiting, "[ [ 'a' 'dead' 'bad' ? 1 ] ]");
    p.run("DQ.ADD q g x EVERY 100000000 GRACE 50 DELAY 50");
    let due = p.field_int("DQ.GET q g", "due") as u64;
    let mut waiting = p.server.waiting("DQ.AWAIT q 0 g");
    let reply = told(&mut waiting, "[ [ 'g' 'expired' nil$ ? 0 ] ]");
    assert_eq!(at(&reply), due + 50);
    let mut waiting = p.server.waiting("DQ.AWAIT q 0 g");
    p.run("DQ.DEL q g");
    told(&mut waiting, "[ [ 'g' 'deleted' nil$ ? 0 ] ]");
}

#[test]
fn many_ids_and_what_ends_together() {
    let server = Server::start();
    let mut client = server.raw();
    let add = |client: &mut Raw, ids: &[&str]| {
        for id in ids {
            client.run(&format!("DQ.ADD q {id} x"));
        }
    };
    add(&mut client, &["a", "b", "c", "d"]);
    // In the order of the ids, as often as they are named.
    let mut waiting = server.waiting("DQ.AWAIT q 0 c b a b c");
    client.says("DQ.DEL q a b", "2");
    let deleted = |id| format!("[ '{id}' 'deleted' nil$ ? 0 ]");
    let all = ["b", "a", "b"].map(deleted).join(" ");
    told(&mut waiting, &format!("[ {all} ]"));
    client.says(
        "DQ.AWAIT q 0 a a",
        "[ [ 'a' 'unknown' nil$ nil$ nil$ ] [ 'a' 'unknown' nil$ nil$ nil$ ] ]",
    );
    // The first end of each job counts, and a transaction ends before any client is told.
    add(&mut client, &["a", "b"]);
    let mut waiting = server.waiting("DQ.AWAIT q 0 d c b a");
    for line in [
        "MULTI",
        "DQ.DEL q a",
        "DQ.ADD q a y",
        "DQ.POP q ID a",
        "DQ.ACK q a",
        "DQ.PURGE q ALL",
        "DQ.ADD q a z",
        "EXEC",
    ] {
        client.run(line);
    }
    let all = ["d", "c", "b", "a"].map(deleted).join(" ");
    told(&mut waiting, &format!("[ {all} ]"));
    // The same within a script.
    add(&mut client, &["b"]);
    let mut waiting = server.waiting("DQ.AWAIT q 0 a b");
    let script = "redis.call('DQ.DEL','q','a')\\x20redis.call('DQ.DEL','q','b')";
    client.run(&format!("EVAL {script} 0"));
    told(
        &mut waiting,
        &format!("[ {} {} ]", deleted("a"), deleted("b")),
    );
    server.wait_for_blocked(0);
}

#[test]
fn it_does_not_wait_in_transactions_and_scripts() {
    let mut p = Probe::start();
    p.run("DQ.ADD q a x");
    p.talk(
        "> MULTI
        +OK
        > DQ.AWAIT q 0 a
        +QUEUED
        > DQ.AWAIT q 0 b
        +QUEUED
        > EXEC
        [ nil* [ [ 'b' 'unknown' nil$ nil$ nil$ ] ] ]",
    );
    p.says(
        "EVAL return\\x20redis.call('DQ.AWAIT','q','0','a') 0",
        "nil$",
    );
    p.says(
        "EVAL return\\x20redis.call('DQ.AWAIT','q','0','b')[1][2] 0",
        "'unknown'",
    );
}

/// DQ.AWAIT changes nothing, keeps no key, and is in no total.
#[test]
fn it_leaves_no_trace() {
    let server = Server::builder().aof().start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x DELAY 1000000", "'a'");
    let digest = server.digest();
    let size = |server: &Server| server.number("persistence", "aof_current_size");
    let before = size(&server);
    let mut waiting = server.waiting("DQ.AWAIT q 0.7 a");
    assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
    let stats = client.words("DQ.STATS q");
    let place = stats.iter().position(|word| word == "waiting-clients");
    assert_eq!(stats[place.expect("a field") + 1], "0");
    told(&mut waiting, NIL);
    assert_eq!((server.digest(), size(&server)), (digest, before));
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("DQ.DEL q a", "1");
    client.says("EXISTS q", "0");
    told(&mut waiting, "[ [ 'a' 'deleted' ? ? 0 ] ]");
    client.says("DBSIZE", "0");
    // A job under another queue's name is no end.
    client.says("DQ.ADD q a x", "'a'");
    client.says("DQ.ADD r a x", "'a'");
    client.says("SELECT 1", "+OK");
    client.says("DQ.ADD q a x", "'a'");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("DQ.DEL q a", "1");
    client.says("SELECT 0", "+OK");
    client.says("DQ.DEL r a", "1");
    assert_eq!(waiting.try_read(Duration::from_millis(30)), None);
}

/// The reply depends on what has the name then.
#[test]
fn another_key_under_the_name() {
    let server = Server::start();
    let mut client = server.raw();
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    client.says("RPUSH list x", "1");
    client.says("DQ.ADD other a y DELAY 1000000", "'a'");
    client.says("DQ.ADD other b y", "'b'");
    client.begin("DUMP other");
    let crate::support::Reply::Bulk(dump) = client.read() else {
        panic!("no dump");
    };
    for change in ["SET q x", "RENAME list q", "COPY list q REPLACE"] {
        client.run("DEL q list");
        client.run("RPUSH list x");
        client.run("DQ.ADD q a x");
        client.run("DQ.ADD q c x");
        let mut waiting = server.waiting("DQ.AWAIT q 0 a c");
        client.run(change);
        told(&mut waiting, wrong);
    }
    // It holds a, and lacks c.
    for change in ["RENAME other q", "COPY other q REPLACE", "RESTORE"] {
        client.run("DEL q");
        client.run("DQ.ADD q a x");
        client.run("DQ.ADD q c x");
        let (mut of_a, mut of_c, mut of_both) = (
            server.waiting("DQ.AWAIT q 0 a"),
            server.waiting("DQ.AWAIT q 0 c"),
            server.waiting("DQ.AWAIT q 0 c a"),
        );
        let reply = match change {
            "RESTORE" => client.call(&[b"RESTORE", b"q", b"0", &dump, b"REPLACE"]),
            change => client.run(change),
        };
        assert!(
            !format!("{reply:?}").contains("Error"),
            "{change}: {reply:?}"
        );
        let unknown = "[ [ 'c' 'unknown' nil$ nil$ nil$ ] ]";
        told(&mut of_c, unknown);
        told(&mut of_both, unknown);
        assert_eq!(of_a.try_read(Duration::from_millis(20)), None, "{change}");
        client.says("DQ.DEL q a", "1");
        told(&mut of_a, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
        client.call(&[b"RESTORE", b"other", b"0", &dump, b"REPLACE"]);
    }
    // SWAPDB brings a queue from the other database: jobs that ended there are reported.
    client.run("FLUSHALL");
    client.run("DQ.ADD q a x");
    client.run("SELECT 1");
    client.run("DQ.ADD q a x");
    client.run("DQ.POP q");
    client.run("DQ.NACK q a FATAL REASON there");
    client.run("SELECT 0");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("SWAPDB 0 1", "+OK");
    told(&mut waiting, "[ [ 'a' 'dead' 'there' ? 1 ] ]");
    // After a reload the data is the same, and nothing has ended.
    client.run("FLUSHALL");
    client.run("DQ.ADD q a x");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("DEBUG RELOAD", "+OK");
    assert_eq!(waiting.try_read(Duration::from_millis(30)), None);
    client.says("DQ.DEL q a", "1");
    told(&mut waiting, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
}

#[test]
fn unblocked_or_gone() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    let mut waiting = server.raw();
    let id = waiting.int("CLIENT ID");
    for (how, expected) in [
        ("", NIL),
        ("TIMEOUT", NIL),
        ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        waiting.begin("DQ.AWAIT q 0 a");
        server.wait_for_blocked(1);
        client.says(&format!("CLIENT UNBLOCK {id} {how}"), "1");
        told(&mut waiting, expected);
        waiting.says("PING", "+PONG");
    }
    // A job ends and the client is unblocked in one turn of the event loop.
    for (first, second) in [
        ("DQ.DEL q a", "CLIENT UNBLOCK"),
        ("CLIENT UNBLOCK", "DQ.DEL q a"),
    ] {
        client.run("DQ.ADD q a x");
        waiting.begin("DQ.AWAIT q 0 a");
        server.wait_for_blocked(1);
        let line = |word: &str| match word {
            "CLIENT UNBLOCK" => format!("CLIENT UNBLOCK {id}"),
            word => word.into(),
        };
        client.send(&[packed(&line(first)), packed(&line(second))].concat());
        client.read();
        client.read();
        let reply = waiting.reply();
        let is_told = fits(&reply, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
        assert!(is_told == (first == "DQ.DEL q a"), "{reply}");
        waiting.says("PING", "+PONG");
    }
    // Clients that disconnect, are killed, or remain.
    client.run("DQ.ADD q a x");
    let mut stays = server.waiting("DQ.AWAIT q 0 a");
    drop(server.waiting("DQ.AWAIT q 0 a"));
    server.wait_for_blocked(1);
    let mut killed = server.raw();
    let id = killed.int("CLIENT ID");
    killed.begin("DQ.AWAIT q 0 a b a");
    told(&mut killed, "[ [ 'b' ... ");
    killed.begin("DQ.AWAIT q 0 a");
    server.wait_for_blocked(2);
    client.says(&format!("CLIENT KILL ID {id}"), "1");
    client.says("DQ.DEL q a", "1");
    told(&mut stays, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
    server.wait_for_blocked(0);
}

/// A job ends by time while the client's timeout is reached: the end is reported.
#[test]
fn timeouts() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    let start = std::time::Instant::now();
    client.says("DQ.AWAIT q 0.08 a", NIL);
    assert!(start.elapsed() >= Duration::from_millis(80));
    client.says("DQ.ADD q b x TTL 700", "'b'");
    let mut waiting = server.raw();
    waiting.begin("DQ.AWAIT q 0.7 b");
    let mut later = server.waiting("DQ.AWAIT q 10 b");
    told(&mut later, "[ [ 'b' 'expired' nil$ ? 0 ] ]");
    let _ = waiting.reply();
    // Very many waits that end at once.
    let mut many: Vec<Raw> = (0..200)
        .map(|_| {
            let mut client = server.raw();
            client.begin("DQ.AWAIT q 0.3 a");
            client
        })
        .collect();
    many.iter_mut().for_each(|client| drop(told(client, NIL)));
    server.wait_for_blocked(0);
}

#[test]
fn on_a_replica() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    let add = |client: &mut Raw| {
        for id in ["a", "b", "c", "d", "e"] {
            client.run(&format!("DQ.ADD q {id} x ATTEMPTS 1"));
        }
    };
    add(&mut client);
    replica.wait_for_offset_of(&master);
    let mut asks = replica.raw();
    told_at_once(&mut asks, "DQ.AWAIT q 0 none", "[ [ 'none' 'unknown' ... ");
    asks.says("DQ.AWAIT q 0.02 a", NIL);
    let mut waiting = ["a", "b", "c", "d"].map(|id| replica.waiting(&format!("DQ.AWAIT q 0 {id}")));
    let mut both = replica.waiting("DQ.AWAIT q 0 e d");
    let token = pop(&mut client, "DQ.POP q ID a");
    client.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1");
    pop(&mut client, "DQ.POP q ID b");
    client.says("DQ.NACK q b FATAL REASON bad", "'dead'");
    client.run("DQ.POP q ID c TTR 30");
    let [a, b, c, d] = &mut waiting;
    told(a, "[ [ 'a' 'done' nil$ ? 1 ] ]");
    told(b, "[ [ 'b' 'dead' 'bad' ? 1 ] ]");
    told(c, "[ [ 'c' 'dead' 'lease\\x20ended' ? 1 ] ]");
    assert_eq!(d.try_read(Duration::from_millis(20)), None);
    client.run("MULTI");
    client.run("DQ.PURGE q READY");
    client.run("DQ.ADD q d y");
    client.run("EXEC");
    told(d, "[ [ 'd' 'deleted' nil$ ? 0 ] ]");
    told(
        &mut both,
        "[ [ 'e' 'deleted' ? ? 0 ] [ 'd' 'deleted' ? ? 0 ] ]",
    );
    // There the key is deleted; then a full synchronization brings another state.
    let mut waiting = replica.waiting("DQ.AWAIT q 0 d");
    client.says("DEL q", "1");
    told(&mut waiting, "[ [ 'd' 'unknown' nil$ nil$ nil$ ] ]");
    add(&mut client);
    replica.wait_for_offset_of(&master);
    let mut waiting = replica.waiting("DQ.AWAIT q 0 a");
    let before = master.number("stats", "sync_full");
    client.says("DEBUG CHANGE-REPL-ID", "+OK");
    client.run("CLIENT KILL TYPE replica");
    wait_until("a full resync", PATIENCE, || {
        master.number("stats", "sync_full") > before
    });
    replica.wait_for_link();
    client.says("DQ.DEL q a", "1");
    told(&mut waiting, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
    // After promotion its clients continue to wait.
    let mut waiting = replica.waiting("DQ.AWAIT q 0 b");
    replica.promote();
    replica.raw().says("DQ.DEL q b", "1");
    told(&mut waiting, "[ [ 'b' 'deleted' nil$ ? 0 ] ]");
    // After demotion it unblocks all waiting clients.
    client.run("DQ.ADD q b x");
    let mut waiting = master.waiting("DQ.AWAIT q 0 b");
    let port = replica.port();
    master
        .raw()
        .says(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK");
    told(&mut waiting, "-UNBLOCKED ... ");
}

#[track_caller]
fn told_at_once(client: &mut Raw, line: &str, expected: &str) {
    client.begin(line);
    told(client, expected);
}

/// The user's permissions at the moment of the reply count.
#[test]
fn by_acl() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    client.says(
        "ACL SETUSER r on >p ~q ~s resetchannels -@all +dq.await +auth",
        "+OK",
    );
    let mut user = server.raw();
    user.says("AUTH r p", "+OK");
    let refused = user.ask("DQ.AWAIT other 0 a");
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    let refused = user.ask("DQ.GET q a");
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    // Permission to read is enough; the user need not be allowed to pop.
    client.says("ACL SETUSER r resetkeys %R~q", "+OK");
    user.begin("DQ.AWAIT q 0 a");
    server.wait_for_blocked(1);
    client.says("DQ.DEL q a", "1");
    told(&mut user, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
    client.says("DQ.ADD q a x", "'a'");
    user.begin("DQ.AWAIT q 0 a");
    server.wait_for_blocked(1);
    client.says("ACL SETUSER r resetkeys ~s", "+OK");
    client.run("DQ.DEL q a");
    let refused = user.reply();
    // Servers may disconnect a client whose user has changed.
    assert!(refused.starts_with("-NOPERM"), "{refused}");
    client.says("COMMAND GETKEYS DQ.AWAIT k 0 a b", "[ 'k' ]");
    let info = client.ask("COMMAND INFO DQ.AWAIT");
    for word in ["+readonly", "+blocking"] {
        assert!(info.contains(word), "{word} in {info}");
    }
    assert!(!info.contains("+write"), "{info}");
}

/// On the test clock: what has come due is reported before DQ.CLOCK replies.
#[test]
fn by_the_test_clock() {
    let server = Server::builder().module_arguments("test-clock yes").start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x TTL 3600000", "'a'");
    let start = client.int("DQ.CLOCK GET") as u64;
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.run("DQ.CLOCK ADVANCE 7200000");
    let reply = told(&mut waiting, "[ [ 'a' 'expired' nil$ ? 0 ] ]");
    assert_eq!(at(&reply), start + 3_600_000);
}

/// While clients are paused nothing may be written, yet a wait ends.
#[test]
fn while_clients_are_paused() {
    let server = Server::start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x TTL 700", "'a'");
    let mut waiting = server.waiting("DQ.AWAIT q 1 a");
    let mut patient = server.waiting("DQ.AWAIT q 0 a");
    client.says("CLIENT PAUSE 2000 WRITE", "+OK");
    told(&mut waiting, NIL);
    told(&mut patient, "[ [ 'a' 'expired' nil$ ? 0 ] ]");
}

/// Guards against replies in a context that is not flushed: with an AOF, a replica, and clients that wait for jobs and
/// for ends at the same time.
#[test]
fn beside_clients_that_pop() {
    let (server, replica) = pair(Server::builder().aof().config("appendfsync", "always"));
    let mut client = server.raw();
    for round in 0..30 {
        let mut popping = server.waiting("DQ.BPOP q 0");
        client.says("DQ.ADD q a x", "'a'");
        let token = popping.delivery().token;
        let mut waiting = [0; 20].map(|_| server.waiting("DQ.AWAIT q 0 a"));
        let mut there = replica.raw();
        there.begin("DQ.AWAIT q 0 a");
        client.says("DQ.ADD q b x TTL 1", "'b'");
        match round % 3 {
            0 => client.says(&format!("DQ.ACK q WITHTOKENS a {token}"), "1"),
            1 => client.says("DQ.DEL q a", "1"),
            _ => {
                client.run("MULTI");
                client.run("DQ.ACK q a");
                client.run("EXEC");
            }
        }
        for waiting in &mut waiting {
            told(waiting, "[ [ 'a' ? nil$ ? 1 ] ]");
        }
        told(&mut there, "[ [ 'a' ? nil$ ... ");
        client.run("DEL q");
    }
    server.assert_followed_by(&[&replica]);
    let_pass(Duration::from_millis(1));
}

/// Any number of clients may wait for one job, also in RESP3; commands pipelined after the wait are served.
#[test]
fn very_many_wait_for_one_job() {
    let server = Server::builder().config("maxclients", 2000).start();
    let mut client = server.raw();
    client.says("DQ.ADD q a x", "'a'");
    let mut waiting: Vec<Raw> = (0..600)
        .map(|number| {
            let mut waiting = server.raw();
            if number % 2 == 0 {
                waiting.run("HELLO 3");
            }
            waiting.begin("DQ.AWAIT q 0 a");
            waiting.begin("PING");
            waiting
        })
        .collect();
    server.wait_for_blocked(600);
    client.says("DQ.DEL q a", "1");
    for (number, waiting) in waiting.iter_mut().enumerate() {
        let nil = if number % 2 == 0 { "nil" } else { "nil$" };
        told(waiting, &format!("[ [ 'a' 'deleted' {nil} ? 0 ] ]"));
        assert_eq!(waiting.reply(), "+PONG");
    }
    server.wait_for_blocked(0);
    let mut three = server.raw();
    three.run("HELLO 3");
    client.says("DQ.ADD q a x", "'a'");
    three.says("DQ.AWAIT q 0.01 a", "nil");
}

/// Guards against replies that another thread writes than the one that ended the wait.
#[test]
fn with_io_threads() {
    let server = Server::builder().config("io-threads", 4).aof().start();
    let mut client = server.raw();
    for round in 0..20 {
        client.says("DQ.ADD q a x", "'a'");
        let token = pop(&mut client, "DQ.POP q TTR 100000");
        let mut waiting = [0; 16].map(|_| server.waiting("DQ.AWAIT q 0 a"));
        let mut holding = server.waiting(&format!("DQ.BTOUCH q 0 IDS 1 a {token}"));
        drop(server.waiting("DQ.AWAIT q 0 a"));
        client.run(if round % 2 == 0 {
            "DQ.DEL q a"
        } else {
            "DQ.ACK q a"
        });
        for waiting in &mut waiting {
            told(waiting, "[ [ 'a' ? nil$ ? 1 ] ]");
        }
        assert_eq!(holding.reply(), "[ nil$ ]");
    }
}

/// The ACK that brings a result passes it to waiting clients, whether the job is kept or not; on a replica only if it
/// is kept.
#[test]
fn results_are_handed_over() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    for (keep, there) in [("", "nil$"), (" KEEP 60000", "'a\\x00b'")] {
        client.says(&format!("DQ.ADD q a x{keep}"), "'a'");
        let token = pop(&mut client, "DQ.POP q TTR 100000");
        replica.wait_for_offset_of(&server);
        let mut waiting = [0; 2].map(|_| server.waiting("DQ.AWAIT q 0 a"));
        let mut below = replica.waiting("DQ.AWAIT q 0 a");
        let mut holding = server.waiting(&format!("DQ.BTOUCH q 0 IDS 1 a {token}"));
        client.says(&format!("DQ.ACK q RESULTS a {token} a\\x00b"), "1");
        for waiting in &mut waiting {
            told(waiting, "[ [ 'a' 'done' 'a\\x00b' ? 1 ] ]");
        }
        told(&mut below, &format!("[ [ 'a' 'done' {there} ? 1 ] ]"));
        assert_eq!(holding.reply(), "[ nil$ ]");
    }
    // A kept job has ended for clients that ask later; after a kick they wait for it.
    told_at_once(
        &mut client,
        "DQ.AWAIT q 0 a",
        "[ [ 'a' 'done' 'a\\x00b' ? 1 ] ]",
    );
    client.says("DQ.KICK q IDS 1 a", "1");
    client.says("DQ.AWAIT q 0.01 a", NIL);
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    client.says("DQ.PURGE q ALL", "1");
    told(&mut waiting, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
    // Of a recurring job, and with an empty result.
    client.says("DQ.CFGSET q DONELEN 10", "+OK");
    client.says("DQ.ADD q r x EVERY 100000 AT 1", "'r'");
    let token = pop(&mut client, "DQ.POP q TTR 100000");
    let mut waiting = server.waiting("DQ.AWAIT q 0 r");
    client.says(&format!("DQ.ACK q RESULTS r {token} \"\""), "1");
    told(&mut waiting, "[ [ 'r' 'done' '' ? 1 ] ]");
    told_at_once(
        &mut client,
        "DQ.AWAIT q 0 r@1",
        "[ [ 'r@1' 'done' '' ? 1 ] ]",
    );
}
