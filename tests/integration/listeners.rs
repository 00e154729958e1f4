//! New readers of the replication stream while a server is at work: nothing after their arrival may
//! be missing, though before it nothing was written for anyone.

use std::thread;

use crate::scene::{Dice, Lines, Scene};
use crate::support::locate::module_path;
use crate::support::{wait_until, Server, PATIENCE};
use crate::traffic::Traffic;

/// Runs traffic until `arrival` has ended, and some more after it.
#[track_caller]
fn traffic_during(server: &Server, seed: u64, arrival: impl FnOnce() + Send) {
    let mut traffic = Traffic::new(server, seed);
    thread::scope(|scope| {
        let arriving = scope.spawn(arrival);
        while !arriving.is_finished() {
            traffic.run(40);
        }
        arriving.join().expect("somebody has come");
    });
    traffic.run(400);
    traffic.persist();
}

#[test]
fn replicas_in_mid_traffic() {
    for (seed, diskless, delay) in [(1, "yes", 0), (2, "no", 0), (3, "yes", 1)] {
        let master = Server::builder()
            .config("repl-diskless-sync", diskless)
            .config("repl-diskless-sync-delay", delay)
            .start();
        let (first, second) = (Server::start(), Server::start());
        if second.version().is_valkey() && second.version().at_least(8, 0) {
            for server in [&master, &second] {
                let name = "dual-channel-replication-enabled";
                server.raw().says(&format!("CONFIG SET {name} yes"), "+OK");
            }
        }
        Traffic::new(&master, seed).run(300);
        // A snapshot without a reader of the stream is no reason to write effects.
        master.raw().run("BGSAVE");
        traffic_during(&master, 10 + seed, || {
            first.follow(&master);
            first.wait_for_link();
        });
        master.assert_followed_by(&[&first]);
        traffic_during(&master, 20 + seed, || {
            second.follow(&master);
            second.wait_for_link();
        });
        master.assert_followed_by(&[&first, &second]);
    }
}

#[test]
fn an_aof_in_mid_traffic() {
    for (seed, way) in [
        (1, "plain"),
        (2, "MULTI"),
        (3, "while saving"),
        (4, "while rewriting"),
    ] {
        let server = Server::builder().config("appendfsync", "always").start();
        Traffic::new(&server, seed).run(300);
        let mut client = server.raw();
        if way.starts_with("while") {
            // The child takes its time.
            client.says("CONFIG SET rdb-key-save-delay 20000", "+OK");
            client.run(match way {
                "while saving" => "BGSAVE",
                _ => "BGREWRITEAOF",
            });
        }
        traffic_during(&server, 30 + seed, || {
            let mut client = server.raw();
            if way.ends_with("MULTI") {
                client.says("MULTI", "+OK");
                client.run("CONFIG SET appendonly yes");
                client.run("EXEC");
            } else {
                client.says("CONFIG SET appendonly yes", "+OK");
            }
            client.says("CONFIG SET rdb-key-save-delay 0", "+OK");
            wait_until("the AOF is written", PATIENCE, || {
                let rewriting = |field| server.number("persistence", field) > 0;
                !rewriting("aof_rewrite_in_progress") && !rewriting("aof_rewrite_scheduled")
            });
        });
        assert_aof_has_all(&server, way);
    }
}

/// The pause keeps leases from expiring meanwhile.
#[track_caller]
fn assert_aof_has_all(server: &Server, how: &str) {
    let mut client = server.raw();
    client.says("CLIENT PAUSE 60000 WRITE", "+OK");
    let digest = server.digest();
    client.says("DEBUG LOADAOF", "+OK");
    assert_eq!(server.digest(), digest, "the AOF of {how}");
    client.says("CLIENT UNPAUSE", "+OK");
}

/// The module is loaded into a server that already has a replica and an AOF.
#[test]
fn the_module_comes_last() {
    let module = module_path();
    let module = module.to_string_lossy();
    let master = Server::plain().aof().start();
    let replica = Server::plain().start();
    replica.replica_of(&master);
    for server in [&replica, &master] {
        let reply = server.raw().call(&[b"MODULE", b"LOAD", module.as_bytes()]);
        assert_eq!(crate::probe::show(&reply), "+OK");
    }
    let mut traffic = Traffic::new(&master, 40);
    traffic.run(400);
    traffic.persist();
    master.assert_followed_by(&[&replica]);
    assert_aof_has_all(&master, "a server without the module at first");
}

/// A replica that has applied nothing yet takes over, with replicas of its own; and a master
/// restarts from a file that says how far its replicas had followed.
#[test]
fn followers_of_those_who_took_over() {
    let mut master = Server::start();
    let (replica, below) = (Server::start(), Server::start());
    replica.replica_of(&master);
    below.replica_of(&replica);
    replica.promote();
    traffic_during(&replica, 50, || ());
    replica.assert_followed_by(&[&below]);

    let follower = Server::start();
    traffic_during(&master, 51, || {
        follower.follow(&master);
        follower.wait_for_link();
    });
    master.assert_followed_by(&[&follower]);
    master.save_and_stop();
    master.restart();
    traffic_during(&master, 52, || follower.wait_for_link());
    master.assert_followed_by(&[&follower]);
}

/// Changes without any reader are still counted, so that the server saves in time.
#[test]
fn changes_count_for_save_points() {
    let server = Server::start();
    let mut client = server.raw();
    let mut dice = Dice::new(60);
    let mut changes = 0;
    for id in 0..100 {
        client.run(&format!("DQ.ADD q {id} x"));
        changes += 1;
        if dice.below(2) == 0 {
            client.run("DQ.POP q");
            changes += 1;
        }
    }
    let dirty = server.number("persistence", "rdb_changes_since_last_save");
    assert!(dirty >= changes, "{dirty} of {changes}");
    client.call(&[b"CONFIG", b"SET", b"save", b"1 10"]);
    wait_until("the server has saved", PATIENCE, || {
        server.number("persistence", "rdb_changes_since_last_save") == 0
    });
}
