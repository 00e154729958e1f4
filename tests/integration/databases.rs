//! Keys that change their name or database: plain keys, whose commands the module must not disturb, and queues.

use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Raw, Server, PATIENCE};

/// Some servers change the database of a client for good once a module listens to keyspace events.
#[test]
fn plain_keys_stay_where_they_were_put() {
    let (mut master, replica) = pair(Server::builder().aof());
    let mut client = master.raw();
    let is_in = |client: &mut Raw, db: usize| {
        let info = client.words("CLIENT INFO").concat();
        assert!(info.contains(&format!(" db={db} ")), "{info}");
    };
    for db in [0, 3] {
        client.says(&format!("SELECT {db}"), "+OK");
        for line in ["SET a 1", "MOVE a 1", "SET b 1", "COPY b c DB 2", "SET d 1"] {
            client.run(line);
            is_in(&mut client, db);
        }
        for line in [
            "MULTI",
            "SET e 1",
            "MOVE e 1",
            "SET f 1",
            "COPY f g DB 1",
            "SET h 1",
        ] {
            client.run(line);
        }
        client.run("EXEC");
        is_in(&mut client, db);
        let script = "redis.call('SET','i','1') redis.call('MOVE','i',1) redis.call('SET','j','1')";
        client.call(&[b"EVAL", script.as_bytes(), b"0"]);
        is_in(&mut client, db);
        // Of the module's own type, too.
        for line in [
            "DQ.ADD q a x",
            "COPY q r DB 2",
            "MOVE q 1",
            "RENAME b k",
            "DQ.ADD s a x",
        ] {
            client.run(line);
            is_in(&mut client, db);
        }
        let mut keys = client.words("KEYS *");
        keys.sort();
        assert_eq!(keys.join(" "), "d f h j k s", "of database {db}");
        for other in [1, 2] {
            client.says(&format!("SELECT {other}"), "+OK");
            client.says("FLUSHDB", "+OK");
        }
    }
    replica.assert_same_data_as(&master);
    let digest = master.digest();
    master.restart();
    assert_eq!(master.digest(), digest, "the AOF holds the same");
}

/// Whether or not the server reports the new name, what becomes due in the queue is carried out under it.
#[test]
fn a_queue_is_found_among_many_keys() {
    let (mut master, replica) = pair(Server::builder().aof());
    let mut client = master.raw();
    client.says("DEBUG POPULATE 100000", "+OK");
    for db in [0, 5] {
        client.says(&format!("SELECT {db}"), "+OK");
        client.says("DQ.ADD q a x", "'a'");
        client.run("DQ.POP q TTR 200");
        client.run("DQ.ADD q b x DELAY 200 TTL 201");
        client.says("RENAME q other", "+OK");
    }
    client.says("MOVE other 7", "1");
    ends(&master, 2, 2);
    // The hints are made anew from what is loaded. The queue is paused, so that a slow master expires no lease itself.
    for line in [
        "SELECT 0",
        "DQ.ADD q a x",
        "DQ.POP q TTR 3000",
        "RENAME q again",
        "CLIENT PAUSE 60000 WRITE",
    ] {
        client.run(line);
    }
    master.restart();
    ends(&master, 1, 0);
    replica.follow(&master);
    replica.wait_for_link();
    let mut client = master.raw();
    for line in [
        "DQ.ADD q a x",
        "DQ.POP q TTR 3000",
        "RENAME q third",
        "CLIENT PAUSE 60000 WRITE",
    ] {
        client.run(line);
    }
    replica.assert_same_data_as(&master);
    let before = replica.number("dq", "dq_timed_out_total");
    replica.promote();
    ends(&replica, before + 1, 0);
}

#[track_caller]
fn ends(server: &Server, leases: u64, ttls: u64) {
    wait_until("what is past is done", PATIENCE, || {
        server.number("dq", "dq_timed_out_total") >= leases
            && server.number("dq", "dq_expired_total") >= ttls
    });
}

/// While clients wait, it matters at once.
#[test]
fn waiting_clients_are_served_whatever_brings_the_queue() {
    let (server, replica) = pair(Server::builder().aof());
    let mut client = server.raw();
    let mut dump = server.raw();
    dump.says("DQ.ADD dumped a x", "'a'");
    let payload = match dump.run("DUMP dumped") {
        crate::support::Reply::Bulk(payload) => payload,
        other => panic!("no dump: {other:?}"),
    };
    for server in [&server, &replica] {
        server.raw().says("DEBUG POPULATE 20000", "+OK");
    }
    for (before, line) in [
        ("DQ.ADD p a x", "RENAME p q"),
        ("DQ.ADD p a x", "RENAMENX p q"),
        ("DQ.ADD p a x", "COPY p q"),
        ("DQ.CFGSET q TTR 5000", "RESTORE"),
        ("DQ.CFGSET q TTR 5000", "COPY dumped q REPLACE"),
        ("DQ.CFGSET q TTR 5000", "RENAME dumped q"),
    ] {
        client.run(before);
        let mut waiting = server.waiting("DQ.BPOP none q 0");
        match line {
            "RESTORE" => {
                let reply = client.call(&[b"RESTORE", b"q", b"0", &payload, b"REPLACE"]);
                assert_eq!(reply, crate::support::Reply::Simple("OK".into()));
            }
            line => {
                client.run(line);
            }
        }
        let job = waiting.delivery();
        assert_eq!((job.key.as_str(), job.id.as_str()), ("q", "a"), "{line}");
        client.run("DEL p q");
    }
    let mut waiting = server.waiting("DQ.BPOP q 0");
    let mut other = server.raw();
    for line in ["SELECT 1", "DQ.ADD q a x", "MOVE q 0"] {
        other.run(line);
    }
    assert_eq!(waiting.delivery().id, "a");
    server.assert_followed_by(&[&replica]);
}

#[test]
fn what_is_in_force_is_told() {
    let server = Server::start();
    let version = server.version();
    let affected = version.is_valkey() && version.at_least(8, 1) && !version.at_least(9, 2);
    let heard = server.number("dq", "dq_renames_heard");
    if !affected {
        assert_eq!(heard, 1);
    }
    assert_eq!(heard == 0, server.log().contains("pull request 4024"));
}
