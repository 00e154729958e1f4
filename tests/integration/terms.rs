//! WITHTERMS and LEASE: what worker libraries need of DQ.POP and DQ.BPOP.

use crate::probe::{fits, packed, show, Probe};
use crate::scene::Scene;
use crate::support::{Reply, Server};
use crate::turned::builder;

#[test]
fn withterms_tells_ttr_attempts_and_the_next_wait() {
    let mut p = Probe::start();
    p.talk(
        "> DQ.ADD q a x
        'a'
        > DQ.POP q WITHTERMS
        [ 'a' 'x' ? 1 ? [ 60000 0 nil$ ] ]
        > DQ.ADD q b x AT 2000 TTR 700000 ATTEMPTS 9 BACKOFF 2 1000 5000
        'b'
        > DQ.POP q WITHTERMS WITHDUE
        [ 'b' 'x' ? 1 ? 2000 [ 700000 9 1000 ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        3> DQ.POP q COUNT 3 withterms
        [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ]
        > DQ.NACK q b SILENT DELAY 0
        'ready'
        > DQ.BPOP q 0 COUNT 1 WITHTERMS
        [ 'q' [ [ 'b' 'x' ? 2 ? [ 700000 9 5000 ] ] ] ]
        > DQ.NACK q b DELAY 0
        'ready'
        > DQ.BPOP none q 0 WITHTERMS NOACK WITHDUE
        [ 'q' 'b' 'x' nil$ 3 nil$ ? [ 700000 9 5000 ] ]
        > DQ.ADD q c x EVERY 1000 DELAY 0 TTR 50000
        'c'
        3> DQ.POP q NOACK WITHTERMS
        [ 'c' 'x' nil 1 nil [ 50000 0 nil ] ]",
    );
}

/// The length of the lease that a POP has given.
fn lease(p: &mut Probe, line: &str) -> u64 {
    let before = p.time_us();
    let Reply::Array(words) = p.run(line) else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    // Up to the half minute: no test takes as long.
    (*deadline as u64 * 1000 - before) / 30_000_000 * 30_000
}

#[test]
fn the_default_is_that_of_the_delivery() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    waiting.send(&packed("DQ.BPOP q 0 LEASE 480000"));
    p.server.wait_for_blocked(1);
    p.run("CONFIG SET dq.default-ttr 90000");
    let before = p.time_us();
    p.run("DQ.ADD q a x");
    let Reply::Array(words) = waiting.read() else {
        panic!("no job")
    };
    let Some(Reply::Integer(deadline)) = words.last() else {
        panic!("{words:?}")
    };
    assert!(*deadline as u64 * 1000 >= before + 480_000_000);
    p.run("DQ.ADD q b x TTR 60000");
    assert_eq!(lease(&mut p, "DQ.POP q LEASE 480000"), 60_000);
}

#[test]
fn a_waiting_client_gets_terms_from_the_command_and_from_the_timer() {
    let mut p = Probe::start();
    let mut waiting = p.server.raw();
    for (options, add, expected) in [
        // Handed over by the command itself, and by the timer.
        ("", "", "[ 'q' 'a' 'x' ? 1 ? [ 70000 0 5 ] ]"),
        ("COUNT 2", "", "[ 'q' [ [ 'a' 'x' ? 1 ? [ 70000 0 5 ] ] ] ]"),
        (
            "NOACK",
            "DELAY 1",
            "[ 'q' 'a' 'x' nil$ 1 nil$ [ 70000 0 5 ] ]",
        ),
    ] {
        waiting.send(&packed(&format!("DQ.BPOP q 0 WITHTERMS {options}")));
        p.server.wait_for_blocked(1);
        p.run(&format!("DQ.ADD q a x TTR 70000 BACKOFF 1 5 {add}"));
        let reply = show(&waiting.read());
        assert!(fits(&reply, expected), "{reply}");
        p.run("DQ.ACK q a");
    }
}

#[test]
fn the_setting_of_the_moment_counts() {
    let mut p = Probe::of(builder());
    p.run("DQ.ADD q a x");
    for (setting, step) in [("5000", 5000), ("20,7000", 7000), ("0", 0), ("9000", 9000)] {
        p.says(&format!("CONFIG SET dq.default-backoff {setting}"), "+OK");
        p.run("DQ.POP q");
        p.run("DQ.NACK q a");
        let wait = p.field_int("DQ.GET q a", "due") - p.field_int("DQ.GET q a", "failed");
        assert!(
            (step..=step + step / 10).contains(&wait),
            "{setting}: {wait}"
        );
        p.run("DQ.RESCHEDULE q DELAY 0 a");
    }
}

/// The master decides: what its replica and its AOF are set to does not matter.
#[test]
fn all_copies_have_the_masters_waits() {
    let builder = || Server::builder().aof();
    let mut p = Probe::of(builder().module_arguments("default-backoff 50000 1000000"));
    let replica = builder().module_arguments("default-backoff 7").start();
    replica.replica_of(&p.server);
    for id in ["a", "b", "c"] {
        p.run(&format!("DQ.ADD q {id} x"));
        p.run("DQ.POP q");
        p.says(&format!("DQ.NACK q {id}"), "'delayed'");
    }
    replica.assert_same_data_as(&p.server);
    let digest = p.server.digest();
    p.run("CONFIG SET dq.default-backoff 9");
    for again in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
        p.says(again, "+OK");
        assert_eq!(p.server.digest(), digest, "{again}");
    }
}
