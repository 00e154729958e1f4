//! `client` in DQ.GET: who works on a reserved job.

use crate::probe::plain;
use crate::scene::{pair, Lines, Scene};
use crate::support::{wait_until, Raw, Reply, Server, PATIENCE};

/// What DQ.GET shows as `client`.
#[track_caller]
fn of(client: &mut Raw, key: &str, id: &str) -> String {
    let fields = client.words(&format!("DQ.GET {key} {id}"));
    let at = fields.iter().position(|name| name == "client");
    fields[at.expect("a field") + 1].clone()
}

#[track_caller]
fn waits_for(client: &mut Raw, key: &str, id: &str, expected: &str) {
    wait_until(format!("{id} is {expected}'s"), PATIENCE, || {
        of(client, key, id) == expected
    });
}

/// The connection's address, as the server lists it.
fn address(client: &mut Raw) -> String {
    let info = plain(&client.run("CLIENT INFO"));
    let address = info.split(' ').find_map(|it| it.strip_prefix("addr="));
    address.expect("an address").to_owned()
}

fn named(server: &Server, name: &str) -> Raw {
    let mut client = server.raw();
    client.says(&format!("CLIENT SETNAME {name}"), "+OK");
    client
}

#[test]
fn is_the_name_that_the_connection_has_now() {
    let server = Server::start();
    let (mut eye, mut worker, mut other) = (server.raw(), server.raw(), named(&server, "other"));
    eye.run("DQ.MADD q 3 a x b x c x");
    assert_eq!(of(&mut eye, "q", "a"), "nil$");
    worker.run("DQ.POP q");
    let address = address(&mut worker);
    assert_eq!(of(&mut eye, "q", "a"), address);
    worker.says("CLIENT SETNAME <b>&\"'", "+OK");
    assert_eq!(of(&mut eye, "q", "a"), "<b>&\"'");
    // Whoever asks, and also the one that works on it.
    worker.says("CLIENT SETNAME one", "+OK");
    assert_eq!(of(&mut worker, "q", "a"), "one");
    eye.run("DQ.TOUCH q a TTR 100000");
    assert_eq!(of(&mut eye, "q", "a"), "one");
    other.run("DQ.POP q COUNT 2");
    assert_eq!(of(&mut eye, "q", "b"), "other");
    assert_eq!(of(&mut eye, "q", "c"), "other");
    for (end, state) in [
        ("DQ.NACK q a FATAL", "dead"),
        ("DQ.NACK q b SILENT", "ready"),
        ("DQ.ACK q c", "nil$"),
    ] {
        eye.run(end);
        let id = end.split(' ').nth(2).unwrap();
        if state != "nil$" {
            assert_eq!(of(&mut eye, "q", id), "nil$", "{state}");
        }
    }
    worker.run("DQ.POP q TTR 1");
    waits_for(&mut eye, "q", "b", "nil$");
    worker.run("DQ.POP q ID b");
    assert_eq!(of(&mut eye, "q", "b"), "one");
    worker.says("CLIENT SETNAME \"\"", "+OK");
    assert_eq!(of(&mut eye, "q", "b"), address);
    // A connection that is closed has neither name nor address.
    drop(worker);
    waits_for(&mut eye, "q", "b", "nil$");
}

#[test]
fn stays_where_a_rule_is_said_anew() {
    let server = Server::start();
    let (mut eye, mut worker) = (server.raw(), named(&server, "one"));
    eye.run("DQ.ADD q r x EVERY 100000 AT 1");
    worker.run("DQ.POP q");
    eye.says("DQ.ADD q r y REPLACE EVERY 100000", "'r'");
    assert_eq!(of(&mut eye, "q", "r"), "one");
}

#[test]
fn of_killed_ones_is_none() {
    let server = Server::start();
    let (mut eye, mut worker) = (server.raw(), named(&server, "victim"));
    eye.run("DQ.ADD q a x");
    worker.run("DQ.POP q");
    let id = worker.int("CLIENT ID");
    eye.says(&format!("CLIENT KILL ID {id}"), "1");
    waits_for(&mut eye, "q", "a", "nil$");
}

#[test]
fn of_one_that_waited_whoever_handed_the_job_over() {
    let server = Server::start();
    let mut eye = server.raw();
    let wait = |line: &str, name: &str| {
        let before = server.blocked();
        let mut client = named(&server, name);
        client.begin(line);
        server.wait_for_blocked(before + 1);
        client
    };
    let mut first = wait("DQ.BPOP q 0", "first");
    eye.run("DQ.ADD q by-command x");
    assert_eq!(first.delivery().id, "by-command");
    assert_eq!(of(&mut eye, "q", "by-command"), "first");
    let mut second = wait("DQ.BPOP q other 0 COUNT 2", "second");
    eye.run("DQ.ADD q by-timer x DELAY 1");
    second.read();
    assert_eq!(of(&mut eye, "q", "by-timer"), "second");
    // Without waiting.
    let mut third = named(&server, "third");
    eye.run("DQ.ADD q at-once x");
    third.run("DQ.BPOP q 0");
    assert_eq!(of(&mut eye, "q", "at-once"), "third");
}

#[test]
fn of_transactions_but_of_no_script() {
    let server = Server::start();
    let (mut eye, mut worker) = (server.raw(), named(&server, "worker"));
    eye.run("DQ.MADD q 4 a x b x c x d x");
    for line in ["MULTI", "DQ.POP q", "DQ.BPOP q 0", "EXEC"] {
        worker.run(line);
    }
    assert_eq!(of(&mut eye, "q", "a"), "worker");
    assert_eq!(of(&mut eye, "q", "b"), "worker");
    for (command, id) in [("DQ.POP", "c"), ("DQ.BPOP", "d")] {
        let timeout = if id == "d" { ", 0" } else { "" };
        let script = format!("return redis.call('{command}', KEYS[1]{timeout})");
        worker.call(&[b"EVAL", script.as_bytes(), b"1", b"q"]);
        assert_eq!(of(&mut eye, "q", id), "nil$", "{command}");
    }
    // A script may ask.
    let script = b"local it = redis.call('DQ.GET', KEYS[1], 'a')
        for at = 1, #it, 2 do if it[at] == 'client' then return it[at + 1] end end";
    let said = eye.call(&[b"EVAL", script, b"1", b"q"]);
    assert_eq!(plain(&said), "worker");
}

/// The lease is the same under another name, and in a copy; what was loaded was delivered to nobody.
#[test]
fn stays_with_the_lease() {
    let server = Server::start();
    let (mut eye, mut worker) = (server.raw(), named(&server, "worker"));
    eye.run("DQ.ADD q a x");
    worker.run("DQ.POP q TTR 900000");
    eye.says("COPY q copied", "1");
    assert_eq!(of(&mut eye, "copied", "a"), "worker");
    eye.run("DQ.NACK q a SILENT");
    eye.run("DQ.POP q TTR 900000");
    assert_eq!(of(&mut eye, "copied", "a"), "worker");
    eye.run("DQ.NACK q a SILENT");
    worker.run("DQ.POP q TTR 900000");
    let dump = eye.run("DUMP q");
    let Reply::Bulk(dump) = dump else {
        panic!("{dump:?}");
    };
    eye.call(&[b"RESTORE", b"restored", b"0", &dump]);
    assert_eq!(of(&mut eye, "restored", "a"), "nil$");
    eye.says("RENAME q renamed", "+OK");
    assert_eq!(of(&mut eye, "renamed", "a"), "worker");
    eye.says("MOVE renamed 1", "1");
    eye.says("SWAPDB 0 1", "+OK");
    assert_eq!(of(&mut eye, "renamed", "a"), "worker");
    let digest = server.digest();
    eye.says("DEBUG RELOAD", "+OK");
    assert_eq!(of(&mut eye, "renamed", "a"), "nil$");
    assert_eq!(server.digest(), digest, "it is no data");
    eye.says("FLUSHALL", "+OK");
    eye.run("DQ.ADD renamed a x");
    assert_eq!(of(&mut eye, "renamed", "a"), "nil$");
}

#[test]
fn is_known_to_the_server_that_delivered_it() {
    let (master, replica) = pair(Server::builder());
    let (mut eye, mut worker) = (master.raw(), named(&master, "worker"));
    eye.run("DQ.MADD q 2 a x b x");
    worker.run("DQ.POP q TTR 900000");
    worker.run("DQ.POP q TTR 900000");
    replica.wait_for_offset_of(&master);
    let mut there = named(&replica, "there");
    assert_eq!(of(&mut there, "q", "a"), "nil$");
    replica.promote();
    there.run("DQ.NACK q a SILENT");
    there.run("DQ.POP q TTR 900000");
    assert_eq!(of(&mut there, "q", "a"), "there");
    // What this server has delivered, another master delivers again.
    replica.replica_of(&master);
    assert_eq!(of(&mut there, "q", "a"), "nil$");
    assert_eq!(of(&mut eye, "q", "a"), "worker");
}
