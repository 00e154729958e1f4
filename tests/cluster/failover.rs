//! Masters of a cluster that die, or hand over.

use crate::router::Guides;
use crate::scene::{now_ms, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Server, PATIENCE};
use crate::traffic::Traffic;

/// A cluster, and a replica of the master that serves all these queues.
pub fn with_replica(queue: &str) -> (Cluster, usize, usize) {
    let mut cluster = Cluster::start(3);
    let master = cluster.node_of(queue);
    let replica = cluster.add_replica(master, Server::builder());
    wait_until_known(&cluster, replica, master);
    (cluster, master, replica)
}

/// Until all nodes know the replica, so vote for it, and its master answers it.
fn wait_until_known(cluster: &Cluster, replica: usize, master: usize) {
    let (replica, master) = (cluster.id(replica), cluster.id(master));
    wait_until("all know the replica and whose it is", PATIENCE, || {
        let knows = |node: &Server| {
            let nodes = node.raw().words("CLUSTER NODES").concat();
            let mut lines = nodes.lines();
            lines.any(|line| line.starts_with(&replica) && line.contains(&master))
        };
        cluster.nodes.iter().all(knows)
    });
}

fn queues() -> Vec<String> {
    (0..3).map(|number| format!("{{x}}q{number}")).collect()
}

/// What WAIT confirmed is there, and comes due; what was in hand when it happened may come again.
#[test]
fn a_master_dies_under_traffic() {
    let (mut cluster, master, replica) = with_replica("{x}");
    let guides = Guides::Nodes(cluster.ports());
    let mut crash = 0;
    let mut client = cluster.nodes[master].raw();
    client.run("DQ.ADD {x}leased a x");
    client.run("DQ.POP {x}leased TTR 600000");
    let due = now_ms() + 3000;
    client.run(&format!("DQ.ADD {{x}}late a x AT {due}"));
    client.says("WAIT 1 20000", "1");
    let leased = client.words("DEBUG DIGEST-VALUE {x}leased");
    let queues = queues();
    let traffic = Traffic {
        guides: &guides,
        queues: &queues,
        wait: true,
    };
    let seen = traffic.during(|| {
        crash = now_ms();
        cluster.nodes[master].kill();
        wait_until("the replica has taken over", PATIENCE, || {
            cluster.nodes[replica].info("replication", "role") == "master"
        });
    });
    seen.assert_sound(Some(crash));
    let mut there = cluster.nodes[replica].raw();
    there.begin("DQ.BPOP {x}late 0");
    there.delivery();
    assert!(now_ms() >= due);
    assert_eq!(there.words("DEBUG DIGEST-VALUE {x}leased"), leased);
    // The old master comes back as a replica, and does nothing of itself.
    cluster.nodes[master].restart();
    cluster.nodes[master].wait_for_link();
    cluster.nodes[replica].assert_followed_by(&[&cluster.nodes[master]]);
}

/// Nothing is lost, and nothing comes twice: the old master is held until the new one has everything.
#[test]
fn masters_hand_over_under_traffic() {
    let (cluster, master, replica) = with_replica("{x}");
    let queues = queues();
    let traffic = Traffic {
        guides: &Guides::Nodes(cluster.ports()),
        queues: &queues,
        wait: false,
    };
    let seen = traffic.during(|| {
        // There and back; the others vote no second time so soon.
        for (old, new) in [(master, replica), (replica, master)] {
            cluster.nodes[new].wait_for_link();
            wait_until_known(&cluster, new, old);
            cluster.nodes[new].raw().says("CLUSTER FAILOVER", "+OK");
            wait_until("it has taken over", PATIENCE, || {
                cluster.nodes[new].info("replication", "role") == "master"
                    && cluster.nodes[old].info("replication", "role") == "slave"
            });
        }
    });
    seen.assert_sound(None);
    assert!(seen.moved > 0, "clients were redirected");
    cluster.nodes[replica].wait_for_link();
    cluster.nodes[master].assert_followed_by(&[&cluster.nodes[replica]]);
}
