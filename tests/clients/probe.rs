//! What a library makes of dq's replies and of its own defaults: each library's probe, run against a server
//! and a cluster.
//!
//! A probe is told the ports by `PORT_<CHECK>`, prints `ok <check>` or `FAILED <check>: <why>` for each
//! check, and ends with 1 if one failed.

use std::time::Duration;

use redis::Value;

use crate::cmd;
use crate::library::{server, Library};
use crate::support::cluster::Cluster;
use crate::support::{Client, Server};

pub const CHECKS: [&str; 8] = [
    "resp2", "resp3", "pipeline", "multi", "binary", "tokens", "timeout", "cluster",
];

/// Two BPOP that time out, at the worst through several retries.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Verdict {
    pub said: String,
    pub success: bool,
}

impl Verdict {
    pub fn failed(&self, check: &str) -> bool {
        let failed = format!("FAILED {check}:");
        self.said.lines().any(|line| line.starts_with(&failed))
    }

    pub fn held(&self, check: &str) -> bool {
        self.said.lines().any(|line| line == format!("ok {check}"))
    }
}

/// Runs the probe; `port` says where each check finds its server.
pub fn run(library: &Library, port: impl Fn(&str) -> u16) -> Verdict {
    let variables: Vec<_> = CHECKS
        .iter()
        .map(|check| {
            (
                format!("PORT_{}", check.to_uppercase()),
                port(check).to_string(),
            )
        })
        .collect();
    match library.run("probe", &[], &variables).end(PATIENCE) {
        Ok((status, said)) => Verdict {
            success: status.success(),
            said,
        },
        Err(why) => panic!("the probe {why}"),
    }
}

pub fn all_checks_hold(name: &str) {
    let Some(library) = Library::prepared(name) else {
        return;
    };
    let (server, cluster) = (server(), Cluster::start(3));
    let verdict = run(&library, |check| match check {
        "cluster" => cluster.nodes[0].port(),
        _ => server.port(),
    });
    let held = CHECKS.iter().all(|check| verdict.held(check));
    assert!(held && verdict.success, "{name}:\n{}", verdict.said);
    // Whatever the library knows, is told or asks for: the key's own node must get the command.
    let (moved, commands) = (moved(&cluster), commands(&cluster));
    assert!(
        commands >= 60,
        "{name}: only {commands} commands in the cluster"
    );
    assert_eq!(
        moved, 0,
        "{name}: of {commands} commands so many went to the wrong node"
    );
}

/// How often a node had to say that another one has the key.
pub fn moved(cluster: &Cluster) -> i64 {
    let of = |node: &Server| {
        let line = node.connect().info("errorstats", "errorstat_MOVED");
        let count = line.and_then(|line| line.strip_prefix("count=")?.parse::<i64>().ok());
        count.unwrap_or(0)
    };
    cluster.nodes.iter().map(of).sum()
}

/// How many of dq's commands the nodes of a cluster have carried out; each of them must have some.
fn commands(cluster: &Cluster) -> i64 {
    let of = |node: &Server| {
        let mut client = node.connect();
        let count: i64 = ["dq.add", "dq.pop", "dq.bpop", "dq.ack"]
            .iter()
            .map(|name| calls(&mut client, name))
            .sum();
        assert!(count > 0, "a node was not asked at all");
        count
    };
    cluster.nodes.iter().map(of).sum()
}

fn calls(client: &mut Client, name: &str) -> i64 {
    let line = client.info("commandstats", &format!("cmdstat_{name}"));
    let count = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next()?.parse().ok());
    count.unwrap_or(0)
}

#[test]
fn a_command_for_the_wrong_node_is_noticed() {
    let cluster = Cluster::start(3);
    let wrong = (cluster.node_of("queue") + 1) % 3;
    let mut client = cluster.nodes[wrong].raw();
    client.call(&[b"DQ.ADD", b"queue", b"id", b"x"]);
    assert_eq!(moved(&cluster), 1);
    let right = &cluster.nodes[cluster.node_of("queue")];
    assert_eq!(cmd!(right.connect(), "DQ.LEN", "queue"), Value::Int(0));
}
