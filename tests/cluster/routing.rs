//! Which node answers, and what the others say.

use crate::router::{Guides, Outcome, Router};
use crate::scene::{Lines, Scene};
use crate::support::cluster::Cluster;
use redis::{cmd, Value};

#[test]
fn by_key() {
    let cluster = Cluster::start(3);
    let owner = cluster.node_of("q");
    let (slot, port) = (cluster.slot_of("q"), cluster.nodes[owner].port());
    let moved = format!("-MOVED {slot} 127.0.0.1:{port}");
    let mut there = cluster.nodes[owner].raw();
    let mut elsewhere = cluster.nodes[(owner + 1) % 3].raw();
    // Every command that has a key goes where the key is, those that block or only look too.
    for line in [
        "DQ.ADD q a x",
        "DQ.POP q",
        "DQ.BPOP q 0.01",
        "DQ.ACK q a",
        "DQ.DEL q a",
        "DQ.NACK q a",
        "DQ.TOUCH q a",
        "DQ.BTOUCH q 0.01 IDS 1 a 1",
        "DQ.AWAIT q 0.01 a",
        "DQ.RESCHEDULE q DELAY 0 a",
        "DQ.KICK q COUNT 1",
        "DQ.PURGE q DEAD",
        "DQ.GET q a",
        "DQ.PEEK q READY",
        "DQ.SCAN q 0",
        "DQ.GROUPS q 0",
        "DQ.GROUPSET q g MAX 1",
        "DQ.GROUPGET q g",
        "DQ.LEN q",
        "DQ.STATS q",
        "DQ.CFGSET q TTR 1000",
        "DQ.CFGGET q",
        "DQ.PAUSE q 1",
        "DQ.RESUME q",
        "DQ.APPLY q \\x01",
    ] {
        assert_eq!(elsewhere.ask(line), moved, "{line}");
        let answer = there.ask(line);
        assert!(!answer.starts_with("-MOVED"), "{line} -> {answer}");
    }
    let mut router = Router::new(&Guides::Nodes(cluster.ports()));
    router.call("q", cmd("DQ.ADD").arg("q").arg("b").arg("x"));
    let len = router.call("q", cmd("DQ.LEN").arg("q"));
    assert_eq!(len, Outcome::Answer(Value::Int(1)));
}

#[test]
fn keys_of_one_command_share_a_slot() {
    let cluster = Cluster::start(3);
    let owner = cluster.node_of("{x}q");
    let mut client = cluster.nodes[owner].raw();
    for line in [
        "DQ.BPOP {x}q {y}q 0",
        "DQ.BPOP {x}q {x}r {y}q 0 COUNT 2 NOACK",
        "DQ.BPOP {x}q {x} x{y 0",
    ] {
        let refused = client.ask(line);
        assert!(refused.starts_with("-CROSSSLOT "), "{line} -> {refused}");
    }
    // The first key says where to, as long as the others are not known.
    let elsewhere = (0..100).map(|n| format!("q{n}"));
    let elsewhere = elsewhere
        .into_iter()
        .find(|key| cluster.node_of(key) != owner);
    let refused = client.ask(&format!("DQ.BPOP {} {{x}}q 0", elsewhere.expect("a key")));
    assert!(refused.starts_with("-MOVED "), "{refused}");
    // A hash tag puts them into one slot, and a wait on all of them ends with a job in any.
    for key in ["{x}q", "{x}r", "{x}"] {
        let mut waiting = cluster.nodes[owner].waiting("DQ.BPOP {x}q {x}r {x} 0");
        client.says(&format!("DQ.ADD {key} a x"), "'a'");
        assert_eq!(waiting.delivery().key, key);
    }
    // In transactions and scripts, too.
    client.says("MULTI", "+OK");
    client.says("DQ.ADD {x}q b x", "+QUEUED");
    client.ask("DQ.ADD {y}q b x");
    let refused = client.ask("EXEC");
    assert!(
        refused.starts_with("-EXECABORT ") || refused.starts_with("-CROSSSLOT "),
        "{refused}"
    );
    client.says("EXISTS {x}q", "1");
    client.says("DQ.LEN {x}q READY", "0");
}

/// A key that has left a slot on its way is asked for on the other side, and only with ASKING.
#[test]
fn a_slot_on_its_way_asks() {
    let cluster = Cluster::start(3);
    let from = cluster.node_of("{x}q");
    let to = (from + 1) % 3;
    let slot = cluster.slot_of("{x}q");
    let port = cluster.nodes[to].port();
    let (mut here, mut there) = (cluster.nodes[from].raw(), cluster.nodes[to].raw());
    here.says("DQ.ADD {x}stays a x", "'a'");
    here.says("DQ.ADD {x}goes a x", "'a'");
    cluster.begin_move(slot, from, to);
    here.says(
        &format!("MIGRATE 127.0.0.1 {port} {{x}}goes 0 10000"),
        "+OK",
    );
    here.says("DQ.LEN {x}stays", "1");
    let ask = format!("-ASK {slot} 127.0.0.1:{port}");
    for line in [
        "DQ.POP {x}goes",
        "DQ.BPOP {x}goes 1",
        "DQ.ADD {x}new a x",
        "DQ.LEN {x}goes",
    ] {
        here.says(line, &ask);
        let moved = there.ask(line);
        assert!(moved.starts_with("-MOVED "), "{line} -> {moved}");
    }
    let both = "DQ.BPOP {x}stays {x}goes 1";
    let again = here.ask(both);
    assert!(again.starts_with("-TRYAGAIN "), "{again}");
    there.says("ASKING", "+OK");
    there.begin("DQ.POP {x}goes");
    assert_eq!(there.delivery().id, "a");
    let mut router = Router::new(&Guides::Nodes(cluster.ports()));
    router.call("{x}", cmd("DQ.ADD").arg("{x}new").arg("b").arg("x"));
    assert_eq!(router.asked, 1);
    here.says(
        &format!("MIGRATE 127.0.0.1 {port} {{x}}stays 0 10000"),
        "+OK",
    );
    cluster.finish_move(slot, from, to);
    there.says("DQ.LEN {x}new", "1");
    there.says("DQ.LEN {x}stays", "1");
    there.says("DQ.LEN {x}goes RESERVED", "1");
}
