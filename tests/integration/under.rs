//! What must hold under every setting: many clients at once, random traffic with a replica that synchronizes again, a
//! restart. `DQ_SETTINGS` runs the other tests under them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use crate::scene::{Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::Setting::{self, Aof, DualChannel, IoThreads, SwapDb};
use crate::support::{skipped, wait_until, Server, PATIENCE};
use crate::traffic::Traffic;

const CLIENTS: usize = 12;
const ROUNDS: usize = 60;
const PIPELINE: usize = 8;

/// Clients that pipeline, on queues of their own and on one for all: each job is delivered once. In one
/// slot.
#[track_caller]
fn crowd(server: &Server) {
    let delivered = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let delivered = &delivered;
            scope.spawn(move || {
                for (id, _) in member(server, client) {
                    let new = delivered.lock().expect("no panic").insert(id.clone());
                    assert!(new, "{id} came twice");
                }
            });
        }
    });
    let delivered = delivered.into_inner().expect("no panic");
    assert_eq!(delivered.len(), CLIENTS * ROUNDS);
    assert_eq!(server.raw().ask("DQ.LEN {x}all"), "0");
}

/// One of the clients; returns the jobs that it got from the shared queue.
fn member(server: &Server, number: usize) -> Vec<(String, i64)> {
    let mut client = server.raw();
    let mut got = Vec::new();
    for round in 0..ROUNDS {
        for job in 0..PIPELINE {
            client.begin(&format!("DQ.ADD {{x}}own{number} {round}-{job} x"));
            client.begin(&format!("DQ.BPOP {{x}}none {{x}}own{number} 60 NOACK"));
        }
        // Some of them have to wait, as others take what comes first.
        client.begin(&format!(
            "DQ.ADD {{x}}all {number}-{round} x DELAY {}",
            round % 3
        ));
        client.begin("DQ.BPOP {x}all 60 NOACK");
        for job in 0..PIPELINE {
            let id = format!("{round}-{job}");
            assert_eq!(client.reply(), format!("'{id}'"));
            assert_eq!(client.delivery().id, id);
        }
        client.reply();
        let job = client.delivery();
        got.push((job.id, job.attempts));
    }
    got
}

/// A server with a replica, which synchronizes anew in the middle of it.
fn holds_under(settings: &[Setting]) {
    let builder = Server::builder()
        .under(settings)
        .config("repl-diskless-sync", "yes");
    let master = builder.clone().start();
    if let Some(unknown) = settings.iter().find(|it| !it.is_known_to(master.version())) {
        return skipped(format!("{} does not know {unknown:?}", master.version()));
    }
    let mut replica = builder.start();
    replica.replica_of(&master);
    crowd(&master);
    let mut traffic = Traffic::new(&master, 40);
    for _ in 0..2 {
        traffic.run(400);
        let before = master.number("stats", "sync_full");
        master.raw().says("DEBUG CHANGE-REPL-ID", "+OK");
        master.raw().run("CLIENT KILL TYPE replica");
        traffic.run(400);
        wait_until("a full resync", PATIENCE, || {
            master.number("stats", "sync_full") > before
        });
        replica.wait_for_link();
        master.assert_followed_by(&[&replica]);
    }
    comes_back(master, &mut replica, settings);
}

/// The replica takes the master's place, and has its data after a restart.
fn comes_back(master: Server, replica: &mut Server, settings: &[Setting]) {
    for number in 0..50 {
        master
            .raw()
            .run(&format!("DQ.ADD {{x}}stays {number} x DELAY 600000"));
    }
    replica.wait_for_offset_of(&master);
    drop(master);
    replica.promote();
    if settings.contains(&Aof) {
        // It cannot be stopped before its AOF exists.
        wait_until("the AOF is begun", PATIENCE, || {
            let fields = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
            fields
                .iter()
                .all(|field| replica.number("persistence", field) == 0)
        });
        replica.restart();
        assert_eq!(replica.number("persistence", "aof_enabled"), 1);
    }
    replica.raw().says("DQ.LEN {x}stays", "50");
    crowd(replica);
}

#[test]
fn one_thread() {
    holds_under(&[]);
}

#[test]
fn io_threads() {
    holds_under(&[IoThreads]);
}

#[test]
fn aof() {
    holds_under(&[Aof]);
}

#[test]
fn aof_with_io_threads() {
    holds_under(&[Aof, IoThreads]);
}

#[test]
fn dual_channel() {
    holds_under(&[DualChannel]);
}

#[test]
fn dual_channel_with_io_threads_and_aof() {
    holds_under(&[DualChannel, IoThreads, Aof]);
}

#[test]
fn swapdb() {
    holds_under(&[SwapDb]);
}

#[test]
fn swapdb_with_dual_channel() {
    holds_under(&[SwapDb, DualChannel]);
}

#[test]
fn a_cluster() {
    in_a_cluster(&[]);
}

#[test]
fn a_cluster_with_io_threads_and_aof() {
    in_a_cluster(&[IoThreads, Aof]);
}

fn in_a_cluster(settings: &[Setting]) {
    let builder = Server::builder().under(settings);
    let mut cluster = Cluster::start_with(1, builder.clone());
    cluster.add_replica(0, builder);
    crowd(&cluster.nodes[0]);
    cluster.nodes[0].assert_followed_by(&[&cluster.nodes[1]]);
}
