//! DQ.BTOUCH: a heartbeat that waits, and reports when a lease is lost.

use std::time::{Duration, Instant};

use crate::probe::{fits, packed, Probe};
use crate::scene::{pair, Delivery, Lines, Scene};
use crate::support::{Raw, Server};

#[track_caller]
fn told(client: &mut Raw, expected: &str) {
    let reply = client.reply();
    assert!(fits(&reply, expected), "{reply} is not {expected}");
}

fn add(client: &mut Raw, id: &str) -> Delivery {
    client.run(&format!("DQ.ADD q {id} x REPLACE"));
    client.begin(&format!("DQ.POP q ID {id} TTR 1000000"));
    client.delivery()
}

/// A client that waits with these leases.
fn holding(server: &Server, held: &[&Delivery]) -> Raw {
    let pairs = held.iter().map(|it| format!("{} {}", it.id, it.token));
    let pairs = pairs.collect::<Vec<_>>().join(" ");
    server.waiting(&format!("DQ.BTOUCH q 0 IDS {} {pairs}", held.len()))
}

#[test]
fn words_and_refusals() {
    let mut p = Probe::start();
    p.says("DQ.BTOUCH q 0 IDS 1 a 1", "[ nil$ ]");
    p.says3("DQ.BTOUCH q 0 IDS 2 a 1 b 2", "[ nil nil ]");
    p.run("DQ.ADD q a x");
    let token = p.pop_token("DQ.POP q TTR 100000");
    p.says(&format!("DQ.BTOUCH q 0 IDS 2 a {token} b 1"), "[ ? nil$ ]");
    p.says("DQ.BTOUCH q 0 IDS 1 a 7", "[ nil$ ]");
    let reply = p.ask(&format!(
        "DQ.BTOUCH q 0.01 IDS 2 a {token} a {token} TTR 5000"
    ));
    assert!(fits(&reply, "[ ? ? ]") && !reply.contains("nil"), "{reply}");
    p.says(
        &format!("DQ.BTOUCH q -1 IDS 1 a {token}"),
        "-ERR timeout is negative",
    );
    for line in [
        "IDS 2 a 1",
        "a 1 b 2",
        "IDS 1 a 1 TOKEN 5",
        "IDS 1 a 1 PROGRESS x",
    ] {
        let refused = p.ask(&format!("DQ.BTOUCH q 0 {line}"));
        let is_refused = refused.starts_with("-ERR syntax error")
            || refused.starts_with("-ERR wrong number of arguments");
        assert!(is_refused, "{line}: {refused}");
    }
    p.says(
        "DQ.BTOUCH q 0 IDS 0 a 1",
        "-ERR value is not an integer or out of range",
    );
    p.run("SET s x");
    p.says(
        "DQ.BTOUCH s 0 IDS 1 a 1",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    let info = p.ask("COMMAND INFO DQ.BTOUCH");
    assert!(
        info.contains("+write") && info.contains("+blocking"),
        "{info}"
    );
    // In transactions and scripts it is TOUCH IDS.
    p.run("MULTI");
    p.run(&format!("DQ.BTOUCH q 0 IDS 1 a {token} TTR 77777"));
    p.says("EXEC", "[ [ ? ] ]");
    p.says(
        &format!("EVAL return\\x20redis.call('DQ.BTOUCH','q','0','IDS','1','a','{token}') 0"),
        "[ ? ]",
    );
}

#[test]
fn what_is_lost_is_heard() {
    let server = Server::start();
    let mut client = server.raw();
    for loss in [
        "DQ.DEL q a",
        "DQ.PURGE q RESERVED",
        "DQ.PURGE q ALL",
        "DQ.ADD q a y REPLACE",
        "DQ.ADD q a y XX",
        "DQ.ACK q a",
        "DQ.NACK q a",
        "DQ.NACK q a FATAL",
        "DEL q",
        "RENAME q r",
        "SET q x",
        "FLUSHALL ASYNC",
        "SWAPDB 0 1",
        "DQ.TOUCH q a TTR 20",
        "PEXPIRE q 0",
    ] {
        client.run("FLUSHALL");
        let (a, b) = (add(&mut client, "a"), add(&mut client, "b"));
        let mut waiting = holding(&server, &[&b, &a]);
        let mut other = holding(&server, &[&b]);
        client.run(loss);
        let all = client.ask("EXISTS q") != "1"
            || ["SET q x", "DQ.PURGE q RESERVED", "DQ.PURGE q ALL"].contains(&loss);
        if all {
            told(&mut waiting, "[ nil$ nil$ ]");
            told(&mut other, "[ nil$ ]");
        } else {
            told(&mut waiting, "[ ? nil$ ]");
            assert_eq!(other.try_read(Duration::from_millis(20)), None, "{loss}");
        }
        client.run("FLUSHALL");
        server.wait_for_blocked(0);
    }
    // By time: its TTL, at its lease's end.
    client.says("DQ.ADD q a x TTL 1500", "'a'");
    client.begin("DQ.POP q TTR 2000");
    let a = client.delivery();
    let mut waiting = server.waiting(&format!("DQ.BTOUCH q 0 IDS 1 a {} TTR 2000", a.token));
    told(&mut waiting, "[ nil$ ]");
}

/// Deliveries that their own worker ends do not end the wait; when none is left, it is answered.
#[test]
fn what_its_worker_gives_back() {
    let server = Server::start();
    let mut client = server.raw();
    let jobs = ["a", "b", "c"].map(|id| add(&mut client, id));
    let mut waiting = holding(&server, &[&jobs[0], &jobs[1], &jobs[2]]);
    client.says(&format!("DQ.ACK q WITHTOKENS a {}", jobs[0].token), "1");
    client.says(
        &format!("DQ.NACK q IDS 1 b {} REASON x", jobs[1].token),
        "[ 'ready' ]",
    );
    // What happens to these jobs later does not concern the wait.
    client.says("DQ.DEL q b", "1");
    client.run("DQ.ADD q a again");
    client.run("DQ.POP q ID a");
    client.says("DQ.DEL q a", "1");
    // Nor does one that waits for others, whatever becomes of it.
    client.run("DQ.ADD q k x");
    client.run("DQ.POP q ID k");
    let d = add(&mut client, "d");
    let mut given_back = holding(&server, &[&jobs[2], &d]);
    client.run("DQ.NACK q k FATAL");
    client.run("DQ.ADD q d y NEXT");
    client.says(
        &format!("DQ.NACK q d TOKEN {} SILENT AFTER 1 k ONDEAD DIE", d.token),
        "'dead'",
    );
    assert_eq!(given_back.try_read(Duration::from_millis(20)), None);
    // Nor is a longer lease, or another job.
    client.run(&format!("DQ.TOUCH q c TOKEN {} TTR 2000000", jobs[2].token));
    client.run("DQ.ADD q c y NEXT");
    assert_eq!(waiting.try_read(Duration::from_millis(20)), None);
    client.says(
        &format!("DQ.NACK q c TOKEN {} FATAL", jobs[2].token),
        "'dead'",
    );
    told(&mut waiting, "[ nil$ nil$ nil$ ]");
    // One delivery is ended by its worker, then another is lost.
    let jobs = ["a", "b", "c"].map(|id| add(&mut client, id));
    let mut waiting = holding(&server, &[&jobs[0], &jobs[1], &jobs[2]]);
    client.says(&format!("DQ.ACK q WITHTOKENS b {}", jobs[1].token), "1");
    client.says("DQ.DEL q a", "1");
    told(&mut waiting, "[ nil$ nil$ ? ]");
    // A renewed rule leaves the occurrence with its worker; another rule does not.
    client.run("DQ.ADD q r x EVERY 100000 AT 1");
    client.begin("DQ.POP q ID r TTR 1000000");
    let r = client.delivery();
    let mut waiting = holding(&server, &[&r]);
    client.run("DQ.ADD q r y EVERY 100000 REPLACE");
    assert_eq!(waiting.try_read(Duration::from_millis(20)), None);
    client.run("DQ.ADD q r y EVERY 200000 REPLACE");
    told(&mut waiting, "[ nil$ ]");
}

/// The lease as another client changed it during the wait; on a busy machine that may need a longer wait.
fn answers_as_it_is_at_its_end(server: &Server, client: &mut Raw, waiting: &mut Raw, a: &Delivery) {
    for wait in [80, 800, 8000].map(Duration::from_millis) {
        let start = Instant::now();
        let (seconds, token) = (wait.as_secs_f64(), &a.token);
        waiting.begin(&format!("DQ.BTOUCH q {seconds} IDS 1 a {token} TTR 500000"));
        while server.number("clients", "blocked_clients") == 0 && start.elapsed() < wait {
            std::thread::yield_now();
        }
        let left = client.int("DQ.TOUCH q a TTR 400000");
        if start.elapsed() < wait {
            told(waiting, &format!("[ {left} ]"));
            assert!(start.elapsed() >= wait);
            return;
        }
        told(waiting, "[ ? ]");
    }
    panic!("nothing was done within the longest wait");
}

/// The reply is the state at the end of the wait, even if nothing happened, or another client ended the wait.
#[test]
fn timeout_and_unblocking() {
    let server = Server::start();
    let mut client = server.raw();
    let a = add(&mut client, "a");
    let mut waiting = server.raw();
    answers_as_it_is_at_its_end(&server, &mut client, &mut waiting, &a);
    let id = waiting.int("CLIENT ID");
    for how in ["", "TIMEOUT"] {
        waiting.begin(&format!("DQ.BTOUCH q 0 IDS 1 a {} TTR 300000", a.token));
        server.wait_for_blocked(1);
        client.says(&format!("CLIENT UNBLOCK {id} {how}"), "1");
        told(&mut waiting, "[ ? ]");
    }
    waiting.begin(&format!("DQ.BTOUCH q 0 IDS 1 a {}", a.token));
    server.wait_for_blocked(1);
    client.says(&format!("CLIENT UNBLOCK {id} ERROR"), "1");
    told(&mut waiting, "-UNBLOCKED ...");
    // The wait renewed the lease, and keeps no key.
    drop(holding(&server, &[&a]));
    server.wait_for_blocked(0);
    assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
    // In the other database the right key is looked at.
    client.run("SELECT 2");
    let b = add(&mut client, "b");
    let mut other = server.raw();
    other.run("SELECT 2");
    let id = other.int("CLIENT ID");
    other.begin(&format!("DQ.BTOUCH q 0 IDS 1 b {}", b.token));
    server.wait_for_blocked(1);
    server.raw().says(&format!("CLIENT UNBLOCK {id}"), "1");
    told(&mut other, "[ ? ]");
    other.begin(&format!("DQ.BTOUCH q 0 IDS 1 b {}", b.token));
    server.wait_for_blocked(1);
    client.says("DQ.DEL q b", "1");
    told(&mut other, "[ nil$ ]");
}

/// On the test clock it is answered at the instant of the loss, as on a live server.
#[test]
fn by_the_test_clock() {
    let server = Server::builder().module_arguments("test-clock yes").start();
    let mut client = server.raw();
    client.run("DQ.ADD q a x TTR 5");
    client.run("DQ.ADD q b x TTR 100");
    let [a, b] = [0; 2].map(|_| {
        client.begin("DQ.POP q");
        client.delivery()
    });
    let (a, b) = if a.id == "a" { (a, b) } else { (b, a) };
    let mut waiting = holding(&server, &[&a, &b]);
    client.run("DQ.CLOCK ADVANCE 101");
    told(&mut waiting, &format!("[ nil$ {} ]", b.deadline));
    // A delivery that was lost before the clock moves is reported, too.
    client.run("DEL q");
    let b = add(&mut client, "b");
    client.run("DQ.ADD q a x");
    client.begin("DQ.POP q ID a TTR 5000000");
    let a = client.delivery();
    let mut waiting = holding(&server, &[&a, &b]);
    let lines = ["DQ.DEL q a", "DQ.CLOCK ADVANCE 2000000"].map(packed);
    client.send(&lines.concat());
    client.reply();
    client.reply();
    told(&mut waiting, &format!("[ nil$ {} ]", b.deadline));
}

#[test]
fn renewed_on_replicas_too_and_let_go_by_demotion() {
    let (master, replica) = pair(Server::builder());
    let mut client = master.raw();
    let a = add(&mut client, "a");
    let mut waiting = holding(&master, &[&a]);
    let refused = replica
        .raw()
        .ask(&format!("DQ.BTOUCH q 0 IDS 1 a {}", a.token));
    assert!(refused.starts_with("-READONLY"), "{refused}");
    master.assert_followed_by(&[&replica]);
    replica.promote();
    let port = replica.port();
    client.says(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK");
    told(&mut waiting, "-UNBLOCKED ...");
}
