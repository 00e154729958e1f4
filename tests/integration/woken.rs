//! Everything that ends a wait with a job.

use crate::scene::{Lines, Scene};
use crate::support::{Raw, Reply, Server};

/// Name, commands before the wait, command during it.
type Cause = (&'static str, &'static str, &'static str);

/// Every cause that wakes a client by the contract.
const CAUSES: &[Cause] = &[
    ("a due comes", "DQ.ADD q a x DELAY 150", ""),
    ("a lease ends", "DQ.ADD q a x|DQ.POP q TTR 150", ""),
    ("ADD", "DQ.CFGSET q", "DQ.ADD q a x"),
    ("ADD XX", "DQ.ADD q a x DELAY 60000", "DQ.ADD q a x XX"),
    ("NACK", "DQ.ADD q a x|DQ.POP q", "DQ.NACK q a"),
    (
        "NACK DELAY",
        "DQ.ADD q a x|DQ.POP q",
        "DQ.NACK q a DELAY 50",
    ),
    (
        "RESCHEDULE",
        "DQ.ADD q a x DELAY 60000",
        "DQ.RESCHEDULE q DELAY 0 a",
    ),
    (
        "RESCHEDULE later",
        "DQ.ADD q a x DELAY 60000",
        "DQ.RESCHEDULE q DELAY 50 a",
    ),
    (
        "KICK",
        "DQ.ADD q a x|DQ.POP q|DQ.NACK q a FATAL",
        "DQ.KICK q COUNT 1",
    ),
    (
        "KICK of a done one",
        "DQ.CFGSET q DONELEN 9|DQ.ADD q a x|DQ.POP q|DQ.ACK q a",
        "DQ.KICK q IDS 1 a",
    ),
    (
        "a successor",
        "DQ.ADD q a x|DQ.POP q|DQ.ADD q a x NEXT",
        "DQ.ACK q a",
    ),
    (
        "the one before is done",
        "DQ.ADD q b x|DQ.POP q|DQ.ADD q a x AFTER 1 b",
        "DQ.ACK q b",
    ),
    (
        "a signal",
        "DQ.ADD q a x|DQ.POP q|DQ.NACK q a SILENT AWAIT s DELAY 60000",
        "DQ.SIGNAL q a s",
    ),
    ("a pause ends", "DQ.ADD q a x|DQ.PAUSE q 150", ""),
    ("RESUME", "DQ.ADD q a x|DQ.PAUSE q", "DQ.RESUME q"),
    (
        "a shorter pause",
        "DQ.ADD q a x|DQ.PAUSE q",
        "DQ.PAUSE q 50",
    ),
    (
        "a rate window ends",
        "DQ.CFGSET q RATE 1 200|DQ.ADD q b x|DQ.POP q NOACK|DQ.ADD q a x",
        "",
    ),
    (
        "ACK frees a place",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.ACK q b",
    ),
    (
        "DEL frees a place",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.DEL q b",
    ),
    (
        "PURGE frees a place",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.PURGE q RESERVED",
    ),
    (
        "FATAL frees a place",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.NACK q b FATAL",
    ),
    (
        "a lease's end frees a place",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x ATTEMPTS 1|DQ.POP q TTR 150|DQ.ADD q a x",
        "",
    ),
    (
        "MAXRESERVED",
        "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.CFGSET q MAXRESERVED 0",
    ),
    (
        "RATE",
        "DQ.CFGSET q RATE 1 60000|DQ.ADD q b x|DQ.POP q|DQ.ADD q a x",
        "DQ.CFGSET q RATE 0 0",
    ),
    (
        "GROUPMAX",
        "DQ.CFGSET q GROUPMAX 1|DQ.ADD q b x GROUP g|DQ.POP q|DQ.ADD q a x GROUP g",
        "DQ.CFGSET q GROUPMAX 0",
    ),
    (
        "ACK frees its group's place",
        "DQ.CFGSET q GROUPMAX 1|DQ.ADD q b x GROUP g|DQ.POP q|DQ.ADD q a x GROUP g",
        "DQ.ACK q b",
    ),
    (
        "the group's own MAX",
        "DQ.CFGSET q GROUPMAX 1|DQ.ADD q b x GROUP g|DQ.POP q|DQ.ADD q a x GROUP g",
        "DQ.GROUPSET q g MAX 2",
    ),
    (
        "its settings go",
        "DQ.GROUPSET q g MAX 1|DQ.ADD q b x GROUP g|DQ.POP q|DQ.ADD q a x GROUP g",
        "DQ.GROUPSET q g CLEAR",
    ),
    (
        "a group's rate window ends",
        "DQ.CFGSET q GROUPRATE 1 200|DQ.ADD q b x GROUP g|DQ.POP q NOACK|DQ.ADD q a x GROUP g",
        "",
    ),
    (
        "a group's pause ends",
        "DQ.ADD q a x GROUP g|DQ.PAUSE q 150 GROUP g",
        "",
    ),
    (
        "RESUME of a group",
        "DQ.ADD q a x GROUP g|DQ.PAUSE q GROUP g",
        "DQ.RESUME q GROUP g",
    ),
    (
        "the first of its group is done",
        "DQ.CFGSET q GROUPFIFO 1|DQ.ADD q b x GROUP g|DQ.ADD q a x GROUP g|DQ.POP q",
        "DQ.ACK q b",
    ),
    (
        "the first of its group is due",
        "DQ.CFGSET q GROUPFIFO 1|DQ.ADD q a x GROUP g DELAY 150|DQ.ADD q b x GROUP g",
        "",
    ),
    (
        "one that ran costs less",
        "DQ.CFGSET q RATE 4 60000|DQ.ADD q b x COST 4|DQ.POP q|DQ.ADD q a x",
        "DQ.TOUCH q b COST 1",
    ),
    (
        "and less of its group's rate",
        "DQ.CFGSET q GROUPRATE 4 60000|DQ.ADD q b x GROUP g COST 4|DQ.POP q|DQ.ADD q a x GROUP g",
        "DQ.TOUCH q b COST 1",
    ),
    ("RENAME", "DQ.ADD o a x", "RENAME o q"),
    ("RENAME onto one", "DQ.ADD o a x|DQ.CFGSET q", "RENAME o q"),
    ("RENAMENX", "DQ.ADD o a x", "RENAMENX o q"),
    (
        "RENAME of a delayed one",
        "DQ.ADD o a x DELAY 150",
        "RENAME o q",
    ),
    ("COPY", "DQ.ADD o a x", "COPY o q"),
    (
        "COPY REPLACE",
        "DQ.ADD o a x|DQ.CFGSET q",
        "COPY o q REPLACE",
    ),
    (
        "COPY of a delayed one",
        "DQ.ADD o a x DELAY 150",
        "COPY o q",
    ),
    (
        "MOVE",
        "SELECT 1|DQ.ADD q a x|SELECT 0",
        "SELECT 1|MOVE q 0|SELECT 0",
    ),
    (
        "MOVE of a delayed one",
        "SELECT 1|DQ.ADD q a x DELAY 150|SELECT 0",
        "SELECT 1|MOVE q 0|SELECT 0",
    ),
    ("SWAPDB", "SELECT 1|DQ.ADD q a x|SELECT 0", "SWAPDB 0 1"),
    (
        "SWAPDB with one there",
        "SELECT 1|DQ.ADD q a x|SELECT 0|DQ.CFGSET q",
        "SWAPDB 1 0",
    ),
    (
        "SWAPDB of a delayed one",
        "SELECT 1|DQ.ADD q a x DELAY 150|SELECT 0",
        "SWAPDB 0 1",
    ),
    (
        "ADD in a transaction",
        "DQ.CFGSET q",
        "MULTI|DQ.ADD q a x|EXEC",
    ),
    ("ADD where no key is", "", "DQ.ADD q a x"),
];

fn run(client: &mut Raw, lines: &str) {
    for line in lines.split('|').filter(|line| !line.is_empty()) {
        let reply = client.ask(line);
        assert!(!reply.starts_with('-'), "{line} -> {reply}");
    }
}

/// The client waits before the job comes; the key exists before, so that the server wakes no client by itself.
fn wakes(server: &Server, (name, before, after): &Cause, wait: &str) {
    let mut client = server.raw();
    run(&mut client, "FLUSHALL");
    run(&mut client, before);
    let mut waiting = server.raw();
    waiting.begin(wait);
    // If time wakes it, it may be served before it is seen to wait.
    if !after.is_empty() {
        server.wait_for_blocked(1);
    }
    run(&mut client, after);
    let got = waiting.reply();
    assert!(
        got.starts_with("[ 'q'") && got.contains("'a'"),
        "{name}: {got}"
    );
    println!("woken: {name}");
}

#[test]
fn woken_by_each_cause() {
    let server = Server::start();
    for cause in CAUSES {
        wakes(&server, cause, "DQ.BPOP q 0");
    }
    let added = |name, before| (name, before, "DQ.ADD q a x");
    wakes(
        &server,
        &added("the second key", "DQ.CFGSET q"),
        "DQ.BPOP p q 0",
    );
    wakes(
        &server,
        &added("with COUNT", "DQ.CFGSET q"),
        "DQ.BPOP q 0 COUNT 5",
    );
    let full = "DQ.CFGSET q MAXRESERVED 1|DQ.ADD q b x|DQ.POP q";
    wakes(&server, &added("with NOACK", full), "DQ.BPOP q 0 NOACK");
    server.wait_for_blocked(0);
}

/// From a payload, and from another server.
#[test]
fn woken_by_what_is_restored_or_migrated() {
    let server = Server::start();
    let other = Server::start();
    let mut client = server.raw();
    for (before, lines) in [("", ""), ("DQ.CFGSET q", "REPLACE")] {
        run(&mut client, "FLUSHALL");
        let mut there = other.raw();
        there.says("DQ.ADD q a x DELAY 100", "'a'");
        let Reply::Bulk(payload) = there.run("DUMP q") else {
            panic!("no dump");
        };
        run(&mut client, before);
        let mut waiting = server.waiting("DQ.BPOP q 0");
        let mut restore: Vec<&[u8]> = vec![b"RESTORE", b"q", b"0", &payload];
        restore.extend((!lines.is_empty()).then_some(lines.as_bytes()));
        assert_eq!(server.raw().call(&restore), Reply::Simple("OK".into()));
        assert_eq!(waiting.delivery().id, "a");
        run(&mut client, "FLUSHALL");
        run(&mut client, before);
        let mut waiting = server.waiting("DQ.BPOP q 0");
        let migrate = format!("MIGRATE 127.0.0.1 {} q 0 10000 {lines}", server.port());
        there.says(&migrate, "+OK");
        assert_eq!(waiting.delivery().id, "a");
    }
    server.wait_for_blocked(0);
}
