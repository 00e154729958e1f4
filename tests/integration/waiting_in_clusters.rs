//! Clients that wait in a cluster whose slots may move.

use std::time::Duration;

use crate::scene::{let_pass, now_ms, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{skipped, wait_until, Raw, Server, PATIENCE};

#[test]
fn in_a_cluster() {
    let cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let other = 1 - owner;
    let mut client = cluster.nodes[owner].raw();
    // All keys count, not only the first.
    let refused = client.ask("DQ.BPOP {x}q {y}q 0");
    assert!(refused.starts_with("-CROSSSLOT "), "{refused}");
    let refused = cluster.nodes[other].raw().ask("DQ.BPOP {x}q {x}r 0");
    assert!(refused.starts_with("-MOVED "), "{refused}");
    let mut waiting = cluster.nodes[owner].waiting("DQ.BPOP {x}r {x}q 0");
    client.says("DQ.ADD {x}q a x DELAY 100", "'a'");
    assert_eq!(waiting.delivery().id, "a");
    client.says("DQ.ACK {x}q a", "1");

    // The slot goes away, with a lease and a delayed job in it, while clients wait.
    client.says("DQ.ADD {x}q b x", "'b'");
    client.begin("DQ.POP {x}q TTR 1500");
    let lease = client.delivery();
    let mut waiting = [
        cluster.nodes[owner].waiting("DQ.BPOP {x}q 0"),
        cluster.nodes[owner].waiting("DQ.BPOP {x}none {x}q 0"),
    ];
    cluster.move_slot(cluster.slot_of("{x}q"), owner, other);
    for client in &mut waiting {
        let reply = client.reply();
        assert!(reply.starts_with("-MOVED "), "{reply}");
    }
    cluster.nodes[owner].wait_for_blocked(0);
    assert_eq!(cluster.nodes[owner].number("dq", "dq_waiting_clients"), 0);
    let mut there = cluster.nodes[other].raw();
    there.begin("DQ.BPOP {x}q 0");
    let again = there.delivery();
    assert!(now_ms() >= lease.deadline, "not before the lease's end");
    assert_eq!((again.id.as_str(), again.attempts), ("b", 2));
    assert!(again.token.parse::<u64>().unwrap() > lease.token.parse::<u64>().unwrap());
}

/// Guards against a timer that changes a slot that is not ours (yet).
#[test]
fn a_slot_on_its_way_is_left_alone() {
    let cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let other = 1 - owner;
    let slot = cluster.slot_of("{x}q");
    let mut client = cluster.nodes[owner].raw();
    client.says("DQ.ADD {x}q a x TTL 300", "'a'");
    client.says("DQ.ADD {x}q b x DELAY 300", "'b'");
    client.says("DQ.ADD {x}q c x", "'c'");
    client.run("DQ.POP {x}q ID c TTR 300");
    cluster.begin_move(slot, owner, other);
    let port = cluster.nodes[other].port();
    client.says(&format!("MIGRATE 127.0.0.1 {port} {{x}}q 0 10000"), "+OK");
    // Everything becomes due while the target is still importing the slot.
    let mut there = cluster.nodes[other].raw();
    let before = digest_there(&mut there);
    let_pass(Duration::from_millis(600));
    assert_eq!(
        digest_there(&mut there),
        before,
        "it is not the target's to change yet"
    );
    cluster.finish_move(slot, owner, other);
    wait_until("the target does what is past", PATIENCE, || {
        there.ask("DQ.LEN {x}q READY") == "2"
    });
    there.says("DQ.GET {x}q a", "nil$");
}

fn digest_there(client: &mut Raw) -> String {
    client.ask("DEBUG DIGEST")
}

/// Atomic slot migration of Valkey 9: keys arrive as this module's commands while the slot is not
/// ours yet, with timers running.
#[test]
fn an_atomic_slot_migration() {
    if !Server::plain().start().version().at_least(9, 0) {
        return skipped("CLUSTER MIGRATESLOTS came with Valkey 9.0");
    }
    let cluster = Cluster::start(2);
    let owner = cluster.node_of("{x}q");
    let other = 1 - owner;
    let slot = cluster.slot_of("{x}q");
    let mut client = cluster.nodes[owner].raw();
    for number in 0..500 {
        client.run(&format!(
            "DQ.ADD {{x}}q {number} x DELAY {} TTL 60000",
            number * 4
        ));
    }
    client.says("DQ.ADD {x}q leased x", "'leased'");
    client.run("DQ.POP {x}q ID leased TTR 500");
    let mut waiting = cluster.nodes[owner].waiting("DQ.BPOP {x}none 0");
    let target = cluster.id(other);
    let reply = client.ask(&format!(
        "CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {target}"
    ));
    if reply.starts_with('-') {
        // The migration is refused as a whole, and nothing has changed. Modules take part from 9.1
        // on.
        assert!(!cluster.nodes[owner].version().at_least(9, 1), "{reply}");
        assert!(reply.to_lowercase().contains("module"), "{reply}");
        assert_eq!(cluster.node_of("{x}q"), owner);
        client.says("DQ.LEN {x}q", "501");
        return skipped(reply);
    }
    let ended = waiting.reply();
    assert!(ended.starts_with("-MOVED "), "{ended}");
    let mut there = cluster.nodes[other].raw();
    for _ in 0..501 {
        there.begin("DQ.BPOP {x}q 20 NOACK");
        there.delivery();
    }
    cluster.nodes.iter().for_each(Server::assert_no_crash);
}
