//! DQ.UNBLOCK: ends waits of dq's commands, and nothing else.

use crate::probe::{fits, packed, Probe};
use crate::scene::{pair, Delivery, Lines, Scene};
use crate::support::cluster::Cluster;
use crate::support::{wait_until, Raw, Server, PATIENCE};

const NIL: &str = "nil*";

/// A client, its id, and a command that makes it wait.
struct Waiter {
    client: Raw,
    id: i64,
    line: String,
}

impl Waiter {
    fn new(server: &Server, line: &str) -> Waiter {
        let mut client = server.raw();
        let id = client.int("CLIENT ID");
        let line = line.into();
        Waiter { client, id, line }
    }

    fn waits(&mut self, server: &Server) {
        let before = server.blocked();
        self.client.begin(&self.line);
        server.wait_for_blocked(before + 1);
    }

    /// The reply that ended the wait, and no other came.
    #[track_caller]
    fn told(&mut self, expected: &str) {
        let reply = self.client.reply();
        assert!(fits(&reply, expected), "{reply} is not {expected}");
        self.client.says("PING", "+PONG");
    }
}

fn lease(client: &mut Raw) -> Delivery {
    client.run("DQ.ADD held a x REPLACE");
    client.begin("DQ.POP held TTR 1000000");
    client.delivery()
}

/// One that waits in each command, and the reply of a wait that ends without a result.
fn one_of_each(server: &Server, client: &mut Raw) -> [(Waiter, &'static str); 3] {
    let token = lease(client).token;
    let waiting = |line: &str| {
        let mut waiter = Waiter::new(server, line);
        waiter.waits(server);
        waiter
    };
    [
        (waiting("DQ.BPOP q r 0 COUNT 2"), NIL),
        (waiting("DQ.AWAIT held 0 a"), NIL),
        (
            waiting(&format!("DQ.BTOUCH held 0 IDS 1 a {token}")),
            "[ ? ]",
        ),
    ]
}

#[test]
fn words_and_refusals() {
    let mut p = Probe::start();
    for id in ["0", "1", "12345", "9223372036854775807"] {
        p.unseen(&format!("DQ.UNBLOCK {id}"), "0");
        p.says3(&format!("DQ.UNBLOCK {id} {id}"), "0");
    }
    for id in ["x", "-1", "1.5", "9223372036854775808", "\"\""] {
        let line = format!("DQ.UNBLOCK 7 {id}");
        p.unseen(&line, "-ERR value is not an integer or out of range");
    }
}

#[test]
fn ends_the_waits_of_all_its_commands() {
    let server = Server::builder().aof().start();
    let mut client = server.raw();
    let mut other = Waiter::new(&server, "BLPOP l 0");
    other.waits(&server);
    for _ in 0..3 {
        let mut waiters = one_of_each(&server, &mut client);
        let ids = waiters.each_ref().map(|(waiter, _)| waiter.id);
        let own = client.int("CLIENT ID");
        let line = format!(
            "DQ.UNBLOCK {own} {} {1} {2} {1} {3} 0",
            other.id, ids[0], ids[1], ids[2]
        );
        client.says(&line, "3");
        client.says(&line, "0");
        for (waiter, nothing) in &mut waiters {
            waiter.told(nothing);
        }
        server.wait_for_blocked(1);
        assert_eq!(server.number("dq", "dq_waiting_clients"), 0);
    }
    assert_eq!(server.count_in_aof("DQ.UNBLOCK"), 0);
    client.says("LPUSH l x", "1");
    other.told("[ 'l' 'x' ]");
}

/// What one client sends at once, the replies, and how each command's wait ends.
#[test]
fn one_reply_whatever_else_ends_the_wait() {
    const NOTHING: [&str; 3] = [NIL, NIL, "[ ? ]"];
    const ERROR: [&str; 3] = ["-UNBLOCKED ..."; 3];
    let server = Server::start();
    let mut client = server.raw();
    for (lines, answers, ends) in [
        ("DQ.UNBLOCK ID|DQ.UNBLOCK ID", "1 0", NOTHING),
        ("DQ.UNBLOCK ID|CLIENT UNBLOCK ID", "1 1", NOTHING),
        ("DQ.UNBLOCK ID|CLIENT UNBLOCK ID ERROR", "1 1", ERROR),
        ("CLIENT UNBLOCK ID|DQ.UNBLOCK ID", "1 0", NOTHING),
        ("CLIENT UNBLOCK ID ERROR|DQ.UNBLOCK ID", "1 0", ERROR),
        (
            "DQ.UNBLOCK ID|DQ.ADD q b x|DQ.ADD q c x",
            "1 'b' 'c'",
            NOTHING,
        ),
        ("DQ.UNBLOCK ID|DQ.DEL held a", "1 1", [NIL, NIL, "[ nil$ ]"]),
        (
            "MULTI|DQ.UNBLOCK ID|DQ.ADD q b x|EXEC",
            "+OK +QUEUED +QUEUED [ 1 'b' ]",
            NOTHING,
        ),
        (
            "MULTI|DQ.ADD q b x|DQ.UNBLOCK ID|EXEC",
            "+OK +QUEUED +QUEUED [ 'b' 1 ]",
            NOTHING,
        ),
        (
            "MULTI|DQ.UNBLOCK ID|CLIENT UNBLOCK ID ERROR|EXEC",
            "+OK +QUEUED +QUEUED [ 1 1 ]",
            ERROR,
        ),
        (
            "EVAL return\\x20redis.call('DQ.UNBLOCK',ARGV[1]) 0 ID",
            "1",
            NOTHING,
        ),
        (
            "DQ.UNBLOCK ID|REPLICAOF 127.0.0.1 1|REPLICAOF NO ONE",
            "1 +OK +OK",
            ERROR,
        ),
    ] {
        for (kind, end) in ends.into_iter().enumerate() {
            let (mut waiter, _) = one_of_each(&server, &mut client)
                .into_iter()
                .nth(kind)
                .unwrap();
            server.wait_for_blocked(1);
            let lines = lines.replace("ID", &waiter.id.to_string());
            let lines: Vec<_> = lines.split('|').map(packed).collect();
            client.send(&lines.concat());
            let replies: Vec<_> = lines.iter().map(|_| client.reply()).collect();
            assert_eq!(replies.join(" "), answers);
            if answers.contains("OK +OK") {
                // The server closes the connection.
                assert!(fits(&waiter.client.reply(), end));
                assert_eq!(waiter.client.read_to_end(), b"");
                continue;
            }
            waiter.told(end);
            // It has taken no job, and is served when it waits again.
            let added = ["'b'", "'c'"]
                .iter()
                .filter(|id| answers.contains(**id))
                .count();
            assert_eq!(client.int("DQ.LEN q READY"), added as i64);
            client.run("DEL q");
            waiter.client.begin("DQ.BPOP q 0");
            server.wait_for_blocked(1);
            client.says("DQ.ADD q d x", "'d'");
            assert_eq!(waiter.client.delivery().id, "d");
            client.run("DEL q held");
        }
    }
}

#[test]
fn in_functions_and_readonly_scripts() {
    let server = Server::start();
    let mut client = server.raw();
    let library: &[u8] = b"#!lua name=lib\nredis.register_function('u', function(keys, args) \
        return redis.call('DQ.UNBLOCK', args[1]) end)";
    client.call(&[b"FUNCTION", b"LOAD", library]);
    for line in [
        "FCALL u 0",
        "EVAL_RO return\\x20redis.call('DQ.UNBLOCK',ARGV[1]) 0",
    ] {
        for (mut waiter, nothing) in one_of_each(&server, &mut client) {
            client.says(&format!("{line} {}", waiter.id), "1");
            waiter.told(nothing);
        }
    }
}

#[test]
fn only_those_of_the_own_user() {
    let server = Server::start();
    let mut admin = server.raw();
    for user in ["one", "two"] {
        admin.says(&format!("ACL SETUSER {user} on nopass ~* +@all"), "+OK");
    }
    admin.says(
        "ACL SETUSER few on nopass ~q -@all +dq.bpop +client|id",
        "+OK",
    );
    let login = |user: &str| {
        let mut client = server.raw();
        client.says(&format!("AUTH {user} x"), "+OK");
        client
    };
    let mut waiting = Waiter::new(&server, "DQ.BPOP q 0");
    waiting.client.says("AUTH one x", "+OK");
    waiting.waits(&server);
    let line = format!("DQ.UNBLOCK {}", waiting.id);
    let script = format!(
        "EVAL return\\x20redis.call('DQ.UNBLOCK',ARGV[1]) 0 {}",
        waiting.id
    );
    for other in [&mut admin, &mut login("two")] {
        other.says(&line, "0");
        other.says(&script, "0");
    }
    let refused = login("few").ask(&line);
    assert!(refused.starts_with("-NOPERM "), "{refused}");
    assert_eq!(server.number("dq", "dq_waiting_clients"), 1);
    login("one").says(&line, "1");
    waiting.told(NIL);
    waiting.waits(&server);
    login("one").says(&script, "1");
    waiting.told(NIL);
}

/// The server's own CLIENT UNBLOCK of such a client ends Redis up to 8.0 and Valkey up to 8.1.
#[test]
fn leaves_alone_what_a_pause_holds_back() {
    let server = Server::start();
    let mut client = server.raw();
    for kind in ["WRITE", "ALL"] {
        let mut waiters = one_of_each(&server, &mut client);
        let mut held_back = Waiter::new(&server, "DQ.BPOP later 0");
        let ids = waiters.each_ref().map(|(waiter, _)| waiter.id.to_string());
        let pause_ms = if kind == "ALL" { 700 } else { 3_600_000 };
        client.says(&format!("CLIENT PAUSE {pause_ms} {kind}"), "+OK");
        held_back.client.begin(&held_back.line);
        let line = format!("DQ.UNBLOCK {} {}", held_back.id, ids.join(" "));
        if kind == "WRITE" {
            server.wait_for_blocked(4);
            client.says(&line, "3");
            for (waiter, nothing) in &mut waiters {
                // PING is answered while only writes are paused.
                waiter.told(nothing);
            }
            client.says(&line, "0");
            client.says("CLIENT UNPAUSE", "+OK");
        } else {
            // Runs after the pause, as does what it held back; one of them comes first.
            client.begin(&line);
            let ended = client.reply();
            assert!(["3", "4"].contains(&&*ended), "{ended}");
            for (waiter, nothing) in &mut waiters {
                waiter.told(nothing);
            }
            if ended == "4" {
                held_back.told(NIL);
                continue;
            }
        }
        client.says("DQ.ADD later a x", "'a'");
        assert_eq!(held_back.client.delivery().id, "a");
        client.run("DEL later");
    }
    server.assert_no_crash();
}

#[test]
fn while_a_failover_goes_on() {
    let (master, replica) = pair(Server::builder().config("repl-timeout", 3600));
    let mut client = master.raw();
    let mut waiters = one_of_each(&master, &mut client);
    let ids = waiters.each_ref().map(|(waiter, _)| waiter.id.to_string());
    let mut held_back = Waiter::new(&master, "DQ.BPOP later 0");
    replica.signal("STOP");
    client.says("SET behind x", "+OK");
    client.says("FAILOVER TIMEOUT 2000", "+OK");
    held_back.client.begin(&held_back.line);
    master.wait_for_blocked(4);
    client.says(
        &format!("DQ.UNBLOCK {} {}", held_back.id, ids.join(" ")),
        "3",
    );
    for (waiter, nothing) in &mut waiters {
        waiter.told(nothing);
    }
    replica.signal("CONT");
    wait_until("the failover is over", PATIENCE, || {
        master.info("replication", "master_failover_state") == "no-failover"
    });
    master.assert_no_crash();
}

#[test]
fn on_a_replica_that_has_lost_its_master_too() {
    let (mut master, replica) = pair(Server::builder());
    master.raw().says("DQ.ADD q a x", "'a'");
    replica.wait_for_offset_of(&master);
    let mut waiting = Waiter::new(&replica, "DQ.AWAIT q 0 a");
    let mut there = replica.raw();
    there.says("CONFIG SET replica-serve-stale-data no", "+OK");
    waiting.waits(&replica);
    there.says(&format!("DQ.UNBLOCK {}", waiting.id), "1");
    waiting.told(NIL);
    waiting.waits(&replica);
    master.kill();
    wait_until("the replica is alone", PATIENCE, || {
        there.ask("DQ.LEN q").starts_with("-MASTERDOWN ")
    });
    there.says(&format!("DQ.UNBLOCK {}", waiting.id), "1");
    assert_eq!(waiting.client.reply(), NIL);
}

/// The server's cron redirects those who wait in a slot that has gone.
#[test]
fn one_reply_when_the_slot_goes_away() {
    let cluster = Cluster::start(2);
    let slot = cluster.slot_of("{x}q");
    for round in 0..12 {
        let owner = cluster.node_of("{x}q");
        let (server, other) = (&cluster.nodes[owner], 1 - owner);
        let mut waiting = Waiter::new(server, "DQ.BPOP {x}q 0");
        waiting.waits(server);
        cluster.tell_owner(slot, other, [other]);
        let unblock = format!("DQ.UNBLOCK {}", waiting.id);
        let give_away = format!("CLUSTER SETSLOT {slot} NODE {}", cluster.id(other));
        let (lines, expected) = match round % 2 {
            0 => ([&unblock, &give_away], "1 +OK"),
            _ => ([&give_away, &unblock], "+OK 1"),
        };
        let mut client = server.raw();
        client.send(&lines.map(|line| packed(line)).concat());
        assert_eq!([client.reply(), client.reply()].join(" "), expected);
        let reply = waiting.client.reply();
        assert!(reply == NIL || reply.starts_with("-MOVED "), "{reply}");
        waiting.client.says("PING", "+PONG");
        cluster.wait_until_ok();
    }
}

/// An empty queue that is kept only for those who wait is gone when they have their reply.
#[test]
fn lets_go_of_what_was_kept_for_those_who_wait() {
    let server = Server::start();
    let mut client = server.raw();
    let mut waiting = Waiter::new(&server, "DQ.BPOP q 0");
    waiting.waits(&server);
    client.says("DQ.ADD q a x DELAY 60000", "'a'");
    client.says("DQ.DEL q a", "1");
    client.says("EXISTS q", "1");
    client.says(&format!("DQ.UNBLOCK {}", waiting.id), "1");
    waiting.told(NIL);
    client.says("EXISTS q", "0");
}
