//! Clients that wait in DQ.AWAIT, when much happens before the timer fires.

use std::time::Duration;

use crate::awaits::{pop, told};
use crate::probe::packed;
use crate::scene::{pair, Lines, Scene};
use crate::support::{Raw, Server};

/// An end that was recorded is reported, whatever has the name by then.
#[test]
fn an_end_outlives_its_key() {
    let server = Server::start();
    let mut client = server.raw();
    let script = "EVAL redis.call('dq.del','q','a')\\x20redis.call('del','q')\\x20\
                  redis.call('set','q','x') 1 q";
    let transaction = "MULTI / DQ.DEL q a / SET q x / EXEC";
    for (count, lines) in [
        (1, script),
        (1, transaction),
        (40, "DQ.DEL q a / SET q x"),
        (40, "DQ.DEL q a / DEL q / SET q x / DEL q / DQ.ADD q a x"),
    ] {
        client.run("DEL q");
        client.run("DQ.ADD q a x");
        client.run("DQ.ADD q b x");
        let mut waiting = Vec::from_iter((0..count).map(|_| server.waiting("DQ.AWAIT q 0 a")));
        at_once(&mut client, lines);
        for waiting in &mut waiting {
            told(waiting, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
        }
    }
    // A client with no recorded end is refused.
    client.run("DEL q");
    client.run("DQ.ADD q a x");
    client.run("DQ.ADD q b x");
    let mut waiting = server.waiting("DQ.AWAIT q 0 b");
    at_once(&mut client, transaction);
    told(&mut waiting, "-WRONGTYPE ...");
}

/// Sends all lines in one packet.
fn at_once(client: &mut Raw, lines: &str) {
    let lines = Vec::from_iter(lines.split(" / "));
    client.send(&Vec::from_iter(lines.iter().map(|line| packed(line))).concat());
    for line in lines {
        let reply = client.reply();
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
}

/// A key is deleted and made again at once: a waiting client is told of the deletion. In a transaction the two are one
/// change.
#[test]
fn deleted_and_made_again() {
    let (server, replica) = pair(Server::builder());
    let mut client = server.raw();
    let unknown = "[ [ 'a' 'unknown' nil$ nil$ nil$ ] ]";
    for gone in ["DEL q", "UNLINK q", "FLUSHALL", "RENAME q r", "SWAPDB 0 5"] {
        client.run("FLUSHALL");
        client.run("DQ.ADD q a x");
        client.run("DQ.POP q TTR 100000");
        replica.wait_for_offset_of(&server);
        let mut waiting = [0; 20].map(|_| server.waiting("DQ.AWAIT q 0 a"));
        let mut below = replica.waiting("DQ.AWAIT q 0 a");
        at_once(&mut client, &format!("{gone} / DQ.ADD q a y"));
        waiting.iter_mut().for_each(|waiting| {
            told(waiting, unknown);
        });
        told(&mut below, unknown);
        server.wait_for_blocked(0);
    }
    // Another queue gets the name, and then the job that it lacked.
    client.run("FLUSHALL");
    client.run("DQ.ADD q a x");
    client.run("DQ.ADD other b x");
    let mut waiting = server.waiting("DQ.AWAIT q 0 a");
    at_once(&mut client, "RENAME other q / DQ.ADD q a y");
    told(&mut waiting, unknown);
    for both in [
        "MULTI / DEL q / DQ.ADD q a y / EXEC",
        "EVAL redis.call('del','q')\\x20redis.call('dq.add','q','a','y') 1 q",
    ] {
        replica.wait_for_offset_of(&server);
        let mut waiting = [
            server.waiting("DQ.AWAIT q 0 a"),
            replica.waiting("DQ.AWAIT q 0 a"),
        ];
        at_once(&mut client, both);
        for waiting in &mut waiting {
            assert_eq!(waiting.try_read(Duration::from_millis(30)), None, "{both}");
        }
        client.says("DQ.DEL q a", "1");
        for waiting in &mut waiting {
            told(waiting, "[ [ 'a' 'deleted' nil$ ? 0 ] ]");
        }
        client.run("DQ.ADD q a x");
    }
}

/// One command finds the expired lease, and acknowledges the job that died of it.
#[test]
fn acknowledged_late_in_the_same_command() {
    let server = Server::start();
    let mut client = server.raw();
    for (keep, by) in [
        ("", "WITHTOKENS a <token>"),
        (" KEEP 60000", "RESULTS a <token> fine"),
    ] {
        client.says(&format!("DQ.ADD q a x ATTEMPTS 1{keep}"), "'a'");
        // As long as the waiting client may take to be blocked.
        let token = pop(&mut client, "DQ.POP q TTR 3000");
        let mut waiting = server.waiting("DQ.AWAIT q 0 a");
        let ack = format!("DQ.ACK q {by}").replace("<token>", &token);
        // In one packet, so that the timer does not fire in between.
        at_once(&mut client, &format!("DEBUG SLEEP 3.1 / {ack}"));
        let value = if keep.is_empty() { "nil$" } else { "'fine'" };
        told(&mut waiting, &format!("[ [ 'a' 'done' {value} ? 1 ] ]"));
    }
}
