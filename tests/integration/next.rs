//! DQ.ADD ... NEXT: a job runs once more when its current run has ended.

use crate::probe::Probe;
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Server, PATIENCE};

/// A queue `q` whose job `a` is reserved and has a successor.
fn followed(p: &mut Probe, options: &str) -> u64 {
    p.run(&format!("DQ.ADD q a x REPLACE {options}"));
    let token = p.pop_token("DQ.POP q ID a");
    p.says("DQ.ADD q a again NEXT", "'a'");
    token
}

fn get(p: &mut Probe, field: &str) -> String {
    p.field_text("DQ.GET q a", field)
}

fn total(p: &mut Probe, name: &str) -> i64 {
    p.field_int("DQ.STATS q", name)
}

#[test]
fn is_as_nx_unless_the_job_is_reserved() {
    let mut p = Probe::start();
    p.seen("DQ.ADD q a x NEXT", "'a'");
    p.unseen("DQ.ADD q a y NEXT", "nil$");
    p.run("DQ.RESCHEDULE q DELAY 100000 a");
    p.unseen("DQ.ADD q a y NEXT", "nil$");
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    p.run("DQ.POP q");
    p.unseen("DQ.ADD q a y", "nil$");
    p.seen("DQ.ADD q a y next", "'a'");
    p.says("DQ.LEN q", "1");
    assert_eq!(
        (get(&mut p, "payload"), get(&mut p, "next")),
        ("'x'".into(), "'y'".into())
    );
    // A dead one is replaced, as by NX.
    p.run("DQ.ADD q d x");
    p.run("DQ.POP q ID d");
    p.run("DQ.NACK q d FATAL");
    p.says("DQ.ADD q d y NEXT", "'d'");
    assert_eq!(p.field_text("DQ.GET q d", "state"), "'ready'");
    for other in ["NX", "XX", "REPLACE", "NEXT"] {
        p.unseen(
            &format!("DQ.ADD q a z NEXT {other}"),
            "-ERR syntax error, ...",
        );
    }
    p.unseen(
        "DQ.ADD q a z NEXT TTR 0",
        "-ERR value is not an integer or out of range",
    );
    assert_eq!(get(&mut p, "next"), "'y'");
}

#[test]
fn takes_the_place_of_a_job_that_is_over() {
    let mut p = Probe::start();
    p.ready_events = true;
    for (end, reply, events) in [
        ("DQ.ACK q a", "1", "dq.ack dq.add dq.ready"),
        (
            "DQ.NACK q a FATAL REASON x",
            "'dead'",
            "dq.nack dq.dead dq.add dq.ready",
        ),
    ] {
        followed(&mut p, "");
        let (added, deleted) = (total(&mut p, "added"), total(&mut p, "deleted"));
        p.raises(end, reply, events);
        assert_eq!(get(&mut p, "payload"), "'again'");
        assert_eq!(get(&mut p, "next"), "nil");
        assert_eq!(
            (get(&mut p, "attempts"), get(&mut p, "failed")),
            ("0".into(), "nil".into())
        );
        assert_eq!(total(&mut p, "added"), added + 1);
        let died = i64::from(reply == "'dead'");
        assert_eq!(total(&mut p, "deleted"), deleted + died);
        assert_eq!(total(&mut p, "died"), died);
        p.says("DQ.LEN q DEAD", "0");
    }
    // The end of a lease keeps the successor, but after the last attempt the job dies.
    followed(&mut p, "");
    p.run("DQ.TOUCH q a TTR 20");
    p.until("DQ.LEN q READY", "1");
    assert_eq!(
        (get(&mut p, "payload"), get(&mut p, "next")),
        ("'x'".into(), "'again'".into())
    );
    p.unseen("DQ.ADD q a third NEXT", "nil$");
    p.raises(
        "DQ.POP q NOACK",
        "[ 'a' 'x' nil$ 2 nil$ ]",
        "dq.pop dq.add dq.ready",
    );
    assert_eq!(get(&mut p, "payload"), "'again'");
    let token = followed(&mut p, "ATTEMPTS 1");
    p.run("DQ.TOUCH q a TTR 20");
    p.until("DQ.LEN q RESERVED", "0");
    assert_eq!(get(&mut p, "payload"), "'again'");
    p.unseen(&format!("DQ.ACK q WITHTOKENS a {token}"), "0");
}

#[test]
fn a_client_that_waits_gets_it_at_once() {
    let mut p = Probe::start();
    followed(&mut p, "");
    let mut waiting = p.server.waiting("DQ.BPOP q 0");
    p.says("DQ.ACK q a", "1");
    let delivery = waiting.delivery();
    assert_eq!(
        (delivery.id.as_str(), delivery.payload.as_str()),
        ("a", "again")
    );
}

#[test]
fn what_takes_the_job_takes_it_along() {
    let mut p = Probe::start();
    for (end, reply, left) in [
        ("DQ.DEL q a", "1", "nil$"),
        ("DQ.PURGE q RESERVED", "1", "nil$"),
        ("DQ.PURGE q ALL", "1", "nil$"),
        ("DQ.ADD q a new REPLACE", "'a'", "[ ? ? ? 'new' ..."),
        ("DQ.ADD q a new XX", "'a'", "[ ? ? ? 'new' ..."),
    ] {
        p.run("DEL q");
        p.run("DQ.CFGSET q");
        followed(&mut p, "");
        p.seen(end, reply);
        p.says("DQ.GET q a", left);
        assert_eq!(total(&mut p, "deleted"), 2, "{end}");
        assert_ne!(p.field_text("DQ.STATS q", "bytes"), "8", "{end}");
    }
    p.in_time("expires", 20, |p, ms| {
        p.run("DQ.CFGSET q");
        p.run(&format!("DQ.ADD q a first TTL {ms} TTR {}", ms + 10));
        p.run("DQ.POP q");
        p.run("DQ.ADD q a again NEXT");
    });
    p.until("DQ.GET q a", "nil$");
    assert_eq!((total(&mut p, "deleted"), total(&mut p, "expired")), (1, 1));
    // Spared with its job.
    followed(&mut p, "");
    p.unseen("DQ.DEL q UNRESERVED a", "0");
    assert_eq!(get(&mut p, "next"), "'again'");
}

#[test]
fn its_own_due_ttl_and_place_count_from_its_call() {
    let mut p = Probe::start();
    p.run("DQ.CFGSET q MAXLEN 1 DEDUPE 100000");
    followed(&mut p, "");
    // A later one replaces it, and MAXLEN does not hold it.
    p.says("DQ.ADD q a later NEXT DELAY 100000", "'a'");
    assert_eq!(get(&mut p, "next"), "'later'");
    assert_eq!((total(&mut p, "deleted"), total(&mut p, "added")), (1, 1));
    p.raises("DQ.ACK q a", "1", "dq.ack dq.add");
    assert_eq!(get(&mut p, "state"), "'delayed'");
    // Its id is remembered, which holds no successor.
    p.run("DQ.RESCHEDULE q DELAY 0 a");
    p.run("DQ.POP q");
    p.says("DQ.ADD q a third NEXT TTL 20", "'a'");
    let deleted = total(&mut p, "deleted");
    while get(&mut p, "next") != "nil" {}
    assert_eq!(
        (total(&mut p, "expired"), total(&mut p, "deleted")),
        (1, deleted)
    );
    p.says("DQ.ACK q a", "1");
    p.says("DQ.GET q a", "nil$");
    // In the order of adding it stands where it was added.
    p.run("DQ.CFGSET q MAXLEN 0 DEDUPE 0");
    p.run("DQ.ADD q a x");
    p.run("DQ.POP q");
    p.run("DQ.ADD q a second NEXT AT 5000");
    p.run("DQ.ADD q b third AT 5000");
    p.run("DQ.ACK q a");
    p.says("DQ.POP q", "[ 'a' 'second' ? 1 ? ]");
}

#[test]
fn is_there_once_wherever_the_queue_goes() {
    let (master, replica) = pair(Server::builder().config("appendonly", "yes"));
    let mut client = master.raw();
    client.run("DQ.CFGSET q DEADLEN 1");
    client.run("DQ.ADD q old x");
    client.run("DQ.POP q");
    client.says("DQ.NACK q old FATAL", "'dead'");
    for id in ["a", "b", "c", "d"] {
        client.run(&format!("DQ.ADD q {id} first ATTEMPTS 1"));
        client.run(&format!("DQ.POP q ID {id} TTR 100000"));
        client.run(&format!("DQ.ADD q {id} second NEXT TTL 1000000 PRIORITY 2"));
    }
    client.says("COPY q copied", "1");
    client.says("DQ.NACK q b", "'dead'");
    client.says("DQ.DEL q c", "1");
    // It removed no other job from the dead list (DEADLEN).
    assert!(client
        .ask("DQ.PEEK q DEAD COUNT 2")
        .starts_with("[ [ 'old' "));
    client.says("DQ.LEN q DEAD", "1");
    master.assert_followed_by(&[&replica]);
    let digest = master.digest();
    for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
        client.says(reload, "+OK");
        assert_eq!(master.digest(), digest, "{reload}");
    }
    // Started, or scheduled where another child is at work.
    assert!(client
        .ask("BGREWRITEAOF")
        .starts_with("+Background append only file rewriting"));
    wait_until("the AOF is rewritten", PATIENCE, || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| master.number("persistence", field) == 0)
    });
    client.says("DEBUG LOADAOF", "+OK");
    assert_eq!(master.digest(), digest);
    replica.wait_for_offset_of(&master);
    let mut promoted = replica.raw();
    promoted.says("REPLICAOF NO ONE", "+OK");
    for key in ["q", "copied"] {
        promoted.says(&format!("DQ.ACK {key} a"), "1");
        promoted.says(
            &format!("DQ.POP {key} ID a NOACK"),
            "[ 'a' 'second' nil$ 1 nil$ ]",
        );
        promoted.says(&format!("DQ.GET {key} a"), "nil$");
    }
    promoted.says("DQ.LEN copied", "3");
}
