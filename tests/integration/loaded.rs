//! Queues from a file are looked after when something is due in them: in time, and not before, however many there are.

use crate::scene::{now_ms, Delivery, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

const QUEUES: usize = 1000;
/// The timer looks at no more than ten queues each time it fires.
const STEPS: &str = "timer-steps 10";
/// So looking at all of them takes a hundred firings.
const FIRES: u64 = 60;

/// Many queues with jobs due far in the future, and some in which something is due soon.
fn fill(client: &mut Raw) {
    for number in 0..QUEUES {
        client.run(&format!("DQ.ADD q:{number} far x DELAY 90000000"));
    }
    client.run("DQ.ADD leased one x");
    client.run("DQ.POP leased TTR 500");
    client.run("DQ.ADD delayed one x DELAY 500");
    client.run("DQ.ADD vanishing one x DELAY 90000000 TTL 500");
}

/// Everything that is due is delivered, though the timer has fired only a few times since.
#[track_caller]
fn assert_looked_after(server: &Server, before: u64) {
    for key in ["leased", "delayed"] {
        assert_eq!(next(server, key).id, "one");
    }
    wait_until("a TTL is past", PATIENCE, || {
        server.raw().ask("EXISTS vanishing") == "0"
    });
    let fires = server.number("dq", "dq_timer_fires_total") - before;
    assert!(fires < FIRES, "fired {fires} times");
    assert_eq!(server.number("dq", "dq_queues"), QUEUES as u64 + 2);
}

#[test]
fn a_server_that_starts() {
    for preamble in [None, Some("yes"), Some("no")] {
        let builder = Server::builder().module_arguments(STEPS);
        let mut server = match preamble {
            None => builder.start(),
            Some(preamble) => builder
                .aof()
                .config("aof-use-rdb-preamble", preamble)
                .start(),
        };
        let mut client = server.raw();
        fill(&mut client);
        match preamble {
            None => client.says("SAVE", "+OK"),
            Some(_) => rewrite(&server, &mut client),
        }
        server.kill();
        server.restart();
        assert_looked_after(&server, 0);
    }
}

/// The job that a client waiting there gets.
fn next(server: &Server, key: &str) -> Delivery {
    let mut client = server.raw();
    client.begin(&format!("DQ.BPOP {key} 0"));
    client.delivery()
}

fn rewrite(server: &Server, client: &mut Raw) {
    assert!(client.ask("BGREWRITEAOF").starts_with('+'));
    wait_until("the AOF is rewritten", PATIENCE, || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|name| server.info("persistence", name) == "0")
    });
}

#[test]
fn a_replica_that_takes_over() {
    let mut master = Server::builder().module_arguments(STEPS).start();
    fill(&mut master.raw());
    let replica = Server::builder().module_arguments(STEPS).start();
    // All of it comes as a file.
    replica.replica_of(&master);
    replica.wait_for_offset_of(&master);
    master.kill();
    let before = replica.number("dq", "dq_timer_fires_total");
    replica.promote();
    assert_looked_after(&replica, before);
}

/// In an AOF a queue may replace another one, which is freed only then.
#[test]
fn one_that_an_aof_restores_over_another() {
    let mut server = Server::builder().aof().start();
    let mut client = server.raw();
    client.run("DQ.ADD q old x");
    client.run("DQ.ADD other new x ATTEMPTS 5");
    client.run("DQ.POP other TTR 600");
    let end = now_ms() + 500;
    let Reply::Bulk(dump) = client.run("DUMP other") else {
        panic!("no dump");
    };
    assert_eq!(
        client.call(&[b"RESTORE", b"q", b"0", &dump, b"REPLACE"]),
        Reply::Simple("OK".into())
    );
    client.says("DEL other", "1");
    server.kill();
    server.restart();
    assert_eq!(server.number("dq", "dq_queues"), 1);
    let got = next(&server, "q");
    assert_eq!((got.id.as_str(), got.attempts), ("new", 2));
    assert!(now_ms() >= end, "its lease is over");
}
