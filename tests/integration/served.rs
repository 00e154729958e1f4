//! What delivers a job to a waiting client: the command that makes it ready, or the timer.

use crate::probe::packed;
use crate::scene::{pair, Lines, Scene};
use crate::support::{raw, Raw, Server};

/// Sends lines that the server reads, and answers, at one go.
fn at_once(client: &mut Raw, lines: &[&str]) -> Vec<String> {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| packed(line)).collect();
    client.send(&bytes);
    lines.iter().map(|_| client.reply()).collect()
}

#[test]
fn by_the_command_before_the_next_one() {
    let server = Server::start();
    let mut client = server.raw();
    // What makes a job ready, and the state before it.
    let causes: [(&[&str], &str); 5] = [
        (&[], "DQ.ADD q j x"),
        (&["DQ.ADD q j x", "DQ.POP q"], "DQ.NACK q j"),
        (
            &["DQ.ADD q j x", "DQ.POP q", "DQ.NACK q j FATAL"],
            "DQ.KICK q COUNT 1",
        ),
        (&["DQ.ADD q j x DELAY 3600000"], "DQ.RESCHEDULE q DELAY 0 j"),
        (&["DQ.ADD q j x DELAY 3600000"], "DQ.ADD q j y REPLACE"),
    ];
    for (before, cause) in causes {
        before.iter().for_each(|line| drop(client.run(line)));
        let mut waiting = server.waiting("DQ.BPOP q 0 NOACK");
        let replies = at_once(&mut client, &[cause, "EXISTS q"]);
        assert_eq!(replies[1], "0", "after {cause}");
        assert_eq!(waiting.delivery().id, "j", "{cause}");
    }
    server.wait_for_blocked(0);
}

#[test]
fn one_job_by_one_command_and_the_others_in_their_order() {
    let server = Server::start();
    let mut client = server.raw();
    let mut line: Vec<Raw> = (0..5).map(|_| server.waiting("DQ.BPOP q 0")).collect();
    client.begin("MULTI");
    (0..3).for_each(|number| client.begin(&format!("DQ.ADD q j{number} x")));
    let mut bytes = packed("EXEC");
    // The timer already has to look after the queue, so this job waits for it.
    bytes.extend(packed("DQ.ADD q j3 x"));
    bytes.extend(packed("DQ.ADD q j4 x"));
    client.send(&bytes);
    (0..7).for_each(|_| drop(client.read()));
    for (number, waiting) in line.iter_mut().enumerate() {
        assert_eq!(waiting.delivery().id, format!("j{number}"));
    }
}

#[test]
fn not_within_a_transaction_or_a_script() {
    let server = Server::start();
    let mut client = server.raw();
    let mut waiting = server.waiting("DQ.BPOP q 0 NOACK");
    let lines = ["MULTI", "DQ.ADD q j x", "EXISTS q", "EXEC"];
    assert_eq!(at_once(&mut client, &lines)[3], "[ 'j' 1 ]");
    assert_eq!(waiting.delivery().id, "j");
    let mut waiting = server.waiting("DQ.BPOP q 0 NOACK");
    let script = "redis.call('DQ.ADD', KEYS[1], 'j', 'x') return redis.call('EXISTS', KEYS[1])";
    let eval: [&[u8]; 4] = [b"EVAL", script.as_bytes(), b"1", b"q"];
    client.send(&raw::encode(&eval));
    assert_eq!(client.reply(), "1");
    assert_eq!(waiting.delivery().id, "j");
}

#[test]
fn many_jobs_for_one_who_asks_for_many() {
    let server = Server::start();
    let mut waiting = server.waiting("DQ.BPOP q 0 COUNT 2 NOACK");
    at_once(&mut server.raw(), &["DQ.ADD q a x", "DQ.ADD q b x"]);
    let reply = waiting.reply();
    assert!(reply.contains("'a'") && reply.contains("'b'"), "{reply}");
}

#[test]
fn alike_on_a_replica_and_after_a_restart() {
    let (mut master, replica) = pair(Server::builder().config("appendonly", "yes"));
    let mut client = master.raw();
    for number in 0..20 {
        let noack = if number % 2 == 0 { " NOACK" } else { "" };
        let mut waiting = master.waiting(&format!("DQ.BPOP q 0{noack}"));
        client.says(&format!("DQ.ADD q j{number} x"), &format!("'j{number}'"));
        assert_eq!(waiting.delivery().id, format!("j{number}"));
    }
    assert_eq!(client.int("DQ.LEN q"), 10);
    replica.assert_same_data_as(&master);
    let before = master.digest();
    master.restart();
    assert_eq!(master.digest(), before);
    // The commands did the work: each is one line of the AOF with everything that followed from it.
    assert_eq!(master.count_in_aof("DQ.APPLY"), 20);
}

/// Until its turn ends, the server counts a client as blocked that a command has answered: another command may end its
/// wait again. Redis 7 then replies twice to `CLIENT UNBLOCK ... ERROR` (docs/operations.md).
#[test]
fn one_reply_if_another_command_ends_the_wait_too() {
    let server = Server::start();
    let mut client = server.raw();
    for (wait, cause) in [
        ("DQ.BPOP q 0", "DQ.ADD q j x"),
        ("DQ.BPOP q 0 NOACK WITHDUE WITHRESULTS", "DQ.ADD q j x"),
        ("DQ.AWAIT r 0 j", "DQ.DEL r j"),
    ] {
        for how in ["", " ERROR"] {
            if how == " ERROR" && !server.version().at_least(7, 4) {
                continue;
            }
            client.run("DQ.ADD r j x");
            let mut waiting = server.raw();
            let id = waiting.int("CLIENT ID");
            waiting.begin(wait);
            server.wait_for_blocked(1);
            let unblock = format!("CLIENT UNBLOCK {id}{how}");
            at_once(&mut client, &[cause, &unblock]);
            let reply = waiting.reply();
            let is_error = reply.starts_with("-UNBLOCKED ");
            assert!(
                is_error || reply.contains("'j'"),
                "{wait}, {unblock}: {reply}"
            );
            waiting.says("PING", "+PONG");
            client.run("DEL q r");
        }
    }
    server.wait_for_blocked(0);
}
