//! Servers that read and parse commands on threads of their own: nothing of the module may run there.

use std::thread;

use crate::probe::{packed, show};
use crate::support::cluster::Cluster;
use crate::support::{Builder, Server};

/// Pairs of commands sent at once.
const PAIRS: usize = 50;

fn with_threads() -> Builder {
    Server::builder().config("io-threads", 4)
}

/// Each client adds to a queue of its own and pops, blocking, in one go.
fn add_and_pop(server: &Server, clients: usize, rounds: usize) {
    thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let mut connection = server.raw();
                for round in 0..rounds {
                    let mut sent = Vec::new();
                    for pair in 0..PAIRS {
                        let id = round * PAIRS + pair;
                        let add = format!("DQ.ADD {{t}}{client} {id} x");
                        let pop = format!("DQ.BPOP {{t}}none {{t}}{client} 0.05 NOACK");
                        sent.extend([packed(&add), packed(&pop)].concat());
                    }
                    connection.send(&sent);
                    for pair in 0..PAIRS {
                        let id = round * PAIRS + pair;
                        assert_eq!(show(&connection.read()), format!("'{id}'"));
                        let job = show(&connection.read());
                        assert!(job.contains(&format!("'{id}' 'x' nil")), "{id} -> {job}");
                    }
                }
            });
        }
    });
}

#[test]
fn with_an_aof() {
    let server = with_threads().config("appendonly", "yes").start();
    add_and_pop(&server, 8, 200);
    server.assert_no_crash();
}

#[test]
fn with_a_replica() {
    let (master, replica) = crate::scene::pair(with_threads());
    add_and_pop(&master, 8, 200);
    replica.assert_same_data_as(&master);
}

#[test]
fn in_a_cluster() {
    let cluster = Cluster::start_with(1, with_threads().config("appendonly", "yes"));
    add_and_pop(&cluster.nodes[0], 16, 60);
    cluster.nodes[0].assert_no_crash();
}
