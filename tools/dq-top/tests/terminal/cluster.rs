//! All masters of a cluster.

use crate::cmd;
use crate::monitor::{address, run, Monitor};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Server, PATIENCE};
use crate::{ENTER, ESCAPE};

/// A queue's name whose slot is on this node.
fn name_on(cluster: &Cluster, node: usize) -> String {
    let names = (0..).map(|number| format!("queue{number}"));
    names
        .into_iter()
        .find(|name| cluster.node_of(name) == node)
        .expect("one of them")
}

#[test]
fn queues_of_all_masters_are_seen_and_acted_on_where_they_are() {
    let cluster = Cluster::start(3);
    let names: Vec<String> = (0..3).map(|node| name_on(&cluster, node)).collect();
    for (node, name) in names.iter().enumerate() {
        cmd!(cluster.nodes[node].connect(), "DQ.ADD", name, "a", "x");
    }
    let monitor = Monitor::of(&cluster.nodes[0]);
    monitor.wait_for("cluster of 3");
    for name in &names {
        monitor.wait_for_row(name, |row| row[2] == "1");
    }
    monitor.wait_for("queues 3");
    // The queue is on the last node, though the first one was named.
    monitor.press(&format!("/{}\r", names[2]));
    monitor.wait("only that one", |screen| !screen.contains(&names[0]));
    monitor.press(ENTER);
    monitor.press("3");
    monitor.wait("its job", |screen| screen.contains("▌a"));
    monitor.press("d");
    monitor.wait_for("The ready job \"a\"");
    monitor.press("y");
    monitor.wait_for("deleted 1 job");
    let gone = cmd!(cluster.nodes[2].connect(), "EXISTS", &names[2]);
    assert_eq!(gone, redis::Value::Int(0));
}

#[test]
fn a_queue_that_moves_to_another_node_stays_in_sight() {
    let cluster = Cluster::start(2);
    let name = name_on(&cluster, 0);
    cmd!(cluster.nodes[0].connect(), "DQ.ADD", &name, "a", "x");
    let monitor = Monitor::of(&cluster.nodes[0]);
    monitor.wait_for_row(&name, |row| row[2] == "1");
    monitor.press(ENTER);
    monitor.wait_for(&format!("on 127.0.0.1:{}", cluster.nodes[0].port()));
    cluster.move_slot(cluster.slot_of(&name), 0, 1);
    monitor.wait_for(&format!("on 127.0.0.1:{}", cluster.nodes[1].port()));
    cmd!(cluster.nodes[1].connect(), "DQ.ADD", &name, "b", "x");
    monitor.wait_for("ready 2");
    monitor.press("p\r");
    monitor.wait_for("paused until resumed");
    wait_until("it is paused where it is now", PATIENCE, || {
        cmd!(cluster.nodes[1].connect(), "DQ.POP", &name) == redis::Value::Nil
    });
}

#[test]
fn one_table_has_the_queues_of_all_masters() {
    let cluster = Cluster::start(2);
    for node in 0..2 {
        cmd!(
            cluster.nodes[node].connect(),
            "DQ.ADD",
            name_on(&cluster, node),
            "a",
            "x"
        );
    }
    let once = |more: &[&str]| {
        let mut arguments = address(&cluster.nodes[1]);
        arguments.extend(["--once", "--interval", "0.1"].map(str::to_owned));
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        String::from_utf8(run(&arguments, &[]).stdout)
            .expect("text")
            .lines()
            .count()
    };
    assert_eq!(once(&[]), 3);
    assert_eq!(once(&["--no-cluster"]), 2, "of the one node alone");
}

#[test]
fn a_queue_is_followed_to_the_new_master() {
    let mut cluster = Cluster::start(2);
    let name = name_on(&cluster, 0);
    cmd!(cluster.nodes[0].connect(), "DQ.ADD", &name, "a", "x");
    let replica = cluster.add_replica(0, Server::builder());
    let monitor = Monitor::of(&cluster.nodes[1]);
    monitor.wait_for_row(&name, |row| row[2] == "1");
    monitor.press(ENTER);
    monitor.wait_for(&format!("on 127.0.0.1:{}", cluster.nodes[0].port()));
    cmd!(
        cluster.nodes[replica].connect(),
        "CLUSTER",
        "FAILOVER",
        "TAKEOVER"
    );
    monitor.wait_for(&format!("on 127.0.0.1:{}", cluster.nodes[replica].port()));
    cmd!(cluster.nodes[replica].connect(), "DQ.ADD", &name, "b", "x");
    monitor.wait_for("ready 2");
    cluster.nodes[0].kill();
    monitor.press(ESCAPE);
    monitor.wait_for_row(&name, |row| row[2] == "2");
}
