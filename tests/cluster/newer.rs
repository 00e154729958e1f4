//! A cluster half upgraded: slots that hold what a node does not know do not come to it, by none of the ways to move
//! them. They stay where they are with all that they hold, and both nodes go on.

use crate::resharding::digest;
use crate::scene::Lines;
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Raw, Server, PATIENCE};

/// Tries to move the slot from node 0 to node 1.
type Try = fn(&Cluster, &str, &mut Raw, &mut Raw);

fn by_migrate(cluster: &Cluster, queue: &str, here: &mut Raw, there: &mut Raw) {
    let slot = cluster.slot_of(queue);
    cluster.begin_move(slot, 0, 1);
    let port = cluster.nodes[1].port();
    let refusal = here.run(&format!("MIGRATE 127.0.0.1 {port} {queue} 0 60000"));
    let refusal = crate::probe::show(&refusal);
    assert!(refusal.contains("Bad data format"), "{refusal}");
    for client in [here, there] {
        client.says(&format!("CLUSTER SETSLOT {slot} STABLE"), "+OK");
    }
}

fn at_once(cluster: &Cluster, queue: &str, _: &mut Raw, _: &mut Raw) {
    cluster.begin_atomic_move(cluster.slot_of(queue), 0, 1);
    cluster.wait_for_migration(0, &["failed"]);
}

/// The server would leave out what cannot be read, and take the slot over without it.
fn by_import(cluster: &Cluster, queue: &str, _: &mut Raw, there: &mut Raw) {
    let slot = cluster.slot_of(queue);
    for number in 1..=2 {
        there.run(&format!("CLUSTER MIGRATION IMPORT {slot} {slot}"));
        wait_until("the import is cancelled", PATIENCE, || {
            let log = cluster.nodes[1].log();
            assert!(!log.contains("could not be cancelled"), "{log}");
            log.matches("is cancelled: this server cannot read one of its queues")
                .count()
                == number
        });
    }
}

#[test]
fn slots_of_a_newer_node_stay_there() {
    let cluster = Cluster::start_with(2, Server::builder().breakable());
    let mut tries: Vec<Try> = vec![by_migrate];
    if cluster.moves_atomically() {
        tries.push(at_once);
    }
    if cluster.imports_slots() {
        tries.push(by_import);
    }
    let name = |node: usize| {
        let mut names = (0..).map(|number| format!("q{number}"));
        let there = |name: &String| cluster.node_of(name) == node;
        names.find(there).expect("names without end")
    };
    let (queue, other) = (name(0), name(1));
    let (mut here, mut there) = (cluster.nodes[0].raw(), cluster.nodes[1].raw());
    here.says("DQ.BREAK newer", "+OK");
    here.run(&format!("DQ.ADD {queue} a x TTR 600000"));
    here.run(&format!("DQ.POP {queue}"));
    here.run(&format!("DQ.ADD {queue} b x DELAY 600000"));
    there.run(&format!("DQ.ADD {other} c x"));
    let before = (digest(&mut here, &queue), digest(&mut there, &other));
    for try_to_move in tries {
        try_to_move(&cluster, &queue, &mut here, &mut there);
        wait_until("nothing is left of it over there", PATIENCE, || {
            there.ask("DBSIZE") == "1"
        });
        assert_eq!(cluster.node_of(&queue), 0);
        let after = (digest(&mut here, &queue), digest(&mut there, &other));
        assert_eq!(after, before);
    }
}
