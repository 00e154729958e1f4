//! Together with the server's own features: other clients' waits, tracking, limits, tools.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::probe::show;
use crate::scene::{now_ms, Lines, Scene};
use crate::support::locate::server_binary;
use crate::support::{skipped, wait_until, Reply, Server, PATIENCE};

/// As for the server's own types: a client that waits for a list is not served by a queue, and vice
/// versa.
#[test]
fn waits_for_other_types_on_the_same_name() {
    let server = Server::start();
    let mut client = server.raw();
    let mut list = server.waiting("BLPOP q 0");
    let mut queue = server.waiting("DQ.BPOP q 0");
    let mut stream = server.waiting("BZPOPMIN q 0");

    client.says("DQ.ADD q a x DELAY 60", "'a'");
    assert_eq!(queue.delivery().id, "a");
    server.wait_for_blocked(2);
    client.says("DEL q", "1");
    client.says("LPUSH q y", "1");
    assert_eq!(list.reply(), "[ 'q' 'y' ]");
    server.wait_for_blocked(1);

    let mut queue = server.waiting("DQ.BPOP q 0");
    client.says("ZADD q 1 z", "1");
    assert_eq!(stream.reply(), "[ 'q' 'z' '1' ]");
    client.says("MULTI", "+OK");
    client.run("DQ.ADD q b x");
    client.run("DEL q");
    client.run("LPUSH q y");
    client.run("EXEC");
    // A key of another type appears; the wait continues, and the next queue ends it.
    client.says("DEL q", "1");
    server.wait_for_blocked(1);
    client.says("DQ.ADD q c x", "'c'");
    assert_eq!(queue.delivery().id, "c");
}

#[test]
fn wait_behind_a_wait() {
    let master = Server::start();
    let replica = Server::start();
    replica.replica_of(&master);
    let mut waiting = master.waiting("DQ.BPOP q 0");
    waiting.begin("WAIT 1 0");
    master.raw().says("DQ.ADD q a x DELAY 50", "'a'");
    assert_eq!(waiting.delivery().id, "a");
    assert_eq!(waiting.reply(), "1");
    assert_eq!(replica.raw().int("DQ.LEN q RESERVED"), 1);
}

/// The server closes such a client, and the job comes back when its lease expires.
#[test]
fn a_payload_beyond_the_limit_of_a_clients_buffer() {
    let server = Server::builder()
        .config("client-output-buffer-limit", "normal 1mb 0 0")
        .start();
    let mut client = server.raw();
    let mut waiting = server.waiting("DQ.BPOP q 0 TTR 100");
    let payload = vec![b'x'; 8 << 20];
    let added = client.call(&[b"DQ.ADD", b"q", b"a", &payload]);
    assert_eq!(show(&added), "'a'");
    waiting.read_to_end();
    wait_until("the job is back", PATIENCE, || {
        client.int("DQ.LEN q READY") == 1
    });
    server.wait_for_blocked(0);
}

#[test]
fn errors_are_counted_by_their_codes() {
    let server = Server::start();
    let mut client = server.raw();
    client.run("SET s x");
    client.run("DQ.POP s");
    client.run("DQ.CFGSET q MAXLEN 1");
    client.run("DQ.ADD q a x");
    client.run("DQ.ADD q b x");
    client.run("DQ.ADD q");
    for code in ["WRONGTYPE", "MAXLEN", "ERR"] {
        let field = format!("errorstat_{code}");
        assert_eq!(server.info("errorstats", &field), "count=1", "{code}");
    }
}

/// A client with cached replies is told when they become invalid, even if the timer changed the
/// queue.
#[test]
fn tracked_replies_are_invalidated() {
    let server = Server::start();
    let mut client = server.raw();
    let mut tracking = server.raw();
    tracking.run("HELLO 3");
    tracking.says("CLIENT TRACKING ON", "+OK");
    let mut told_after = |change: &mut dyn FnMut()| {
        tracking.run("DQ.LEN q RESERVED");
        change();
        let told = tracking.read();
        let text = format!("{told:?}");
        assert!(matches!(told, Reply::Push(_)), "{text}");
    };
    told_after(&mut || client.says("DQ.ADD q a x TTR 150", "'a'"));
    told_after(&mut || {
        client.run("DQ.POP q");
    });
    // The end of the lease.
    told_after(&mut || ());
    assert_eq!(client.int("DQ.LEN q READY"), 1);
}

#[test]
fn clients_that_want_no_reply() {
    let server = Server::start();
    let mut client = server.raw();
    let mut silent = server.raw();
    silent.begin("CLIENT REPLY SKIP");
    silent.begin("DQ.ADD q a x");
    silent.says("DQ.LEN q", "1");
    silent.begin("CLIENT REPLY OFF");
    silent.begin("DQ.POP q TTR 50000");
    silent.begin("DQ.BPOP q 0");
    server.wait_for_blocked(1);
    client.says("DQ.ADD q b x DELAY 30", "'b'");
    wait_until("both are taken", PATIENCE, || {
        client.int("DQ.LEN q RESERVED") == 2
    });
    silent.begin("CLIENT REPLY ON");
    assert_eq!(silent.reply(), "+OK");
}

/// The server's tools read what the module writes.
#[test]
fn files_pass_the_servers_checks() {
    let program = std::fs::read(server_binary()).expect("the server's program");
    if !program.starts_with(b"\x7fELF") {
        return skipped("the server is started by a script, which has no other names");
    }
    let server = Server::builder()
        .aof()
        .config("aof-use-rdb-preamble", "no")
        .start();
    let mut client = server.raw();
    client.run("DQ.CFGSET q DEDUPE 60000 RATE 100 1000 BACKOFF 2 10 20");
    for id in 0..300 {
        let at = now_ms() + 50 * id;
        client.run(&format!(
            "DQ.ADD q {id} x AT {at} PRIORITY {} TTL 900000",
            id % 3
        ));
    }
    client.run("DQ.POP q COUNT 5");
    client.run("DQ.ACK q 0 1");
    client.run("DQ.NACK q 2 FATAL");
    client.says("SAVE", "+OK");
    client.run("BGREWRITEAOF");
    wait_until("the AOF is rewritten", PATIENCE, || {
        server.number("persistence", "aof_rewrite_in_progress") == 0
    });
    client.run("DQ.PURGE q DEAD");
    let manifest = server
        .folder()
        .join("appendonlydir/appendonly.aof.manifest");
    let rdb = server.folder().join("dump.rdb");
    assert!(check(&server, "check-rdb", &rdb).success());
    assert!(check(&server, "check-aof", &manifest).success());
    // The tools find faults in these files.
    let mut bytes = std::fs::read(&rdb).expect("the dump");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&rdb, bytes).expect("a damaged dump");
    assert!(!check(&server, "check-rdb", &rdb).success());
}

/// The server's program is also its tools, depending on the name by which it is called.
fn check(server: &Server, tool: &str, file: &Path) -> ExitStatus {
    let kind = if server.version().is_valkey() {
        "valkey"
    } else {
        "redis"
    };
    let output = Command::new(server_binary())
        .arg0(format!("{kind}-{tool}"))
        .arg(file)
        .output();
    output.expect("the server's tool runs").status
}
