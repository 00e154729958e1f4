//! Batches that fill: FILL of DQ.BPOP.

use crate::groups::add;
use crate::scene::{Lines, Scene};
use crate::support::{Raw, Reply, Server};
use crate::turned::{clock, start};

const TEN: &str = "DQ.BPOP q 0 COUNT 10 FILL 3 5000";

fn ids_of(reply: &Reply) -> String {
    let Reply::Array(parts) = reply else {
        panic!("no jobs: {reply:?}");
    };
    let (Reply::Bulk(key), Reply::Array(jobs)) = (&parts[0], &parts[1]) else {
        panic!("no jobs: {reply:?}");
    };
    let ids = jobs.iter().map(|job| match job {
        Reply::Array(job) => crate::probe::show(&job[0]).replace('\'', ""),
        other => panic!("no job: {other:?}"),
    });
    let ids: Vec<String> = ids.collect();
    format!("{}: {}", String::from_utf8_lossy(key), ids.join(" "))
}

/// The key and the ids that a client gets.
fn batch(waiting: &mut Raw) -> String {
    ids_of(&waiting.read())
}

#[test]
fn a_batch_is_given_once_it_is_full() {
    let (server, mut client) = start();
    let mut waiting = server.waiting(TEN);
    add(&mut client, "a b");
    server.wait_for_blocked(1);
    client.says("DQ.LEN q READY", "2");
    add(&mut client, "c");
    assert_eq!(batch(&mut waiting), "q: a b c");
    // At once, and by time that passes.
    add(&mut client, "d e f g");
    waiting.begin(TEN);
    assert_eq!(batch(&mut waiting), "q: d e f g");
    let due = clock(&mut client) + 40;
    for (id, delay) in [("h", 20), ("i", 30), ("j", 40), ("k", 50)] {
        client.says(
            &format!("DQ.ADD q {id} x DELAY {delay}"),
            &format!("'{id}'"),
        );
    }
    waiting.begin(TEN);
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK ADVANCE 39", &(due - 1).to_string());
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK ADVANCE 11", &(due + 10).to_string());
    assert_eq!(batch(&mut waiting), "q: h i j");
}

#[test]
fn or_once_the_first_has_waited_so_long() {
    let (server, mut client) = start();
    let mut waiting = server.waiting(TEN);
    let begun = clock(&mut client);
    client.says("DQ.CLOCK ADVANCE 7000", &(begun + 7000).to_string());
    add(&mut client, "a");
    client.says("DQ.CLOCK ADVANCE 4000", &(begun + 11_000).to_string());
    add(&mut client, "b");
    client.says("DQ.CLOCK ADVANCE 999", &(begun + 11_999).to_string());
    server.wait_for_blocked(1);
    // The test clock stops there.
    client.says("DQ.CLOCK NEXT", &(begun + 12_000).to_string());
    assert_eq!(batch(&mut waiting), "q: a b");
    // The count begins anew where none is ready, with who comes later, and in another queue.
    let begun = begun + 12_000;
    waiting.begin(TEN);
    server.wait_for_blocked(1);
    add(&mut client, "c");
    client.says("DQ.CLOCK ADVANCE 3000", &(begun + 3000).to_string());
    client.says("DQ.DEL q c", "1");
    add(&mut client, "d");
    let mut later = server.raw();
    client.says("DQ.CLOCK ADVANCE 3000", &(begun + 6000).to_string());
    later.begin(TEN);
    server.wait_for_blocked(2);
    client.says("DEL q", "1");
    add(&mut client, "e");
    client.says("DQ.CLOCK NEXT", &(begun + 11_000).to_string());
    assert_eq!(batch(&mut waiting), "q: e");
    add(&mut client, "f");
    client.says("DQ.CLOCK NEXT", &(begun + 16_000).to_string());
    assert_eq!(batch(&mut later), "q: f");
}

#[test]
fn it_holds_up_nobody() {
    let (server, mut client) = start();
    let mut filling = server.waiting("DQ.BPOP q 0 COUNT 10 FILL 9 5000");
    let mut small = server.raw();
    small.begin("DQ.BPOP q 0 COUNT 10 FILL 2 9000");
    server.wait_for_blocked(2);
    let mut plain = server.raw();
    plain.begin("DQ.BPOP q 0");
    server.wait_for_blocked(3);
    add(&mut client, "a");
    assert_eq!(plain.delivery().id, "a");
    client.says("DQ.MADD q 2 b x c x", "[ 'b' 'c' ]");
    assert_eq!(batch(&mut small), "q: b c");
    add(&mut client, "d");
    plain.begin("DQ.BPOP q 0.01");
    assert_eq!(plain.delivery().id, "d");
    let stats = client.ask("DQ.STATS q");
    assert!(stats.contains("'waiting-clients' 1 "), "{stats}");
    server.wait_for_blocked(1);
    let until = clock(&mut client) + 5000;
    add(&mut client, "e");
    client.says("DQ.EXPLAIN q", &format!("[ [ 'fill' 1 {until} ] ]"));
    client.says("DQ.EXPLAIN q e", &format!("[ [ 'fill' 1 {until} ] ]"));
    client.says("DQ.CLOCK NEXT", &until.to_string());
    assert_eq!(batch(&mut filling), "q: e");
    add(&mut client, "f");
    client.says("DQ.EXPLAIN q", "[ [ 'idle' 1 nil$ ] ]");
}

#[test]
fn limits_may_leave_it_fewer() {
    let (server, mut client) = start();
    client.says("DQ.CFGSET q MAXRESERVED 2", "+OK");
    let mut waiting = server.waiting(TEN);
    client.says("DQ.PAUSE q", "+OK");
    add(&mut client, "a b c");
    server.wait_for_blocked(1);
    client.says("DQ.RESUME q", "+OK");
    assert_eq!(batch(&mut waiting), "q: a b");
    // Its time has passed, and a place comes later.
    waiting.begin(TEN);
    let now = clock(&mut client);
    server.wait_for_blocked(1);
    client.says("DQ.CLOCK ADVANCE 6000", &(now + 6000).to_string());
    server.wait_for_blocked(1);
    client.says("DQ.ACK q b", "1");
    assert_eq!(batch(&mut waiting), "q: c");
}

#[test]
fn each_key_counts_by_itself() {
    let (server, mut client) = start();
    add(&mut client, "a b");
    client.says("DQ.MADD r 3 c x d x e x", "[ 'c' 'd' 'e' ]");
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP q r 0 COUNT 10 FILL 3 5000");
    assert_eq!(batch(&mut waiting), "r: c d e");
    waiting.begin("DQ.BPOP q r 0 COUNT 10 FILL 3 5000");
    server.wait_for_blocked(1);
    client.says("DQ.ADD r f x", "'f'");
    let now = clock(&mut client);
    client.says("DQ.CLOCK ADVANCE 5000", &(now + 5000).to_string());
    assert_eq!(batch(&mut waiting), "q: a b");
}

#[test]
fn at_its_end_it_gets_what_there_is() {
    let (server, mut client) = start();
    add(&mut client, "a");
    let mut waiting = server.raw();
    waiting.begin("DQ.BPOP none q 0.05 COUNT 10 FILL 5 600000");
    assert_eq!(batch(&mut waiting), "q: a");
    waiting.begin("DQ.BPOP none q 0.05 COUNT 10 FILL 5 600000");
    assert_eq!(waiting.reply(), "nil*");
    client.says("EXISTS q none", "1");
    // Unblocked, it gets nothing.
    let id = waiting.int("CLIENT ID");
    waiting.begin("DQ.BPOP q 0 COUNT 10 FILL 5 600000");
    server.wait_for_blocked(1);
    add(&mut client, "b");
    client.says(&format!("DQ.UNBLOCK {id}"), "1");
    assert_eq!(waiting.reply(), "nil*");
    waiting.begin("DQ.BPOP q 0 COUNT 10 FILL 5 600000");
    server.wait_for_blocked(1);
    client.says(&format!("CLIENT UNBLOCK {id}"), "1");
    assert_eq!(waiting.reply(), "nil*");
    client.says("DQ.LEN q READY", "1");
    // Where it must not wait, FILL says nothing.
    client.says("MULTI", "+OK");
    client.says("DQ.BPOP q 0 COUNT 10 FILL 5 600000", "+QUEUED");
    let Reply::Array(replies) = client.run("EXEC") else {
        panic!("no transaction");
    };
    assert_eq!(ids_of(&replies[0]), "q: b");
    add(&mut client, "c");
    let script = "return\\x20redis.call('DQ.BPOP',KEYS[1],0,'COUNT',5,'FILL',5,9)[2][1][1]";
    client.says(&format!("EVAL {script} 1 q"), "'c'");
}

#[test]
fn its_words_are_read_from_the_end() {
    let (_server, mut client) = start();
    let number = "-ERR value is not an integer or out of range";
    for (line, error) in [
        ("DQ.BPOP q 0 COUNT 5 FILL 1 50", number),
        ("DQ.BPOP q 0 COUNT 5 FILL 6 50", number),
        ("DQ.BPOP q 0 COUNT 5 FILL 2 0", number),
        (
            "DQ.BPOP q 0 FILL 2 50",
            "-ERR syntax error, FILL needs COUNT",
        ),
        ("DQ.BPOP q FILL 2 50", "-ERR timeout is missing before FILL"),
        (
            "DQ.BPOP q 0 COUNT 5 FILL 2",
            "-ERR syntax error, a value is missing after FILL",
        ),
        ("DQ.BPOP q FILL 0", "-ERR timeout is missing before FILL"),
        ("DQ.BPOP FILL q 0", "-ERR timeout is missing before FILL"),
    ] {
        client.says(line, error);
    }
    for line in [
        "DQ.BPOP q 0.01 COUNT 5 FILL 2 50",
        "DQ.BPOP q 0.01 fill 2 50 NOACK count 5 WITHDUE TTR 50",
        "DQ.BPOP FILL a b 0.01 TTR 50",
    ] {
        client.says(line, "nil*");
    }
    client.says(
        "DQ.POP q COUNT 5 FILL 2 50",
        "-ERR syntax error, expected COUNT, ID, TTR, LEASE, NOACK, WITHDUE, WITHRESULTS, WITHSTEPS or WITHTERMS, not 'FILL'",
    );
}

/// Clients that fill wait under a name, whatever queue comes under it, and one that goes is served no more.
#[test]
fn they_wait_under_the_name() {
    let server = Server::start();
    let mut client = server.raw();
    let mut waiting = server.waiting("DQ.BPOP q 0 COUNT 10 FILL 2 600000");
    client.says("DQ.MADD r 2 a x b x", "[ 'a' 'b' ]");
    client.says("RENAME r q", "+OK");
    assert_eq!(batch(&mut waiting), "q: a b");
    client.says("DQ.ACK q a b", "2");
    waiting.begin("DQ.BPOP q 0 COUNT 10 FILL 2 600000");
    server.wait_for_blocked(1);
    client.says("SELECT 1", "+OK");
    client.says("DQ.MADD q 2 c x d x", "[ 'c' 'd' ]");
    client.says("SWAPDB 0 1", "+OK");
    assert_eq!(batch(&mut waiting), "q: c d");
    let gone = server.waiting("DQ.BPOP q 0 COUNT 10 FILL 2 600000");
    drop(gone);
    server.wait_for_blocked(0);
    client.says("SELECT 0", "+OK");
    client.says("DQ.MADD q 2 e x f x", "[ 'e' 'f' ]");
    client.says("DQ.LEN q READY", "2");
}

/// Jobs that come with another queue have waited for nobody yet, whatever was under the name before.
#[test]
fn another_queue_counts_anew() {
    const OTHER: [&str; 2] = ["DQ.ADD other b x", "RENAME other q"];
    let ways = [
        &["DEL q", OTHER[0], OTHER[1]][..],
        &["FLUSHALL", OTHER[0], OTHER[1]],
        &OTHER,
        &["SWAPDB 0 1", "SWAPDB 0 1"],
    ];
    let (server, mut client) = start();
    for way in ways {
        client.says("FLUSHALL", "+OK");
        let mut waiting = server.waiting(TEN);
        let begun = clock(&mut client);
        add(&mut client, "a");
        client.says("DQ.CLOCK ADVANCE 4000", &(begun + 4000).to_string());
        way.iter().for_each(|line| drop(client.run(line)));
        client.says("DQ.CLOCK NEXT", &(begun + 9000).to_string());
        let got = batch(&mut waiting);
        assert!(got == "q: a" || got == "q: b", "{way:?}: {got}");
    }
}

/// Nobody notes that no job is ready while no client fills.
#[test]
fn who_fills_alone_counts_from_its_own_wait() {
    let (server, mut client) = start();
    client.says("DQ.PAUSE q", "+OK");
    let mut plain = server.waiting("DQ.BPOP q 0");
    add(&mut client, "a");
    let first = server.waiting(TEN);
    drop(first);
    server.wait_for_blocked(1);
    client.says("DEL q", "1");
    let mut waiting = server.waiting(TEN);
    let begun = clock(&mut client);
    client.says("DQ.CLOCK ADVANCE 4000", &(begun + 4000).to_string());
    client.says("DQ.MADD other 2 b x c x", "[ 'b' 'c' ]");
    client.says("RENAME other q", "+OK");
    assert_eq!(plain.delivery().id, "b");
    client.says("DQ.CLOCK NEXT", &(begun + 9000).to_string());
    assert_eq!(batch(&mut waiting), "q: c");
}
