//! Redis 8.4's atomic slot migration: the source drops the keys of slots that went all at once, and no
//! event tells of any of them.

use std::time::Duration;

use crate::router::Guides;
use crate::scene::{let_pass, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{skipped, wait_until, Builder, Server, PATIENCE};
use crate::traffic::Traffic;

const QUEUES: u64 = 3000;

/// A cluster of two masters and a replica of the first.
fn cluster() -> Option<Cluster> {
    cluster_of(Server::builder())
}

fn cluster_of(builder: Builder) -> Option<Cluster> {
    let mut cluster = Cluster::start_with(2, builder.clone());
    if !cluster.imports_slots() {
        skipped("CLUSTER MIGRATION IMPORT came with Redis 8.4");
        return None;
    }
    cluster.add_replica(0, builder);
    Some(cluster)
}

/// Queues in all slots: some that need the timer, some that it never looks at.
fn fill(cluster: &Cluster) {
    for node in &cluster.nodes[..2] {
        let mut client = node.raw();
        for number in 0..QUEUES {
            let delay = ["", " DELAY 600000"][number as usize % 2];
            client.begin(&format!("DQ.ADD q{number} a x{delay}"));
        }
        // The others' are redirected.
        (0..QUEUES).for_each(|_| drop(client.read()));
    }
}

fn keys(node: &Server) -> u64 {
    node.raw().int("DBSIZE") as u64
}

#[track_caller]
fn assert_counted(cluster: &Cluster) {
    // A source trims after its target has said that the import is done.
    wait_until("each queue is on one master", PATIENCE, || {
        cluster.nodes[..2].iter().map(keys).sum::<u64>() == QUEUES
    });
    for (index, node) in cluster.nodes.iter().enumerate() {
        wait_until(
            format!("node {index} counts the queues that it has"),
            PATIENCE,
            || node.number("dq", "dq_queues") == keys(node),
        );
    }
    cluster.nodes[2].assert_same_data_as(&cluster.nodes[0]);
}

fn there_and_back(cluster: &Cluster) {
    fill(cluster);
    assert_counted(cluster);
    let before = keys(&cluster.nodes[0]);
    cluster.import_slots(0..=5000, 1);
    assert_counted(cluster);
    let went = before - keys(&cluster.nodes[0]);
    assert!((1..before).contains(&went), "{went} of {before}");
    // Slots come back while the names of others may still be looked at.
    cluster.import_slots(0..=2000, 0);
    cluster.import_slots(6000..=7000, 1);
    assert_counted(cluster);
}

#[test]
fn names_of_trimmed_slots_go() {
    let Some(cluster) = cluster() else { return };
    there_and_back(&cluster);
    cluster.import_slots(2001..=5000, 0);
    cluster.import_slots(6000..=7000, 0);
    assert_counted(&cluster);
    for node in &cluster.nodes {
        wait_until("the timer has come to rest", PATIENCE, || {
            let fires = node.number("dq", "dq_timer_fires_total");
            let_pass(Duration::from_millis(150));
            node.number("dq", "dq_timer_fires_total") == fires
        });
    }
}

/// What is left to be looked at is not lost with the look that panics.
#[test]
fn a_sweep_that_panics_is_taken_up_again() {
    let Some(cluster) = cluster_of(Server::builder().breakable()) else {
        return;
    };
    fill(&cluster);
    assert_counted(&cluster);
    cluster.nodes[0].raw().says("DQ.BREAK sweep", "+OK");
    cluster.import_slots(0..=5000, 1);
    assert_counted(&cluster);
    let log = cluster.nodes[0].log();
    assert!(log.contains("broken invariant: sweep"), "{log}");
}

/// One by one, as where clients track keys.
#[test]
fn names_of_keys_trimmed_in_steps_go() {
    let Some(cluster) = cluster() else { return };
    for node in &cluster.nodes {
        node.raw().says("DEBUG ASM-TRIM-METHOD active 0", "+OK");
    }
    there_and_back(&cluster);
}

/// Bounded steps: a firing of the timer looks at no more names than its steps allow.
#[test]
fn the_server_answers_meanwhile() {
    let Some(cluster) = cluster() else { return };
    let mut client = cluster.nodes[0].raw();
    client.says("CONFIG SET dq.timer-steps 10", "+OK");
    fill(&cluster);
    let before = cluster.nodes[0].number("dq", "dq_timer_fires_total");
    cluster.import_slots(0..=8000, 1);
    assert_counted(&cluster);
    let fires = cluster.nodes[0].number("dq", "dq_timer_fires_total") - before;
    assert!(fires >= 15, "{fires} firings for all names");
}

/// A failed import is trimmed on the target.
#[test]
fn a_failed_import_leaves_nothing_behind() {
    let Some(cluster) = cluster() else { return };
    fill(&cluster);
    let before = cluster.nodes.iter().map(keys).collect::<Vec<_>>();
    let mut target = cluster.nodes[1].raw();
    target.says(
        "DEBUG ASM-FAILPOINT import-main-channel wait-stream-eof",
        "+OK",
    );
    target.run("CLUSTER MIGRATION IMPORT 0 5000");
    wait_until("what came is thrown away", PATIENCE, || {
        cluster.nodes[1].log().contains("trim started")
    });
    target.run("CLUSTER MIGRATION CANCEL ALL");
    assert_counted(&cluster);
    let after = cluster.nodes.iter().map(keys).collect::<Vec<_>>();
    assert_eq!(after, before);
}

#[test]
fn imports_under_traffic() {
    let cluster = Cluster::start(3);
    if !cluster.imports_slots() {
        return skipped("CLUSTER MIGRATION IMPORT came with Redis 8.4");
    }
    let queues: Vec<String> = (0..4).map(|n| format!("{{t{n}}}q")).collect();
    let traffic = Traffic {
        guides: &Guides::Nodes(cluster.ports()),
        queues: &queues,
        wait: false,
    };
    let seen = traffic.during(|| {
        for queue in queues.iter().cycle().take(12) {
            let (slot, from) = (cluster.slot_of(queue), cluster.node_of(queue));
            cluster.import_slots(slot..=slot, (from + 1) % 3);
            let_pass(Duration::from_millis(20));
        }
    });
    seen.assert_sound(None);
    for node in &cluster.nodes {
        wait_until("nothing is left", PATIENCE, || {
            node.number("dq", "dq_queues") == 0 && keys(node) == 0
        });
    }
}
