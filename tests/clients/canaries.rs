//! What watches the examples and what the probes check must be able to fail: against a server that is wrong
//! in one thing, each must say so.

use std::collections::HashMap;
use std::time::Duration;

use crate::liar::{Liar, Lie};
use crate::library::{server, Library};
use crate::probe::{self, CHECKS};
use crate::scenes::{Outcome, Stage};
use crate::support::cluster::Cluster;
use crate::support::Server;
use crate::LIBRARIES;

/// How long to wait for what does not come. Nothing fails if it is too short for a slow machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What each check of a probe must notice. The cluster's nodes lack the module instead.
const LIES: [(&str, Lie); 7] = [
    ("resp2", Lie::Told(b"delayed", b"delaxed")),
    // Speaks RESP2 to those who ask for RESP3.
    (
        "resp3",
        Lie::Asked(b"HELLO\r\n$1\r\n3", b"HELLO\r\n$1\r\n2"),
    ),
    ("pipeline", Lie::Told(b":100\r", b":101\r")),
    ("multi", Lie::Told(b":7\r", b":6\r")),
    ("binary", Lie::Told(b"\x00\xff", b"\x01\xff")),
    ("tokens", Lie::Told(b"$19\r\n1", b"$19\r\n2")),
    ("timeout", Lie::Asked(b"$3\r\n2.5", b"$3\r\n0.1")),
];

pub fn every_check_fails(name: &str) {
    let Some(library) = Library::prepared(name) else {
        return;
    };
    let server = server();
    let cluster = Cluster::start_with(3, Server::plain());
    let liars: HashMap<_, _> = LIES
        .iter()
        .map(|&(check, lie)| (check, Liar::before(server.port(), lie)))
        .collect();
    let verdict = probe::run(&library, |check| match liars.get(check) {
        Some(liar) => liar.port(),
        None => cluster.nodes[0].port(),
    });
    for check in CHECKS {
        assert!(
            verdict.failed(check),
            "{name}: {check} noticed nothing:\n{}",
            verdict.said
        );
    }
    assert!(
        !verdict.success,
        "{name}: its exit code says that all is well"
    );
}

/// A scene with a worker behind a liar (or stopped otherwise than it ought to be) must not hold.
fn does_not_hold(scene: fn(&mut Stage) -> Outcome, lie: Lie, stop: &'static str, noticed: &str) {
    let Some(library) = LIBRARIES.iter().find_map(|name| Library::prepared(name)) else {
        return;
    };
    let mut stage = Stage::new(library);
    let liar = Liar::before(stage.server.port(), lie);
    (stage.port, stage.patience, stage.stop) = (liar.port(), PATIENCE, stop);
    match scene(&mut stage) {
        Ok(()) => panic!("nothing was noticed"),
        Err(why) => assert!(why.contains(noticed), "another thing was noticed: {why}"),
    }
}

/// Through a proxy that changes nothing all is as without it.
#[test]
#[ignore = "make test-clients"]
fn an_honest_liar() {
    let Some(library) = LIBRARIES.iter().find_map(|name| Library::prepared(name)) else {
        return;
    };
    let mut stage = Stage::new(library);
    let liar = Liar::before(stage.server.port(), Lie::None);
    stage.port = liar.port();
    assert_eq!(stage.works(), Ok(()));
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_without_heartbeat() {
    let lie = Lie::Asked(b"DQ.TOUCH", b"DQ.TOUCX");
    does_not_hold(Stage::works, lie, "TERM", "attempt");
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_that_gives_nothing_back() {
    let lie = Lie::Asked(b"DQ.NACK", b"DQ.NACX");
    does_not_hold(Stage::works, lie, "TERM", "nacked: 0");
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_that_acknowledges_without_token() {
    let lie = Lie::Asked(b"WITHTOKENS", b"WITHTOKENX");
    // It never says that the job is lost, or so late that the other one's lease is over, too.
    does_not_hold(Stage::leaves_a_lost_job_alone, lie, "TERM", "lost");
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_that_does_not_come_back() {
    let noticed = "it waits again after";
    does_not_hold(Stage::comes_back, Lie::NoWayBack, "TERM", noticed);
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_whose_waits_cost_the_connection() {
    let lie = Lie::Asked(b"$1\r\n1\r", b"$1\r\nx\r");
    does_not_hold(Stage::comes_back, lie, "TERM", "no worker waits");
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_that_dies_at_work() {
    does_not_hold(Stage::stops_while_working, Lie::None, "KILL", "signal: 9");
}

/// One that waits for its server, here with a signal that it does not heed.
#[test]
#[ignore = "make test-clients"]
fn a_worker_that_does_not_stop_without_its_server() {
    let scene = Stage::stops_whatever_the_server_does;
    does_not_hold(scene, Lie::None, "CONT", "did not end");
}

#[test]
#[ignore = "make test-clients"]
fn a_worker_that_does_not_stop() {
    does_not_hold(Stage::stops_while_waiting, Lie::None, "CONT", "did not end");
}
