//! The launcher of servers itself, without the module: what it starts works, and it notices what it must (a crash, an
//! exit, a wait in vain).

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use redis::Value;

use crate::support::{cluster::Cluster, raw, wait_until, Reply, Server, PATIENCE};
use crate::{cmd, try_cmd};

#[test]
fn answers() {
    let server = Server::plain().start();
    let mut client = server.connect();
    assert_eq!(
        cmd!(
            client,
            "SET",
            b"k\0\xff".as_slice(),
            b"\0\r\n\xfe".as_slice()
        ),
        Value::Okay
    );
    assert_eq!(
        cmd!(client, "GET", b"k\0\xff"),
        Value::BulkString(b"\0\r\n\xfe".to_vec())
    );
    assert_eq!(cmd!(client, "STRLEN", b"k\0\xff"), Value::Int(4));
    let error = try_cmd!(client, "LPUSH", b"k\0\xff", 5).unwrap_err();
    assert_eq!(
        error,
        "WRONGTYPE Operation against a key holding the wrong kind of value"
    );
    assert_eq!(
        try_cmd!(client, "NOSUCH").unwrap_err().split(',').next(),
        Some("ERR unknown command 'NOSUCH'")
    );
    assert_eq!(
        try_cmd!(client, "GET").unwrap_err(),
        "ERR wrong number of arguments for 'get' command"
    );
    let mut three = server.connect_resp3();
    assert!(matches!(
        cmd!(three, "CONFIG", "GET", "port"),
        Value::Map(_)
    ));
}

#[test]
fn unix_socket() {
    let server = Server::plain().unix_socket().start();
    assert_eq!(
        cmd!(server.connect(), "ECHO", "x"),
        Value::BulkString(b"x".to_vec())
    );
    assert_eq!(server.raw().call(&[b"PING"]), Reply::Simple("PONG".into()));
}

#[test]
fn raw_bytes() {
    let server = Server::plain().start();
    let mut raw = server.raw();
    assert_eq!(raw.call(&[b"BLPOP", b"none", b"0.01"]), Reply::NullArray);
    assert_eq!(raw.call(&[b"GET", b"none"]), Reply::NullBulk);
    let mut bytes = raw::encode(&[b"SET", b"a", b"1"]);
    bytes.extend(raw::encode(&[b"INCR", b"a"]));
    bytes.extend(raw::encode(&[b"LPUSH", b"a", b"x"]));
    let (head, tail) = bytes.split_at(bytes.len() - 3);
    raw.send(head);
    assert_eq!(raw.read(), Reply::Simple("OK".into()));
    assert_eq!(raw.read(), Reply::Integer(2));
    assert_eq!(raw.try_read(Duration::from_millis(30)), None);
    raw.send(tail);
    assert!(matches!(raw.read(), Reply::Error(text) if text.starts_with("WRONGTYPE ")));
    assert!(matches!(raw.call(&[b"HELLO", b"3"]), Reply::Map(_)));
    assert_eq!(raw.call(&[b"GET", b"none"]), Reply::Null);
    assert_eq!(raw.call(&[b"QUIT"]), Reply::Simple("OK".into()));
    assert_eq!(raw.read_to_end(), b"");
}

#[test]
fn survives_restarts() {
    let mut server = Server::plain().aof().start();
    cmd!(server.connect(), "SET", "k", "v");
    let (digest, port) = (server.digest(), server.port());
    server.kill();
    server.restart();
    assert_eq!((server.digest(), server.port()), (digest.clone(), port));
    server.restart();
    assert_eq!(server.digest(), digest);
    let copy = Server::plain().aof().with_files_of(server.folder()).start();
    assert_eq!(copy.digest(), digest);
    let mut rdb = Server::plain().start();
    cmd!(rdb.connect(), "SET", "k", "v");
    rdb.save_and_stop();
    rdb.restart();
    assert_eq!(rdb.digest(), digest);
    rdb.stop();
}

#[test]
fn replicates() {
    let (master, replica) = (Server::plain().start(), Server::plain().start());
    cmd!(master.connect(), "SET", "k", "v");
    replica.replica_of(&master);
    cmd!(master.connect(), "SET", "k2", "v");
    replica.assert_same_data_as(&master);
    assert!(try_cmd!(replica.connect(), "SET", "a", 1)
        .unwrap_err()
        .starts_with("READONLY"));
    replica.promote();
    cmd!(replica.connect(), "SET", "a", 1);
    assert_ne!(replica.digest(), master.digest());
}

#[test]
fn blocking_clients() {
    let server = Server::plain().start();
    let mut waiting = server.connect();
    waiting.send(redis::cmd("BLPOP").arg("q").arg(0));
    let mut client = server.connect();
    wait_until("the client waits", PATIENCE, || {
        client.info("clients", "blocked_clients").as_deref() == Some("1")
    });
    cmd!(client, "RPUSH", "q", "x");
    assert!(matches!(waiting.receive(), Ok(Value::Array(_))));
}

#[test]
fn cluster() {
    let mut cluster = Cluster::start_with(3, Server::plain());
    let owner = cluster.node_of("k");
    cmd!(cluster.nodes[owner].connect(), "SET", "k", "v");
    let other = (owner + 1) % 3;
    assert!(try_cmd!(cluster.nodes[other].connect(), "GET", "k")
        .unwrap_err()
        .starts_with("MOVED "));
    cluster.move_slot(cluster.slot_of("k"), owner, other);
    assert_eq!(cluster.node_of("k"), other);
    assert_eq!(
        cmd!(cluster.nodes[other].connect(), "GET", "k"),
        Value::BulkString(b"v".to_vec())
    );
    let replica = cluster.add_replica(other, Server::plain());
    cluster.nodes[replica].assert_same_data_as(&cluster.nodes[other]);
}

#[test]
fn a_crash_is_seen() {
    let mut server = Server::plain().start();
    let _ = server
        .connect()
        .call_raw(redis::cmd("DEBUG").arg("SEGFAULT"));
    server.wait_for_end();
    assert!(what_drop_says(server).starts_with("the server crashed: "));
}

#[test]
fn a_death_is_seen() {
    let mut server = Server::plain().start();
    server.signal("KILL");
    wait_until("the server is dead", PATIENCE, || !server.is_running());
    assert!(what_drop_says(server).starts_with("the server died by itself"));
}

/// Drops a server that makes its test fail.
fn what_drop_says(server: Server) -> String {
    let folder = server.folder().to_owned();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(server))).expect_err("a panic");
    fs::remove_dir_all(folder).expect("the folder stays for whoever looks into the failure");
    *panic.downcast::<String>().expect("a panic's message")
}

#[test]
#[should_panic(expected = "waited 20ms in vain: the moon")]
fn waits_in_vain() {
    wait_until("the moon", Duration::from_millis(20), || false);
}

#[test]
fn refuses_to_start() {
    let log = Server::plain()
        .config("no-such-directive", 1)
        .try_start()
        .err()
        .expect("refused");
    assert!(log.contains("no-such-directive"), "{log}");
}

#[test]
fn a_taken_port_is_no_end() {
    // More servers at once than one thread would start, on ports that the same counter gives.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..3).for_each(|_| drop(Server::plain().start())));
        }
    });
}
