//! Clients of a cluster that wait for the end of jobs: on masters and replicas, while slots move.

use crate::probe::packed;
use crate::scene::{Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Server, PATIENCE};
use std::time::Duration;

fn is_told(reply: &str, outcome: &str) -> bool {
    reply.starts_with(&format!("[ [ 'a' '{outcome}' "))
}

#[test]
fn told_by_whom_the_slot_belongs_to() {
    let cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let (here, there) = (&cluster.nodes[owner], &cluster.nodes[1 - owner]);
    let mut client = here.raw();
    client.says("DQ.ADD {x}q a x", "'a'");
    let refused = there.raw().ask("DQ.AWAIT {x}q 0 a");
    assert!(refused.starts_with("-MOVED "), "{refused}");
    let mut waiting = [0; 3].map(|_| here.waiting("DQ.AWAIT {x}q 0 a"));
    client.begin("DQ.POP {x}q TTR 1000000");
    let lease = client.delivery();
    let mut holding = here.waiting(&format!("DQ.BTOUCH {{x}}q 0 IDS 1 a {}", lease.token));
    client.says("DQ.DEL {x}q a", "1");
    for waiting in &mut waiting {
        let reply = waiting.reply();
        assert!(is_told(&reply, "deleted"), "{reply}");
    }
    assert_eq!(holding.reply(), "[ nil$ ]");
    assert_eq!(
        client.ask("DQ.AWAIT {x}q 0.05 b"),
        "[ [ 'b' 'unknown' nil$ nil$ nil$ ] ]"
    );
}

/// Where the key has gone with its slot the job has not ended: who waits is sent after it.
#[test]
fn a_slot_that_moves_ends_no_job() {
    let cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let (here, there) = (&cluster.nodes[owner], &cluster.nodes[1 - owner]);
    let slot = cluster.slot_of("{x}q");
    let mut client = here.raw();
    client.says("DQ.ADD {x}q a x", "'a'");
    client.begin("DQ.POP {x}q TTR 1000000");
    let lease = client.delivery();
    let mut waiting = [
        here.waiting("DQ.AWAIT {x}q 0 a"),
        here.waiting("DQ.AWAIT {x}q 5 a"),
        here.waiting(&format!("DQ.BTOUCH {{x}}q 0 IDS 1 a {}", lease.token)),
    ];
    cluster.begin_move(slot, owner, 1 - owner);
    let port = there.port();
    client.says(&format!("MIGRATE 127.0.0.1 {port} {{x}}q 0 10000"), "+OK");
    for waiting in &mut waiting {
        let told = waiting.try_read(Duration::from_millis(300));
        assert_eq!(told, None, "while the slot is on its way");
    }
    cluster.finish_move(slot, owner, 1 - owner);
    for waiting in &mut waiting {
        let reply = waiting.reply();
        assert!(reply.starts_with("-MOVED "), "{reply}");
        waiting.says("PING", "+PONG");
    }
    here.wait_for_blocked(0);
    let mut waiting = there.waiting("DQ.AWAIT {x}q 0 a");
    let mut client = there.raw();
    client.says(&format!("DQ.ACK {{x}}q WITHTOKENS a {}", lease.token), "1");
    let reply = waiting.reply();
    assert!(is_told(&reply, "done"), "{reply}");
    cluster.nodes.iter().for_each(Server::assert_no_crash);
}

#[test]
fn on_a_replica_of_the_owner() {
    let mut cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let replica = cluster.add_replica(owner, Server::builder());
    let mut client = cluster.nodes[owner].raw();
    client.says("DQ.ADD {x}q a x", "'a'");
    client.says("DQ.ADD {x}q b x", "'b'");
    cluster.nodes[replica].wait_for_offset_of(&cluster.nodes[owner]);
    let mut reader = cluster.nodes[replica].raw();
    let refused = reader.ask("DQ.AWAIT {x}q 0 a");
    assert!(refused.starts_with("-MOVED "), "{refused}");
    reader.says("READONLY", "+OK");
    wait_until("the replica knows its master's slots", PATIENCE, || {
        reader.ask("DQ.AWAIT {x}q 0.02 a") == "nil*"
    });
    reader.begin("DQ.AWAIT {x}q 0 a");
    cluster.nodes[replica].wait_for_blocked(1);
    client.says("DQ.DEL {x}q a", "1");
    let reply = reader.reply();
    assert!(is_told(&reply, "deleted"), "{reply}");
    // The slot goes, and with it who waits.
    reader.begin("DQ.AWAIT {x}q 0 b");
    cluster.nodes[replica].wait_for_blocked(1);
    let slot = cluster.slot_of("{x}q");
    cluster.move_slot(slot, owner, 1 - owner);
    let reply = reader.reply();
    // A replica is not told that a slot is on its way: the key's deletion may be all that it sees.
    let is_known = reply.starts_with("-MOVED ") || reply.starts_with("[ [ 'b' 'unknown' ");
    assert!(is_known, "{reply}");
    reader.says("PING", "+PONG");
    cluster.nodes.iter().for_each(Server::assert_no_crash);
}

/// Valkey's and Redis's own ways of moving a slot at once.
#[test]
fn an_atomic_move_ends_no_job() {
    let cluster = Cluster::start(2);
    if !cluster.moves_atomically() && !cluster.imports_slots() {
        return crate::support::skipped("slots do not move at once on this server");
    }
    let owner = cluster.node_of("{x}q");
    let (here, there) = (&cluster.nodes[owner], &cluster.nodes[1 - owner]);
    here.raw().says("DQ.ADD {x}q a x", "'a'");
    let mut waiting = [0; 3].map(|_| here.waiting("DQ.AWAIT {x}q 0 a"));
    let slot = cluster.slot_of("{x}q");
    if cluster.moves_atomically() {
        cluster.move_slot_atomically(slot, owner, 1 - owner);
    } else {
        cluster.import_slots(slot..=slot, 1 - owner);
    }
    for waiting in &mut waiting {
        let reply = waiting.reply();
        assert!(reply.starts_with("-MOVED "), "{reply}");
    }
    let mut waiting = there.waiting("DQ.AWAIT {x}q 0 a");
    there.raw().says("DQ.DEL {x}q a", "1");
    let reply = waiting.reply();
    assert!(is_told(&reply, "deleted"), "{reply}");
    cluster.nodes.iter().for_each(Server::assert_no_crash);
}

/// Guards against a client that is answered twice: by us, and by the server with a redirection.
#[test]
fn told_and_redirected_in_one_moment() {
    let cluster = Cluster::start(2);
    let mut owner = cluster.node_of("{x}q");
    let slot = cluster.slot_of("{x}q");
    for round in 0..6 {
        let other = 1 - owner;
        let (here, there) = (&cluster.nodes[owner], &cluster.nodes[other]);
        let mut client = here.raw();
        client.says("DQ.ADD {x}q a x", "'a'");
        let mut waiting = [0; 40].map(|_| here.waiting("DQ.AWAIT {x}q 0 a"));
        // Some of these may have ended before the others wait.
        let mut ending = [0; 10].map(|_| {
            let mut client = here.raw();
            client.send(&packed("DQ.AWAIT {x}q 0.05 a"));
            client
        });
        // All of it in one packet, by turns the job's end first and the slot's.
        let (mine, theirs) = (cluster.id(owner), cluster.id(other));
        there
            .raw()
            .run(&format!("CLUSTER SETSLOT {slot} IMPORTING {mine}"));
        let lines = match round % 2 {
            0 => [
                "DQ.DEL {x}q a".into(),
                format!("CLUSTER SETSLOT {slot} NODE {theirs}"),
            ],
            _ => [
                "DEL {x}q".into(),
                format!("CLUSTER SETSLOT {slot} NODE {theirs}"),
            ],
        };
        client.send(&lines.map(|line| packed(&line)).concat());
        client.read();
        client.read();
        there
            .raw()
            .run(&format!("CLUSTER SETSLOT {slot} NODE {theirs}"));
        for waiting in waiting.iter_mut().chain(&mut ending) {
            let reply = waiting.reply();
            let is_one = reply.starts_with("-MOVED ") || reply.starts_with("[ [ 'a' ");
            assert!(is_one || reply == "nil*", "{reply}");
            waiting.says("PING", "+PONG");
        }
        here.wait_for_blocked(0);
        cluster.wait_until_ok();
        owner = other;
    }
    cluster.nodes.iter().for_each(Server::assert_no_crash);
}
